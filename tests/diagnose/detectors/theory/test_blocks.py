from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import separatrix
from separatrix.diagnose.detectors.theory.blocks import Block, spectrum_of


def _linear(weight: Tensor) -> Block:
    layer = nn.Linear(*weight.shape, bias=False)
    with torch.no_grad():
        layer.weight.copy_(weight)
    return Block("a", layer, (torch.randn(1, len(weight)),), {}, (len(weight),), nn.Linear)


def test_a_linear_block_has_the_spectrum_of_its_matrix(generator: torch.Generator) -> None:
    w = torch.randn(24, 24, generator=generator) / math.sqrt(24)
    row = spectrum_of(_linear(w), seed=0)
    assert row.norm == pytest.approx(float(torch.linalg.matrix_norm(w, 2)), rel=1e-5)
    assert row.radius == pytest.approx(float(torch.linalg.eigvals(w.double()).abs().max()), rel=1e-5)
    assert row.gain == pytest.approx(float(w.square().sum()) / 24, rel=1e-5)


def test_a_large_block_is_measured_by_products_within_its_error(generator: torch.Generator) -> None:
    w = torch.randn(200, 200, generator=generator) / math.sqrt(200)
    w[0, 0] += 3.0  # one eigenvalue outside the disc, which a dozen products find
    row = spectrum_of(_linear(w), seed=0)
    assert row.departure is None
    assert abs(row.gain - float(w.square().sum()) / 200) < 5 * row.gain_se
    assert row.radius == pytest.approx(float(torch.linalg.eigvals(w.double()).abs().max()), rel=0.02)
    assert row.norm <= float(torch.linalg.matrix_norm(w, 2)) * (1 + 1e-5)


def test_a_block_that_hardly_passes_anything_on_has_the_spectrum_of_its_size(generator: torch.Generator) -> None:
    w = torch.randn(200, 200, generator=generator) / math.sqrt(200)
    w[0, 0] += 3.0
    row, faint = spectrum_of(_linear(w), seed=0), spectrum_of(_linear(1e-12 * w), seed=0)
    assert faint.radius == pytest.approx(1e-12 * row.radius, rel=1e-3, abs=0)
    assert faint.norm == pytest.approx(1e-12 * row.norm, rel=1e-3, abs=0)


def test_normal_blocks_have_no_transient_and_shear_has() -> None:
    rotation = torch.linalg.qr(torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))[0]
    normal, sheared = spectrum_of(_linear(rotation), 0), spectrum_of(_linear(torch.eye(8) + 5 * torch.eye(8).roll(1, 1)
                                                                            .triu()), 0)  # fmt: skip
    assert normal.transient == pytest.approx(1.0, abs=1e-4)
    assert normal.departure == pytest.approx(0.0, abs=1e-3)
    assert sheared.transient > 4
    assert sheared.departure is not None
    assert sheared.departure > 0.9


class _Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter, self.head = nn.Linear(6, 16), nn.Linear(16, 3)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 16), nn.Tanh()) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def test_siblings_of_one_shape_are_the_blocks() -> None:
    found = separatrix.check(_Residual(), torch.randn(12, 6))
    assert [row["name"] for row in found.profiles["blocks"]] == ["blocks.0", "blocks.1", "blocks.2"]
    note = found.find("block_spectra")
    assert note is not None
    assert note.severity == "note"
    assert "kerg2022" in note.theory


def test_notes_are_left_out_when_there_is_no_time() -> None:
    found = separatrix.check(_Residual(), torch.randn(12, 6), budget_seconds=1e-3)
    assert found.find("block_spectra") is None
    assert any(item.id == "theory" and item.reason == "no time left" for item in found.skipped)


@pytest.mark.parametrize("value", [0.03, 0.05])
def test_constant_matrices_on_which_the_library_gives_up_are_measured(value: float) -> None:
    row = spectrum_of(_linear(torch.full((96, 96), value)), seed=0)
    assert row.radius == pytest.approx(96 * value, rel=1e-5)
