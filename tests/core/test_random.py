from __future__ import annotations

import inspect

import pytest
import torch
from hypothesis import given, strategies as st

from separatrix.core import InvalidInput, spawn, spawn_numpy, stream_seed
from separatrix.core.random import seed_global

PATHS = st.lists(st.one_of(st.text(max_size=5), st.integers(-5, 5)), max_size=4)


def test_streams_are_the_same_on_every_machine() -> None:
    assert stream_seed(0, "fig5", "init", 3) == 3514418399582276168  # by hand: sha256sum, first 8 bytes, halved
    assert torch.randint(10**6, (3,), generator=spawn(7, "a")).tolist() == [829148, 268233, 347113]
    assert spawn_numpy(7, "a").integers(10**6, size=3).tolist() == [762371, 689219, 554649]


def test_global_draws_are_those_of_torch_and_nothing_is_kept_for_devices_that_are_not_in_use() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        wanted = torch.randn(4)
        kept = len(torch.cuda._queued_calls)
        seed_global(5)
        assert bool((torch.randn(4) == wanted).all())
        assert len(torch.cuda._queued_calls) == kept


@given(st.integers(), PATHS, PATHS)
def test_different_paths_give_different_seeds_in_range(seed: int, one: list, two: list) -> None:
    first, second = stream_seed(seed, *one), stream_seed(seed, *two)
    assert 0 <= first < 2**63
    assert (first == second) == (one == two)


def test_path_is_not_glued_together() -> None:
    assert (
        len(
            {
                stream_seed(1, "ab"),
                stream_seed(1, "a", "b"),
                stream_seed(11, "b"),
                stream_seed(1, "1"),
                stream_seed(1, 1),
            }
        )
        == 5
    )


def test_adding_a_stream_does_not_shift_the_others() -> None:
    alone = torch.randn(4, generator=spawn(0, "init"))
    torch.randn(100, generator=spawn(0, "data"))
    assert torch.equal(torch.randn(4, generator=spawn(0, "init")), alone)


@pytest.mark.parametrize("seed", [True, 1.0, "1", None])
def test_seed_must_be_an_integer(seed: object) -> None:
    import separatrix.core.random

    unchecked = inspect.unwrap(separatrix.core.random.stream_seed)
    with pytest.raises(InvalidInput, match="seed must be an integer"):
        unchecked(seed)
