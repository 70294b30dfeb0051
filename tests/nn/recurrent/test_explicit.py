from __future__ import annotations

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.nn import SequenceModel, adding_solution, copy_solution
from separatrix.tasks import Adding, Copy


def right_share(model: SequenceModel, task: Copy) -> float:
    """Of all steps, blanks included."""
    batch = task.sample(30, generator=seeded(0))
    with torch.no_grad():
        return float((model(batch.inputs.double()).argmax(-1) == batch.targets).double().mean())


@pytest.mark.parametrize("n_clocks", [None, 100])
@pytest.mark.parametrize("delay", [1, 7, 60])
@pytest.mark.parametrize("layout", ["kerg", "scornn"])
def test_every_step_of_every_copy_is_right(delay: int, layout: str, n_clocks: int | None) -> None:
    model = copy_solution(delay, layout, n_clocks=n_clocks, generator=seeded(1))  # type: ignore[arg-type]
    assert right_share(model, Copy(delay, layout=layout)) == 1.0  # type: ignore[arg-type]


def test_the_loss_of_a_copy_is_none() -> None:
    task, model = Copy(60), copy_solution(60)
    batch = task.sample(5, generator=seeded(0))
    assert float(task.loss(model(batch.inputs.double()), batch).detach()) < 1e-12


@pytest.mark.parametrize("n_clocks", [None, 90])
def test_the_matrix_of_a_copy_is_orthogonal(n_clocks: int | None) -> None:
    matrix = copy_solution(23, n_clocks=n_clocks).core.recurrent()
    assert torch.allclose(matrix @ matrix.mT, torch.eye(len(matrix), dtype=matrix.dtype), atol=1e-13)


def test_all_clocks_are_back_after_the_delay_and_a_solution_for_another_delay_is_wrong() -> None:
    model = copy_solution(23, n_clocks=90)
    clocks = model.core.recurrent()[:180, :180]
    back = torch.linalg.matrix_power(clocks, 33)
    assert torch.allclose(back, torch.eye(180, dtype=clocks.dtype), atol=1e-12)
    assert right_share(model, Copy(24)) < 0.9


def test_too_few_clocks_are_refused() -> None:
    with pytest.raises(InvalidInput, match="n_clocks must be larger"):
        copy_solution(50, n_clocks=60)


@pytest.mark.parametrize("length", [2, 9, 400])
def test_one_unit_adds(length: int) -> None:
    task = Adding(length)
    batch = task.sample(20, generator=seeded(2))
    assert float(task.loss(adding_solution(dtype=torch.float32)(batch.inputs), batch).detach()) < 1e-12
