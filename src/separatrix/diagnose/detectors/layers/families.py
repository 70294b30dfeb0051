"""Which family each weight matrix was drawn from, and how far its scale is from critical.

Judged by numbers alone: orthogonal if W W^T is a multiple of the identity, symmetric if W = W^T, iid if the fourth
moment is that of a Gaussian or uniform variable and the largest singular value is that of independent entries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from separatrix.matrices import GOE, Gaussian, Haar
from separatrix.theory import linear_critical_weight_var

from ...findings.finding import Finding, Place
from ...recording.observed import Observed
from ..reporting import listed

_LARGEST = 1536
_NEAR = 1e-3
_THEORY = "agarwala2022, Sec. 2.1.2: spectral radius 1 of W; for symmetric families at half the scale"


def family_row(name: str, weight: Tensor) -> dict[str, Any]:
    """Family, gain sqrt(n_in) x standard deviation, and the gain over the critical one for square matrices."""
    w = weight.detach().flatten(1).double()
    rows, columns = w.shape
    gain = float(w.square().mean().sqrt()) * math.sqrt(columns)
    family = _family(w)
    row = {"weight": name, "family": family, "gain": gain, "shape": [rows, columns], "to_critical": None}
    if rows == columns and family in ("iid", "orthogonal", "symmetric"):
        kind = {"iid": Gaussian(), "orthogonal": Haar(), "symmetric": GOE()}[family]
        row["to_critical"] = gain / math.sqrt(linear_critical_weight_var(kind))
    return row


def _family(w: Tensor) -> str:
    rows, columns = w.shape
    size = float(w.abs().max())
    if size == 0:
        return "zero"
    if float((w - w[0, 0]).abs().max()) <= 1e-7 * size:
        return "constant"
    scale = float(w.square().sum())
    if rows == columns and float((w - w.T).square().sum()) < _NEAR**2 * scale:
        return "symmetric"
    if rows == columns and float((w + w.T).square().sum()) < _NEAR**2 * scale:
        return "antisymmetric"
    if max(rows, columns) > _LARGEST:
        return _by_moments(w)
    gram = w @ w.T if rows <= columns else w.T @ w
    identity = torch.eye(len(gram), dtype=w.dtype, device=w.device) * gram.diagonal().mean()
    if float((gram - identity).square().sum()) < _NEAR**2 * float(identity.square().sum()):
        return "orthogonal"
    top = math.sqrt(float(torch.linalg.eigvalsh(gram)[-1]))
    edge = float(w.std()) * (math.sqrt(rows) + math.sqrt(columns))
    near = abs(top / edge - 1) < 0.05 + 2.0 / min(rows, columns) ** (2 / 3) if edge > 0 else False
    return _by_moments(w) if near else "other"


def _by_moments(w: Tensor) -> str:
    """``iid`` for the fourth moment of a Gaussian or uniform variable within 6 standard errors and a mean of zero."""
    x = w.flatten()
    z = (x - x.mean()) / x.std().clamp_min(1e-300)
    kurtosis, n = float(z.pow(4).mean()), len(x)
    centred = abs(float(x.mean())) < 6 * float(x.std()) / math.sqrt(n)
    gaussian = abs(kurtosis - 3.0) < 6 * math.sqrt(24 / n) + 0.02
    uniform = abs(kurtosis - 1.8) < 6 * math.sqrt(24 / n) + 0.02
    truncated = 1.8 < kurtosis < 3.0 and float(z.abs().max()) < 2.5
    return "iid" if centred and (gaussian or uniform or truncated) else "other"


def family_rows(matrices: Mapping[str, Tensor], most: int = 256) -> list[dict[str, Any]]:
    """A row for each matrix of real numbers."""
    return [
        family_row(name, value)
        for name, value in list(matrices.items())[:most]
        if value.is_floating_point() and value.ndim >= 2 and min(value.flatten(1).shape) > 1
    ]


def initial_families(facts: Observed) -> list[Finding]:
    """A note: how many matrices belong to which family, with their gains; the profile has a row for each."""
    rows = family_rows(facts.matrices)
    facts.profiles["weights"] = rows
    return [families_note(rows)] if rows else []


def families_note(rows: list[dict[str, Any]]) -> Finding:
    """One sentence on all matrices."""
    said = []
    for family in dict.fromkeys(row["family"] for row in rows):
        gains = [row["gain"] for row in rows if row["family"] == family]
        said.append(f"{len(gains)} {family} (gain {min(gains):.3g} to {max(gains):.3g})")
    near = [row for row in rows if row["to_critical"] is not None]
    tail = ""
    if near:
        top = max(near, key=lambda row: row["to_critical"])
        tail = f"; {top['weight']} is at {top['to_critical']:.3g} of the critical scale of its family"
    return Finding(
        "initialisation", "note", Place(), float(len(rows)), f"weight families: {listed(said, 6)}{tail}.",
        theory=_THEORY, unit="matrices",
    )  # fmt: skip
