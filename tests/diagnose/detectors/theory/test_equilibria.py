from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import separatrix
from separatrix.diagnose import fixed_points


class _Last(nn.Module):
    def __init__(self, gain: float) -> None:
        super().__init__()
        self.core, self.head = nn.RNN(3, 8, batch_first=True), nn.Linear(8, 2)
        nn.init.orthogonal_(self.core.weight_hh_l0)
        self.core.weight_hh_l0.data.mul_(gain)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.core(x)[0][:, -1])


def test_a_contracting_layer_has_one_stable_rest_point() -> None:
    torch.manual_seed(0)
    model, x = _Last(0.5), torch.randn(8, 14, 3)
    note = separatrix.check(model, x).find("rest_points")
    assert note is not None
    assert note.value == 1
    own = fixed_points(model.core, x.double().flatten(0, 1).mean(0), n_starts=8, rounds=0)
    assert f"{float(own.eigenvalues[0, 0].abs()):.3g}" in note.meaning
    assert "Eq. (29)" in note.theory


def test_attention_layers_are_iterated_and_counted() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 2, 24, 0.0, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(12, 3))
    note = separatrix.check(model, torch.randn(6, 9, 12)).find("attention_equilibria")
    assert note is not None
    assert note.meaning.endswith("of 2 heads.")
    assert "altafini2025" in note.theory


class _Iterated(nn.Module):
    """z -> a Q z + u with Q orthogonal: shrinks by a, exactly."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.enter, self.w, self.head = nn.Linear(5, 12), nn.Linear(12, 12, bias=False), nn.Linear(12, 3)
        nn.init.orthogonal_(self.w.weight, factor)

    def forward(self, x: Tensor) -> Tensor:
        u = self.enter(x)
        z = torch.zeros_like(u)
        with torch.no_grad():
            for _ in range(50):
                z = self.w(z) + u
        return self.head(self.w(z) + u)


@pytest.mark.parametrize("factor", [0.3, 0.6])
def test_the_contraction_of_a_linear_map_is_its_factor(factor: float) -> None:
    torch.manual_seed(0)
    note = separatrix.check(_Iterated(factor), torch.randn(10, 5)).find("contraction")
    assert note is not None
    assert note.value == pytest.approx(factor, rel=0.05)
    assert f"at {factor:.3g} of the scale" in note.meaning
    assert "agarwala2022" in note.theory
