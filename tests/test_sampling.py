from __future__ import annotations

import pytest

from sampling import drawn, in_turn

CASES = [(f"{solver}-{size}", solver) for solver in "abc" for size in range(10)]


def test_every_group_keeps_so_many_cases_and_a_small_one_all() -> None:
    kept = drawn([*CASES, ("d-0", "d")], 2, seed=0)
    assert sorted(name[0] for name in kept) == ["a", "a", "b", "b", "c", "c", "d"]


def test_a_draw_repeats_and_another_seed_draws_others() -> None:
    assert drawn(CASES, 1, seed=5) == drawn(CASES[::-1], 1, seed=5)
    over_seeds = [drawn(CASES, 1, seed=seed) for seed in range(100)]
    assert set.union(*over_seeds) == {name for name, _ in CASES}


LAWS = [[(f"{law}[{flow}-{size}]", flow) for flow in "abcdefg" for size in (1, 2)] for law in ("x", "y", "z")]


def test_every_law_keeps_some_implementations_and_every_implementation_some_laws() -> None:
    for seed in range(30):
        kept = in_turn(LAWS, 3, seed)
        for law in LAWS:
            flows = {flow for name, flow in law if name in kept}
            assert len(flows) == 3
            assert {name for name, flow in law if flow in flows} == {name for name, _ in law} & kept
        assert {flow for law in LAWS for name, flow in law if name in kept} == set("abcdefg")


def test_between_the_seeds_every_law_is_tried_for_every_implementation() -> None:
    assert set.union(*(in_turn(LAWS, 3, seed) for seed in range(30))) == {name for law in LAWS for name, _ in law}
    assert in_turn(LAWS, 3, seed=5) == in_turn(LAWS, 3, seed=5)
    assert in_turn([[("alone", None)], *LAWS], 100, seed=5) == {"alone"} | {name for law in LAWS for name, _ in law}


@pytest.mark.sampled(1, each="law")
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("law", ["first", "second"])
def test_cases_that_are_not_drawn_are_slow(request: pytest.FixtureRequest, law: str, size: int) -> None:
    ours = [item for item in request.session.items if item.nodeid.partition("[")[0] == _here(request)]
    if any(item.get_closest_marker("slow") for item in ours):  # the slow ones were not deselected, or nothing else
        return
    assert len(ours) <= 2


def _here(request: pytest.FixtureRequest) -> str:
    return str(request.node.nodeid.partition("[")[0])
