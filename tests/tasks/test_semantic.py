from __future__ import annotations

import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.tasks import semantic_task, white_regression


def test_the_semantic_hierarchy_has_the_singular_values_of_a_tree() -> None:
    task = semantic_task()
    root = 2**0.5
    expected = torch.tensor([2 * root, 2 * root, 2, 2, root, root, root, root], dtype=torch.float64)
    torch.testing.assert_close(torch.linalg.svdvals(8 * task.corr_yx), expected)
    assert float(task.targets.square().sum() / 16) == 2.0
    torch.testing.assert_close(task.corr_xx, torch.eye(8, dtype=torch.float64) * task.input_var)


def test_variants_separate_or_reverse() -> None:
    values = torch.linalg.svdvals(semantic_task("distinct").corr_yx)
    assert (values[:-1] - values[1:]).min() > 1e-4
    plain, reverse = semantic_task().targets, semantic_task("reversal").targets
    assert torch.equal(reverse[:, :-1], plain[:, :-1])
    assert torch.equal(reverse[:, -1], -plain[:, -1])
    with pytest.raises(InvalidInput, match=r"unknown variant of the semantic task 'distinc'. Did you mean 'distinct'"):
        semantic_task("distinc")


def test_random_regression_is_exactly_white_and_centred(generator: torch.Generator) -> None:
    task = white_regression(5, 3, 11, generator=generator)
    torch.testing.assert_close(task.corr_xx, torch.eye(5, dtype=torch.float64), atol=1e-13, rtol=0)
    assert task.inputs.mean(0).abs().max() < 1e-13
    torch.testing.assert_close(task.corr_yx, task.targets.mT @ task.inputs / 11)
    assert white_regression(4, 6, generator=generator).inputs.shape == (12, 4)


def test_too_few_samples_cannot_be_white(generator: torch.Generator) -> None:
    with pytest.raises(
        InvalidInput, match="n_samples must exceed n_in = 5, or the input correlation is singular; got 5"
    ):
        white_regression(5, 3, 5, generator=generator)
