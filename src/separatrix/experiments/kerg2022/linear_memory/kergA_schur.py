"""kerg2022, appendix A.4: where eigenvalues are sensitive, a computed Schur form has the wrong ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.core.wording import small
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    crossed,
    groups,
    judge,
    spans,
    with_column,
)

if TYPE_CHECKING:
    import numpy

TABLE = "Schur forms in double precision against eigenvalues in ball arithmetic"


class Settings(Params):
    """Sizes of the Grcar matrix, and of symmetric and orthogonal matrices beside it."""

    sizes: tuple[int, ...] = (20, 50, 80, 100)


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per matrix and size."""
    for size in settings.sizes:
        for matrix in ("grcar", "grcar transposed", "symmetric", "orthogonal"):
            yield {"matrix": matrix, "size": size}


def run(cell: Cell) -> Payload:
    """Residual of the Schur decomposition, condition of eigenvalues, and their error."""
    import numpy
    import scipy.linalg

    matrix = _matrix(cell.args["matrix"], cell.args["size"])
    form, basis = scipy.linalg.schur(matrix.astype(complex))
    scale = numpy.linalg.norm(matrix, 2)
    residual = numpy.linalg.norm(basis @ form @ basis.conj().T - matrix, 2) / scale
    _, left, right = scipy.linalg.eig(matrix, left=True, right=True)
    exact = _exact_eigenvalues(matrix)
    error = max(float(numpy.abs(value - exact).min()) for value in numpy.diag(form)) / scale
    condition = float((1 / numpy.abs((left.conj() * right).sum(0))).max())
    return {"residual": float(residual), "condition": condition, "error": error}


def _matrix(name: str, size: int) -> numpy.ndarray:
    import numpy

    if name.startswith("grcar"):
        bands = sum(numpy.diag(numpy.ones(size - k), k) for k in range(4))
        grcar = bands - numpy.diag(numpy.ones(size - 1), -1)
        return grcar.T if "transposed" in name else grcar
    import torch

    drawn = torch.randn(size, size, generator=spawn(0, "kergA-schur", size), dtype=torch.float64).numpy()
    return (drawn + drawn.T) / 2 if name == "symmetric" else numpy.linalg.qr(drawn)[0]


def _exact_eigenvalues(matrix: numpy.ndarray) -> numpy.ndarray:
    """With as many bits as the sensitivity of the Grcar matrix can cost; normal matrices have none."""
    import flint
    import numpy

    is_normal = numpy.allclose(matrix @ matrix.T, matrix.T @ matrix)
    with flint.ctx.workprec(96 if is_normal else 128 + 3 * len(matrix)):
        found = flint.acb_mat(matrix.tolist()).eig(algorithm="approx")
        return numpy.array([complex(value) for value in found])


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """One row per matrix."""
    rows = [{"matrix": cell.args["matrix"], "size": cell.args["size"], **payload} for cell, payload in results]
    return Summary(tables={TABLE: rows})


def _of(summary: Summary, *names: str) -> list[dict[str, Any]]:
    return [dict(row) for row in summary.table(TABLE) if row["matrix"] in names]


def judge_stable(summary: Summary) -> Judgement:
    """Decide ``kerg2022-A4-backward-stable``."""
    rows = [
        Row(f"residual, {row['matrix']}, n={row['size']}", row["residual"], 0.0, 1e-13) for row in summary.table(TABLE)
    ]
    return judge(f"relative residuals up to {small(max(float(row.measured) for row in rows))}", rows)


def judge_sensitive(summary: Summary) -> Judgement:
    """Decide ``kerg2022-A4-grcar``."""
    largest = max(row["size"] for row in summary.table(TABLE))
    (grcar,) = (row for row in _of(summary, "grcar transposed") if row["size"] == largest)
    normal = _of(summary, "symmetric", "orthogonal")
    rows = [
        Row("condition of an eigenvalue, Grcar", grcar["condition"], "above 1e8", agrees=grcar["condition"] > 1e8),
        Row("error of an eigenvalue, Grcar", grcar["error"], "above 1e-6", agrees=grcar["error"] > 1e-6),
        *(Row(f"condition, {row['matrix']}, n={row['size']}", row["condition"], 1.0, 1e-6) for row in normal),
        *(Row(f"error, {row['matrix']}, n={row['size']}", row["error"], 0.0, 1e-12) for row in normal),
    ]
    evidence = (
        f"n = {largest}: eigenvalues of the transposed Grcar matrix are off by {small(grcar['error'])} at a condition "
        f"of {small(grcar['condition'])}; normal matrices by at most {small(max(row['error'] for row in normal))}"
    )
    return judge(evidence, rows)


EXPERIMENT = Experiment(
    name="kergA-schur",
    title="Schur forms of matrices with sensitive eigenvalues",
    document="kerg2022",
    place="appendix A.4",
    version=1,
    scales={
        "smoke": Settings(sizes=(20, 80)),
        "laptop": Settings(),
        "paper": Settings(sizes=(20, 50, 80, 100, 150)),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-A4-backward-stable",
            statement="The Schur decomposition by QR steps is backward stable.",
            measures="residual of the decomposition, relative to the matrix",
            test="1e-13",
            needs=(
                crossed(TABLE, "matrix", "size"),
                spans(TABLE, "size", 20, 80),
                groups(TABLE, "matrix", "grcar", "grcar transposed", "symmetric", "orthogonal"),
            ),
            judge=judge_stable,
            counterfeit=with_column(TABLE, "residual", 1e-6),
        ),
        Claim(
            id="kerg2022-A4-grcar",
            statement="Non-normal matrices such as Grcar's have sensitive eigenvalues, and a computed Schur form is "
            "inaccurate; normal ones have not.",
            measures="condition of eigenvalues, and their error against ball arithmetic",
            test="condition above 1e8 and error above 1e-6 at the largest size; 1 and 1e-12 for normal matrices",
            needs=(
                crossed(TABLE, "matrix", "size"),
                spans(TABLE, "size", 20, 80),
                groups(TABLE, "matrix", "grcar", "symmetric", "orthogonal"),
            ),
            as_a_whole=(TABLE,),
            judge=judge_sensitive,
            counterfeit=with_column(TABLE, "error", 1e-14),
        ),
    ),
)
