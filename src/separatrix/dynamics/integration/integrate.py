"""Integrate many trajectories of any flow, each with its own step size and its own end."""

from __future__ import annotations

import functools
import math
import weakref
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import (
    InvalidInput,
    ShapeError,
    as_tensor,
    require_flags,
    require_integer,
    require_number,
    require_positive,
)
from separatrix.core.arithmetic.eigenvalues import eigvals

from ..flows.attention import AttentionFlow
from ..flows.base import AbstractFlow, AbstractSphereFlow, common_axes, require_flow, require_rate
from ..flows.fit import check_motion
from ..flows.sphere import check_tokens
from .compiled.alone import follow_alone
from .compiled.choice import runs_compiled
from .driver import Run
from .finishing import AbstractFinisher, ClusterFinisher, NewtonFinisher
from .merging import Merging
from .methods.base import AbstractMethod
from .methods.control import DisplacementControl
from .methods.presets import PRESETS, Preset, chosen_accuracy, find_preset
from .methods.rosenbrock import Rosenbrock
from .methods.tableau import Tableau
from .motion import SMALLEST
from .orbits.closing import close_orbits
from .orbits.returns import Returns
from .plan import Plan
from .stopping import AbstractStop, Rest, Until
from .trajectory import Trajectory

MERGE_DISTANCE = 1e-3
"""Tokens closer than this become one row where only the end of a trajectory is asked for; elsewhere the tolerance of
what is shown is the limit."""

PATIENCE, LONG_PATIENCE = 40, 160
"""Steps, longer than most transients, after which trajectories are watched for a return; exact presets take more."""

TURNS = 10
"""Turns of a complex principal pair for which the default time limit leaves time."""

EARLY_ELSEWHERE = 1e-3
"""Relative speed at which a trajectory off the sphere is first attempted to be finished."""


def integrate(
    flow: AbstractFlow,
    x0: object,
    preset: str | Preset = "default",
    *,
    method: str | Tableau | AbstractMethod | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    tol: float = 1e-6,
    t_max: float | Tensor | None = None,
    max_steps: int = 20_000,
    times: object | None = None,
    merging: bool = True,
    finishing: bool = True,
    normalise: bool = False,
) -> Trajectory:
    """Follow states until they rest, or to a time.

    Trajectories on the sphere are followed until they rest or turn in a stable cycle, at most to ``t_max``. Those of
    other flows are followed to ``t_max`` or the last of ``times`` if one of them is given, and until they rest or turn
    otherwise. If the weights vary in time, one must be given.

    Args:
        flow: what moves them; its weights broadcast against the batch of ``x0``.
        x0: starts (..., n, d); unit tokens on the sphere.
        preset: ``"fast"`` (for proportions over many starts), ``"default"`` or ``"reference"``.
        method: instead of the preset's: ``"bs32"``, ``"dp54"``, ``"tsit5"``, ``"dop853"``, ``"rodas4"`` (implicit, for
            stiff flows, varying in time or not), a ``Tableau``, or an object.
        rtol: instead of the preset's relative tolerance: of the displacement of a step on the sphere, of the size of
            every entry elsewhere.
        atol: instead of the preset's absolute tolerance: per unit of time and rate on the sphere, of every entry
            elsewhere. By default, where a trajectory is followed until it rests, the preset's is multiplied by the
            size of the start if that is below one.
        tol: speed at which a trajectory rests: of the fastest token, in units of the spectral norm of V on the sphere;
            elsewhere the estimated distance to the equilibrium over the way that was made.
        t_max: time limit, one for all or one for each element of the batch. By default, on the sphere, 400 over the
            gap between the two largest real parts of the eigenvalues of V that are not of one complex pair (at least
            a thousandth of its norm), and ten turns of a complex principal pair.
        max_steps: attempted steps per trajectory.
        times: increasing times at which states are kept, none beyond ``t_max``. They are as accurate as the steps: by
            dense output of the method, or because steps end there.
        merging: carry on tokens that contract to one place as one row.
        finishing: end a trajectory at the stable equilibrium that Newton's method finds beside it, or on the stable
            cycle that it follows, and perturb one that rests on a saddle. Without it trajectories stop at ``tol`` or
            ``t_max`` and nothing else happens.
        normalise: divide the starts by their lengths instead of refusing lengths other than one.

    Returns:
        One outcome per trajectory: converged, cycle (``cycles`` has its Floquet multipliers), completed (the time that
        was asked for, off the sphere), out of steps (or, on the sphere, out of time; ``returns`` says whether it came
        back near former states, as quasi-periodic and chaotic motions do), stalled (slower than ``tol`` /
        1e4 with no equilibrium nearby, or again at a saddle after five departures), diverged (off the sphere: beyond
        1e100, or still on its way at a time of 1e250), non-finite (the state is then NaN).

        Where orbits, or equilibria, form a family along which nothing contracts (a marginal cycle), no later step takes
        back the error of an earlier one: the member that is given is the motion's own up to rtol times the way it made.
        Take ``"reference"`` where that member matters.

    Cost: a few hundred velocities per trajectory; pools hold about 160000 attention weights at a time.

    Example:
        >>> from separatrix.core import spawn
        >>> from separatrix.dynamics import AttentionFlow, integrate, random_tokens
        >>> flow = AttentionFlow.from_coupling([[1.0, 0.2], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]])
        >>> integrate(flow, random_tokens(6, 2, 10, generator=spawn(0))).ok
        True
    """
    settings = find_preset(preset)
    require_flags(merging=merging, finishing=finishing, normalise=normalise)
    states = _check_starts(require_flow(flow), x0, normalised=normalise)
    tol = require_number(tol, "tol", at_least=0)
    require_integer(max_steps, "max_steps", at_least=1)
    shape = common_axes(flow, states, "x0")
    states = states.expand(*shape, *states.shape[-2:]).double()
    flat = states.reshape(-1, *states.shape[-2:])
    frames = None if times is None else _check_times(times, flat)
    double = flow.to(torch.float64)
    limit, given = _limit(double, t_max, frames, shape, flat)
    plan = _plan(
        flow, settings, method, rtol, atol, tol, max_steps,
        given=given, shown=frames is not None, merging=merging, finishing=finishing,
    )  # fmt: skip
    compiled = runs_compiled(double, plan, flat, frames)
    if compiled:
        assert isinstance(double, AttentionFlow)
        double.check_shape(flat)
        found = follow_alone(double, shape, flat, plan, limit) if plan.finisher is None else None
        if found is not None:
            return found
    elif len(flat):
        first = double.select(shape or (1,), torch.zeros(1, dtype=torch.long, device=flat.device))
        check_motion(first, flat[:1], derivative=plan.finisher is not None)
    run = Run(double, shape, flat, plan, limit, frames, compiled=compiled)
    run.run()
    return run.books.result(shape, "numba" if compiled else "torch")


def find_returns(flow: AbstractFlow, x: Float[Tensor, "batch n d"], max_steps: int = 600) -> Trajectory:
    """Follow states that seem to lie on a periodic orbit until they come back, and close the orbit.

    As ``integrate`` with an anchor at the start itself: the outcome is cycle where the state returns to within a tenth
    of the extent of its loop and a closed orbit, stable or not, passes there.
    """
    double, settings, on_sphere = flow.to(torch.float64), find_preset("default"), isinstance(flow, AbstractSphereFlow)
    limit = torch.full((len(x),), torch.inf, dtype=torch.float64, device=x.device)
    method, control = chosen_accuracy(on_sphere, settings, None, None, None)
    stop = Rest(1e-6, settings.early if on_sphere else EARLY_ELSEWHERE)
    returns = Returns(patience=0, renew=False)
    plan = Plan(
        method,
        control,
        stop,
        max_steps,
        _finisher(on_sphere),
        returns=returns,
        closer=close_orbits,
        stiff=Rosenbrock(),
        any_cycle=True,
    )
    run = Run(double, (len(x),), x.double(), plan, limit, None)
    run.run()
    return run.books.result((len(x),))


def _stop(kind: _Kind, preset: Preset, tol: float, *, given: bool, shown: bool, finishing: bool) -> AbstractStop:
    if (given and not kind.on_sphere) or (
        shown and not finishing
    ):  # states at times are those of the motion to the end
        return Until()
    if not kind.autonomous:
        raise InvalidInput("a flow with weights that vary in time never rests: give t_max or times.")
    early = preset.early if kind.on_sphere else EARLY_ELSEWHERE
    return Rest(tol, tol if shown or not finishing else early)


def _finisher(on_sphere: bool) -> AbstractFinisher:
    return ClusterFinisher() if on_sphere else NewtonFinisher()


class _Kind(NamedTuple):
    """What a plan depends on in a flow."""

    on_sphere: bool
    autonomous: bool
    reducible: bool


def _plan(
    flow: AbstractFlow,
    preset: Preset,
    method: str | Tableau | AbstractMethod | None,
    rtol: float | None,
    atol: float | None,
    tol: float,
    max_steps: int,
    *,
    given: bool,
    shown: bool,
    merging: bool,
    finishing: bool,
) -> Plan:
    """The objects that follow and end the trajectories of a flow; those of a call before that asked for the same."""
    kind = _Kind(False, flow.autonomous, False)
    if isinstance(flow, AbstractSphereFlow):
        kind = _Kind(True, flow.autonomous, flow.reducible)
    allowed = [
        None if value is None else require_positive(value, name) for value, name in ((rtol, "rtol"), (atol, "atol"))
    ]
    named = (method is None or isinstance(method, str)) and PRESETS.get(preset.name) is preset
    make = _planned if named else _planned.__wrapped__  # objects of others need not have a hash
    return make(kind, preset, method, *allowed, tol, max_steps, given, shown, merging, finishing)


@functools.lru_cache(maxsize=64)
def _planned(
    kind: _Kind,
    preset: Preset,
    method: str | Tableau | AbstractMethod | None,
    rtol: float | None,
    atol: float | None,
    tol: float,
    max_steps: int,
    given: bool,
    shown: bool,
    merging: bool,
    finishing: bool,
) -> Plan:
    stop = _stop(kind, preset, tol, given=given, shown=shown, finishing=finishing)
    found, control = chosen_accuracy(kind.on_sphere, preset, method, rtol, atol)
    seeks = stop.sought and finishing
    transient, merge = torch.float64, None
    stiff = Rosenbrock() if method is None else None
    if isinstance(control, DisplacementControl):
        # A mean stands for its cluster up to the square of the distance, and the differences inside decay.
        distance = control.rtol if given else control.rtol**0.5
        if shown or not finishing:
            distance = 1e-3 * control.rtol
        merge = Merging(min(distance, MERGE_DISTANCE)) if merging and kind.reducible else None
        transient = preset.transient if control.rtol >= 1e-4 and atol is None else torch.float64
    return Plan(
        method=found,
        control=control,
        stop=stop,
        max_steps=max_steps,
        finisher=_finisher(kind.on_sphere) if seeks else None,
        merging=merge,
        returns=Returns(LONG_PATIENCE if preset.exact else PATIENCE) if seeks else None,
        closer=close_orbits if seeks else None,
        stiff=stiff,
        transient=transient,
        own_length=not kind.on_sphere and atol is None,
        jump=1e-2 * control.rtol if isinstance(control, DisplacementControl) else 0.0,
    )


def _limit(
    flow: AbstractFlow, t_max: float | Tensor | None, frames: Tensor | None, shape: tuple[int, ...], x: Tensor
) -> tuple[Float[Tensor, " batch"], bool]:
    """Last time of each trajectory, and whether the caller gave it."""
    on_sphere = isinstance(flow, AbstractSphereFlow)
    if t_max is not None:
        limit = _given_limit(t_max, shape)
        if frames is not None and limit.numel() and float(frames[-1]) > float(limit.min()):
            raise InvalidInput(
                f"times must not lie beyond t_max = {float(limit.min()):g}; the last is {float(frames[-1]):g}."
            )
        return limit.to(x.device).reshape(-1), True
    if on_sphere:
        assert isinstance(flow, AbstractSphereFlow)
        usual = _time_limit(flow).expand(shape or (1,)).reshape(-1)
        return usual if frames is None else usual.clamp_min(float(frames[-1])), False
    last = torch.inf if frames is None else float(frames[-1])
    return torch.full((len(x),), last, dtype=torch.float64, device=x.device), frames is not None


def _given_limit(t_max: object, shape: tuple[int, ...]) -> Tensor:
    limit = as_tensor(t_max, "t_max", dtype=torch.float64)
    for value in limit.reshape(-1).tolist():
        require_positive(value, "t_max")
    try:
        return limit.expand(shape)
    except RuntimeError:
        raise ShapeError(
            f"t_max must be one number or one for each element of the batch {shape}; got shape {tuple(limit.shape)}."
        ) from None


_LIMITS: weakref.WeakKeyDictionary[AbstractSphereFlow, Tensor] = weakref.WeakKeyDictionary()
"""Usual last times by flow, as flows are immutable and are asked again and again."""


def _time_limit(flow: AbstractSphereFlow) -> Float[Tensor, "*instances"]:
    """400 over the slower of two rates: the spectral gap, and that at which tokens come together or part.

    Equal tokens settle at the gap; a complex principal pair counts once there: its tokens rotate, which is no slow
    decay. Others come together at the largest real part if that is positive, and lose their mean at it if not. Tokens
    that rotate are given the time for some turns, however slow: a step takes a share of a turn.
    """
    known = _LIMITS.get(flow)
    if known is not None:
        return known
    rate, values = flow.rate.detach().clamp_min(SMALLEST), eigvals(flow.value_sum.detach())
    order = values.real.argsort(dim=-1, descending=True)
    real, imag = values.real.gather(-1, order), values.imag.gather(-1, order)
    next_one = real[..., 1]
    if real.shape[-1] > 2:
        size = values.abs().amax(dim=-1)
        next_one = torch.where(imag[..., 0].abs() > 1e-9 * size, real[..., 2], next_one)
    turns = TURNS * 2 * math.pi / imag[..., 0].abs()
    slower = torch.minimum(real[..., 0] - next_one, real[..., 0].abs())
    settle = 400 / torch.maximum(torch.minimum(slower, rate), 1e-3 * rate)
    _LIMITS[flow] = torch.where(torch.isfinite(turns), settle + turns, settle)
    return _LIMITS[flow]


def _check_starts(flow: AbstractFlow, x0: object, *, normalised: bool) -> Tensor:
    if isinstance(flow, AbstractSphereFlow):
        tokens = check_tokens(x0, "x0", normalised=normalised)
        require_rate(flow)
        if tokens.shape[-1] != flow.dim:
            raise ShapeError(f"x0 must have tokens of dimension {flow.dim}; got shape {tuple(tokens.shape)}.")
        return tokens
    states = as_tensor(x0, "x0")
    if states.ndim < 2 or not states.shape[-1] * states.shape[-2]:
        raise ShapeError(f"x0 must have shape (..., n, d), with n = 1 for a plain vector; got {tuple(states.shape)}.")
    return flow.project(states.double()) if normalised else states


def _check_times(times: object, x: Tensor) -> Float[Tensor, " frames"]:
    frames = as_tensor(times, "times", dtype=torch.float64).to(x.device)
    if frames.ndim != 1 or not len(frames) or bool((frames.diff() <= 0).any()) or float(frames[0]) < 0:
        raise InvalidInput("times must be an increasing list of numbers, not negative.")
    return frames
