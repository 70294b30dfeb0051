"""Times of edges, densities and mean-field solves, and agreement with scikit-rmt and freealg where they overlap.

    python benchmarks/ensembles.py [--json FILE]

The other libraries are compared when they are installed; they are not dependencies. Times are the least of five runs,
processor time of one thread.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from separatrix.matrices.ensembles import GOE
from separatrix.theory import critical_weight_var, mean_field
from separatrix.theory.free_probability import (
    Bernoulli,
    MarchenkoPastur,
    Semicircle,
    Uniform,
    elliptic_radius,
    free_product,
    free_sum,
)


def least(function: Callable[[], Any], repeats: int = 5) -> float:
    function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def own_times() -> dict[str, float]:
    slopes = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    weights, one = torch.full_like(slopes, 1e-3), torch.tensor(1.0, dtype=torch.float64)
    x = torch.linspace(-1.1, 1.1, 400, dtype=torch.float64)
    return {
        "edge of D W, 1000 slopes": least(lambda: elliptic_radius(slopes, weights, one, 1.0)),
        "density of a free product, 400 points": least(
            lambda: free_product(Uniform(0.0, 1.0), Semicircle(1.0)).density(x)
        ),
        "mean field, hard-tanh": least(lambda: mean_field(GOE(), "hardtanh", weight_var=0.36)),
        "mean field, tanh": least(lambda: mean_field(GOE(), "tanh", weight_var=0.36)),
        "critical scale, tanh": least(lambda: critical_weight_var(GOE(), "tanh"), repeats=2),
    }


def own_errors() -> dict[str, float]:
    x = torch.linspace(-3.9, 3.9, 400, dtype=torch.float64)
    kept = MarchenkoPastur(0.2)
    inner = torch.linspace(kept.edges()[0] + 0.02, kept.edges()[1] - 0.02, 400, dtype=torch.float64)
    summed = free_sum(Semicircle(1.0), Semicircle(3.0)).density(x) - Semicircle(4.0).density(x)
    product = free_product(Bernoulli(0.4), MarchenkoPastur(0.5)).density(inner) - 0.4 * kept.density(inner)
    return {"semicircle + semicircle": float(summed.abs().max()), "projected Wishart": float(product.abs().max())}


def rivals() -> dict[str, Any]:
    found: dict[str, Any] = {}
    try:
        from skrmt.ensemble.spectral_law import MarchenkoPasturDistribution, WignerSemicircleDistribution
    except ImportError:
        found["scikit-rmt"] = "not installed"
    else:
        x = torch.linspace(-1.9, 1.9, 201, dtype=torch.float64)
        theirs = torch.as_tensor(WignerSemicircleDistribution(beta=1, sigma=1.0).pdf(x.numpy()))
        y = torch.linspace(0.2, 2.5, 201, dtype=torch.float64)
        wishart = torch.as_tensor(MarchenkoPasturDistribution(ratio=0.5, beta=1, sigma=1.0).pdf(y.numpy()))
        found["scikit-rmt"] = {
            "version": importlib.metadata.version("scikit-rmt"),
            "semicircle": float((theirs - Semicircle(1.0).density(x)).abs().max()),
            "marchenko-pastur": float((wishart - MarchenkoPastur(0.5).density(y)).abs().max()),
        }
    try:
        from freealg.distributions import MarchenkoPastur as OtherWishart, Wigner
    except ImportError:
        found["freealg"] = "not installed"
    else:
        x = torch.linspace(-1.9, 1.9, 201, dtype=torch.float64)
        y = torch.linspace(0.2, 2.5, 201, dtype=torch.float64)
        theirs = torch.as_tensor(Wigner(2.0).density(x.numpy()))
        wishart = torch.as_tensor(OtherWishart(0.5).density(y.numpy()))
        found["freealg"] = {
            "version": importlib.metadata.version("freealg"),
            "semicircle": float((theirs - Semicircle(1.0).density(x)).abs().max()),
            "marchenko-pastur": float((wishart - MarchenkoPastur(0.5).density(y)).abs().max()),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    result = {"torch": torch.__version__, "seconds": own_times(), "errors": own_errors(), "other libraries": rivals()}
    text = json.dumps(result, indent=1)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
