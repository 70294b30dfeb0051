from __future__ import annotations

import pytest
import torch

import reference_attention as ref
from helpers import checks
from separatrix.core import Outcome, ShapeError
from separatrix.theory.attention import (
    balanced_direction,
    multihead_cluster_spectrum,
    multihead_consensus_spectrum,
)


@checks(multihead_consensus_spectrum, multihead_cluster_spectrum, by="autodiff tangent Jacobian with three heads")
def test_several_heads_add_up(generator: torch.Generator) -> None:
    couplings = torch.randn(3, 4, 4, dtype=torch.float64, generator=generator)
    values = torch.randn(3, 4, 4, dtype=torch.float64, generator=generator)
    values = values + values.mT
    flow = ref.multihead_velocity(couplings, values, 0.8)
    for k in range(4):
        x = ref.pattern(values.sum(0), k, torch.ones(4, dtype=torch.float64))
        dense = ref.tangent_spectrum(flow, x)
        assert ref.spectral_distance(multihead_consensus_spectrum(values, k, 4).expand(), dense) < 1e-12
    clusters = torch.nn.functional.normalize(torch.randn(2, 4, dtype=torch.float64, generator=generator), dim=-1)
    x = clusters.repeat_interleave(torch.tensor([3, 1]), dim=0)
    blocks = multihead_cluster_spectrum(couplings, values, clusters, [3, 1], 0.8)
    assert ref.spectral_distance(blocks.expand(), ref.tangent_spectrum(flow, x)) < 1e-11
    with pytest.raises(ShapeError, match=r"values must have shape \(..., heads, d, d\)"):
        multihead_consensus_spectrum(values[0], 0, 4)


@checks(balanced_direction, by="speed of four tokens at +v, +v, -v, -v under the plain flow")
def test_opposite_groups_of_several_heads_rest_on_a_nonlinear_eigenvector(generator: torch.Generator) -> None:
    couplings = torch.randn(2, 3, 3, dtype=torch.float64, generator=generator)
    values = torch.randn(2, 3, 3, dtype=torch.float64, generator=generator)
    values = values + values.mT
    found = balanced_direction(couplings, values, torch.randn(12, 3, dtype=torch.float64, generator=generator))
    good = found.outcome == int(Outcome.CONVERGED)
    assert int(good.sum()) >= 6
    assert bool(found.vector[~good].isnan().all())
    for vector in found.vector[good]:
        x = torch.stack([vector, vector, -vector, -vector])
        assert float(ref.multihead_velocity(couplings, values)(x).norm()) < 1e-9
