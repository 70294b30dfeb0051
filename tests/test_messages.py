from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from messages import ByFile, hands_out, is_routine, more_is_asked


class Process:
    """One that would run tests: keeps what it was given, and names it as xdist's own do."""

    def __init__(self, name: str) -> None:
        self.gateway, self.given, self.shutting_down = SimpleNamespace(id=name), [], False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def begun(kind: type[LoadFileScheduling], names: list[str]) -> tuple[LoadFileScheduling, list[Any]]:
    config: Any = SimpleNamespace(
        getvalue=lambda name: {"tx": ["2*popen"]}[name], option=SimpleNamespace(loadscopereorder=True)
    )
    scheduler, processes = kind(config), [Process("first"), Process("second")]
    for process in processes:
        scheduler.add_node(process)  # type: ignore[arg-type]
    for process in processes:
        scheduler.add_node_collection(process, names)  # type: ignore[arg-type]
    scheduler.schedule()
    return scheduler, processes


def names_of(files: int) -> list[str]:
    draw = random.Random(files)
    return [f"{file}.py::test[{case}]" for file in range(files) for case in range(draw.randint(1, 5))]


@pytest.mark.parametrize("files", [2, 3, 20])
def test_files_go_to_the_processes_to_which_they_always_went(files: int) -> None:
    names, draw = names_of(files), random.Random(1)
    (ours, mine), (usual, theirs) = begun(ByFile, names), begun(LoadFileScheduling, names)
    done = [0, 0]
    while sum(done) < len(names):
        number = draw.choice([number for number in (0, 1) if done[number] < len(mine[number].given)])
        index = mine[number].given[done[number]]
        for scheduler, process in ((ours, mine[number]), (usual, theirs[number])):
            scheduler.mark_test_complete(process, index)
        done[number] += 1
        assert [process.given for process in mine] == [process.given for process in theirs]
        assert (ours.tests_finished, ours.has_pending) == (usual.tests_finished, usual.has_pending)
    assert sorted(mine[0].given + mine[1].given) == list(range(len(names)))


def test_what_a_process_that_crashed_had_not_done_is_done_by_the_other() -> None:
    names = names_of(6)
    scheduler, (crashed, other) = begun(ByFile, names)
    finished = crashed.given[:2]
    for index in finished:
        scheduler.mark_test_complete(crashed, index)
    assert scheduler.remove_node(crashed) == names[crashed.given[2]]
    done = 0
    while done < len(other.given):
        scheduler.mark_test_complete(other, other.given[done])
        done += 1
    assert sorted(finished + other.given) == list(range(len(names)))


@pytest.mark.parametrize(
    ("when", "outcome", "routine"),
    [
        ("setup", "passed", True),
        ("teardown", "passed", True),
        ("call", "passed", False),
        ("call", "failed", False),
        ("setup", "failed", False),
        ("setup", "skipped", False),
        ("teardown", "failed", False),
    ],
)
def test_only_what_went_well_around_a_test_is_not_told(when: str, outcome: str, routine: bool) -> None:
    assert is_routine("testreport", {"data": {"when": when, "outcome": outcome}}) is routine


def test_other_messages_are_told_but_that_a_test_begins_or_ends() -> None:
    assert is_routine("logstart", {"nodeid": "a"})
    assert not is_routine("runtest_protocol_complete", {"item_index": 3})
    assert not is_routine("workerfinished", {})


def test_a_process_that_runs_tests_for_another_says_less(request: pytest.FixtureRequest) -> None:
    talking = [p for p in request.config.pluginmanager.get_plugins() if type(p).__name__ == "WorkerInteractor"]
    if not talking:
        pytest.skip("needs -n")
    assert all(("sendevent" in vars(plugin)) is not more_is_asked(request.config) for plugin in talking)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"numprocesses": 2}, True),
        ({"numprocesses": 0}, False),
        ({"numprocesses": None}, False),
        ({}, False),
        ({"numprocesses": 2, "usepdb": True}, False),
        ({"numprocesses": 2, "collectonly": True}, False),
    ],
)
def test_only_who_hands_out_tests_leaves_them_to_others(
    asked: dict[str, Any], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Any = SimpleNamespace(known_args_namespace=SimpleNamespace(**asked))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    assert hands_out(config) is expected
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert not hands_out(config)
