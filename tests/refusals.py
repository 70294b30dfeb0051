"""Calls that must be refused, with words of the sentence. To be run without the shape checks of the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from option_calls import answer, answers
from separatrix import diagnose, dynamics, lab, matrices, nn, theory, training
from separatrix.core import spawn
from stranger_flows import Lorenz, Pendulum, VanDerPol

VALUE = torch.diag(torch.tensor([2.0, 1.0, 0.5], dtype=torch.float64))
FLOW: Any = dynamics.OjaFlow(VALUE)
TOKENS = dynamics.random_tokens(4, 3, 2, generator=spawn(0, "refusals"))
POINT = torch.ones(1, 3)
FORCED = torch.ones(1, 2, dtype=torch.float64)
MASK = torch.ones(5, 5, dtype=torch.bool).tril()


def masked(**options: Any) -> Any:
    return dynamics.AttentionFlow.from_coupling(VALUE, VALUE, **options)


class Broadcasting(Lorenz):
    """Its velocity has one coordinate, which would be added to all three."""

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        return x[..., :1]


class Rounding(Lorenz):
    """Answers in single precision."""

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        return super().velocity(x).float()


class WrongProduct(Lorenz):
    """Its derivative has one coordinate."""

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        return u[..., :1]


class Forgetful(Lorenz):
    """Returns nothing."""

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        return None  # type: ignore[return-value]


def follow(flow: Any, x0: Any = POINT, **options: Any) -> Any:
    return dynamics.integrate(flow, x0, **options)


def census(*given: Any, **options: Any) -> Any:
    return dynamics.census(*given, **{"n_tokens": 3, "n_starts": 2, "seed": 0, **options})


DYNAMICS: dict[str, tuple[Callable[[], Any], str]] = {
    "velocity of another shape": (
        lambda: follow(Broadcasting(), t_max=1.0),
        "velocity of Broadcasting must have the shape of the state, (1, 1, 3); got (1, 1, 1).",
    ),
    "velocity of another precision": (
        lambda: follow(Rounding(), t_max=1.0),
        "must be in the precision of the state, torch.float64; got torch.float32.",
    ),
    "velocity that is none": (lambda: follow(Forgetful(), t_max=1.0), "velocity of Forgetful must be a tensor"),
    "derivative of another shape": (lambda: follow(WrongProduct()), "jvp of WrongProduct must have the shape"),
    "derivative of another shape, classified": (
        lambda: dynamics.classify(WrongProduct(), POINT),
        "jvp of WrongProduct must have the shape",
    ),
    "state of another dimension": (
        lambda: follow(Lorenz(), torch.ones(1, 2), t_max=1.0),
        "the velocity of Lorenz fails at a state of shape (1, 1, 2)",
    ),
    "complex start": (lambda: follow(Lorenz(), POINT + 1j, t_max=1.0), "x0 must be real; got complex numbers"),
    "complex tokens": (lambda: follow(FLOW, TOKENS * (1 + 0j)), "x0 must be real; got complex numbers"),
    "complex weights": (lambda: dynamics.OjaFlow(VALUE * 1j), "value must be real; got complex numbers"),
    "word for a flag": (lambda: follow(FLOW, TOKENS, merging="no"), "merging must be True or False; got 'no'."),
    "number for a flag": (lambda: follow(FLOW, TOKENS, finishing=1), "finishing must be True or False; got 1."),
    "flag of classify": (lambda: dynamics.classify(FLOW, TOKENS, cycles="no"), "cycles must be True or False"),
    "heads": (lambda: masked(heads="yes"), "heads must be True or False; got 'yes'."),
    "times beyond the limit": (
        lambda: follow(FLOW, TOKENS, times=[0.0, 5.0], t_max=1.0),
        "times must not lie beyond t_max = 1; the last is 5.",
    ),
    "times beyond one of the limits": (
        lambda: follow(FLOW, TOKENS, times=[0.0, 5.0], t_max=[9.0, 2.0]),
        "times must not lie beyond t_max = 2; the last is 5.",
    ),
    "mask for other tokens": (
        lambda: follow(masked(mask=MASK), TOKENS),
        "mask, bias and sizes of this flow are for 5 tokens; got tokens (1, 4, 3).",
    ),
    "bias for other tokens": (lambda: follow(masked(bias=torch.zeros(5, 5)), TOKENS), "are for 5 tokens"),
    "mask and bias that disagree": (
        lambda: masked(mask=MASK, bias=torch.zeros(4, 4)),
        "mask, bias and sizes must be for one number of tokens; got [4, 5].",
    ),
    "mask of no kind": (lambda: masked(mask=object()), "a boolean matrix or None; got object."),
    "sizes for other tokens": (
        lambda: dynamics.OjaFlow(VALUE, [1.0, 2.0]).velocity(TOKENS),
        "sizes are for 2 tokens; got tokens of shape (2, 4, 3).",
    ),
    "limits of another length": (
        lambda: follow(FLOW, TOKENS, t_max=[1.0, 2.0, 3.0]),
        "t_max must be one number or one for each element of the batch (2,); got shape (3,).",
    ),
    "starts of another batch": (
        lambda: follow(VanDerPol(torch.ones(3)), torch.ones(2, 1, 2), t_max=1.0),
        "x0 must have leading axes that broadcast against those of the weights, (3,); got shape (2, 1, 2).",
    ),
    "tolerance in words": (lambda: follow(FLOW, TOKENS, tol="x"), "tol must be a number of at least 0; got 'x'."),
    "no tolerance": (lambda: follow(FLOW, TOKENS, tol=None), "tol must be a number of at least 0; got None."),
    "tolerances of classify": (lambda: dynamics.classify(FLOW, TOKENS, tolerances=1e-3), "a Tolerances object"),
    "a function for a flow": (lambda: follow(lambda x: x, TOKENS), "flow must be a flow (AbstractFlow)"),
    "no flow to classify": (lambda: dynamics.classify(None, TOKENS), "such as AttentionFlow or OjaFlow; got None."),
    "no flow to search": (lambda: dynamics.find_equilibria("oja"), "such as AttentionFlow or OjaFlow; got 'oja'."),
    "census of a number": (
        lambda: census(3),
        "ensemble must be a function that draws a flow from a generator, a list of flows, or flows by their number; "
        "got 3.",
    ),
    "census of a flow": (lambda: census(FLOW), "a list of flows, or flows by their number; got OjaFlow."),
    "census of an absent flow": (lambda: census([FLOW], [1]), "n_instances asks for flow 1; ensemble has 1 flows."),
    "census of a part": (lambda: census([FLOW], 0.5), "n_instances must be an integer of at least 1; got 0.5."),
    "census by a word": (lambda: census([FLOW], check="yes"), "check must be a function"),
}


class Telling(matrices.AbstractEnsemble):
    """Tells its facts as a dictionary."""

    name, law = "telling", "none"

    def unit(self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()) -> Tensor:
        return torch.eye(width, dtype=torch.float64)

    def facts(self) -> Any:
        return {"excess": 1.0}


FACTS = "facts of the family 'telling' must be a Facts object or None; got {'excess': 1.0}."
THEORY: dict[str, tuple[Callable[[], Any], str]] = {
    "facts in a dictionary, moments": (lambda: theory.resolvent_moment(Telling(), 0.5), FACTS),
    "facts in a dictionary, mean field": (lambda: theory.mean_field(Telling(), weight_var=0.5), FACTS),
    "facts in a dictionary, critical scale": (lambda: theory.critical_weight_var(Telling()), FACTS),
}

LAWS: dict[str, tuple[Callable[[], Any], str]] = {
    "sum with a number": (lambda: theory.free_sum(theory.Semicircle(1.0), 3), "second must be a law, such as"),
    "product with a word": (lambda: theory.free_product("mp", theory.Semicircle(1.0)), "positive must be a law"),
    "probability in words": (lambda: theory.Bernoulli("half"), "p must be a finite number; got 'half'."),
    "no lower end": (lambda: theory.UniformLaw(None, 1.0), "low must be a finite number; got None."),
}

MATRICES: dict[str, tuple[Callable[[], Any], str]] = {
    "no correlation": (lambda: matrices.Elliptic(None), "tau must be a number that lies in [-1, 1]"),
    "line of words": (lambda: matrices.delay_line(3, "x"), "sub must be a finite number; got 'x'."),
    "uncountable": (lambda: matrices.goe_eigenvalues(10**30, generator=None), "width must be an integer of at most"),
    "steps in words": (lambda: matrices.power_norms(VALUE, "x"), "n_steps must be an integer of at least 1; got 'x'."),
    "half of a radius": (lambda: matrices.kreiss_constant(VALUE, n_radii=2.5), "n_radii must be an integer"),
    "half precision": (lambda: matrices.numerical_abscissa(VALUE.half()), "matrix must be in float32 or float64"),
    "bound of a number": (lambda: matrices.henrici_bound(3.0), "matrix must be a square matrix"),
    "spectrum of NaN": (lambda: matrices.spectral_distance([float("nan")], [1.0]), "first must be finite"),
    "spectra of other sizes": (lambda: matrices.spectral_distance([1.0], [1.0, 2.0]), "equally many eigenvalues"),
}

ENTRIES: dict[str, tuple[Callable[[], Any], str]] = {
    "map of no flow": (lambda: dynamics.flow_map(None, TOKENS[0], 1.0), "flow must be a flow"),
    "map of a batch": (lambda: dynamics.flow_map(FLOW, TOKENS, 1.0), "x must be one state (n, d)"),
    "exponents of no flow": (lambda: dynamics.lyapunov_exponents(None, TOKENS[0]), "flow must be a flow"),
    "branch of another flow": (lambda: dynamics.beta_branch(FLOW, TOKENS[0], [1.0], [1.0]), "an AttentionFlow"),
    "momentum in words": (lambda: dynamics.Descent(0.1, momentum="x"), "momentum must be a finite number; got 'x'."),
    "one of two averages": (lambda: dynamics.Descent(0.1, betas=0.9), "betas must be two numbers in [0, 1); got 0.9."),
    "decay that is no number": (
        lambda: dynamics.LinearNetworkFlow(VALUE, weight_decay=float("nan")),
        "weight_decay must be a finite number that is not negative; got nan.",
    ),
    "accuracy in words": (lambda: dynamics.Accuracy("tsit5", "x"), "rtol must be a positive number; got 'x'."),
    "method by an array": (
        lambda: dynamics.find_equilibrium(torch.cos, torch.eye(2), torch.zeros(1, 1)),
        "solver must be a name or an AbstractEquilibriumSolver object; got an array of shape (2, 2) of type Tensor.",
    ),
    "other spelling": (
        lambda: masked(normalization="softmax"),
        "unknown option of AttentionFlow.from_coupling 'normalization'. Did you mean 'normalisation'?",
    ),
    "exponents in time": (
        lambda: dynamics.lyapunov_exponents(Pendulum(), FORCED),
        "lyapunov_exponents needs a flow that is constant in time; Pendulum is not.",
    ),
    "cycle in time": (lambda: dynamics.limit_cycle(Pendulum(), FORCED), "limit_cycle needs a flow that is constant"),
    "Jacobian in time": (lambda: Pendulum().jacobian(FORCED), "the Jacobian needs a flow that is constant in time"),
    "ends in time": (lambda: dynamics.classify(Pendulum(), FORCED), "classify needs a flow that is constant in time"),
    "equilibria in time": (
        lambda: dynamics.find_equilibria(Pendulum(), FORCED),
        "find_equilibria needs a flow that is constant in time",
    ),
}

NUMBERS: dict[str, tuple[Callable[[], Any], str]] = {
    "more than there is": (
        lambda: dynamics.random_tokens(10**14, 3, generator=torch.Generator()),
        "n_tokens must be smaller: 2.4e+06 GB are needed, more than there is of memory; got 100000000000000.",
    ),
    "half precision": (
        lambda: dynamics.chordal_distances(torch.eye(3).half()),
        "x must be in float32 or float64; got torch.float16.",
    ),
    "beyond floating numbers": (
        lambda: diagnose.unit_factors(VALUE[0], VALUE[0], 1e300),
        "balance must be of a size that can be computed with; got 1e+300, too large.",
    ),
    "eigenvalues of infinity": (
        lambda: theory.iid_resolvent_density(torch.full((2,), 1e300, dtype=torch.float64), 0.3),
        "must be of a size whose squares are floating numbers.",
    ),
    "negative width": (lambda: nn.ContextNorm(-1), "width must be at least 1; got -1."),
    "path too long": (lambda: training.load_checkpoint("x" * 5000), "path must be the path of a file; 'xxx"),
    "ledger of a number": (lambda: lab.ledger(3, None), "experiments must be"),
}

ROOMS = {"numbers": NUMBERS, "dynamics": DYNAMICS | ENTRIES, "theory": THEORY | LAWS, "matrices": MATRICES}
REFUSALS = {f"{room}: {what}": entry for room, entries in ROOMS.items() for what, entry in entries.items()}


def main(left_out: set[str]) -> dict[str, dict[str, str]]:
    """What is answered to wrong options, but for those that are left out, and to calls that must be refused."""
    refused = {what: answer(lambda _, call=call: call(), None) for what, (call, _) in REFUSALS.items()}
    return {"options": answers(left_out), "refusals": refused}
