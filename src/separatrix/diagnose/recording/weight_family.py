"""Which family a weight matrix was drawn from, by its numbers alone.

Orthogonal if W W^T is a multiple of the identity, symmetric if W = W^T, iid if the fourth moment is that of a Gaussian
or uniform variable and the largest singular value is that of independent entries.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_LARGEST = 1536
_NEAR = 1e-3


def family_of(weight: Tensor) -> str:
    """``zero``, ``constant``, ``symmetric``, ``antisymmetric``, ``orthogonal``, ``iid`` or ``other``.

    Cost: the eigenvalues of a Gram matrix up to 1536 rows; moments alone beyond.
    """
    w = weight.detach().flatten(1).double()
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
