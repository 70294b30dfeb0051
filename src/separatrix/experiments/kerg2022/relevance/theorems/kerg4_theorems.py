"""kerg2022, sections 4.4 and 4.5: paths of gradients, even and sparse attention, the algorithm and what it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, condition, instead, judge, misprint

from .theorem_parts import Measured, Right, equality, put, worst_of, zeros

PARTS = ("paths", "even", "sparse", "leverage", "algorithm", "memory", "start")
LEVERAGE = "Gradient at the end of one chain of sparse attention"
MEMORY = "Bytes that a forward pass keeps for the way back"
QUIET = ("copy", "denoise", "backwards", "silence")
"""Inputs that are still most of the time."""
FIRST, RARELY = 0.8, 0.1
"""Share of kept states that are among the first ten, and of starts in which they may be fewer."""
DEPTHS, SPARSITIES = (1, 2, 3), (2, 4, 8)


class Settings(Params):
    """Sizes of networks, patterns and sequences."""

    seeds: tuple[int, ...] = (0, 1, 2)
    n_units: int = 16
    n_steps: int = 30
    even_steps: tuple[int, ...] = (50, 200, 800)
    n_patterns: int = 360
    pattern_steps: int = 30
    n_replays: int = 30
    memory_steps: tuple[int, ...] = (250, 500, 1000)
    n_networks: int = 10  # that start, for every seed


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per part and seed; what draws nothing has one seed."""
    common = settings.model_dump(exclude={"seeds"})
    for part in PARTS:
        for seed in settings.seeds if part in ("paths", "sparse", "algorithm", "start") else settings.seeds[:1]:
            yield {**common, "part": part, "seed": seed}


def run(cell: Cell) -> Payload:
    """Numbers of one part."""
    parts = {
        "paths": _paths,
        "even": _even,
        "sparse": _sparse,
        "leverage": _leverage,
        "algorithm": _algorithm,
        "memory": _memory,
        "start": _start,
    }
    return parts[cell.args["part"]](cell)


def _paths(cell: Cell) -> Payload:
    """Shares of all degrees against the gradient, in a screened network in double precision."""
    import torch

    from separatrix import nn
    from separatrix.core import spawn
    from separatrix.diagnose import gradient_paths

    args, generator = cell.args, spawn(cell.seed, "kerg4-theorems", "paths")
    core = nn.RelRNN(3, args["n_units"], 4, 3, mix="paper", generator=generator, dtype=torch.float64)
    x = torch.randn(2, args["n_steps"], 3, generator=generator, dtype=torch.float64)
    direction = torch.randn(args["n_units"], generator=generator, dtype=torch.float64)
    found = gradient_paths(core, x, lambda hidden: (hidden[:, -1] @ direction).sum(), n_degrees=args["n_steps"])
    leaf = x.clone().requires_grad_()
    output, _ = core(leaf)
    (truth,) = torch.autograd.grad((output[:, -1] @ direction).sum(), leaf)
    slopes = 1 - core.last.trace.hidden.square()  # type: ignore[union-attr]
    # dL/dx_t = U' diag(phi') dL/dh_t, summed over all degrees
    through = torch.einsum("tbh,bth,hi->bti", found.degrees.sum(0), slopes, core.input_weight.detach())
    return {"degrees_sum": float((through - truth).abs().max() / truth.abs().max())}


def _even(cell: Cell) -> Payload:
    """A linear network with even attention and eigenvalues -.5, -.3, -.8: T times the norm of ds_T/dh_1."""
    import torch

    from separatrix import nn
    from separatrix.core import spawn

    values = torch.tensor([-0.5, -0.3, -0.8], dtype=torch.float64)
    basis = torch.linalg.qr(torch.randn(3, 3, generator=spawn(0, "kerg4-theorems"), dtype=torch.float64)).Q
    found = []
    for n_steps in cell.args["even_steps"]:
        with _quiet():
            core = nn.MemRNN(3, 3, mix="paper", nonlinearity="linear", readout="s", dtype=torch.float64)
        with torch.no_grad():
            core.matrix.copy_(basis @ torch.diag(values) @ basis.mT)
            core.input_weight.copy_(torch.eye(3, dtype=torch.float64))
            core.alignment_vector.zero_()  # type: ignore[union-attr]
        x = torch.zeros(1, n_steps, 3, dtype=torch.float64, requires_grad=True)
        output, _ = core(x)
        rows = [torch.autograd.grad(output[0, -1, i], x, retain_graph=True)[0][0, 0] for i in range(3)]
        found.append(n_steps * float(torch.linalg.matrix_norm(torch.stack(rows))))
    exponent = _slope(cell.args["even_steps"][-2:], [found[-2], found[-1]]) - 1
    from separatrix.theory import uniform_attention_exponent

    return {
        "even_first": found[0],
        "even_last": found[-1],
        "even_exponent": exponent,
        "even_theory": float(uniform_attention_exponent(values).max()),
    }


def _quiet() -> Any:
    import warnings

    return warnings.catch_warnings(action="ignore")


def _slope(sizes: Sequence[float | int], values: Sequence[float]) -> float:
    import math

    return math.log(values[1] / values[0]) / math.log(sizes[1] / sizes[0])


def _sparse(cell: Cell) -> Payload:
    from .sparse_measures import sparse_violations

    return dict(sparse_violations(cell.seed, cell.args["n_patterns"], cell.args["pattern_steps"]))


def _leverage(cell: Cell) -> Payload:
    from .sparse_measures import leverage

    return {"rows": leverage(DEPTHS, SPARSITIES, 0.5, 40)}


def _algorithm(cell: Cell) -> Payload:
    """Online sets against the best scores of all that left the buffer, with nu and with the printed rho."""
    import torch

    from separatrix import nn
    from separatrix.core import spawn

    generator = spawn(cell.seed, "kerg4-theorems", "replay")
    right = wrong = total = larger = 0
    for number in range(cell.args["n_replays"]):
        n_buffer, n_relevant = 1 + number % 4, 1 + number % 3
        weights = torch.rand(25, generator=generator, dtype=torch.float64) + 0.05
        played = nn.replay(weights, n_buffer, n_relevant)
        for t in range(1, 26):
            total += 1
            right += played.relevant[t - 1] == _best(played.scores, t - n_buffer, n_relevant)
            wrong += played.relevant[t - 1] == _best(played.scores, t - n_relevant, n_relevant)
            larger += len(played.relevant[t - 1]) + min(t, n_buffer) > n_buffer + n_relevant
    return {"not_offline": total - right, "not_printed": total - wrong, "too_many": larger}


def _best(scores: Any, until: int, n_relevant: int) -> tuple[int, ...]:
    """The times with the largest scores among the first ``until``; ties to the earlier."""
    order = sorted(range(max(0, until)), key=lambda i: (-float(scores[i]), i))[:n_relevant]
    return tuple(sorted(i + 1 for i in order))


def _memory(cell: Cell) -> Payload:
    """Bytes kept for a gradient against the length, and of a state that is carried on without one."""
    import torch

    from separatrix import nn

    from ..gradients.kept_bytes import kept_bytes

    rows = []
    for n_steps in cell.args["memory_steps"]:
        core = nn.RelRNN(5, cell.args["n_units"], 5, 5, carry_memory=True)
        x = torch.zeros(2, n_steps, 5)
        graph = kept_bytes(lambda core=core, x=x: core(x))  # type: ignore[misc]
        with torch.no_grad():
            _, state = core(x)
        carried = sum(part.untyped_storage().nbytes() for part in state)
        rows.append({"steps": n_steps, "for_a_gradient": graph, "carried": carried})
    return {"rows": rows}


def _start(cell: Cell) -> Payload:
    """What untrained networks keep of several inputs: the first states, whatever they hold?"""
    import torch

    from separatrix import nn
    from separatrix.core import spawn

    sums: dict[str, float] = {}
    for network in range(cell.args["n_networks"]):
        path = ("kerg4-theorems", network)
        for name, (inputs, oracle) in _inputs(cell.seed, *path).items():
            core = nn.RelRNN(inputs.shape[-1], 64, 10, 10, generator=spawn(cell.seed, *path, "start"))
            with torch.no_grad():
                core(inputs)
            kept = core.last.relevant_index  # type: ignore[union-attr]
            bias = nn.startup_bias(core.last.scores, kept, 10)  # type: ignore[union-attr, arg-type]
            found = {"not_first": 1 - bias.share_of_first, "few_first": (bias.share_of_first < FIRST - 1e-6).float()}
            if oracle is not None:
                marks = torch.zeros(inputs.shape[:2], dtype=torch.bool).scatter_(1, oracle, value=True)
                found |= {"retention": nn.retention(kept, marks), "bias": bias.ratio}  # type: ignore[arg-type]
            for quantity, values in found.items():
                key = f"{quantity}_{name}"
                sums[key] = sums.get(key, 0.0) + float(values.mean()) / cell.args["n_networks"]
    return dict(sums)


def _inputs(seed: int, *path: str | int) -> dict[str, tuple[Any, Any]]:
    """Twenty sequences of each kind, and where their symbols stand: tasks, one of them backwards, silence and noise."""
    import torch

    from separatrix import tasks
    from separatrix.core import spawn

    copy, denoise = (
        task.sample(20, generator=spawn(seed, *path, name))
        for name, task in (("copy", tasks.Copy(60)), ("denoise", tasks.Denoise(60)))
    )
    noise = torch.randn(copy.inputs.shape, generator=spawn(seed, *path, "noise"))
    return {
        "copy": (copy.inputs, copy.oracle),
        "denoise": (denoise.inputs, denoise.oracle),
        "backwards": (copy.inputs.flip(1), None),
        "silence": (torch.zeros_like(copy.inputs), None),
        "noise": (noise, None),
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """The worst numbers over seeds."""
    from separatrix.core import plain

    results = [(cell, plain(payload)) for cell, payload in results]
    numbers: dict[str, float] = {}
    for part in PARTS:
        numbers |= worst_of(results, part)
    starts = [payload for cell, payload in results if cell.args["part"] == "start"]
    for name in starts[0]:
        numbers[name] = sum(payload[name] for payload in starts) / len(starts)
    sparse = [payload for cell, payload in results if cell.args["part"] == "sparse"]
    numbers["least_ratio"] = min(payload["least_ratio"] for payload in sparse)
    numbers["printed"] = min(payload["printed"] for payload in sparse)
    (chains,) = (payload["rows"] for cell, payload in results if cell.args["part"] == "leverage")
    (memory,) = (payload["rows"] for cell, payload in results if cell.args["part"] == "memory")
    numbers |= _leverage_numbers(chains)
    first, last = memory[0], memory[-1]
    per_step = (last["for_a_gradient"] - first["for_a_gradient"]) / (last["steps"] - first["steps"])
    numbers["memory_growth"] = per_step * last["steps"] / last["for_a_gradient"]
    numbers["carried_growth"] = last["carried"] / first["carried"]
    return Measured(numbers=numbers, tables={LEVERAGE: chains, MEMORY: memory})


def _leverage_numbers(chains: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Largest relative differences from a power of kappa and from an exponential of d."""
    import math

    by = {(row["degree"], row["sparsity"]): math.log(row["gradient"]) for row in chains}
    powers = [
        (by[degree, SPARSITIES[-1]] - by[degree, SPARSITIES[0]]) / math.log(SPARSITIES[0] / SPARSITIES[-1])
        for degree in DEPTHS
    ]
    steps = [by[degree + 1, kappa] - by[degree, kappa] for degree in DEPTHS[:-1] for kappa in SPARSITIES]
    expected = [math.log(0.5 / kappa) for _ in DEPTHS[:-1] for kappa in SPARSITIES]
    return {
        "power_error": max(abs(found - (degree + 1)) for found, degree in zip(powers, DEPTHS, strict=True)),
        "step_error": max(abs(found - one) for found, one in zip(steps, expected, strict=True)),
    }


def judge_even(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-theorem442``."""
    found = summary.numbers
    ratio = found["even_last"] / found["even_first"]
    rows = [
        Row(
            "T times the norm of ds_T/dh_1, longest over shortest sequence, eigenvalues -.5, -.3, -.8",
            ratio,
            "at least .95: bounded below",
            agrees=ratio >= 0.95,
        )
    ]
    right = [
        Row("exponent between the two longest sequences", found["even_exponent"], found["even_theory"], 0.02),
    ]
    evidence = (
        f"T times the norm falls from {found['even_first']:.3f} to {found['even_last']:.3f}; exponent "
        f"{found['even_exponent']:.3f}, predicted {found['even_theory']:.3f}"
    )
    says = (
        "the exponent is Re lambda/(1 - lambda) - 1 of the best eigenvalue, 1/T or more only if |lambda - 1/2| <= 1/2"
    )
    return judge(evidence, rows, instead(says, right))


def judge_sparse(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-theorem443``."""
    found = summary.numbers
    rows = [Row("share of cases below kappa^(-d)", found["printed"], 0.0)]
    right = [
        Row("share of cases below lambda^d kappa^(-(d + 1))", found["corrected"], 0.0),
        Row("smallest ratio to that bound", found["least_ratio"], 1.0, 0.05),
    ]
    evidence = (
        f"kappa^(-d) is violated in {found['printed']:.0%} of the cases, lambda^d kappa^(-(d+1)) in "
        f"{found['corrected']:.0%}; the smallest ratio to the latter is {found['least_ratio']:.4f}"
    )
    says = "the bound is lambda^d kappa^(-(d + 1)): one more hop, and a factor for each recurrent step"
    return judge(evidence, rows, misprint(says, right))


def judge_memory(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch4-memory``."""
    found = summary.numbers
    share = "share of the bytes for a gradient that grows with the length"
    rows = [Row(share, found["memory_growth"], 0.0, 0.1)]
    right = [
        Row("bytes of the state that is carried on, longest over shortest", found["carried_growth"], 1.0, 0.0),
        Row(share, found["memory_growth"], 1.0, 0.1),
    ]
    evidence = (
        f"what is carried on grows by a factor of {found['carried_growth']:.2f}; {found['memory_growth']:.0%} of "
        "what a gradient needs grows with the length"
    )
    return judge(evidence, rows, condition("per step, where no gradient is wanted; for one it is linear in T", right))


EXPERIMENT = Experiment(
    name="kerg4-theorems",
    title="Gradients under even and sparse attention, and the screening algorithm",
    document="kerg2022",
    place="sections 4.4 and 4.5",
    version=2,
    scales={
        "smoke": Settings(
            seeds=(0,),
            n_steps=12,
            n_units=8,
            even_steps=(20, 60, 120),
            n_patterns=9,
            n_replays=6,
            memory_steps=(50, 200),
            n_networks=2,
        ),
        "laptop": Settings(),
        "paper": Settings(seeds=tuple(range(10)), n_patterns=3600, n_replays=100, even_steps=(50, 200, 800, 2000)),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        equality(
            "kerg2022-ch4-prop441",
            "Proposition 4.4.1",
            "Gradients of an attentive recurrent network are sums over paths, degree by degree.",
            {"degrees_sum": "all degrees of a RelRNN against autograd"},
        ),
        Claim(
            id="kerg2022-ch4-theorem442",
            statement="With even attention gradients fall no faster than 1/T, under mild conditions on V.",
            measures="T times the norm of ds_T/dh_1 of a linear MemRNN with alignment zero, by autograd",
            test="it does not fall by more than a twentieth from the shortest to the longest sequence",
            judge=judge_even,
            counterfeit=put(even_first=0.2, even_last=0.05),
            genuine=put(even_first=0.2, even_last=0.2),
            place="Theorem 4.4.2",
            erratum="kerg2022-uniform-rate",
        ),
        Claim(
            id="kerg2022-ch4-theorem443",
            statement="With sparse even attention of depth d gradients are at least of the order of kappa^(-d).",
            measures="gradients in one eigendirection over random patterns, lambda = .05, .3, .9, kappa = 2, 4, 8",
            test="no case below the bound",
            judge=judge_sparse,
            counterfeit=put(corrected=0.3),
            genuine=put(printed=0.0),
            place="Theorem 4.4.3, Theorem B.1.39, Remarks B.1.36 to B.1.38",
            erratum="kerg2022-sparse-bound",
        ),
        zeros(
            "kerg2022-ch4-leverage",
            "section 4.4.3, Remark B.1.40",
            "Depth enters the bound exponentially, sparsity as a power.",
            "powers and factors to 1e-6",
            {
                "power_error": "power of 1/kappa minus (d + 1), largest",
                "step_error": "log of the factor for one more step minus log(lambda/kappa), largest",
            },
            "powers of kappa are off by {power_error:small}, factors per step by {step_error:small}",
            within=1e-6,
            measures="gradient at the end of a planted chain over depths 1 to 3 and sparsities 2, 4, 8",
        ),
        zeros(
            "kerg2022-ch4-algorithm1",
            "Algorithm 1",
            "Algorithm 1 keeps, of the states up to t - rho, those with the rho best scores.",
            "no step differs",
            {"not_printed": "steps at which the set is not that of lines 6 and 7"},
            "{not_printed:.0f} steps disagree with t - rho, {not_offline:.0f} with t - nu",
            within=0.0,
            right=Right(
                misprint,
                "nu in place of rho in lines 6 and 7",
                {"not_offline": "steps at which it is not the best rho of those that left the buffer"},
                0.0,
            ),
            measures="kept sets of random weights at every step against the best scores offline",
            erratum="kerg2022-algorithm-1",
        ),
        zeros(
            "kerg2022-ch4-sparsity",
            "section 4.5",
            "At every step at most nu + rho states are attended to.",
            "no step has more",
            {"too_many": "steps with more than nu + rho states"},
            "{too_many:.0f} steps attend to more",
            within=0.0,
            measures="sizes of the memory in random runs",
        ),
        Claim(
            id="kerg2022-ch4-memory",
            statement="The memory that relevancy screening needs is constant in the length of the sequence.",
            measures="bytes kept for the way back, and bytes of the carried state, against the length",
            test="share of the bytes that grows with the length at most .1",
            judge=judge_memory,
            counterfeit=put(carried_growth=4.0, memory_growth=2.0),
            genuine=put(memory_growth=0.0),
            place="section 4.5",
            erratum="kerg2022-constant-memory",
        ),
        zeros(
            "screening-start",
            "start-up of the memory",
            "Of the ten states an untrained network keeps, at least eight are the first, whatever they hold.",
            "for each kind of input at most a tenth of the starts",
            {
                f"few_first_{name}": f"share of starts that keep fewer than eight of the first ten, {name}"
                for name in (*QUIET, "noise")
            },
            "untrained networks keep at least eight of the first ten states in all starts but {few_first_copy:.1%} "
            "on copy, {few_first_denoise:.1%} on denoise, {few_first_backwards:.1%} on copy backwards, "
            "{few_first_silence:.1%} on silence and {few_first_noise:.1%} on noise: {retention_copy:.0%} of the "
            "symbols of copy, {retention_denoise:.0%} of those of denoise; first scores are {bias_copy:.1f} times "
            "others",
            within=RARELY,
            right=Right(
                condition,
                "in nine starts of ten, for the copy task forwards and backwards, the denoise task and silence",
                {f"few_first_{name}": f"the same, {name}" for name in QUIET},
                RARELY,
            ),
            measures="share of starts; delay 60, nu = rho = 10, twenty sequences for each network",
            document="separatrix",
        ),
    ),
)
