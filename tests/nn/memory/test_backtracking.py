"""Two LSTMs with other ways for the gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from helpers import seeded
from separatrix.nn import SAB, HDetachLSTM


def inputs() -> Tensor:
    return torch.randn(2, 12, 3, generator=seeded(0), dtype=torch.float64)


def test_without_cuts_it_is_torchs_lstm() -> None:
    ours = HDetachLSTM(3, 5, p=0.0, dtype=torch.float64)
    theirs = nn.LSTM(3, 5, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.weight_hh_l0.copy_(ours.matrix)
        theirs.weight_ih_l0.copy_(ours.input_weight)
        theirs.bias_ih_l0.copy_(ours.bias)
        theirs.bias_hh_l0.zero_()
    for found, expected in zip(ours(inputs())[1], theirs(inputs())[1], strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)
    lengths = torch.tensor([4, 12])
    output, (h, _) = ours(inputs(), lengths=lengths)
    torch.testing.assert_close(h[0, 0], ours(inputs()[0, :4])[0][-1])
    assert not output[0, 4:].any()


def test_with_all_cuts_gradients_travel_by_the_cell_alone() -> None:
    x = inputs().requires_grad_()
    cut = HDetachLSTM(3, 5, p=1.0, dtype=torch.float64)
    trained = torch.autograd.grad(cut(x)[0][:, -1].sum(), x)[0]
    h, c = (torch.zeros(2, 5, dtype=torch.float64) for _ in range(2))
    for step in x.unbind(1):
        i, f, g, o = (step @ cut.input_weight.mT + cut.bias + h.detach() @ cut.matrix.mT).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    torch.testing.assert_close(trained, torch.autograd.grad(h.sum(), x)[0], rtol=1e-13, atol=1e-13)
    evaluated = torch.autograd.grad(cut.eval()(x)[0][:, -1].sum(), x)[0]
    assert not torch.allclose(trained, evaluated)


def test_draws_go_on_and_can_be_repeated() -> None:
    x = inputs()

    def gradients() -> list[Tensor]:
        network = HDetachLSTM(3, 5, p=0.5, seed=3, dtype=torch.float64)
        return [torch.autograd.grad(network(x)[0].sum(), network.matrix)[0] for _ in range(2)]

    first, second = gradients()
    assert not torch.equal(first, second)
    assert torch.equal(first, gradients()[0])


def test_backtracking_reaches_beyond_the_cut_by_attention_alone() -> None:
    x = inputs().requires_grad_()
    network = SAB(3, 5, store_every=2, truncate=4, n_attended=3, dtype=torch.float64)
    with torch.no_grad():
        network.alignment_vector.mul_(100)
    reached = torch.autograd.grad(network(x)[0][:, -1].sum(), x)[0]
    assert bool((reached[:, :8] != 0).any())
    never = SAB(3, 5, store_every=100, truncate=4, dtype=torch.float64)
    blind = torch.autograd.grad(never(x)[0][:, -1].sum(), x)[0]
    assert not blind[:, :8].any()
    assert bool((blind[:, 8:] != 0).all())


@pytest.mark.parametrize("legacy", [False, True])
def test_weights_are_sparse_once_there_are_enough_states(legacy: bool) -> None:
    network = SAB(3, 5, n_attended=4, legacy=legacy, dtype=torch.float64)
    h, stored = (torch.randn(*shape, generator=seeded(1), dtype=torch.float64) for shape in ((2, 5), (2, 9, 5)))
    weights = network._weights(h, stored)
    assert (weights > 0).sum(-1).tolist() == [3, 3]
    few = network._weights(h, stored[:, :4])
    assert torch.allclose(few.sum(-1), torch.ones(2, dtype=torch.float64)) is not legacy
    assert network(torch.zeros(1, 3, 3))[0].shape == (1, 3, network.output_size)
