"""The corridor is what it says; rows of MiniGrid hold what was seen and told; both keep gymnasium's interface."""

from __future__ import annotations

import importlib.util

import numpy
import pytest

from separatrix.core.errors import InvalidInput, MissingExtra
from separatrix.tasks import GRID_SHAPE, MISSION_WORDS, Environment, RecallCorridor, make_minigrid

has_minigrid = all(importlib.util.find_spec(name) is not None for name in ("minigrid", "gymnasium"))
needs_minigrid = pytest.mark.skipif(not has_minigrid, reason="needs minigrid: install separatrix[rl]")


def followed(corridor: RecallCorridor, seed: int, turn: int | None = None) -> tuple[float, int]:
    """Reward and steps of walking on and then turning; by the cue if no turn is given."""
    seen, _ = corridor.reset(seed=seed)
    cue, n_steps = 1 + int(seen[1]), 0
    while True:
        n_steps += 1
        seen, reward, over, late, _ = corridor.step((turn or cue) if seen[3] else 0)
        if over or late:
            return reward, n_steps


@pytest.mark.parametrize("length", [0, 1, 5])
def test_who_remembers_the_cue_earns_one_and_who_always_turns_left_earns_it_half_the_time(length: int) -> None:
    corridor = RecallCorridor(length)
    assert {followed(corridor, seed) for seed in range(20)} == {(1.0, length + 2)}
    lefts = [followed(corridor, seed, turn=1)[0] for seed in range(200)]
    assert abs(numpy.mean(lefts) - 0.5) < 4 * 0.5 / 200**0.5


def test_a_corridor_ends_at_its_limit_and_takes_no_step_afterwards() -> None:
    corridor = RecallCorridor(1)
    with pytest.raises(InvalidInput, match="before reset"):
        corridor.step(0)
    corridor.reset(seed=0)
    ends = [corridor.step(1)[2:4] for _ in range(corridor.limit)]
    assert ends[-1] == (False, True)
    assert set(ends[:-1]) == {(False, False)}
    with pytest.raises(InvalidInput, match="after the end"):
        corridor.step(0)
    corridor.reset(seed=0)
    with pytest.raises(InvalidInput, match=r"action must be 0, 1 or 2; got 3"):
        corridor.step(3)


def test_the_same_seed_gives_the_same_episode_and_the_interface_is_kept() -> None:
    corridor = RecallCorridor()
    assert isinstance(corridor, Environment)
    cues = [corridor.reset(seed=seed)[0].tolist() for seed in (3, 4, 5, 6, 3, 4, 5, 6)]
    assert cues[:4] == cues[4:]
    assert len({tuple(cue) for cue in cues}) == 2
    assert corridor.reset(seed=0)[0].shape == corridor.observation_space.shape


@pytest.mark.skipif(has_minigrid, reason="is installed here")
def test_without_the_extra_a_sentence_says_what_to_install() -> None:
    with pytest.raises(MissingExtra, match=r"separatrix\[rl\]"):
        make_minigrid("DoorKey-5x5")


@needs_minigrid
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_row_holds_image_and_mission() -> None:
    world = make_minigrid("GoToDoor-5x5")
    row, _ = world.reset(seed=1)
    seen, _ = world.inner.reset(seed=1)
    assert isinstance(world, Environment)
    assert row.shape == world.observation_space.shape
    assert numpy.array_equal(row[: numpy.prod(GRID_SHAPE)].reshape(GRID_SHAPE), seen["image"])
    words = [MISSION_WORDS[int(word) - 1] for word in row[numpy.prod(GRID_SHAPE) :] if word]
    assert " ".join(words) == seen["mission"]
    assert len(world.step(2)) == 5
    with pytest.raises(InvalidInput, match="must be an environment of MiniGrid"):
        make_minigrid("Nowhere-5x5")
