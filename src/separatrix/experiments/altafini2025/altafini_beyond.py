"""altafini2025, section 7 and Theorem 1: weights that vary in time, a feedforward term, steps of many sizes, many V."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.core.wording import small
from separatrix.lab import Cell, Claim, Judgement, Payload, Row, condition, instead, judge, with_entry

from ..worst_case import Measured, highest, lowest
from .statements import ambient_jacobian, draw_instances, oja_velocity, on_tangents, statements_experiment, two_groups

if TYPE_CHECKING:
    from torch import Tensor

SLOW, FAST = 0.5, 2.0
"""Rates of rotation as multiples of the fastest that a token can follow."""


def run(cell: Cell) -> Payload:
    """Measure one statement at random instances."""
    drawn = draw_instances(cell, "altafini-beyond")
    return _MEASURES[cell.args["part"]](drawn.coupling, drawn.value, cell.seed)


def _time_varying(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """Value matrices that turn at a constant rate: at every instant consensus is stable, yet is it followed?

    In the plane an agreed token at the angle a from the principal axis moves as a' = -rate - (gap/2) sin(2 a), so that
    it lags by asin(2 rate/gap)/2 up to rate = gap/2 and slips beyond. The integration knows nothing of this.
    """
    import torch

    from separatrix import dynamics

    generator = spawn(seed, "altafini-beyond", "time-varying")
    error, slips, frozen = 0.0, math.inf, -math.inf
    for matrix, logits in zip(value, coupling[..., :2, :2], strict=True):
        low, high = torch.linalg.eigvalsh(matrix)[[0, -1]].tolist()
        start = dynamics.random_tokens(1, 2, 1, generator=generator)[0].expand(4, 2)
        lag = _behind(logits, (high, low), SLOW, start)
        error = highest(error, abs(math.remainder(lag - math.asin(SLOW) / 2, math.pi)))
        slips = lowest(slips, _behind(logits, (high, low), FAST, start) / math.pi)
        axis = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(4, 2)
        flow = dynamics.AttentionFlow.from_coupling(logits, torch.diag(axis.new_tensor([high, low])))
        frozen = highest(frozen, float(torch.linalg.eigvals(flow.jacobian(axis)).real.max()) / (high - low))
    return {"frozen abscissa over the gap": frozen, "error of the lag, slow": error, "half turns lost, fast": slips}


def _behind(logits: Tensor, axes: tuple[float, float], share: float, start: Tensor) -> float:
    """Angle by which the first of several tokens is behind the turning axis at the end, whole turns counted."""
    import numpy
    from scipy.integrate import solve_ivp

    gap, couplings = axes[0] - axes[1], logits.numpy()
    rate, t_max = share * gap / 2, 40 / gap

    def speed(t: float, flat: Any) -> Any:
        x, c, s = flat.reshape(-1, 2), math.cos(rate * t), math.sin(rate * t)
        turn = numpy.array([[c, -s], [s, c]])
        scores = numpy.exp(x @ couplings @ x.T)
        pull = (scores / scores.sum(1, keepdims=True)) @ x @ (turn * numpy.array(axes)) @ turn.T
        return (pull - (x * pull).sum(1, keepdims=True) * x).reshape(-1)

    path = solve_ivp(speed, (0, t_max), start.reshape(-1).numpy(), rtol=1e-8, atol=1e-10, max_step=0.1 / gap)
    angles = numpy.unwrap(numpy.arctan2(path.y[1], path.y[0]))
    return float(rate * t_max - angles[-1])


def _feedforward(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """A network of one hidden layer, projected on the tangent spaces: do tokens stay on the sphere, does it matter?"""
    import numpy
    import torch
    from scipy.integrate import solve_ivp

    from separatrix import dynamics

    generator = spawn(seed, "altafini-beyond", "feedforward")
    leaves, tangent, effect = 0.0, 0.0, math.inf
    for logits, matrix in zip(coupling, value, strict=True):
        inner, outer = (torch.randn(3, 3, generator=generator, dtype=torch.float64) for _ in range(2))
        start = dynamics.random_tokens(4, 3, 1, generator=generator)[0]

        def speed(_: float, flat: Any, with_network: bool, weights: tuple[Tensor, ...]) -> Any:
            logits, matrix, inner, outer = weights
            x = torch.as_tensor(flat).reshape(4, 3)
            pull = torch.softmax(x @ logits @ x.mT, -1) @ x @ matrix.mT
            if with_network:
                pull = pull + torch.tanh(x @ inner.mT) @ outer.mT
            return (pull - (x * pull).sum(-1, keepdim=True) * x).reshape(-1).numpy()

        weights = (logits, matrix, inner, outer)
        first = torch.as_tensor(speed(0.0, start.reshape(-1), True, weights)).reshape(4, 3)
        tangent = highest(tangent, float((first * start).sum(-1).abs().max()))
        ends = []
        for with_network in (True, False):
            path = solve_ivp(
                speed, (0, 3), start.reshape(-1).numpy(), args=(with_network, weights), rtol=1e-9, atol=1e-11
            )
            tokens = path.y.T.reshape(-1, 4, 3)
            leaves = highest(leaves, float(numpy.abs(numpy.linalg.norm(tokens, axis=-1) - 1).max()))
            ends.append(tokens[-1])
        effect = lowest(effect, float(numpy.abs(ends[0] - ends[1]).max()))
    return {"radial speed": tangent, "distance from the sphere": leaves, "effect of the network": effect}


def _steps(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """Renormalised Euler steps of several sizes at every collinear equilibrium: are they as stable as the flow says?"""
    import torch

    from separatrix.matrices import spectral_distance

    found = {"points": 0, "error of the multipliers": 0.0, "other verdicts, small step": 0, "other verdicts, step 1": 0}
    for logits, matrix in zip(coupling, value, strict=True):

        def velocity(x: Tensor, logits: Tensor = logits, matrix: Tensor = matrix) -> Tensor:
            pull = torch.softmax(x @ logits @ x.mT, -1) @ x @ matrix.mT
            return pull - (x * pull).sum(-1, keepdim=True) * x

        rate = float(torch.linalg.matrix_norm(matrix, 2))
        for k in range(len(matrix)):
            for n1 in (5, 4, 3):
                state = two_groups(matrix, k, n1, 5 - n1)
                exponents = torch.linalg.eigvals(on_tangents(ambient_jacobian(velocity, state), state))
                found["points"] += 1
                for name, step in (("small step", 0.01 / rate), ("middle step", 0.3 / rate), ("step 1", 1.0)):

                    def euler(x: Tensor, step: float = step, velocity: Callable[..., Tensor] = velocity) -> Tensor:
                        return torch.nn.functional.normalize(x + step * velocity(x), dim=-1)

                    dense = torch.linalg.eigvals(on_tangents(ambient_jacobian(euler, state), state))
                    error = float(spectral_distance(1 + step * exponents, dense))
                    found["error of the multipliers"] = highest(found["error of the multipliers"], error)
                    if f"other verdicts, {name}" in found:
                        other = bool(dense.abs().max() < 1) is not bool(exponents.real.max() < 0)
                        found[f"other verdicts, {name}"] += other
    return found


def _many_values(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """Theorem 1 at random value matrices: ends of uniform starts, and stability of every collinear equilibrium."""
    import torch

    from separatrix import dynamics

    found = {"starts": 0, "not consensus on v_1": 0, "with two tokens, not consensus": 0, "wrongly stable": 0}
    n_starts = 20
    for index, matrix in enumerate(value):
        vector = torch.linalg.eigh(matrix)[1][:, -1]
        for n_tokens in (2, 3, 5):
            generator = spawn(seed, "altafini-beyond", "theorem 1", index, n_tokens)
            starts = dynamics.random_tokens(n_tokens, len(matrix), n_starts, generator=generator)
            gap = float(torch.linalg.eigvalsh(matrix)[-2:].diff())
            ends = dynamics.integrate(
                dynamics.OjaFlow(matrix), starts, t_max=60 / min(gap, 1.0), tol=1e-10, finishing=False
            ).final
            missed = int(((ends.mean(-2) @ vector).abs() < 1 - 1e-4).sum())
            key = "with two tokens, not consensus" if n_tokens == 2 else "not consensus on v_1"
            found[key] += missed
            found["starts"] += n_starts
        for k in range(len(matrix)):
            for n1 in (5, 4, 3):
                state = two_groups(matrix, k, n1, 5 - n1)
                real = torch.linalg.eigvals(on_tangents(ambient_jacobian(oja_velocity(matrix), state), state)).real
                found["wrongly stable"] += bool(real.max() < 1e-9) is not (k == 0 and n1 == 5)
    return found


_MEASURES: dict[str, Callable[[Any, Any, int], Payload]] = {
    "time-varying": _time_varying,
    "feedforward": _feedforward,
    "steps": _steps,
    "theorem 1": _many_values,
}


def judge_time_varying(summary: Measured) -> Judgement:
    """Decide ``altafini2025-time-varying``."""
    found = summary.parts["time-varying"]
    abscissa, lost = found["frozen abscissa over the gap"], found["half turns lost, fast"]
    rows = [
        Row("largest abscissa at an instant, over the gap", abscissa, "negative", agrees=abscissa < 0),
        Row("error of the lag, slow", found["error of the lag, slow"], 0.0, 1e-4),
        Row("half turns lost, fast", lost, "at least 1", agrees=lost >= 1),
    ]
    return judge(
        f"stable at every instant (abscissa {small(abscissa)} of the gap), yet {lost:.1f} half turns are lost when the "
        "axes turn fast",
        rows,
    )


def judge_feedforward(summary: Measured) -> Judgement:
    """Decide ``altafini2025-feedforward``."""
    found = summary.parts["feedforward"]
    stays = found["distance from the sphere"] < 1e-6
    stated = [Row("tokens leave the sphere by", found["distance from the sphere"], "more than 1e-6", agrees=not stays)]
    right = [
        Row("largest radial speed", found["radial speed"], 0.0, 1e-12),
        Row("tokens leave the sphere by", found["distance from the sphere"], 0.0, 1e-6),
        Row(
            "smallest effect",
            found["effect of the network"],
            "above 0.01",
            agrees=found["effect of the network"] > 0.01,
        ),
    ]
    evidence = (
        f"with the network projected on the tangent spaces tokens leave the sphere by "
        f"{small(found['distance from the sphere'])}, and the network moves them by "
        f"{found['effect of the network']:.2f}"
    )
    return judge(
        evidence, stated, instead("a projected network is part of the model without leaving the sphere", right)
    )


def judge_steps(summary: Measured) -> Judgement:
    """Decide ``altafini2025-discrete-steps``."""
    found = summary.parts["steps"]
    rows = [
        Row("error of 1 + step times the exponents", found["error of the multipliers"], 0.0, 1e-9),
        Row("verdicts that differ from the flow's, step 0.01/|V|", found["other verdicts, small step"], 0),
    ]
    evidence = (
        f"of {found['points']} equilibria {found['other verdicts, small step']} change their stability with small "
        f"steps; with steps of one {found['other verdicts, step 1']} do"
    )
    return judge(evidence, rows)


def judge_theorem1(summary: Measured) -> Judgement:
    """Decide ``altafini2025-theorem1-values``."""
    found = summary.parts["theorem 1"]
    three = [
        Row("starts of 3 and 5 tokens that end elsewhere", found["not consensus on v_1"], 0),
        Row("equilibria of 5 tokens whose stability is not as stated", found["wrongly stable"], 0),
    ]
    two = Row("starts of 2 tokens that end elsewhere", found["with two tokens, not consensus"], 0)
    evidence = (
        f"{found['not consensus on v_1']} of the starts with 3 and 5 tokens end elsewhere, and "
        f"{found['with two tokens, not consensus']} of those with 2; {found['starts']} in all"
    )
    return judge(evidence, [*three, two], condition("with three tokens or more", three))


EXPERIMENT = statements_experiment(
    name="altafini-beyond",
    title="Weights that vary in time, feedforward terms, steps of many sizes, and Theorem 1 at random value matrices",
    place="section 7 and Theorem 1",
    version=1,
    parts=_MEASURES,
    run=run,
    least=("half turns lost, fast", "effect of the network"),
    totals=(
        "points",
        "starts",
        "not consensus on v_1",
        "with two tokens, not consensus",
        "wrongly stable",
        "other verdicts, small step",
        "other verdicts, step 1",
    ),
    claims=(
        Claim(
            id="altafini2025-time-varying",
            place="section 7, time-varying weights",
            statement="With weights that vary in time stability at each instant is not enough.",
            measures="consensus under value matrices that turn, slower and faster than a token can follow",
            test="stable at every instant; slow: the predicted lag to 1e-4; fast: at least one half turn is lost",
            judge=judge_time_varying,
            counterfeit=with_entry("parts", "time-varying", **{"half turns lost, fast": 0.0}),
        ),
        Claim(
            id="altafini2025-feedforward",
            place="section 7, feedforward network",
            statement="A feedforward network cannot be part of the continuous-time model on the sphere.",
            measures="distance from the sphere along trajectories with a projected network",
            test="more than 1e-6",
            judge=judge_feedforward,
            counterfeit=with_entry("parts", "feedforward", **{"distance from the sphere": 0.0}),
            genuine=with_entry("parts", "feedforward", **{"distance from the sphere": 0.5}),
            erratum="altafini2025-E16",
        ),
        Claim(
            id="altafini2025-discrete-steps",
            place="section 7, discrete time",
            statement="Small Euler steps, renormalised, have the equilibria and the stability of the flow.",
            measures="automatically differentiated multipliers at every collinear equilibrium, three sizes of step",
            test="multipliers to 1e-9; the same stability",
            judge=judge_steps,
            counterfeit=with_entry("parts", "steps", **{"error of the multipliers": 0.1}),
        ),
        Claim(
            id="altafini2025-theorem1-values",
            place="Theorem 1",
            statement="At any V almost all starts end in consensus on v_1, the only stable collinear equilibrium.",
            measures="ends of uniform starts at random value matrices; spectra at all collinear equilibria",
            test="no other end; no other stable point",
            judge=judge_theorem1,
            counterfeit=with_entry("parts", "theorem 1", **{"not consensus on v_1": 5}),
            genuine=with_entry("parts", "theorem 1", **{"with two tokens, not consensus": 0}),
            erratum="altafini2025-E5",
        ),
    ),
)
