from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from helpers import seeded
from separatrix.core import ACTIVATIONS, InvalidInput
from separatrix.dynamics import spectral_radius
from separatrix.matrices import GOE, Haar, RectangularOrthogonal
from separatrix.nn import ResidualCell, TanhCell, TransformerCell

CELLS: dict[str, Callable[[torch.Generator], nn.Module]] = {
    "tanh": lambda generator: TanhCell(8, ensemble="gaussian", weight_var=0.5, generator=generator),
    "residual": lambda generator: ResidualCell(8, generator=generator),
    "transformer": lambda generator: TransformerCell(8, 2, dropout=0.1, generator=generator),
}


def inputs(name: str, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    shape = (3, 5, 8) if name == "transformer" else (3, 8)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_keeps_the_shape_and_samples_do_not_mix(name: str, generator: torch.Generator) -> None:
    cell = CELLS[name](generator).eval()
    z, x = inputs(name, generator)
    out = cell(z, x)
    assert out.shape == z.shape
    other = cell(torch.cat([z[:1], 2 * z[1:]]), x)
    assert torch.equal(out[0], other[0])


@pytest.mark.parametrize("name", CELLS)
def test_a_seed_decides_every_parameter_and_the_global_stream_is_untouched(name: str) -> None:
    state = torch.get_rng_state()
    first, second = (CELLS[name](seeded(3)) for _ in range(2))
    other = CELLS[name](seeded(4))
    assert torch.equal(torch.get_rng_state(), state)
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert any(not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


def test_tanh_cell_is_the_formula_with_a_matrix_of_the_family(generator: torch.Generator) -> None:
    cell = TanhCell(64, ensemble=Haar(), weight_var=0.81, generator=generator, dtype=torch.float64)
    z, x = torch.randn(2, 4, 64, generator=generator, dtype=torch.float64)
    weight = cell.linear.weight
    assert torch.allclose(weight @ weight.mT, 0.81 * torch.eye(64, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(cell(z, x), torch.tanh(z @ weight.mT) + x)
    zero = torch.zeros(1, 64, dtype=torch.float64)
    radius = spectral_radius(lambda z: cell(z, zero), zero)
    assert float(radius) == pytest.approx(0.9, abs=5e-3)


def test_residual_cell_is_rectangular_for_haar_and_square_for_goe(generator: torch.Generator) -> None:
    wide = ResidualCell(6, ensemble="haar", weight_var=1.0, generator=generator)
    assert wide.block.into.weight.shape == (24, 6)
    assert float(wide.block.into.weight.detach().var() * 6) == pytest.approx(1, rel=0.5)
    square = ResidualCell(6, ensemble="goe", generator=generator)
    assert torch.equal(square.block.into.weight, square.block.into.weight.mT)
    narrow = ResidualCell(6, hidden=6, ensemble=RectangularOrthogonal(), generator=generator)
    assert narrow.block.out_of.weight.shape == (6, 6)
    with pytest.raises(InvalidInput, match="hidden must equal the width for the square family 'goe'"):
        ResidualCell(6, hidden=24, ensemble=GOE(), generator=generator)
    with pytest.raises(InvalidInput, match="unknown ensemble 'har'"):
        TanhCell(6, ensemble="har", generator=generator)


def test_transformer_cell_does_not_look_ahead(generator: torch.Generator) -> None:
    cell = TransformerCell(8, 2, generator=generator)
    z, x = inputs("transformer", generator)
    changed = x.clone()
    changed[:, 3:] += 1
    before, after = cell(z, x), cell(z, changed)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3:], after[:, 3:])


def test_transformer_cell_agrees_with_the_layer_written_out(generator: torch.Generator) -> None:
    cell = TransformerCell(8, 2, generator=generator, dtype=torch.float64)
    z, x = (part.double() for part in inputs("transformer", generator))
    attention = cell.attention

    def norm(h: Tensor) -> Tensor:
        centred = h - h.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()

    h = z + x
    tokens = norm(h)
    heads = []
    for k in range(2):
        part = slice(4 * k, 4 * k + 4)
        query, key, value = (m(tokens)[..., part] for m in (attention.query, attention.key, attention.value))
        logits = query @ key.mT / 2.0  # the root of the head dimension 4
        mask = torch.ones(5, 5).tril().bool()
        heads.append(torch.softmax(logits.masked_fill(~mask, -torch.inf), -1) @ value)
    h = h + attention.output(torch.cat(heads, -1))
    h = h + cell.dense.out_of(nn.functional.gelu(cell.dense.into(norm(h))))
    assert torch.allclose(cell(z, x), norm(h), atol=1e-12)


def test_transformer_cell_refuses_heads_that_do_not_divide_the_width(generator: torch.Generator) -> None:
    with pytest.raises(InvalidInput, match="n_heads must divide the width; got width 8 and n_heads 3"):
        TransformerCell(8, 3, generator=generator)


def test_activations_are_given_by_name_object_or_function() -> None:
    x, z = torch.ones(2, 3), torch.full((2, 3), 0.5)

    def drawn(phi: object) -> torch.Tensor:
        return TanhCell(3, phi=phi, generator=torch.Generator().manual_seed(0))(z, x)  # type: ignore[arg-type]

    torch.testing.assert_close(drawn("tanh"), drawn(torch.tanh))
    torch.testing.assert_close(drawn(ACTIVATIONS["relu"]), drawn(torch.relu))
    with pytest.raises(InvalidInput, match=r"unknown activation 'tahn'. Did you mean 'tanh'"):
        drawn("tahn")
