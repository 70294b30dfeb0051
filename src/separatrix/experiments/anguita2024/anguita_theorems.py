"""anguita2024, Theorems 2.2.1, 4.1.1-4.1.3, 4.2.1 and 4.5.1: conservation, representations, kernel, best balance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from separatrix import theory
from separatrix.core import spawn
from separatrix.core.wording import several, small
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    instead,
    judge,
    misprint,
    with_column,
)


class Settings(Params):
    """Sizes and balances of the checks."""

    balances: tuple[float, ...] = (-2.0, 0.0, 2.0)
    large: float = 1000.0
    size: int = 4


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per seed."""
    for seed in settings.seeds:
        yield {"balances": settings.balances, "large": settings.large, "size": settings.size, "seed": seed}


def run(cell: Cell) -> Payload:
    """All quantities of the theorems for one draw."""
    import torch

    args = cell.args
    generator = spawn(cell.seed, "anguita-theorems")
    return {
        **_conservation(args, generator),
        **_spectra(generator),
        **_kernel(args, generator),
        **_shallow(args, torch),
    }


def _conservation(args: Mapping[str, Any], generator: Any) -> dict[str, float]:
    """Theorem 2.2.1 along integration with inputs that are not white; Theorem 4.5.1 by brute force."""
    import torch

    from separatrix import dynamics, matrices

    w1, w2 = (0.5 * torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in ((4, 3), (2, 4)))
    corr = torch.randn(2, 3, dtype=torch.float64, generator=generator)
    mixed = torch.randn(3, 6, dtype=torch.float64, generator=generator)
    path = dynamics.integrate_layers(
        dynamics.LinearNetworkFlow(corr, mixed @ mixed.mT / 6), (w1, w2), [0.0, 1.0, 5.0], rtol=1e-11
    )
    balance = matrices.balance_matrix(*path.layers)
    fit = matrices.fit_balance(w1, w2)
    grid = torch.linspace(-5, 5, 20001, dtype=torch.float64)
    distance = (balance[0] - grid[:, None, None] * torch.eye(4, dtype=torch.float64)).square().sum((-2, -1))
    return {
        "drift": float((balance - balance[0]).abs().max()),
        "best": float(grid[distance.argmin()]), "mean": float(fit.mean), "trace": float(4 * fit.mean),
    }  # fmt: skip


def _spectra(generator: Any) -> dict[str, float]:
    """Theorem 4.1.1: eigenvalues of both representations of a converged 2-3-5 network at balance 2."""
    import torch

    from separatrix import matrices

    corr = torch.randn(5, 2, dtype=torch.float64, generator=generator)
    w1, w2 = matrices.balanced_pair(2.0, 2, 3, 5, scale=0.4, generator=generator)
    flow = theory.BalancedFlow(w1, w2, corr)
    gram = flow.gram_limit()
    s = torch.linalg.svdvals(corr)
    first, second = theory.representation_spectra(s, torch.tensor(2.0, dtype=torch.float64), 2, 3, 5)
    measured = torch.linalg.eigvalsh(gram[2:, 2:]).flip(0)
    gap_out = (measured - second).abs().max()
    gap_in = (torch.linalg.eigvalsh(gram[:2, :2]).flip(0) - first).abs().max()
    return {
        "spectrum_error": float(max(gap_out, gap_in)),
        "extra_count": float(((measured - 2.0).abs() < 1e-9).sum()), "extra_printed": 3.0,
    }  # fmt: skip


def _kernel(args: Mapping[str, Any], generator: Any) -> dict[str, float]:
    """Theorem 4.1.3: how the kernel of a square network moves at large balance, with one term and with two."""
    import torch

    from separatrix import matrices

    n, lam = args["size"], torch.tensor(args["large"], dtype=torch.float64)
    corr, product, x = (
        torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in ((n, n), (n, n), (6, n))
    )
    w1, w2 = matrices.balanced_pair(lam, n, n, n, product=product, generator=generator)
    flow = theory.BalancedFlow(w1, w2, corr)
    change = flow.ntk(1.0, x) - flow.ntk(0.0, x)
    both = theory.lazy_ntk_change(product, flow.product(1.0), lam, x)
    only = theory.two_layer_ntk((corr.mT @ corr - product.mT @ product) / lam, torch.zeros_like(corr), x)
    size = change.abs().max()
    return {
        "two_terms": float((change - both).abs().max() / size),
        "one_term": float((change - only).abs().max() / size),
    }


def _shallow(args: Mapping[str, Any], torch: Any) -> dict[str, float]:
    """Theorem 4.2.1: representations of a converged one-layer network."""
    generator = spawn(0, "anguita-theorems", "shallow")
    corr = torch.randn(3, args["size"], dtype=torch.float64, generator=generator)
    weight = theory.shallow_product(60.0, torch.zeros_like(corr), corr)
    _, s, vh = torch.linalg.svd(corr, full_matrices=False)
    square, plain = ((vh.mT * power) @ vh for power in (s**2, s))
    found = weight.mT @ weight
    return {"shallow_square": float((found - square).abs().max()), "shallow_plain": float((found - plain).abs().max())}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """One row per seed."""
    return Summary(tables={"theorems": [{"seed": cell.seed, **payload} for cell, payload in results]})


def judge_columns(
    text: str, right: Mapping[str, tuple[str, float]], printed: Mapping[str, tuple[str, float]], correct: str = ""
) -> Callable[[Summary], Judgement]:
    """A rule from columns near zero if ``correct`` is right, and columns near zero if the print is."""

    def judge_all(summary: Summary) -> Judgement:
        table = summary.table("theorems")
        rows = [Row(label, row[key], 0.0, tol) for row in table for key, (label, tol) in right.items()]
        wrong = [Row(label, row[key], 0.0, tol) for row in table for key, (label, tol) in printed.items()]
        labels = {key: label for key, (label, _) in {**right, **printed}.items()}
        values = ", ".join(f"{label} {small(max(row[key] for row in table))}" for key, label in labels.items())
        return judge(f"{text}: {values}", wrong or rows, misprint(correct, rows) if printed else None)

    return judge_all


def judge_best(summary: Summary) -> Judgement:
    """Theorem 4.5.1: trace over width."""
    table = summary.table("theorems")
    rows = [Row("best multiple of the identity by search", row["best"], row["mean"], 1e-3) for row in table]
    printed = [Row("the trace, as printed", row["best"], row["trace"], 1e-3) for row in table]
    worst = max(abs(float(row.measured) - float(row.expected)) for row in rows)
    return judge(
        f"the search ends within {small(worst)} of the trace over the width", printed, misprint("it is Tr(D)/n", rows)
    )


def judge_extra(summary: Summary) -> Judgement:
    """Theorem 4.1.1: which eigenvalues the representations have."""
    table = summary.table("theorems")
    rows = [Row("largest error of an eigenvalue", row["spectrum_error"], 0.0, 1e-9) for row in table]
    rows += [Row("eigenvalues equal to the balance (N_h - rank)", row["extra_count"], 1.0, 0.0) for row in table]
    printed = [
        Row("eigenvalues equal to the balance (N_o - N_i, as printed)", row["extra_count"], row["extra_printed"], 0.0)
        for row in table
    ]
    counts = sorted({int(row["extra_count"]) for row in table})
    truth = "N_h minus the rank eigenvalues equal the balance, the rest are zero"
    return judge(
        f"2-3-5 at balance 2: {', '.join(several(count, 'eigenvalue') for count in counts)} equal to the balance",
        printed,
        instead(truth, rows),
    )


EXPERIMENT = Experiment(
    name="anguita-theorems",
    title="Conservation, representations, kernel and best balance",
    document="anguita2024",
    place="Theorems 2.2.1, 4.1.1-4.1.3, 4.2.1, 4.5.1",
    version=1,
    scales={"smoke": Settings(), "laptop": Settings(seeds=tuple(range(5))), "paper": Settings(seeds=tuple(range(20)))},
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="anguita2024-thm2.2.1",
            place="Theorem 2.2.1",
            statement="gradient flow conserves the balance matrix, for any inputs",
            measures="drift along integration",
            test="1e-8",
            interchangeable=("seed",),
            judge=judge_columns("drift", {"drift": ("drift of the balance", 1e-8)}, {}),
            counterfeit=with_column("theorems", "drift", 0.1),
            erratum="anguita2024-2.2.1",
        ),
        Claim(
            id="anguita2024-thm4.1.1",
            place="Theorems 4.1.1, 4.1.2",
            statement="eigenvalues of the representations follow from the product and the balance",
            measures="eigenvalues at convergence",
            test="1e-9",
            judge=judge_extra,
            counterfeit=with_column("theorems", "spectrum_error", 0.1),
            genuine=with_column("theorems", "extra_count", lambda row: row["extra_printed"]),
            erratum="anguita2024-4.1-extra-block",
        ),
        Claim(
            id="anguita2024-thm4.1.3",
            place="Theorem 4.1.3",
            statement="at large balance the kernel of a square network moves by order 1 / balance",
            measures="relative error of the predicted change",
            test="1e-3",
            judge=judge_columns(
                "relative error",
                {"two_terms": ("two terms", 1e-3)},
                {"one_term": ("one term, as printed", 1e-3)},
                "the change has two terms, those of erratum anguita2024-4.18",
            ),
            counterfeit=with_column("theorems", "two_terms", 0.5),
            erratum="anguita2024-4.18",
        ),
        Claim(
            id="anguita2024-thm4.2.1",
            place="Theorem 4.2.1",
            statement="representations of a converged shallow network",
            measures="distance from the powers of the task",
            test="1e-9",
            judge=judge_columns(
                "distance",
                {"shallow_square": ("square of S", 1e-9)},
                {"shallow_plain": ("S, as printed", 1e-9)},
                "the square of S",
            ),
            counterfeit=with_column("theorems", "shallow_square", 0.5),
            erratum="anguita2024-4.2.1",
        ),
        Claim(
            id="anguita2024-thm4.5.1",
            place="Theorem 4.5.1",
            statement="the best multiple of the identity is given by the trace",
            measures="search over a grid",
            test="1e-3",
            judge=judge_best,
            counterfeit=with_column("theorems", "mean", 1e3),
            erratum="anguita2024-4.5.1",
        ),
    ),
)
