"""What Figures 2, 3 and 4 of agarwala2022 share: hard-tanh networks of three families, iterated at many scales.

The document states neither the law of the input nor the number of steps; we take standard normal inputs and 1000
steps. Every matrix serves many inputs, so error bars are over matrices, which is where the variation is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from separatrix.core import spawn
from separatrix.lab import Cell, Params, Payload, Summary, Table

FAMILIES = ("gaussian", "haar", "goe")


class Settings(Params):
    """Settings of Figures 2 to 4."""

    width: int = 1000  # N in the captions
    n_matrices: int = 32  # 32 x 32 inputs: "averaged over 1000 samples", Figure 4
    n_inputs: int = 32
    steps: int = 1000  # not stated
    scales: tuple[float, ...] = ()  # sqrt(V); not stated
    radius_inputs: int = 0  # inputs per matrix whose Jacobian is measured


class Measured(Summary):
    """Width of the networks."""

    width: int


def grid(low: float, high: float, count: int) -> tuple[float, ...]:
    """Equally spaced scales."""
    return tuple(round(low + (high - low) * k / (count - 1), 6) for k in range(count))


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """A cell for every family, scale and seed."""
    for seed in settings.seeds:
        for family in FAMILIES:
            for scale in settings.scales:
                yield {
                    "family": family,
                    "scale": scale,
                    "width": settings.width,
                    "n_matrices": settings.n_matrices,
                    "n_inputs": settings.n_inputs,
                    "steps": settings.steps,
                    "radius_inputs": settings.radius_inputs,
                    "seed": seed,
                }


def measure(cell: Cell) -> Payload:
    """Per matrix: mean h.h / N, root mean square of the last change of h, spectral radii."""
    import torch

    from separatrix.core.networks.activations import find_activation
    from separatrix.dynamics.solve.random_networks import network_radius
    from separatrix.matrices.ensembles import find_ensemble

    args, phi = cell.args, find_activation("hardtanh")
    ensemble, width, k = find_ensemble(args["family"]), int(args["width"]), int(args["n_inputs"])
    measured: dict[str, list[Any]] = {"h_var": [], "change": [], "radius": []}
    for index in range(int(args["n_matrices"])):
        generator = spawn(cell.seed, "agarwala-nonlinear", args["family"], index)
        matrix = ensemble.sample(width, args["scale"] ** 2, generator=generator)
        x = torch.randn(k, width, generator=generator, dtype=torch.float64)
        h, change = torch.zeros_like(x), torch.zeros(k, dtype=torch.float64)
        for _ in range(int(args["steps"])):
            new = (phi.phi(h) + x) @ matrix.mT
            change, h = (new - h).norm(dim=-1), new
            if float(change.max()) < 1e-10:
                break
        measured["h_var"].append(float(h.square().mean()))
        measured["change"].append(float(change.mean()))
        slopes = phi.dphi(h[: int(args["radius_inputs"])])
        measured["radius"].append([network_radius(matrix, d) for d in slopes])
    return measured


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Means by family and scale."""
    width, rows = rows_by_scale(results)
    return Measured(width=width, tables={"scales": rows})


def rows_by_scale(results: Sequence[tuple[Cell, Payload]]) -> tuple[int, Table]:
    """The width, and one row per family and scale: means, standard errors over matrices, and both theories."""
    from separatrix.matrices.ensembles import find_ensemble
    from separatrix.theory import mean_field

    gathered: dict[tuple[str, float], dict[str, list[float]]] = {}
    for cell, payload in results:
        entry = gathered.setdefault(
            (cell.args["family"], cell.args["scale"]), {"h_var": [], "change": [], "radius": []}
        )
        entry["h_var"] += payload["h_var"]
        entry["change"] += payload["change"]
        entry["radius"] += [sum(radii) / len(radii) for radii in payload["radius"] if radii]
    rows = []
    for (family, scale), entry in sorted(gathered.items(), key=lambda item: (FAMILIES.index(item[0][0]), item[0][1])):
        theory = mean_field(find_ensemble(family), "hardtanh", weight_var=scale**2, input_var=1.0)
        row = {"family": family, "scale": scale, "valid": theory.valid}
        for name, values in entry.items():
            row[name], row[f"{name}_se"] = _mean_and_error(values)
        free = free_independence(scale**2, symmetric=family == "goe")
        row |= {"theory_h_var": _plain(theory.h_var), "theory_radius": _plain(theory.radius)}
        row |= {"document_h_var": free[0], "document_radius": free[1]}
        rows.append(row)
    return int(results[0][0].args["width"]) if results else 0, rows


def free_independence(weight_var: float, *, symmetric: bool) -> tuple[float, float]:
    """The document's theory: variance by Eq. (25) for every family, radius sqrt(V p), twice that if symmetric."""
    from separatrix.matrices.ensembles import Gaussian
    from separatrix.theory import mean_field
    from separatrix.theory.equilibrium_networks.field_averages import hardtanh_averages

    result = mean_field(Gaussian(), "hardtanh", weight_var=weight_var, input_var=1.0)
    if result.valid:
        return float(result.h_var), float(result.radius) * (2 if symmetric else 1)
    import torch

    h_var = torch.tensor(weight_var, dtype=torch.float64)
    zero = torch.zeros((), dtype=torch.float64)
    for _ in range(500):  # above its critical scale the equation still has its solution; only stability is lost
        h_var = weight_var * (hardtanh_averages(zero, zero, h_var).phi_square + 1)
    slope = float(hardtanh_averages(zero, zero, h_var).slope)
    return float(h_var), math.sqrt(weight_var * slope) * (2 if symmetric else 1)


def _mean_and_error(values: list[float]) -> tuple[float | None, float | None]:
    if not values:
        return None, None
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1))
    return mean, spread / math.sqrt(len(values))


def _plain(value: Any) -> float | None:
    return float(value) if value == value else None
