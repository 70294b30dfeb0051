"""altafini2025, section 7: value matrices that are not symmetric, discrete time, and doubly stochastic attention."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.core.wording import number, small
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, judge, with_entry

from ..worst_case import Measured, highest, worst_of_all

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from separatrix.dynamics import AttentionFlow

REST = 1e-8
"""Of distances and speeds at the end of a flow that has come to rest."""
PARTS = ("not symmetric", "cycle", "discrete", "doubly stochastic")


class Settings(Params):
    """Random instances for each extension."""

    dim: int = 3
    n_instances: int = 12
    n_balanced: int = 12  # instances with doubly stochastic attention, whose dense derivative is slow
    step: float = 0.2


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per extension and seed."""
    for seed in settings.seeds:
        for part in PARTS:
            yield {"part": part, "seed": seed, **settings.model_dump(exclude={"seeds"})}


def run(cell: Cell) -> Payload:
    """The measured numbers of one extension."""
    return _MEASURES[cell.args["part"]](cell)


def _not_symmetric(cell: Cell) -> Payload:
    """Bipartite states on real eigenvectors of general value matrices: which are stable, and are the spectra right."""
    import torch

    from separatrix import dynamics, matrices, theory

    dim, generator = cell.args["dim"], spawn(cell.seed, "altafini-extensions", "not symmetric")
    displaced = spawn(cell.seed, "altafini-extensions", "displaced")
    error, speed, returned, stable, tested = 0.0, 0.0, 0, 0, 0
    for _ in range(cell.args["n_instances"]):
        coupling, value = (torch.randn(dim, dim, dtype=torch.float64, generator=generator) for _ in range(2))
        eigenvalues, vectors = torch.linalg.eig(value)
        order = eigenvalues.real.argsort(descending=True, stable=True)
        for k, place in enumerate(order.tolist()):
            if float(eigenvalues[place].imag) != 0:
                continue
            signs = torch.tensor([1.0, 1, 1, -1, -1], dtype=torch.float64)
            state = signs[:, None] * vectors[:, place].real
            flow = dynamics.AttentionFlow.from_coupling(coupling, value, 2.0)
            spectrum = theory.bipartite_spectrum(coupling, value, k, 3, 2, 2.0)
            dense = torch.linalg.eigvals(flow.jacobian(state))
            error = highest(error, matrices.spectral_distance(spectrum.expand(), dense))
            speed = highest(speed, float(flow.velocity(state).norm(dim=-1).max()))
            stable, tested = stable + bool(spectrum.stable), tested + 1
            if spectrum.stable:
                returned += _comes_back(flow, state, float(spectrum.expand().real.max()), displaced)
    return {"error": error, "speed": speed, "stable": stable, "returned": returned, "tested": tested}


def _comes_back(flow: AttentionFlow, state: Tensor, rate: float, generator: torch.Generator) -> bool:
    """Whether the flow, a hundred-thousandth beside a state, comes to rest at it within twenty times its slowest
    decay."""
    import torch

    from separatrix import dynamics

    beside = state + 1e-5 * torch.randn(state.shape, dtype=state.dtype, generator=generator)
    path = dynamics.integrate(flow, dynamics.normalise(beside), t_max=20 / -rate, tol=1e-14, finishing=False)
    end = path.final
    return bool((end - state).abs().max() < REST and flow.velocity(end).norm(dim=-1).max() < REST)


def _cycle(cell: Cell) -> Payload:
    """Exponents of the consensus cycle against the monodromy matrix of the flow."""
    import torch

    from separatrix import dynamics, theory

    value = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]], dtype=torch.float64)
    coupling = torch.randn(3, 3, dtype=torch.float64, generator=spawn(cell.seed, "altafini-extensions", "cycle"))
    cycle = theory.consensus_cycle(value, 4)
    flow = dynamics.AttentionFlow.from_coupling(coupling, value)
    start = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64).expand(4, 3)
    end, derivative = dynamics.flow_map(flow, start, cycle.period)
    basis = torch.block_diag(*flow.basis(start))
    multipliers = torch.linalg.eigvals(basis.mT @ derivative @ basis).abs()
    exponents = (multipliers.log() / cycle.period).sort(descending=True).values
    return {
        "period": float(cycle.period),
        "return": float((end - start).abs().max()),
        "error of an exponent": float((torch.as_tensor(cycle.exponents).real - exponents).abs().max()),
        "largest other exponent": float(exponents[1]),  # the first belongs to the motion along the cycle
    }


def _discrete(cell: Cell) -> Payload:
    """Multipliers of both maps against automatic differentiation."""
    import torch

    from separatrix import dynamics, matrices, theory

    step = cell.args["step"]
    drawn = matrices.attention_instance(
        cell.args["dim"],
        generator=spawn(cell.seed, "altafini-extensions", "discrete"),
        batch=(cell.args["n_instances"],),
    )
    signs = torch.tensor([1.0, 1.0, 1.0, -1.0], dtype=torch.float64)
    errors = {"euler": 0.0, "layer": 0.0}
    same = 0
    for coupling, value in zip(drawn.coupling, drawn.value, strict=True):
        flow = dynamics.AttentionFlow.from_coupling(coupling, value)
        state = signs[:, None] * torch.linalg.eigh(value)[1][:, -1]
        basis = torch.block_diag(*flow.basis(state))
        spectrum = theory.bipartite_spectrum(coupling, value, 0, 3, 1)
        layer = theory.layer_multipliers(value, 0, signs, flow.attention(state), step)
        found = {"euler": 1 + step * spectrum.expand(), "layer": layer.quotient}
        maps = {
            "euler": lambda x, flow=flow: torch.nn.functional.normalize(x + step * flow.velocity(x), dim=-1),
            "layer": lambda x, flow=flow: torch.nn.functional.normalize(x + step * flow.pull(x), dim=-1),
        }
        for name, step_map in maps.items():
            full = torch.func.jacrev(step_map)(state).reshape(state.numel(), -1)
            dense = torch.linalg.eigvals(basis.mT @ full @ basis)
            if name == "euler" or not bool(layer.flips.any()):
                errors[name] = highest(errors[name], matrices.spectral_distance(found[name], dense))
        same += bool(layer.stable) is bool(spectrum.stable)
    return {**errors, "same stability": same, "instances": len(drawn.value)}


def _doubly_stochastic(cell: Cell) -> Payload:
    """Sinkhorn attention: bipartite spectra, and how often each normalisation has a stable split."""
    import torch

    from separatrix import dynamics, matrices, theory

    drawn = matrices.attention_instance(
        cell.args["dim"],
        generator=spawn(cell.seed, "altafini-extensions", "sinkhorn"),
        batch=(cell.args["n_balanced"],),
    )
    signs = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    error, counts = 0.0, {"softmax": 0, "sinkhorn": 0}
    for coupling, value in zip(drawn.coupling, drawn.value, strict=True):
        flow = dynamics.AttentionFlow.from_coupling(coupling, value, 0.3, normalisation="sinkhorn")
        for k in range(len(value)):
            vector = torch.linalg.eigh(value)[1][:, len(value) - 1 - k]
            spectrum = theory.sinkhorn_bipartite_spectrum(coupling, value, k, 3, 2, 0.3)
            dense = torch.linalg.eigvals(flow.jacobian(signs[:, None] * vector))
            error = highest(error, matrices.spectral_distance(spectrum.expand(), dense))
            counts["sinkhorn"] += bool(spectrum.stable)
            counts["softmax"] += bool(theory.bipartite_spectrum(coupling, value, k, 3, 2, 0.3).stable)
    return {"error": error, **counts}


_MEASURES = {
    "not symmetric": _not_symmetric,
    "cycle": _cycle,
    "discrete": _discrete,
    "doubly stochastic": _doubly_stochastic,
}


def judge_not_symmetric(summary: Measured) -> Judgement:
    """Decide ``altafini2025-extension-asymmetric``."""
    found = summary.parts["not symmetric"]
    rows = [
        Row("largest error of an eigenvalue", found["error"], 0.0, 1e-8),
        Row("largest speed of a token at a state", found["speed"], 0.0, 1e-12),
        Row("stable bipartite states", found["stable"], "some", agrees=found["stable"] > 0),
        Row("those at which a displaced flow comes to rest again", found["returned"], found["stable"]),
    ]
    return judge(
        f"{found['stable']} of {found['tested']} bipartite states on real eigenvectors are stable; displaced, the flow "
        f"comes to rest again at {found['returned']} of them",
        rows,
    )


def judge_cycle(summary: Measured) -> Judgement:
    """Decide ``altafini2025-extension-cycle``."""
    found = summary.parts["cycle"]
    gap, other = found["error of an exponent"], found["largest other exponent"]
    rows = [
        Row("largest error of a Floquet exponent", gap, 0.0, 1e-4),
        Row("distance from the start after one period", found["return"], 0.0, 1e-6),
        Row("largest measured exponent across the cycle", other, "negative", agrees=other < 0),
    ]
    return judge(
        f"period {number(found['period'])}; exponents agree to {small(gap)}, the largest across the "
        f"cycle is {number(other)}",
        rows,
    )


def judge_discrete(summary: Measured) -> Judgement:
    """Decide ``altafini2025-extension-discrete``."""
    found = summary.parts["discrete"]
    rows = [
        Row("largest error of a multiplier, renormalised Euler step", found["euler"], 0.0, 1e-10),
        Row("largest error of a multiplier, residual layer", found["layer"], 0.0, 1e-10),
        Row("instances where layer and flow agree on stability", found["same stability"], found["instances"]),
    ]
    return judge(
        f"layer and flow agree on stability in {found['same stability']} of {found['instances']} instances", rows
    )


def judge_doubly_stochastic(summary: Measured) -> Judgement:
    """Decide ``separatrix-doubly-stochastic``."""
    found = summary.parts["doubly stochastic"]
    # the simulated flow balances rows and columns to 1e-10 only, which its derivative magnifies
    rows = [Row("largest error of an eigenvalue", found["error"], 0.0, 1e-5)]
    return judge(f"{found['sinkhorn']} stable states against {found['softmax']} with softmax", rows)


EXPERIMENT = Experiment(
    name="altafini-extensions",
    title="Beyond the model: general value matrices, cycles, layers, doubly stochastic attention",
    document="altafini2025",
    place="section 7",
    version=3,
    scales={
        "smoke": Settings(n_instances=6, n_balanced=2),
        "laptop": Settings(n_instances=40, n_balanced=6, seeds=(0, 1)),
        "paper": Settings(n_instances=300, n_balanced=60),
    },
    expand=expand,
    run=run,
    summarise=functools.partial(
        worst_of_all, totals=("stable", "returned", "tested", "same stability", "instances", "softmax", "sinkhorn")
    ),
    summary=Measured,
    claims=(
        Claim(
            id="altafini2025-extension-asymmetric",
            statement="Symmetry of the value matrix can be relaxed; bipartite states on real eigenvectors remain.",
            measures="spectra and speeds at real eigenvectors of matrices that are not symmetric, and ends beside them",
            test="error 1e-8, speed 1e-12; some are stable, and displaced the flow rests there again, to 1e-8",
            judge=judge_not_symmetric,
            counterfeit=with_entry("parts", "not symmetric", stable=0),
        ),
        Claim(
            id="altafini2025-extension-cycle",
            statement="With a complex principal pair the flow may converge to a stable limit cycle.",
            measures="Floquet exponents of the consensus cycle against the monodromy matrix",
            test="exponents to 1e-4; all across the cycle negative",
            judge=judge_cycle,
            counterfeit=with_entry("parts", "cycle", largest_other_exponent=0.3),
        ),
        Claim(
            id="altafini2025-extension-discrete",
            statement="A similar analysis holds in discrete time.",
            measures="multipliers of two maps against automatic differentiation",
            test="1e-10; stable in the same instances",
            judge=judge_discrete,
            counterfeit=with_entry("parts", "discrete", layer=0.1),
        ),
        Claim(
            id="separatrix-doubly-stochastic",
            document="separatrix",
            place="explanation/attention-equilibria",
            statement="Doubly stochastic attention has the same blocks with weights from a quadratic equation.",
            measures="spectra against the dense Jacobian of an iterated normalisation",
            test="error 1e-5",
            judge=judge_doubly_stochastic,
            counterfeit=with_entry("parts", "doubly stochastic", error=0.1),
        ),
    ),
)
