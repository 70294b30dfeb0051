from __future__ import annotations

import torch

from separatrix.dynamics import AttentionFlow, OjaFlow, centred_tokens, find_polygonal, random_tokens


def test_centred_tokens_have_vanishing_sum_and_unit_length(generator: torch.Generator) -> None:
    x = centred_tokens(5, 3, 7, generator=generator)
    assert x.sum(dim=-2).abs().max() < 1e-12
    assert (x.norm(dim=-1) - 1).abs().max() < 1e-14


def test_oja_polygons_have_the_spectrum_of_the_remaining_covariance(generator: torch.Generator) -> None:
    value = torch.diag(torch.tensor([1.0, 0.4, -0.7]).double())
    x = centred_tokens(5, 3, generator=generator)
    tangent = torch.linalg.eigvals(OjaFlow(value).jacobian(x)).real
    expected = torch.linalg.eigvals((torch.eye(3).double() - x.mT @ x / 5) @ value).real.sort().values
    nonzero = tangent[tangent.abs() > 1e-9].sort().values
    torch.testing.assert_close(nonzero, expected, rtol=0, atol=1e-9)


def test_attention_polygons_of_an_invertible_value_are_antipodal_pairs(generator: torch.Generator) -> None:
    coupling = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    value = torch.diag(torch.tensor([1.0, -0.5, -2.0]).double())
    flow = AttentionFlow.from_coupling(coupling, value)
    even = find_polygonal(flow, random_tokens(4, 3, 12, generator=generator))
    assert bool(even.found.any())
    assert bool(even.antipodal[even.found].all())
    odd = find_polygonal(flow, random_tokens(3, 3, 12, generator=generator))
    assert not bool(odd.found.any())
    assert bool(odd.abscissa.isnan().all())
