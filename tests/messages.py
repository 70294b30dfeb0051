"""What the processes of ``pytest -n 2`` tell each other: ten thousand tests that do nothing took 33 CPU seconds, 20 of
them for six messages a test and for counting, after every test, all those that had run before.

What is left out is read by nobody: that a test begins and ends, and that it was set up and put away without a word.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling


def hands_out(config: pytest.Config) -> bool:
    """Whether this process leaves the tests to others. True from the time when the command line has been read."""
    asked = config.known_args_namespace
    return (
        "PYTEST_XDIST_WORKER" not in os.environ
        and bool(getattr(asked, "numprocesses", None))
        and not any(getattr(asked, name, False) for name in ("usepdb", "collectonly"))
    )


class ByFile(LoadFileScheduling):
    """Files for processes, as ``--dist loadfile`` gives them, where files that are done are not counted again."""

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Take note of a test that is done."""
        name = self.registered_collections[node][item_index]
        scope = self._split_scope(name)
        mine = self.assigned_work[node]
        mine[scope][name] = True
        if all(mine[scope].values()):
            del mine[scope]
        self._reschedule(node)


def more_is_asked(config: pytest.Config) -> bool:
    """Whether an option shows what is left out as a rule: how long everything took, or what passed."""
    options = ("durations", "xmlpath", "report_log", "debug")
    asked = config.get_verbosity() > 0 or any(config.getoption(name, None) for name in options)
    return asked or bool({"p", "P", "A"} & set(config.getoption("reportchars", "")))


def say_less(config: pytest.Config) -> None:
    """In a process that runs tests for another one: unless somebody asked to hear more."""
    if more_is_asked(config):
        return
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.sendevent = _without_routine(plugin.sendevent)  # type: ignore[attr-defined]


def _without_routine(send: Any) -> Any:
    def sendevent(name: str, **said: Any) -> None:
        if not is_routine(name, said):
            send(name, **said)

    return sendevent


def is_routine(name: str, said: dict[str, Any]) -> bool:
    """Whether a message tells nothing that is counted or shown."""
    if name in ("logstart", "logfinish"):
        return True
    report = said.get("data", {})
    return name == "testreport" and report["when"] != "call" and report["outcome"] == "passed"
