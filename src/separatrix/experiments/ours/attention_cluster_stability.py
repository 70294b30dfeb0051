"""Ours: stability of clustering equilibria from blocks whose size does not depend on the number of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.core.wording import number
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, judge, with_fields

from ..worst_case import highest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COUPLING = [[2.177, -0.374, -1.305], [-2.376, 1.363, 0.712], [2.747, -0.034, 1.789]]
VALUE = [[1.019, 0.896, -0.307], [0.896, 0.167, 0.557], [-0.307, 0.557, -0.017]]
START = [[0.84318379, 0.53723214, 0.02056021], [-0.71952196, -0.65198950, -0.23916071]]


class Settings(Params):
    """Random clustered states, and one instance with a stable 2-clustering of ten tokens."""

    dims: tuple[int, ...] = (2, 3, 5)
    clusters: tuple[int, ...] = (1, 2, 3)
    n_cases: int = 4  # per dimension and number of clusters, half of them with a value matrix that is not symmetric


class Measured(Summary):
    """Errors over random states, and numbers and spectra of one example."""

    worst: float
    necessary: int
    states: int
    example: dict[str, Any]
    spectra: dict[str, list[list[float]]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """Random states per dimension, and the example."""
    for seed in settings.seeds:
        for dim in settings.dims:
            for m in settings.clusters:
                yield {"part": "random", "seed": seed, "dim": dim, "m": m, "n_cases": settings.n_cases}
    yield {"part": "example"}


def run(cell: Cell) -> Payload:
    """Block spectra against dense ones."""
    return _random(cell) if cell.args["part"] == "random" else _example()


def _random(cell: Cell) -> Payload:
    import torch

    from separatrix import matrices, theory

    dim, m = cell.args["dim"], cell.args["m"]
    generator = spawn(cell.seed, "attention-cluster-stability", dim, m)
    worst, necessary = 0.0, 0
    for case in range(cell.args["n_cases"]):
        coupling = torch.randn(dim, dim, dtype=torch.float64, generator=generator)
        value = torch.randn(dim, dim, dtype=torch.float64, generator=generator)
        value = (value + value.mT) / 2 if case % 2 else value
        points = torch.nn.functional.normalize(torch.randn(m, dim, dtype=torch.float64, generator=generator), dim=-1)
        sizes = torch.randint(1, 5, (m,), generator=generator)
        blocks = theory.cluster_spectrum(coupling, value, points, sizes)
        dense = _dense_spectrum(coupling, value, points.repeat_interleave(sizes, dim=0))
        scale = float(torch.linalg.matrix_norm(value, 2)) * (1 + float(torch.linalg.matrix_norm(coupling, 2)))
        worst = highest(worst, matrices.spectral_distance(blocks.expand(), dense) / scale)
        necessary += _contains_multipliers(coupling, value, points, sizes, blocks.transversal) if dim > m else 0
    return {"worst": worst, "necessary": necessary}


def _dense_spectrum(coupling: Any, value: Any, tokens: Any) -> Any:
    """Eigenvalues of the tangent Jacobian of all tokens, differentiated automatically."""
    import torch

    from separatrix import dynamics

    flow = dynamics.AttentionFlow.from_coupling(coupling, value)
    full = torch.func.jacrev(flow.velocity)(tokens)
    basis = torch.block_diag(*flow.basis(tokens))
    size = tokens.numel()
    return torch.linalg.eigvals(basis.mT @ full.reshape(size, size) @ basis)


def _contains_multipliers(coupling: Any, value: Any, points: Any, sizes: Any, transversal: Any) -> int:
    """How many clusters lack their own -gamma_a among the eigenvalues that split them."""
    import torch

    weights = torch.softmax(points @ coupling @ points.mT + torch.log(sizes.double()), dim=-1)
    gamma = ((weights @ points @ value.mT) * points).sum(-1)
    return int(((transversal + gamma[:, None]).abs().amin(-1) > 1e-8).sum())


def _example() -> Payload:
    import torch

    from separatrix import dynamics, theory

    coupling, value = torch.tensor(COUPLING, dtype=torch.float64), torch.tensor(VALUE, dtype=torch.float64)
    flow = dynamics.AttentionFlow.from_coupling(coupling, value)
    start = torch.nn.functional.normalize(torch.tensor(START, dtype=torch.float64), dim=-1)
    sizes = torch.tensor([8.0, 2.0], dtype=torch.float64)
    clusters = dynamics.polish(flow, start, sizes).point
    blocks = theory.cluster_spectrum(coupling, value, clusters, [8, 2])
    dense = _dense_spectrum(coupling, value, clusters.repeat_interleave(torch.tensor([8, 2]), dim=0))
    bipartite = theory.bipartite_spectrum(coupling, value, 0, 8, 2)
    return {
        "quotient": blocks.quotient_abscissa,
        "transversal": blocks.transversal_abscissa,
        "dense": float(dense.real.max()),
        "residual": float(torch.as_tensor(blocks.residual)),
        "stable": blocks.stable,
        "bipartite abscissa": bipartite.abscissa,
        "clustering": torch.view_as_real(blocks.expand()),
        "bipartite": torch.view_as_real(bipartite.expand()),
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Errors by dimension and number of clusters, and the example."""
    rows = [
        {"d": cell.args["dim"], "m": cell.args["m"], "states": cell.args["n_cases"], **payload}
        for cell, payload in results
        if cell.args["part"] == "random"
    ]
    example = next(payload for cell, payload in results if cell.args["part"] == "example")
    spectra = {name: example[name].tolist() for name in ("clustering", "bipartite")}
    numbers = {name: value for name, value in example.items() if name not in spectra}
    return Measured(
        worst=max(row["worst"] for row in rows),
        necessary=sum(row["necessary"] for row in rows),
        states=sum(row["states"] for row in rows),
        example=numbers,
        spectra=spectra,
        tables={"Block against dense spectrum": rows, "The stable 2-clustering of sizes 8 and 2": [numbers]},
    )


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Spectra of the clustering and of the bipartite state of the same sizes."""
    from separatrix.report.figures.attention import spectrum_plot

    names = {"clustering": "2-clustering (8, 2)", "bipartite": "bipartite (8, 2) on $v_1$"}
    spectra = {names[name]: [complex(*pair) for pair in pairs] for name, pairs in summary.spectra.items()}
    return {"spectrum": spectrum_plot(spectra, "The clustering is stable where the bipartite state is not")}


def judge_blocks(summary: Measured) -> Judgement:
    """Decide ``separatrix-cluster-blocks``."""
    rows = [Row("largest relative error of an eigenvalue", summary.worst, 0.0, 1e-10)]
    return judge(f"{summary.states} random clustered states", rows)


def judge_example(summary: Measured) -> Judgement:
    """Decide ``separatrix-cluster-example``."""
    found = summary.example
    rows = [
        Row("quotient abscissa", found["quotient"], -0.179521, 1e-6),
        Row("transversal abscissa", found["transversal"], -0.275604, 1e-6),
        Row("dense abscissa of all ten tokens", found["dense"], found["quotient"], 1e-10),
        Row(
            "the bipartite state of the same sizes is unstable",
            found["bipartite abscissa"],
            "positive",
            agrees=found["bipartite abscissa"] > 0,
        ),
    ]
    return judge(f"stable with abscissa {number(found['quotient'])}", rows)


def judge_necessary(summary: Measured) -> Judgement:
    """Decide ``separatrix-cluster-necessary``."""
    rows = [Row("clusters without -gamma_a among their splitting eigenvalues", summary.necessary, 0)]
    return judge(f"{summary.necessary} clusters in more dimensions than clusters lack the eigenvalue -gamma_a", rows)


EXPERIMENT = Experiment(
    name="attention-cluster-stability",
    title="Exact stability of clustering equilibria from small blocks",
    document="separatrix",
    place="explanation/attention-equilibria",
    version=1,
    scales={
        "smoke": Settings(),
        "laptop": Settings(n_cases=30, dims=(2, 3, 5, 8), clusters=(1, 2, 3, 4)),
        "paper": Settings(n_cases=100, dims=(2, 3, 5, 8, 12), clusters=(1, 2, 3, 4, 6)),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-cluster-blocks",
            statement="The tangent spectrum of m clusters is that of one block of size m(d-1) and of one block of "
            "size d-1 per cluster, repeated.",
            measures="eigenvalues against automatic differentiation of all tokens",
            test="relative error 1e-10",
            judge=judge_blocks,
            counterfeit=with_fields(worst=1e-3),
        ),
        Claim(
            id="separatrix-cluster-example",
            statement="A 2-clustering can be asymptotically stable where the bipartite state of its sizes is not "
            "(altafini2025, section 5.2, leaves the stability of clusterings open).",
            measures="abscissas of the example",
            test="1e-6",
            judge=judge_example,
            counterfeit=with_fields(example=lambda found: {**found, "bipartite abscissa": -0.1}),
        ),
        Claim(
            id="separatrix-cluster-necessary",
            statement="With more dimensions than clusters, a cluster of two tokens or more needs gamma_a > 0.",
            measures="clusters whose splitting spectrum lacks -gamma_a",
            test="zero",
            judge=judge_necessary,
            counterfeit=with_fields(necessary=1),
        ),
    ),
    draw=draw,
)
