"""Where the next step of an optimiser would take a parameter, found by the optimiser's own step on a stand-in.

To write the steps of all optimisers down again would be to get some of them wrong (decay, Nesterov, ascent, warm
state). A stand-in of the same class, with copies of one parameter, its gradient and its state, takes the step instead.
"""

from __future__ import annotations

import collections
import copy
import inspect
from typing import Any

import torch
from torch import Tensor, nn

from ...balance.optimiser_law import changed_from_outside


def after_one_step(
    optimiser: torch.optim.Optimizer, group: dict[str, Any], parameter: Tensor, gradient: Tensor
) -> Tensor | None:
    """The value of a parameter after the next step; None where that is not known.

    Known are optimisers that take a step of torch's: what else a stranger's does, hooks included, nobody can say.
    Nothing of the optimiser's is changed. Memory: a copy of the parameter and of its state.
    """
    step = inspect.unwrap(type(optimiser).step)
    if not step.__module__.startswith("torch.optim.") or changed_from_outside(optimiser):
        return None
    own = nn.Parameter(parameter.detach().clone())
    own.grad = gradient.detach().to(own.dtype).clone()
    stand_in = type(optimiser).__new__(type(optimiser))
    settings = {name: copy.deepcopy(value) for name, value in group.items() if name != "params"}
    state: dict[Tensor, Any] = collections.defaultdict(dict)
    if parameter in optimiser.state:
        state[own] = copy.deepcopy(optimiser.state[parameter])
    stand_in.__setstate__(
        {"defaults": dict(optimiser.defaults), "state": state, "param_groups": [{**settings, "params": [own]}]}
    )
    try:
        with torch.no_grad():
            step(stand_in)  # without the wrappers of torch, which call hooks of the whole process
    except Exception:  # a closure is wanted, sparse gradients, attributes of a subclass
        return None
    return own.detach()
