"""A model that is trained on another device answers where it is asked; nothing else changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.utils.backend_registration
from torch import nn

from command_line import environment
from separatrix.training.placement import moved, placed


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this torch cannot make a device in Python",
)
def test_a_cell_that_trains_uses_the_device_of_its_worker_and_gives_the_same_numbers() -> None:
    """On a device made in Python, whose tensors refuse to meet those of the processor."""
    words = [sys.executable, str(Path(__file__).parents[1] / "second_device.py")]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    here, there = json.loads(done.stdout)
    assert (here["met"], here["used"], here["after"]) == (["cpu"], "cpu", "cpu")
    assert (there["met"], there["used"], there["after"]) == (["elsewhere"], "elsewhere:0", "cpu")
    for name in ("losses", "measured"):
        assert there[name][1] == pytest.approx(here[name][1], rel=1e-6)


def test_a_model_goes_back_and_forgets_where_it_was_even_after_an_error() -> None:
    model = nn.Linear(2, 2)

    def failing() -> None:
        with placed(model, "cpu:0"):  # to torch another device than "cpu", though it is the same
            assert model._forward_hooks
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


def test_nothing_happens_to_a_model_that_is_there_already() -> None:
    model = nn.Linear(2, 2)
    for device in (None, "cpu"):
        with placed(model, device):
            assert not model._forward_hooks


def test_what_is_moved_keeps_its_form() -> None:
    value = {"a": [torch.ones(1), (torch.ones(2), "word")], "b": None}
    found = moved(value, "meta")
    assert found["a"][0].is_meta
    assert found["a"][1][0].is_meta
    assert (found["a"][1][1], found["b"]) == ("word", None)
