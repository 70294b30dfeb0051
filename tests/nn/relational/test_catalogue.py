from __future__ import annotations

from typing import Any

import pytest

from separatrix.core import InvalidInput
from separatrix.nn import MATCHED_HIDDEN, CoRelNet, make_network
from separatrix.tasks import make_task

SIZES = {"same_diff": (2, 2), "rmts": (6, 2), "dist3": (9, 4), "identity_rules4": (13, 6)}
COUNTS = {
    "CoRelNet": (200_418, 205_026, 211_684, 223_974),
    "CoRelNet-T": (221_866, 221_898, 222_436, 222_982),
    "ESBN": (1_910_757, 1_910_757, 1_911_783, 1_912_809),
    "Transformer": (430_946, 430_946, 431_460, 431_974),
    "PrediNet": (471_834, 1_000_218, 1_396_524, 1_924_926),
    "RN": (529_122, 529_122, 529_636, 530_150),
    "LSTM": (1_514_722, 1_514_722, 1_515_748, 1_516_774),
    "NTM": (2_573_038, 2_573_038, 2_574_064, 2_575_090),
    "MNM": (545_379, 545_379, 545_637, 545_895),
}


def count(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", COUNTS)
def test_networks_have_the_published_numbers_of_parameters(name: str) -> None:
    found = tuple(count(make_network(name, *sizes)) for sizes in SIZES.values())
    assert found == COUNTS[name]  # those of MNM without the 33,920 that its public class never uses


@pytest.mark.parametrize("task", SIZES)
def test_tasks_have_the_sizes_the_counts_are_for(task: str) -> None:
    made = make_task(task)
    assert (made.seq_len, made.n_answers) == SIZES[task]


def test_variants_have_the_published_numbers_of_parameters() -> None:
    sensory = [count(make_network("CoRelNet", *sizes, sensory=True)) for sizes in SIZES.values()]
    assert sensory == [265_954, 401_634, 506_596, 649_958]
    assert count(make_network("ESBN", 2, 2, sensory=True)) == 2_172_901
    assert count(make_network("CoRelNet", 2, 2, symmetric=False)) - 200_418 == 33_024
    assert count(make_network("CoRelNet", 2, 2, l1=1.0)) - 200_418 == 16_512
    assert count(make_network("CoRelNet", 9, 2)) == 211_170  # rmts3


@pytest.mark.parametrize(
    ("task", "printed"),
    [
        ("same_diff", 1_910_760),
        ("rmts", 1_910_754),
        ("dist3", 1_911_784),
        ("rmts3", 1_910_754),
        ("identity_rules4", 1_912_808),
    ],
)
def test_matched_hidden_units_give_the_printed_numbers(task: str, printed: int) -> None:
    made = make_task(task)
    h, t, y = MATCHED_HIDDEN[task], made.seq_len, made.n_answers
    small = count(CoRelNet(t, y, hidden=1))
    assert small + (h - 1) * (t * (t + 1) // 2 + 1 + y) == printed


def test_encoders_of_both_image_sizes_have_the_published_numbers() -> None:
    assert [count(make_network("CoRelNet", 9, 2, image_size=size).encoder) for size in (32, 12)] == [198_624, 75_744]


def test_an_unknown_network_gets_the_near_ones() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'CoRelNet'"):
        make_network("CorelNet", 2, 2)
