"""No public callable answers a wrong kind with an error from its depths: the caller reads which argument it was.

Of all calls a share is tried every day, in ``test_options.py``, whose process has imported every room already.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import wrong_values
from command_line import environment
from separatrix.core import InvalidInput, ShapeError
from separatrix.dynamics import find_equilibrium, jacobian_product, normalise
from separatrix.theory import elliptic_radius, iid_resolvent_density


@pytest.mark.slow
def test_every_public_callable_refuses_wrong_kinds_in_one_sentence(tmp_path: Path) -> None:
    """Apart, because the tests check the types of every call before the package can; a path may be written."""
    words = [sys.executable, str(Path(__file__).with_name("wrong_kinds.py"))]
    done = subprocess.run(words, env=environment(), cwd=tmp_path, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["calls"] > 5000
    assert not answer["raw"]


@pytest.mark.slow
@pytest.mark.parametrize("room", wrong_values.ALL_ROOMS)
def test_every_public_callable_refuses_wrong_values_in_one_sentence(room: str, tmp_path: Path) -> None:
    words = [sys.executable, str(Path(__file__).with_name("wrong_values.py")), room]
    done = subprocess.run(words, env=environment(), cwd=tmp_path, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["calls"] > (100 if room else 20)
    assert not answer["raw"]


def test_axes_that_disagree_are_named() -> None:
    half = torch.full((3,), 0.5, dtype=torch.float64)
    with pytest.raises((ShapeError, TypeError), match="weights"):
        elliptic_radius(half, torch.ones(4, dtype=torch.float64) / 4, torch.tensor(1.0).double(), 0.3)


def test_points_that_are_not_finite_do_not_end_the_process() -> None:
    with pytest.raises(InvalidInput, match=r"x must be finite; entry \(1,\) is nan"):
        iid_resolvent_density(torch.tensor([1.0, torch.nan], dtype=torch.float64), 0.3)


def test_errors_of_the_callers_own_code_stay_as_they_are() -> None:
    def broken(z: torch.Tensor) -> torch.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jacobian_product(broken, torch.zeros(1, 2), torch.full((1, 2), torch.nan))
    with pytest.raises(KeyError, match="mine"):
        find_equilibrium(broken, "picard", torch.zeros(1, 2))


def test_an_unknown_keyword_is_a_plain_error_of_python() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'") as caught:
        normalise(torch.eye(2), axis=0)  # type: ignore[call-arg]
    assert type(caught.value) is TypeError
