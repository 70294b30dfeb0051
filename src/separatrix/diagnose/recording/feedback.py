"""Maps that are applied again and again: does the state rest?

What enters a weight is compared with what entered it before. That is deceived by a solver that ends with looks beside
its state. So, where one step from x towards f(x) was seen, plain or damped, the place of f(x) among the results that
follow the weight is known, and later the residual |f(x) - x| / |x| is taken there, whatever happens in between.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
import sys

import torch
from torch import Tensor, UntypedStorage

from .reductions import rms

_FOLLOWED = 16
"""How many results after a weight may be f(x)."""
_KEPT, _ROUNDING = 48, 3e-6
_TRIES = 40
"""Uses after which f(x) is no longer looked for."""
_SAME = frozenset(["detach", "view", "alias", "_unsafe_view", "clone", "_to_copy", "t", "transpose", "expand"])
"""The same numbers under another name."""
_EQUAL, _LEAST = 1e-5, 0.02
_OFTEN = 4
"""Of so many uses one may ask for the first input again."""
_SMALLEST = sys.float_info.min


def share_changed(before: Tensor, after: Tensor) -> float:
    """rms of the difference over that of the second; 0 for zeros, and 1 for what became zero."""
    size = rms(after)
    return rms(after - before) / size if size > 0 else float(bool(before.any()))


@dataclasses.dataclass(eq=False)
class Use:
    """How a weight is used: how often, how often without a graph, and how its input changed last."""

    count: int = 0
    without_graph: int = 0
    previous: Tensor | None = None
    change: float | None = None
    residual: float | None = None
    """|f(x) - x| / |x| at the last use, where f(x) is known."""
    changes: list[float] = dataclasses.field(default_factory=list)
    """Relative changes from use to use, the first of them."""
    fed: bool = False
    """Whether anything but zeros ever entered."""
    moved: bool = False
    """Whether what enters was ever seen to change: else it is an input of the iteration, and no state."""
    overwritten: bool = False
    """Whether states are written over those before them, which are then copied."""
    entered: tuple[Tensor, int] | None = None
    """What entered last and its version then: a detached tensor made below autograd has a version of its own."""
    start: tuple[Tensor, int] | None = None
    """What entered first and its version then, which a layer may ask for again when it has found its equilibrium."""
    returns: int = 0
    """How often it has entered since."""
    place: int | None = None
    """Which result after the weight is f(x)."""
    from_zero: bool = False
    """Whether that was found in a step from zero, which may as well have been made by adding that result."""
    results: list[tuple[int, Tensor]] = dataclasses.field(default_factory=list)
    followed: int = 0
    made: dict[int, UntypedStorage] = dataclasses.field(default_factory=dict)
    """Storages that were made from the last product, kept so that nothing else gets their address."""

    @property
    def _again(self) -> bool:
        return self.place is not None

    @property
    def contraction(self) -> float | None:
        """Factor by which changes shrink from use to use before rounding ends it; None with fewer than four."""
        logs = [math.log(change) for change in itertools.takewhile(lambda c: c > _ROUNDING, self.changes)]
        if len(logs) < 4:
            return None
        return math.exp(statistics.linear_regression(range(len(logs)), logs).slope)

    def enter(self, x: Tensor, *, graph: bool) -> None:
        """Note one use with its input."""
        self.count += 1
        self.without_graph += not graph
        self.fed = self.fed or bool(x.any())
        if self.entered is not None and self.entered[0]._version != self.entered[1]:
            self.overwritten, self.previous, self.moved = True, None, True
        if self._is_look(x):
            self.followed = _FOLLOWED
            return
        if self.place is None and self.previous is not None:
            self.from_zero = not self.previous.any()
            self.place = self._place(x, self.previous)
        if self.previous is not None and self.previous.shape == x.shape and (self.count > 6 or self._again):
            self.change = share_changed(self.previous, x)
            self.changes = [*self.changes, self.change][:_KEPT]
        self.moved = self.moved or (self.previous is not None and not torch.equal(self.previous, x))
        self.overwritten = self.overwritten or x.is_inference()  # such a tensor counts no changes
        self.previous, self.results, self.followed = x.detach().clone() if self.overwritten else x.detach(), [], 0
        self.entered = None if self.overwritten else (x, x._version)
        self.start = self.entered if self.count == 1 else self.start
        self.made = {}

    def _is_look(self, x: Tensor) -> bool:
        """Whether the first input enters again, but not as often as if the iteration came back to it."""
        if self.start is None or not self.moved or self.start[0]._version != self.start[1]:
            return False
        if self.start[0].shape != x.shape or not torch.equal(self.start[0], x):
            return False
        self.returns += 1
        return _OFTEN * self.returns <= self.count

    def _place(self, x: Tensor, before: Tensor) -> int | None:
        """Which of the results x is a step towards.

        From zero what enters an activation may be as good as what leaves it (ReLU of positive numbers), and is no f(x)
        later on: the last of those that would be alike is taken.
        """
        shares = ((at, _step_towards(made, x, before)) for at, made in self.results)
        known = [(at, share) for at, share in shares if share is not None]
        if not known:
            return None
        alike = [at for at, share in known if abs(share - known[0][1]) < _EQUAL]
        return alike[-1] if self.from_zero else alike[0]

    def follow(self, name: str, tensors: list[Tensor], output: Tensor) -> bool:
        """Note a result that is made from the last product; False when there is nothing left to wait for."""
        if self.previous is None or self.followed >= _FOLLOWED:
            return False
        if self.count > _TRIES and self.place is None:
            self.results = []
            return False
        if not self.made or any(part.untyped_storage()._cdata in self.made for part in tensors):
            storage = output.untyped_storage()
            self.made[storage._cdata] = storage
            if name in _SAME:
                return True
            self.followed += 1
            if output.shape == self.previous.shape and output.is_floating_point():
                self._result(output)
        return True

    def _result(self, output: Tensor) -> None:
        assert self.previous is not None
        if self.place is None:
            self.results.append((self.followed, output.detach()))
        elif self.followed == self.place:
            self.residual = share_changed(output.detach(), self.previous)
            if self.from_zero and self.residual > 0:  # a step of Newton's method, or of an integrator, rests at zero
                self.residual = min(self.residual, rms(output) / max(rms(self.previous), _SMALLEST))


def _step_towards(made: Tensor, x: Tensor, before: Tensor) -> float | None:
    """The share of the way from what entered before to a result at which what enters next lies: 1 for a plain step."""
    if made.shape != x.shape or before.shape != x.shape:
        return None
    taken, whole = (x - before).detach().double().flatten(), (made - before).detach().double().flatten()
    length = float(whole @ whole)
    if not length > 0 or not float(taken @ taken) > _EQUAL * float(before.double().square().sum()):
        return None
    share = float(taken @ whole) / length
    near = share > _LEAST and float((taken - share * whole).norm()) < _EQUAL * float(taken.norm())
    return share if near else None
