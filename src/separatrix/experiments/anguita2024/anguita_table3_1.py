"""anguita2024, Tables 3.1-3.3, Theorem 3.1.1 and Figure 3.1: the balance of random layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix import theory
from separatrix.core import spawn
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    groups,
    instead,
    judge,
    misprint,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Sizes of Figure 3.1; the number of sampled pairs is ours."""

    n_in: int = 40
    n_hidden: int = 200
    n_out: int = 80
    gain_1: float = 1.0
    gain_2: float = 1.5
    n_samples: int = 200
    widths: tuple[int, ...] = (50, 400)


class Measured(Summary):
    """One block of the balance matrix, by scheme."""

    blocks: dict[str, list[list[float]]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per scheme and seed at the figure's sizes, and LeCun layers of equal width."""
    sizes = [settings.n_in, settings.n_hidden, settings.n_out]
    for seed in settings.seeds:
        for scheme in ("lecun", "he", "glorot", "scaled"):
            gains = [settings.gain_1, settings.gain_2] if scheme == "scaled" else [1.0, 1.0]
            yield {"scheme": scheme, "sizes": sizes, "gains": gains, "n_samples": settings.n_samples, "seed": seed}
        for width in settings.widths:
            few = max(4, settings.n_samples // 10)
            yield {"scheme": "lecun", "sizes": [width] * 3, "gains": [1.0, 1.0], "n_samples": few, "seed": seed}


def run(cell: Cell) -> Payload:
    """Sample pairs of layers; moments of the balance entry by entry, and the spread of its eigenvalues."""
    import torch

    from separatrix.matrices import balance_matrix, fit_balance

    n_in, n_hidden, n_out = cell.args["sizes"]
    v1, v2 = theory.layer_variances(cell.args["scheme"], n_in, n_hidden, n_out, tuple(cell.args["gains"]))
    generator = spawn(cell.seed, "anguita-table3-1", cell.args["scheme"], n_hidden)
    diagonal, off, spread, first = [], [], [], None
    mask = ~torch.eye(n_hidden, dtype=torch.bool)
    for _ in range(cell.args["n_samples"]):
        w1 = v1**0.5 * torch.randn(n_hidden, n_in, dtype=torch.float64, generator=generator)
        w2 = v2**0.5 * torch.randn(n_out, n_hidden, dtype=torch.float64, generator=generator)
        balance = balance_matrix(w1, w2)
        first = balance[:40, :40] if first is None else first
        diagonal.append(balance.diagonal())
        off.append(balance[mask].square().mean())
        spread.append(fit_balance(w1, w2).spread)
    entries = torch.stack(diagonal)
    return {
        "mean": float(entries.mean()),
        "mean_error": float(entries.mean(1).std() / len(diagonal) ** 0.5),
        "variance_diagonal": float(entries.var()),
        "variance_offdiagonal": float(torch.stack(off).mean()),
        "spread": float(torch.stack(spread).mean()),
        "block": first,
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Measured moments beside the theory, averaged over seeds, and the limits of Table 3.3."""
    table: list[dict[str, Any]] = []
    blocks: dict[str, Any] = {}
    groups: dict[tuple[str, int], list[tuple[Cell, Payload]]] = {}
    for cell, payload in results:
        groups.setdefault((cell.args["scheme"], cell.args["sizes"][1]), []).append((cell, payload))
    for (scheme, n_hidden), members in groups.items():
        args = members[0][0].args
        n_in, _, n_out = args["sizes"]
        predicted = theory.random_balance(scheme, n_in, n_hidden, n_out, tuple(args["gains"]))
        count = len(members)
        row: dict[str, Any] = {
            "scheme": scheme,
            "n_in": args["sizes"][0],
            "n_hidden": n_hidden,
            "n_out": args["sizes"][2],
        }
        for name in ("mean", "variance_diagonal", "variance_offdiagonal", "spread"):
            row[name] = sum(payload[name] for _, payload in members) / count
        row["mean_error"] = sum(payload["mean_error"] ** 2 for _, payload in members) ** 0.5 / count
        row |= {
            "theory_mean": predicted.mean,
            "theory_diagonal": predicted.variance_diagonal,
            "theory_offdiagonal": predicted.variance_offdiagonal,
            "theory_spread": predicted.spectral_spread,
            "printed_offdiagonal": _printed_variance(scheme, args),
        }
        table.append(row)
        if args["sizes"][0] != n_hidden:
            blocks[scheme] = members[0][1]["block"].tolist()
    return Measured(
        tables={"balance of random layers": table, "Glorot limits": _limits()},
        blocks=blocks,
    )


def _printed_variance(scheme: str, args: Mapping[str, Any]) -> float:
    """Table 3.2 as printed: the scaled row has squares of the gains where fourth powers belong."""
    n_in, n_hidden, n_out = args["sizes"]
    k, r = n_hidden / n_in, n_out / n_in
    if scheme == "scaled":
        a1, a2 = args["gains"]
        return (r * a2**2 / k**2 + a1**2) / n_in
    return theory.wide_balance(scheme, k, r)[1] / n_in


def _limits() -> list[dict[str, Any]]:
    """Table 3.3, Glorot row, at k = 2: printed, ours, and the general expression at extreme ratios."""
    k, tiny, huge = 2.0, 1e-9, 1e9
    general = {
        "r = k": theory.wide_balance("glorot", k, k)[0],
        "r -> 0": theory.wide_balance("glorot", k, tiny)[0],
        "r -> inf": theory.wide_balance("glorot", k, huge)[0],
        "k -> 0": theory.wide_balance("glorot", tiny, k)[0],
        "k -> inf": theory.wide_balance("glorot", huge, k)[0],
    }
    printed = {"r = k": 0.0, "r -> 0": 2.0, "r -> inf": 2.0, "k -> inf": 0.0, "k -> 0": -2 / (k + 1)}
    return [
        {"case": case, "general": value, "corrected": theory.glorot_limits(k)[case], "printed": printed[case]}
        for case, value in general.items()
    ]


def _rows(summary: Measured) -> list[dict[str, Any]]:
    return summary.table("balance of random layers")


def judge_mean(summary: Measured) -> Judgement:
    """Theorem 3.1.1, item 1 and the means of Table 3.1."""
    rows = [
        Row(
            f"mean, {row['scheme']} {row['n_in']}-{row['n_hidden']}-{row['n_out']}",
            row["mean"],
            row["theory_mean"],
            5 * row["mean_error"],
        )
        for row in _rows(summary)
    ]
    worst = max(abs(row["mean"] - row["theory_mean"]) / row["mean_error"] for row in _rows(summary))
    return judge(f"{len(rows)} sampled means, at most {worst:.1f} standard errors from N_o v2 - N_i v1", rows)


def judge_variance(summary: Measured) -> Judgement:
    """Theorem 3.1.1, item 2: the diagonal has twice the variance, not four times."""
    ratios = [
        (row["scheme"], (row["variance_diagonal"]) / row["variance_offdiagonal"])
        for row in _rows(summary)
        if row["n_in"] != row["n_hidden"]
    ]
    rows = [Row(f"variance ratio, {scheme}", ratio, 2.0, 0.25) for scheme, ratio in ratios]
    printed = [Row(f"variance ratio as printed, {scheme}", ratio, 4.0, 0.25) for scheme, ratio in ratios]
    measured = ", ".join(f"{scheme} {ratio:.2f}" for scheme, ratio in ratios)
    return judge(f"diagonal over off-diagonal variance: {measured}", printed, misprint("the factor is 2, not 4", rows))


def judge_tables(summary: Measured) -> Judgement:
    """Tables 3.2 and 3.3: variances and limits."""
    rows = [
        Row(
            f"off-diagonal variance, {row['scheme']}",
            row["variance_offdiagonal"],
            row["theory_offdiagonal"],
            0.05 * row["theory_offdiagonal"],
        )
        for row in _rows(summary)
    ]
    limits = summary.table("Glorot limits")
    rows += [Row(f"Glorot, {row['case']}", row["general"], row["corrected"], 1e-6) for row in limits]
    printed = [Row(f"Glorot as printed, {row['case']}", row["general"], row["printed"], 1e-6) for row in limits]
    printed += [
        Row(
            "scaled variance as printed",
            row["variance_offdiagonal"],
            row["printed_offdiagonal"],
            0.05 * row["theory_offdiagonal"],
        )
        for row in _rows(summary)
        if row["scheme"] == "scaled"
    ]
    wrong = sum(not row.agrees for row in printed)
    evidence = f"{wrong} of {len(printed)} printed entries differ from the general expression"
    return judge(evidence, printed, misprint("the entries of erratum anguita2024-table3.2-3.3", rows))


def judge_probability(summary: Measured) -> Judgement:
    """Wide random layers are balanced entry by entry, not as matrices."""
    equal = sorted((row for row in _rows(summary) if row["n_in"] == row["n_hidden"]), key=lambda row: row["n_in"])
    narrow, wide = equal[0], equal[-1]
    shrink = wide["variance_offdiagonal"] / narrow["variance_offdiagonal"]
    rows = [
        Row(
            "entry variance, wide over narrow",
            shrink,
            narrow["n_in"] / wide["n_in"],
            0.1 * narrow["n_in"] / wide["n_in"],
        )
    ]
    ratio = wide["spread"] / narrow["spread"]
    rows.append(Row("eigenvalue spread, wide over narrow", ratio, 1.0, 0.1))
    whole = [Row("eigenvalue spread at the largest width, if balanced", wide["spread"], 0.0, 0.1)]
    text = f"the variance of entries falls to {shrink:.3f} of itself, the spread of eigenvalues is {wide['spread']:.2f}"
    return judge(text, whole, instead("each entry concentrates, the eigenvalues keep their spread", rows))


_NAMES = {"lecun": "LeCun", "he": "He", "glorot": "Glorot", "scaled": "scaled"}


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Figure 3.1: the balance of random layers as heat maps (40 hidden units shown)."""
    from separatrix.report.figures.learning import linear

    return {
        "fig3-1": linear.heat_maps(
            {_NAMES[scheme]: block for scheme, block in summary.blocks.items()},
            label="entry of w2'w2 - w1w1'",
            caption="""Balance of random layers by initialiser, 40 hidden units shown. A balanced pair would be a
        multiple of the identity: compare the diagonal with what lies beside it.""",
        )
    }


EXPERIMENT = Experiment(
    name="anguita-table3-1",
    title="Balance of randomly initialised layers",
    document="anguita2024",
    place="Theorem 3.1.1, Tables 3.1-3.3, Figure 3.1",
    version=1,
    scales={
        "smoke": Settings(n_samples=30, widths=(30, 120)),
        "laptop": Settings(n_samples=200),
        "paper": Settings(n_samples=1000, widths=(100, 1600)),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="anguita2024-thm3.1.1-mean",
            place="Theorem 3.1.1, Table 3.1",
            statement="random layers are balanced in expectation, with the coefficient of Table 3.1",
            measures="mean diagonal entry of the balance",
            test="within 5 standard errors",
            needs=(groups("balance of random layers", "scheme", "glorot", "he", "lecun", "scaled"),),
            judge=judge_mean,
            counterfeit=with_column("balance of random layers", "mean", lambda row: row["mean"] + 1),
        ),
        Claim(
            id="anguita2024-thm3.1.1-variance",
            place="Theorem 3.1.1",
            statement="diagonal entries of the balance vary more than the others by a fixed factor",
            measures="ratio of variances",
            test="2 within 0.25",
            judge=judge_variance,
            counterfeit=with_column(
                "balance of random layers", "variance_diagonal", lambda row: row["variance_offdiagonal"]
            ),
            erratum="anguita2024-3.1.1-variance",
        ),
        Claim(
            id="anguita2024-table3.2",
            place="Tables 3.2, 3.3",
            statement="variance and limits of the balance in terms of the ratios of widths",
            measures="off-diagonal variance; Glorot limits",
            test="5 percent; 1e-6",
            needs=(groups("balance of random layers", "scheme", "glorot", "he", "lecun", "scaled"),),
            judge=judge_tables,
            counterfeit=with_column(
                "balance of random layers", "variance_offdiagonal", lambda row: 2 * row["variance_offdiagonal"]
            ),
            erratum="anguita2024-table3.2-3.3",
        ),
        Claim(
            id="anguita2024-wide-is-balanced",
            place="Sec. 3.1",
            statement="wide random layers converge to balanced layers",
            measures="entry variance and eigenvalue spread at two widths",
            test="10 percent",
            judge=judge_probability,
            counterfeit=with_column("balance of random layers", "variance_offdiagonal", 1.0),
            genuine=with_column("balance of random layers", "spread", 0.01),
            erratum="anguita2024-3.1-in-probability",
        ),
    ),
    draw=draw,
)
