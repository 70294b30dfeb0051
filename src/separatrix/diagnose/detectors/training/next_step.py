"""Where the next step of an optimiser would take a parameter, found by the optimiser's own step on a stand-in.

To write the steps of all optimisers down again would be to get some of them wrong (decay, Nesterov, ascent, warm
state). A stand-in of torch's class, with copies of one parameter, its gradient and its state, takes the step instead.
"""

from __future__ import annotations

import collections
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from ...optimisers import bare_step, changed_from_outside, torch_class


def after_one_step(
    optimiser: torch.optim.Optimizer, group: dict[str, Any], parameter: Tensor, gradient: Tensor
) -> Tensor | None:
    """The value of a parameter after the next step; None where that is not known.

    Known are optimisers that take a step of torch's: what else a stranger's does, hooks included, nobody can say.
    Nothing of the optimiser's is changed, and no code of a stranger's class is run. Memory: a copy of the parameter
    and of its state.
    """
    kind = torch_class(optimiser)
    if kind is None or changed_from_outside(optimiser) or _has_hooks_on_its_gradient(parameter):
        return None
    own = nn.Parameter(parameter.detach().clone())
    own.grad = gradient.detach().to(own.dtype).clone()
    state: dict[Tensor, Any] = collections.defaultdict(dict)
    if parameter in optimiser.state:
        state[own] = _copied(optimiser.state[parameter])
    settings = {**_copied({name: value for name, value in group.items() if name != "params"}), "params": [own]}
    stand_in = object.__new__(kind)
    vars(stand_in).update({**vars(optimiser), "state": state, "param_groups": [settings]})
    try:
        with torch.set_grad_enabled(bool(optimiser.defaults.get("differentiable", False))), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the real step will say what there is to say
            bare_step(kind.step)(stand_in)  # without the wrappers of torch, which call hooks of the whole process
    except Exception:  # a closure is wanted, sparse gradients, a step that torch refuses as well
        return None
    return own.detach()


def _has_hooks_on_its_gradient(parameter: Tensor) -> bool:
    """Whether something happens to ``.grad`` after it was added up (hooks before that have acted on the gradient)."""
    return bool(getattr(parameter, "_post_accumulate_grad_hooks", None))


def _copied(value: Any) -> Any:
    """Copies of the tensors in plain containers; what else stands there is no business of torch's steps."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copied(part) for part in value)
    return value
