from __future__ import annotations

import torch
from torch import Tensor, nn

import separatrix


class Scaled(nn.Module):
    """Neurons in pairs of opposite outgoing weights, so that the output starts at zero, times a scale."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.first, self.head, self.scale = nn.Linear(8, 256), nn.Linear(256, 1, bias=False), scale
        with torch.no_grad():
            self.first.weight[128:] = self.first.weight[:128]
            self.first.bias[128:] = self.first.bias[:128]
            self.head.weight[:, 128:] = -self.head.weight[:, :128]

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.head(torch.tanh(self.first(x)))


def test_a_large_output_scale_is_a_note_and_an_ordinary_one_is_none() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    measured = {}
    for scale, told in ((300.0, True), (0.3, False)):
        found = separatrix.check(Scaled(scale), x, loss="mse", target=y)
        note = found.find("lazy")
        measured[scale] = found.measures["lazy"]
        assert (note is not None) is told, measured
        assert note is None or note.severity == "note"
    assert measured[0.3] > 100 * measured[300.0]


def test_the_measure_is_that_of_the_step_it_names() -> None:
    """By hand: a step of 5 % predicted fall, the head's input and the loss before and after it."""
    torch.manual_seed(0)
    model, x, y = Scaled(1.0).double(), torch.randn(32, 8).double(), torch.randn(32, 1).double()

    def state() -> tuple[Tensor, Tensor]:
        h = torch.tanh(model.first(x))
        return h, (model.scale * model.head(h) - y).square().sum() / 64

    before, loss = state()
    slopes = torch.autograd.grad(loss, list(model.parameters()))
    found = separatrix.check(model, x, loss="mse", target=y).measures["lazy"]
    rate = 0.05 * float(loss.detach()) / sum(float(s.square().sum()) for s in slopes)
    with torch.no_grad():
        for value, slope in zip(model.parameters(), slopes, strict=True):
            value -= rate * slope
        after, end = state()
        expected = float((after - before.detach()).norm() / before.detach().norm()) / float(
            (loss.detach() - end) / loss.detach()
        )
    assert abs(found / expected - 1) < 1e-6
