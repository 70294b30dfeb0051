"""Ours: the one-line criterion, its window of stable splits and the critical inverse temperature."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, judge, with_fields

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Random instances, and one instance with bands on both of its ends."""

    dim: int = 4
    n_tokens: int = 24
    n_instances: int = 30
    beta_max: float = 4.0
    n_betas: int = 121


class Measured(Summary):
    """Decisions over random instances, and the stable band of one instance against beta, by eigenvector."""

    wrong: int
    splits: int
    stable: int
    threshold_error: float
    thresholds: int
    betas: list[float]
    bands: dict[str, dict[str, Any]]
    critical: dict[str, float]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """Random instances per seed, and the bands of one instance."""
    for seed in settings.seeds:
        yield {
            "part": "random",
            "seed": seed,
            "dim": settings.dim,
            "n_tokens": settings.n_tokens,
            "n_instances": settings.n_instances,
        }
    yield {"part": "bands", "beta_max": settings.beta_max, "n_betas": settings.n_betas}


def run(cell: Cell) -> Payload:
    """Windows and thresholds compared with spectra, or the bands of one instance."""
    return _random(cell) if cell.args["part"] == "random" else _bands(cell)


def _random(cell: Cell) -> Payload:
    import torch

    from separatrix import matrices, theory

    dim, n = cell.args["dim"], cell.args["n_tokens"]
    drawn = matrices.attention_instance(
        dim, generator=spawn(cell.seed, "attention-criterion"), batch=(cell.args["n_instances"],)
    )
    wrong = stable = 0
    threshold_errors = []
    for k in range(dim):
        window = theory.stable_window(drawn.coupling, drawn.value, k, n)
        for n1 in range(n // 2 + 1):
            truth = theory.bipartite_spectrum(drawn.coupling, drawn.value, k, n1, n - n1).stable
            inside = (n1 >= window.lowest) & (n1 <= window.highest) | (window.single & (n1 == 1))
            inside = window.consensus if n1 == 0 else inside
            wrong += int((inside != truth).sum())
            stable += int(inside.sum())
        critical = torch.as_tensor(theory.critical_beta(drawn.coupling, drawn.value, k))
        chosen = critical.isfinite() & (critical > 0)
        if bool(chosen.any()):
            found = _bisected_thresholds(drawn.coupling[chosen], drawn.value[chosen], k, critical[chosen])
            threshold_errors += (found / critical[chosen] - 1).abs().tolist()
    return {
        "wrong": wrong,
        "stable": stable,
        "splits": dim * (n // 2 + 1) * cell.args["n_instances"],
        "threshold error": max(threshold_errors, default=math.nan),
        "thresholds": len(threshold_errors),
    }


def _bisected_thresholds(coupling: Any, value: Any, k: int, guess: Any) -> Any:
    """The beta at which the balanced state of very many tokens becomes stable, from spectra alone, for a batch."""
    import torch

    from separatrix import theory

    low, high = guess / 3, guess * 3
    for _ in range(45):
        middle = (low + high) / 2
        scaled = middle[:, None, None] * coupling
        settled = torch.as_tensor(theory.bipartite_spectrum(scaled, value, k, 10**6, 10**6).abscissa) < 0
        low, high = torch.where(settled, low, middle), torch.where(settled, middle, high)
    return high


def _bands(cell: Cell) -> Payload:
    import torch

    from separatrix import theory

    value, coupling = torch.diag(torch.tensor([3.0, 1.0, -4.0])), torch.diag(torch.tensor([0.9, 0.2, -1.1]))
    betas = torch.linspace(0, cell.args["beta_max"], cell.args["n_betas"], dtype=torch.float64)
    batch = betas[:, None, None] * coupling.double()
    bands = {}
    for k in (0, 2):
        width = theory.stable_window(batch, value.double(), k, 10**9).half_width
        edge = torch.where(width > 0, torch.sigmoid(width), torch.nan)
        bands[str(k)] = {"low": 1 - edge, "high": edge}
    critical = {str(k): float(theory.critical_beta(coupling, value, k)) for k in (0, 2)}
    return {"betas": betas, "bands": bands, "critical": critical}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Disagreements, threshold errors and the bands."""
    random = [payload for cell, payload in results if cell.args["part"] == "random"]
    bands = next(payload for cell, payload in results if cell.args["part"] == "bands")
    table = [
        {"beta": beta}
        | {
            f"{edge} edge on v_{int(k) + 1}": float(bands["bands"][k][edge][index])
            for k in bands["bands"]
            for edge in ("low", "high")
        }
        for index, beta in enumerate(bands["betas"].tolist())
        if index % 10 == 0
    ]
    return Measured(
        wrong=sum(payload["wrong"] for payload in random),
        splits=sum(payload["splits"] for payload in random),
        stable=sum(payload["stable"] for payload in random),
        threshold_error=max(payload["threshold error"] for payload in random),
        thresholds=sum(payload["thresholds"] for payload in random),
        betas=bands["betas"].tolist(),
        bands={k: {edge: v.tolist() for edge, v in band.items()} for k, band in bands["bands"].items()},
        critical=bands["critical"],
        tables={"Stable share n_1/n against beta, V = diag(3, 1, -4), M = diag(0.9, 0.2, -1.1)": table},
    )


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Bands of stable splits against beta."""
    from separatrix.report.figures.attention import window_plot

    windows = {f"$v_{int(k) + 1}$": (band["low"], band["high"]) for k, band in summary.bands.items()}
    critical = {f"$v_{int(k) + 1}$": value for k, value in summary.critical.items()}
    title = "Stable splits, V = diag(3, 1, −4), M = diag(0.9, 0.2, −1.1)"
    return {"windows": window_plot(summary.betas, windows, critical, title)}


def judge_window(summary: Measured) -> Judgement:
    """Decide ``separatrix-stable-window``."""
    rows = [Row("splits where window and spectrum differ", summary.wrong, 0)]
    return judge(f"{summary.splits} splits, {summary.stable} of them stable", rows)


def judge_threshold(summary: Measured) -> Judgement:
    """Decide ``separatrix-critical-beta``."""
    rows = [
        Row("largest relative error of beta_c", summary.threshold_error, 0.0, 1e-6),
        Row("beta_c on v_1 of the example", summary.critical["0"], 0.385082, 1e-6),
        Row("beta_c on v_3 of the example", summary.critical["2"], 0.884505, 1e-6),
    ]
    return judge(f"{summary.thresholds} thresholds found again by bisection", rows)


EXPERIMENT = Experiment(
    name="attention-criterion",
    title="Which splits are stable, and from which inverse temperature on",
    document="separatrix",
    place="explanation/attention-equilibria",
    version=1,
    scales={
        "smoke": Settings(),
        "laptop": Settings(n_tokens=60, n_instances=300),
        "paper": Settings(n_tokens=100, n_instances=1000, dim=6),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-stable-window",
            statement="The stable splits on an eigenvector form the interval |ln(n_1/n_2)| < h*, plus single tokens.",
            measures="splits where closed form and exact spectrum differ",
            test="zero",
            judge=judge_window,
            counterfeit=with_fields(wrong=1),
        ),
        Claim(
            id="separatrix-critical-beta",
            statement="Bipartite states appear at beta_c = artanh(rho) / |v_k' M v_k|.",
            measures="beta at which the balanced state changes stability, by bisection",
            test="relative error 1e-6",
            judge=judge_threshold,
            counterfeit=with_fields(threshold_error=0.1),
        ),
    ),
    draw=draw,
)
