"""altafini2025, Lemmas 4, 9, 10 and 11: eigenvalue lists and (in)stability, one lemma at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from separatrix.core.wording import number, small
from separatrix.lab import Cell, Judgement, Payload, Row, condition, judge, with_entry

from ..worst_case import Measured, highest
from .statements import (
    ambient_jacobian,
    draw_instances,
    oja_velocity,
    on_tangents,
    statement,
    statements_experiment,
    two_groups,
)


def run(cell: Cell) -> Payload:
    """The measured numbers of one statement."""
    drawn = draw_instances(cell, "altafini-lemmas")
    return _MEASURES[cell.args["part"]](drawn.coupling, drawn.value)


def _lists(flow: Any, points: Any, spectrum: Any) -> dict[str, float]:
    """Distance of a closed-form list from the dense one, in the tangent and in the ambient space."""
    import torch

    from separatrix.matrices import spectral_distance

    found = {}
    for space in ("tangent", "ambient"):
        dense = torch.linalg.eigvals(flow.jacobian(points, space))
        mine = spectrum.expand(ambient=space == "ambient")
        pairs = zip(mine, dense, strict=True)
        found[space] = max(spectral_distance(one, other) for one, other in pairs)
    return found


def _worst(parts: list[dict[str, float]]) -> dict[str, float]:
    return {key: max(part[key] for part in parts) for key in parts[0]}


def _lemma4(coupling: Any, value: Any) -> Payload:
    """The lemma's list at consensus and the instability of every split, from automatic differentiation alone."""
    import torch

    from separatrix.matrices import spectral_distance

    n, error = 6, 0.0
    unequal, equal = list[float](), list[float]()
    fragile = torch.diag(torch.tensor([1.0, -1.0, -2.0], dtype=torch.float64))
    for matrix in [*value, fragile]:
        velocity, eigenvalues = oja_velocity(matrix), torch.linalg.eigvalsh(matrix).flip(0)
        for k, own in enumerate(eigenvalues):
            others = torch.cat([eigenvalues[:k], eigenvalues[k + 1 :]])
            listed = torch.cat([(-2 * own).repeat(n), others - own, (-own).repeat((n - 1) * len(others))])
            state = two_groups(matrix, k, n, 0)
            dense = torch.linalg.eigvals(ambient_jacobian(velocity, state))
            error = highest(error, spectral_distance(listed.to(dense.dtype), dense))
            for n1 in range((n + 1) // 2, n):
                state = two_groups(matrix, k, n1, n - n1)
                tangent = on_tangents(ambient_jacobian(velocity, state), state)
                (unequal if 2 * n1 > n else equal).append(float(torch.linalg.eigvals(tangent).real.max()))
    return {"error of the list": error, "unequal groups": min(unequal), "equal groups": min(equal)}


def _lemma9(coupling: Any, value: Any) -> Payload:
    from separatrix import dynamics, theory

    flow = dynamics.AttentionFlow.from_coupling(coupling, value)
    return _worst(
        [
            _lists(flow, two_groups(value, k, 4, 0), theory.consensus_spectrum(value, k, 4))
            for k in range(value.shape[-1])
        ]
    )


def _lemma10(coupling: Any, value: Any) -> Payload:
    from separatrix import dynamics, theory

    flow = dynamics.AttentionFlow.from_coupling(coupling, value)
    return _worst(
        [
            _lists(flow, two_groups(value, k, n1, n2), theory.bipartite_spectrum(coupling, value, k, n1, n2))
            for k in range(value.shape[-1])
            for n1, n2 in ((3, 2), (4, 1))
        ]
    )


def _lemma11(coupling: Any, value: Any) -> Payload:
    """Balanced antipodal pairs with w' M w = 0 are the polygonal equilibria of an invertible value matrix."""
    import torch

    from separatrix import dynamics

    abscissas = []
    for matrix, target in zip(coupling, value, strict=True):
        low, up = torch.linalg.eigh((matrix + matrix.mT) / 2)
        if not (low[0] < 0 < low[-1]):
            continue
        mix = torch.sqrt(-low[0] / (low[-1] - low[0]))
        direction = mix * up[:, -1] + torch.sqrt(1 - mix**2) * up[:, 0]
        state = torch.stack([direction, direction, -direction, -direction])
        flow = dynamics.AttentionFlow.from_coupling(matrix, target)
        abscissas.append((float(flow.residual(state)), float(torch.linalg.eigvals(flow.jacobian(state)).real.max())))
    skew = torch.tensor([[0.0, 0.5, -0.3], [-0.5, 0.0, 0.4], [0.3, -0.4, 0.0]], dtype=torch.float64)
    flow = dynamics.AttentionFlow.from_coupling(skew, torch.diag(torch.tensor([1.0, -1.0, -2.0], dtype=torch.float64)))
    pair = torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], dtype=torch.float64)
    nearby = torch.nn.functional.normalize(pair + torch.tensor([[0, 0.05, 0.1], [0, -0.1, 0.02]]).double(), dim=-1)
    end = dynamics.integrate(flow, nearby, finishing=False, t_max=200.0).final
    return {
        "found": len(abscissas),
        "largest speed": max((speed for speed, _ in abscissas), default=0.0),
        "unstable": sum(abscissa > 1e-9 for _, abscissa in abscissas),
        "counterexample abscissa": float(torch.linalg.eigvals(flow.jacobian(pair)).real.max()),
        "counterexample end": float((end[0] * end[1]).sum()),
    }


_MEASURES = {
    "lemma 4": _lemma4,
    "lemma 9": _lemma9,
    "lemma 10": _lemma10,
    "lemma 11": _lemma11,
}


def judge_lists(part: str) -> Callable[[Measured], Judgement]:
    """Decide ``altafini2025-lemma9`` and ``altafini2025-lemma10``."""

    def judge_list(summary: Measured) -> Judgement:
        found = summary.parts[part]
        rows = [
            Row("largest error of a tangent eigenvalue", found["tangent"], 0.0, 1e-9),
            Row("largest error of an ambient eigenvalue", found["ambient"], 0.0, 1e-9),
        ]
        return judge(f"errors {small(found['tangent'])} (tangent) and {small(found['ambient'])} (ambient)", rows)

    return judge_list


def judge_lemma4(summary: Measured) -> Judgement:
    """Decide ``altafini2025-lemma4``."""
    found = summary.parts["lemma 4"]
    rows = [
        Row("error of the list at consensus, whole space", found["error of the list"], 0.0, 1e-9),
        Row(
            "smallest abscissa with unequal groups",
            found["unequal groups"],
            "positive",
            agrees=found["unequal groups"] > 1e-6,
        ),
    ]
    exceptions = [
        Row(
            "smallest abscissa with equal groups",
            found["equal groups"],
            "positive",
            agrees=found["equal groups"] > 1e-6,
        )
    ]
    evidence = (
        f"largest real part at least {found['unequal groups']:.3f} with unequal groups, "
        f"{small(found['equal groups'])} with equal ones"
    )
    return judge(evidence, rows + exceptions, condition("with groups of unequal size", rows))


def judge_lemma11(summary: Measured) -> Judgement:
    """Decide ``altafini2025-lemma11``."""
    found = summary.parts["lemma 11"]
    marginal = found["found"] - found["unstable"]
    end = found["counterexample end"]
    rows = [
        Row("largest speed at a polygonal point", found["largest speed"], 0.0, 1e-10),
    ]
    exceptions = [
        Row("polygonal points of four tokens without a positive abscissa", marginal, 0),
        Row("two tokens, skew coupling: cosine at the end", end, "not antipodal", agrees=end > -0.999),
    ]
    return judge(
        f"{found['unstable']} of {found['found']} points with four tokens are linearly unstable; a pair under "
        f"skew coupling returns to antipodes (cosine {number(end)})",
        rows + exceptions,
    )


EXPERIMENT = statements_experiment(
    name="altafini-lemmas",
    title="Eigenvalues at consensus, bipartite and polygonal equilibria as the lemmas list them",
    place="Lemmas 4, 9, 10 and 11",
    version=2,
    parts=_MEASURES,
    run=run,
    least=("unequal groups", "equal groups", "counterexample end"),
    totals=("found", "unstable"),
    claims=(
        statement(
            id="altafini2025-lemma4",
            place="Lemma 4",
            statement="Bipartite consensus of the multiagent Oja flow is unstable; consensus has the stated list.",
            measures="spectra of automatically differentiated Jacobians at every split of six tokens",
            test="list to 1e-9; abscissas above 1e-6",
            judge=judge_lemma4,
            counterfeit=with_entry("parts", "lemma 4", unequal_groups=-0.1),
            erratum="altafini2025-E4",
        ),
        statement(
            id="altafini2025-lemma9",
            place="Lemma 9",
            statement="Eigenvalues at consensus of the attention flow.",
            test="1e-9",
            judge=judge_lists("lemma 9"),
            counterfeit=with_entry("parts", "lemma 9", tangent=0.1),
        ),
        statement(
            id="altafini2025-lemma10",
            place="Lemma 10",
            statement="Eigenvalues at bipartite consensus of the attention flow.",
            test="1e-9",
            judge=judge_lists("lemma 10"),
            counterfeit=with_entry("parts", "lemma 10", tangent=0.1),
            erratum="altafini2025-E6",
        ),
        statement(
            id="altafini2025-lemma11",
            place="Lemma 11",
            statement="Polygonal equilibria of the attention flow are unstable.",
            test="positive abscissa at every point; a pair does not return to antipodes",
            judge=judge_lemma11,
            counterfeit=with_entry("parts", "lemma 11", unstable=0),
            genuine=with_entry("parts", "lemma 11", unstable=57, found=57, counterexample_end=0.5),
            erratum="altafini2025-E14",
        ),
    ),
)
