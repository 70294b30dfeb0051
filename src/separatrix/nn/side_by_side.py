"""Several modules of one structure as one: their parameters are stacked and every operation runs on all at once.

Seeds of one experiment differ only in their numbers. Stacked, they share the cost of starting each operation: measured
with an equilibrium layer at batch 128, five tanh cells side by side take half the time of one after another at width
64, and three quarters at width 196. Where one module already fills a core (a transformer layer), the gain is gone, and
separate processes are the better way.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import suggest_options


@suggest_options
class SideBySide(nn.Module):
    """Modules of one structure, each applied to its own part of the input.

    Args:
        modules: two or more modules that differ in their numbers only; their parameters are copied.
        merged: the first axis of every input and of the output is members x batch, member by member, as an equilibrium
            layer needs it; otherwise it is the members alone.

    Example:
        >>> pair = SideBySide([nn.Linear(3, 2), nn.Linear(3, 2)])
        >>> pair(torch.zeros(2, 5, 3)).shape
        torch.Size([2, 5, 2])
    """

    def __init__(self, modules: Sequence[nn.Module], *, merged: bool = False) -> None:
        super().__init__()
        if not modules:
            raise InvalidInput("modules must hold at least one module.")
        shapes = [[(name, p.shape) for name, p in module.named_parameters()] for module in modules]
        if any(other != shapes[0] for other in shapes) or any(list(module.buffers()) for module in modules):
            raise InvalidInput("modules must have the same parameters by name and shape, and no buffers.")
        self.n_members = len(modules)
        self.merged = merged
        stacked = {
            name: torch.stack([module.get_parameter(name).detach() for module in modules]) for name, _ in shapes[0]
        }
        self._names = {name.replace(".", "/"): name for name in stacked}  # a dot is not allowed in a parameter's name
        self.stacked = nn.ParameterDict(
            {name.replace(".", "/"): nn.Parameter(value) for name, value in stacked.items()}
        )
        self._template = (copy.deepcopy(modules[0]).to("meta"),)  # in a tuple: its parameters are not ours

    def forward(self, *inputs: Tensor) -> Tensor:
        """Each member on its part of the inputs."""
        if self.merged:
            inputs = tuple(self._split(value) for value in inputs)
        for value in inputs:
            if value.shape[0] != self.n_members:
                raise ShapeError(f"inputs must have {self.n_members} members first; got shape {tuple(value.shape)}.")
        parameters = {name: self.stacked[key] for key, name in self._names.items()}
        try:
            out: Tensor = torch.func.vmap(self._call)(parameters, *inputs)
        except RuntimeError as error:
            if not any(said in str(error) for said in ("vmap", "Batching rule")):
                raise
            reason = str(error).splitlines()[0].removeprefix("vmap: ")
            raise InvalidInput(
                f"{type(self._template[0]).__name__} cannot run side by side: torch says {reason}"
            ) from error
        return out.flatten(0, 1) if self.merged else out

    def _call(self, parameters: dict[str, Tensor], *inputs: Tensor) -> Tensor:
        out: Tensor = torch.func.functional_call(self._template[0], parameters, inputs)
        return out

    def _split(self, value: Tensor) -> Tensor:
        if value.shape[0] % self.n_members:
            raise ShapeError(f"the first axis must hold {self.n_members} members x batch; got {value.shape[0]} rows.")
        return value.unflatten(0, (self.n_members, -1))

    def member(self, index: int) -> dict[str, Tensor]:
        """The parameters of one member under the names of its own module, ready for ``load_state_dict``."""
        return {name: self.stacked[key].detach()[index].clone() for key, name in self._names.items()}

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"n_members={self.n_members}, merged={self.merged}"
