"""Fixed points of anybody's recurrent network: searched from visited states, certified, told from slow points."""

from __future__ import annotations

import dataclasses
from typing import Any, final

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from separatrix.core import InvalidInput, Trace, as_tensor, require_integer, require_number, require_positive
from separatrix.matrices import robust_eigenvalues

from ..steps.base import AbstractRecurrentMap
from ..steps.reading import RecurrentSource, recurrent_networks
from .certificate import Certificate, certify
from .newton import descend, newton
from .plane import principal_plane
from .point_set import FixedPoints
from .portions import joined, portions
from .starts import chosen, constant_inputs, visited_states, wandering_states

SAME = 1e-5
"""Two points are one if they are nearer than this, over their largest entry (or one); certified errors are smaller."""
_MOST_DESCENTS = 48
_MOST_PAIRS = 200
_FLAT = 1e-3
"""How flat the squared speed must be for its place to count as a minimum."""


def fixed_points(
    module: RecurrentSource,
    inputs: object,
    states: Any = None,
    *,
    n_starts: int = 256,
    rounds: int = 2,
    tol: float = 1e-9,
    slow: float = 1e-2,
    bounds: tuple[float | int, float | int] | None = None,
    seed: int = 0,
) -> FixedPoints:
    r"""Fixed points :math:`h = F(h, x)` of a recurrent network held at constant inputs x.

    Newton's method runs from visited states, and in further rounds from the middles between points already found,
    where saddles are likely. A GRU is solved as ``h = n(h)``, an LSTM as ``h = o tanh(i g / (1 - f))``: the same fixed
    points, without the factor ``1 - z`` or ``1 - f`` that makes any state look at rest once a gate has closed. A point
    is reported if its residual is small, absolutely and relatively, if the next Newton step would be shorter than the
    tolerance, and if it lies where a fixed point can lie (|h| < 1 for tanh, GRU and LSTM). Descent of the speed finds
    places where the network is slow without resting; they are reported apart.

    Args:
        module: ``nn.RNN``, ``nn.GRU``, ``nn.LSTM`` (any number of layers, one direction), a cell, a module with one of
            these inside, a module called as ``output, h_n = module(x, h_0)``, a function or method
            ``step(x, state)``, a state dict, or a file of weights.
        inputs: one constant input (features,), or several (k, features), each searched from all states.
        states: visited states: (..., n), torch's ``h_n``, ``(h, c)`` of an LSTM, or a ``Trace``; by default states
            that the network itself reaches from random ones.
        n_starts: most states to start from.
        rounds: further rounds from middles between found points; 0 for none.
        tol: accuracy of a fixed point, relative to its largest entry (or one).
        slow: a place of least speed is a slow point if its speed is below this times the median speed of the starts.
        bounds: least and largest value a state can have, for steps of your own; others know theirs.
        seed: of the choice of starts.

    Returns:
        Points with residuals, eigenvalues, stability and distance from the visited states, the most stable first;
        ``separatrix.plot`` draws them in the plane of the principal components. What is found is complete only with a
        probability that grows with the starts.

    Raises:
        InvalidInput: there is no recurrent network or there are several, it runs in both directions, or the arguments
            do not fit it.

    Cost: O(starts m^3) per Newton step, m units (h alone for an LSTM); an eigenvalue problem per fixed point.

    Example:
        >>> cell = torch.nn.RNNCell(1, 1, dtype=torch.float64)
        >>> _ = torch.nn.init.constant_(cell.weight_hh, 2.0), torch.nn.init.zeros_(cell.bias_hh)
        >>> _ = torch.nn.init.zeros_(cell.bias_ih)
        >>> found = fixed_points(cell, [0.0], [[-0.5], [0.1], [0.5]])
        >>> [round(value, 4) for value in found.states[:, 0].tolist()], found.stable.tolist()
        ([-0.9575, 0.9575, 0.0], [True, True, False])
    """
    _check_options(n_starts, rounds, tol, slow)
    limits = _limits(bounds)
    layer = the_map(module, inputs, states)
    x = constant_inputs(inputs, layer)
    visited = wandering_states(layer, x, seed) if states is None else visited_states(states, layer)
    first = chosen(visited, n_starts, seed)
    tol = max(tol, 1e3 * layer.rounding)
    found, counts = _Found.empty(layer, tol, limits), 0
    for held in x:
        counts += _search(layer, held, first, found, rounds)
    slow_found = [_slow_points(layer, held, first[:_MOST_DESCENTS], found, slow) for held in x]
    counts += len(x) * len(first[:_MOST_DESCENTS])
    note = "" if states is not None else "states were not given: starts are what the network reaches from random states"
    return _result(layer, x, visited, found, slow_found, counts, note)


def the_map(module: RecurrentSource, inputs: object, states: Any) -> AbstractRecurrentMap:
    """The one network of a source as one map."""
    given = as_tensor(inputs, "inputs") if inputs is not None else None
    networks = recurrent_networks(module, given, _example(states), whole=False)
    if len(networks) != 1:
        names = ", ".join(repr(network.name) for network in networks)
        raise InvalidInput(
            f"module must hold one recurrent network; it has {len(networks)} ({names}): pass one of them."
        )
    return networks[0].as_map()


def _example(states: Any) -> Any:
    """States that tell a step what its own look like."""
    if isinstance(states, Trace):
        return states.states.flatten(0, 1)
    is_plain = states is None or isinstance(states, Tensor | tuple)
    return states if is_plain else as_tensor(states, "states")


@final
@dataclasses.dataclass
class _Found:
    """What a search has so far: certified points with their inputs and starts, and what was not certified."""

    layer: AbstractRecurrentMap
    tol: float
    limits: tuple[float, float] | None
    x: Float[Tensor, "k i"]
    y: Float[Tensor, "k m"]
    starts: Int[Tensor, " k"]
    neutral: list[tuple[Tensor, Tensor]]
    """Input and point."""
    n_outside: int = 0

    @classmethod
    def empty(cls, layer: AbstractRecurrentMap, tol: float, limits: tuple[float, float] | None) -> _Found:
        nothing = torch.zeros(0, layer.rest_size, dtype=torch.float64)
        x = torch.zeros(0, layer.input_size, dtype=torch.float64)
        return cls(layer, tol, limits, x, nothing, torch.zeros(0, dtype=torch.int64), [])

    def add(self, held: Float[Tensor, " i"], ends: Float[Tensor, "s m"]) -> None:
        """Take the ends of searches at one input: certify them, and keep those that are new."""
        ends = ends[torch.isfinite(ends).all(-1)]
        x = held.expand(len(ends), -1)
        gap = (self.layer.rest_map(x, ends) - ends).abs().amax(-1) / ends.abs().amax(-1).clamp_min(1.0)
        ends = ends[gap <= self.tol]
        labels, firsts = clusters(ends)
        points = ends[firsts]
        if not len(points):
            return
        proof = certify(self.layer, held.expand(len(points), -1), points, self.limits)
        good = proof.holds(self.tol)
        self.n_outside += int((~proof.inside).sum())
        self._keep_neutral(held, points[proof.neutral & proof.inside])
        for number in good.nonzero()[:, 0].tolist():
            self._enter(held, points[number], int((labels == number).sum()))

    def _enter(self, held: Tensor, point: Tensor, count: int) -> None:
        own = (self.x == held).all(-1)
        near = own & (distance(self.y, point) <= SAME)
        if bool(near.any()):
            self.starts[near.nonzero()[0, 0]] += count
            return
        self.x, self.y = torch.cat([self.x, held[None]]), torch.cat([self.y, point[None]])
        self.starts = torch.cat([self.starts, torch.tensor([count])])

    def _keep_neutral(self, held: Tensor, points: Tensor) -> None:
        """Those that are new at this input."""
        for point in points:
            known = [place for input_, place in self.neutral if torch.equal(input_, held)]
            if not known or float(distance(torch.stack(known), point).min()) > SAME:
                self.neutral.append((held, point))

    def at(self, held: Float[Tensor, " i"]) -> Float[Tensor, "_ m"]:
        """The points at one input."""
        return self.y[(self.x == held).all(-1)]


def _search(layer: AbstractRecurrentMap, held: Tensor, states: Tensor, found: _Found, rounds: int) -> int:
    """Newton from the states, then from middles between points; the number of searches made."""
    searched = len(states)
    found.add(held, newton(layer, held.expand(len(states), -1), layer.lower(states), found.tol))
    for number in range(rounds):
        points = found.at(held)
        pairs = torch.combinations(torch.arange(len(points)), 2)
        if not len(pairs):
            break
        pairs = chosen(pairs.double(), _MOST_PAIRS, number).long()
        middles = (points[pairs[:, 0]] + points[pairs[:, 1]]) / 2
        found.add(held, newton(layer, held.expand(len(middles), -1), middles, found.tol))
        searched += len(middles)
        if len(found.at(held)) == len(points):
            break
    return searched


def _slow_points(
    layer: AbstractRecurrentMap, held: Tensor, states: Tensor, found: _Found, slow: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Minima of the speed that are no points of rest: states, inputs, speeds. Minima that are join the others."""
    x = held.expand(len(states), -1)
    usual = layer.displacement(x, states).abs().amax(-1).median()
    reached, flatness = descend(layer, x, states)
    found.add(held, newton(layer, x, layer.lower(reached), found.tol))
    speed = layer.displacement(x, reached).abs().amax(-1)
    known = layer.lift(held.expand(len(found.at(held)), -1), found.at(held))
    far = torch.ones(len(reached), dtype=torch.bool)
    for point in known:
        far &= distance(reached, point) > SAME
    keep = far & (flatness <= _FLAT) & (speed <= slow * usual) & (speed > found.tol)
    firsts = clusters(reached[keep], 1e-3)[1]
    kept = reached[keep][firsts]
    return kept, held.expand(len(kept), -1), speed[keep][firsts]


def _result(
    layer: AbstractRecurrentMap,
    x: Tensor,
    visited: Tensor,
    found: _Found,
    slow: list[tuple[Tensor, Tensor, Tensor]],
    searched: int,
    note: str,
) -> FixedPoints:
    states = layer.lift(found.x, found.y)
    proof: Certificate = certify(layer, found.x, found.y, found.limits)
    eigenvalues, growth = mode_growth(layer, found.x, states)
    order = growth.amax(-1).argsort() if len(states) else torch.zeros(0, dtype=torch.int64)
    growth = growth[order]
    spread = torch.linalg.vector_norm(visited - visited.mean(0), dim=-1).square().mean().sqrt().clamp_min(1e-300)
    gaps = torch.cdist(states[order], visited).amin(-1) / spread if len(states) else torch.zeros(0).double()
    neutral = states[:0]
    if found.neutral:
        held, places = (torch.stack(parts) for parts in zip(*found.neutral, strict=True))
        neutral = layer.lift(held, places)
    return FixedPoints(
        states=states[order],
        inputs=found.x[order],
        stable=(growth < 0).all(-1),
        residual=proof.residual[order],
        relative_residual=proof.relative_residual[order],
        error=proof.error[order],
        eigenvalues=eigenvalues[order],
        n_unstable=(growth > 0).sum(-1),
        distance=gaps,
        n_starts=found.starts[order],
        slow_states=torch.cat([part[0] for part in slow]),
        slow_inputs=torch.cat([part[1] for part in slow]),
        slow_speed=torch.cat([part[2] for part in slow]),
        neutral_states=neutral,
        n_outside=found.n_outside,
        n_searches=searched,
        tolerance=found.tol,
        note=note,
        plane=principal_plane(layer, x[0], chosen(visited, 2000, 0), states),
    )


def mode_growth(
    layer: AbstractRecurrentMap, x: Float[Tensor, "k i"], states: Float[Tensor, "k n"]
) -> tuple[Complex[Tensor, "k n"], Float[Tensor, "k n"]]:
    """Eigenvalues of the Jacobian, the slowest to fall first, and ``|eigenvalue|^2 - 1`` without cancellation.

    The eigenvalues are one plus those of the slope, so that a mode that takes 1e20 steps still has a sign.
    """
    slices = portions(len(states), states.shape[-1])
    values = joined([robust_eigenvalues(layer.slope(x[part], states[part])) for part in slices])
    growth = 2 * values.real + values.abs().square()
    order = growth.argsort(dim=-1, descending=True)
    return 1 + values.gather(-1, order), growth.gather(-1, order)


def clusters(points: Float[Tensor, "s m"], radius: float = SAME) -> tuple[Int[Tensor, " s"], list[int]]:
    """Labels of points that are one, and the first of each group."""
    labels = torch.full((len(points),), -1, dtype=torch.int64)
    firsts: list[int] = []
    while bool((labels < 0).any()):
        first = int((labels < 0).nonzero()[0, 0])
        labels[(labels < 0) & (distance(points, points[first]) <= radius)] = len(firsts)
        firsts.append(first)
    return labels, firsts


def distance(points: Float[Tensor, "s m"], point: Float[Tensor, " m"]) -> Float[Tensor, " s"]:
    """Largest difference of an entry over the largest entry (or one)."""
    scale = torch.maximum(points.abs().amax(-1), point.abs().amax()).clamp_min(1.0)
    return (points - point).abs().amax(-1) / scale


def _check_options(n_starts: int, rounds: int, tol: float, slow: float) -> None:
    require_integer(n_starts, "n_starts", at_least=1)
    require_integer(rounds, "rounds", at_least=0)
    require_positive(tol, "tol")
    require_positive(slow, "slow")


def _limits(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidInput(f"bounds must be two numbers, the least and the largest value of a state; got {bounds!r}.")
    low, high = (require_number(value, "bounds") for value in bounds)
    if low >= high:
        raise InvalidInput(f"bounds must be two increasing numbers; got {low:g} and {high:g}.")
    return low, high
