from __future__ import annotations

import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput, spawn
from separatrix.dynamics import Anderson, Broyden
from separatrix.nn import EquilibriumClassifier, EquilibriumLanguageModel, TanhCell, TransformerCell


def language_model(embedding_std: float = 0.5) -> EquilibriumLanguageModel:
    solver = Broyden(tol=1e-5, max_steps=40)
    cell = TransformerCell(8, 2, weight_var=0.1, generator=spawn(0, "cell"))
    return EquilibriumLanguageModel(
        cell, n_symbols=5, width=8, context=6, embedding_std=embedding_std, solver=solver, backward_solver=solver,
        generator=spawn(0, "rest"),
    )  # fmt: skip


def test_the_classifier_reads_the_equilibrium(generator: torch.Generator) -> None:
    cell = TanhCell(4, weight_var=0.5, generator=generator)
    head = nn.utils.skip_init(nn.Linear, 4, 3)
    nn.init.ones_(head.weight)
    nn.init.zeros_(head.bias)
    solver = Anderson(tol=1e-6, max_steps=50)
    x = torch.rand(2, 5, 4, generator=generator)
    logits = EquilibriumClassifier(cell, head, solver=solver, backward_solver=solver)(x)
    z = torch.zeros_like(x)
    for _ in range(200):
        z = cell(z, x)
    torch.testing.assert_close(logits, head(z), rtol=1e-4, atol=1e-4)


def test_a_language_model_does_not_look_ahead() -> None:
    model = language_model()
    tokens = torch.tensor([[0, 1, 2, 3, 4, 0]])
    changed = tokens.clone()
    changed[0, 4:] = torch.tensor([1, 2])
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :4], after[:, :4], rtol=0, atol=1e-3)  # both solved to 1e-5
    assert float((before[:, 4:] - after[:, 4:]).abs().max()) > 1e-2


def test_embeddings_have_the_size_asked_for_and_nothing_global_is_drawn() -> None:
    before = torch.get_rng_state()
    model = language_model(embedding_std=3.0)
    assert torch.equal(torch.get_rng_state(), before)
    assert model.tokens.weight.std().item() == pytest.approx(3.0, rel=0.4)


def test_too_long_a_sequence_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at most context = 6 positions; got 7"):
        language_model()(torch.zeros(1, 7, dtype=torch.int64))
