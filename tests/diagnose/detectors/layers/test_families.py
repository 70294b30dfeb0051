from __future__ import annotations

import pytest
import torch
from torch import nn

from separatrix.diagnose.detectors.layers.families import family_row


def drawn(kind: str, n: int = 96) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    g = torch.randn(n, n, generator=generator) / n**0.5
    return {
        "gaussian": g,
        "uniform": (torch.rand(n, n, generator=generator) * 2 - 1) * (3 / n) ** 0.5,
        "orthogonal": torch.linalg.qr(g)[0],
        "symmetric": (g + g.T) / 2**0.5,
        "antisymmetric": g - g.T,
        "constant": torch.full((n, n), 0.03),
        "zero": torch.zeros(n, n),
        "low rank": torch.outer(g[0], g[1]) + 1e-3 * g,
    }[kind]


@pytest.mark.parametrize(
    ("kind", "family", "to_critical"),
    [("gaussian", "iid", 1.0), ("uniform", "iid", 1.0), ("orthogonal", "orthogonal", 1.0),
     ("symmetric", "symmetric", 2.0), ("antisymmetric", "antisymmetric", None),
     ("constant", "constant", None), ("zero", "zero", None), ("low rank", "other", None)],
)  # fmt: skip
def test_families_are_known_by_their_numbers(kind: str, family: str, to_critical: float | None) -> None:
    """At unit gain Gaussian and orthogonal matrices have radius 1, symmetric ones 2: twice their critical scale."""
    row = family_row("w", drawn(kind))
    assert row["family"] == family
    assert row["to_critical"] == (None if to_critical is None else pytest.approx(to_critical, rel=0.03))


def test_torchs_own_starts_are_iid() -> None:
    torch.manual_seed(0)
    assert family_row("w", nn.Linear(64, 64).weight)["family"] == "iid"
    assert family_row("w", nn.Conv2d(8, 32, 3).weight)["family"] == "iid"
