"""The models of one run: one, or several side by side, of which any may diverge while the others go on.

A member is good as long as its loss and gradient are finite. When it is not, it goes back to its last good parameters
and rests there; it no longer feels updates, and the others do not feel it. Buffers go back too: where a module keeps
part of its point in a buffer (the base of an orthogonal parametrisation), parameters alone are another point.
"""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from separatrix.core.described import Described
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.nn.side_by_side import SideBySide


@final
@suggest_options
class Members(Described):
    """Who is still training, and the last good parameters of everyone.

    Buffers are remembered for an ordinary model only: those beside models side by side belong to no member.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.n_stacked = _stacked_members(model)
        self.resting = torch.zeros(self.n_stacked or 1, dtype=torch.bool)
        self.diverged_at: list[int | None] = [None] * len(self.resting)
        self._good = [parameter.detach().clone() for parameter in self.parameters]
        self._good_buffers: dict[str, Tensor] = {}
        self._remember_buffers()

    @property
    def all_resting(self) -> bool:
        """Whether nobody trains any more."""
        return bool(self.resting.all())

    def remember(self) -> None:
        """Take the present parameters as good ones; call before an update."""
        for good, parameter in zip(self._good, self.parameters, strict=True):
            good.copy_(parameter.detach())
        self._remember_buffers()

    def _remember_buffers(self) -> None:
        if self.n_stacked is None:  # asked for by name each time: a module may put another tensor in its place
            self._good_buffers = {name: buffer.detach().clone() for name, buffer in self._model.named_buffers()}

    def retire(self, lost: Bool[Tensor, " members"], step: int) -> bool:
        """Let members rest from this step on, at their last good parameters; says whether there were new ones."""
        new = lost.cpu() & ~self.resting
        for index in new.nonzero().flatten().tolist():
            self.diverged_at[index] = step
        if not bool(new.any()):
            return False
        self.resting |= new
        self.restore()
        return True

    def restore(self) -> None:
        """Put the last good parameters of resting members back, after an update that moved them."""
        if not bool(self.resting.any()):
            return
        with torch.no_grad():
            for good, parameter in zip(self._good, self.parameters, strict=True):
                if self.n_stacked is None:
                    parameter.copy_(good)
                else:
                    parameter[self.resting] = good[self.resting]
            for name, buffer in self._model.named_buffers():
                if name in self._good_buffers:
                    buffer.copy_(self._good_buffers[name])

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "resting": self.resting,
            "diverged_at": list(self.diverged_at),
            "good": self._good,
            "good_buffers": self._good_buffers,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self.resting = state["resting"]
        self.diverged_at = list(state["diverged_at"])
        for good, saved in zip(self._good, state["good"], strict=True):
            good.copy_(saved)
        self._good_buffers = dict(state["good_buffers"])


def _stacked_members(model: nn.Module) -> int | None:
    """The number of models side by side inside a model, ``None`` for an ordinary one; a mixture is refused."""
    stacks = [part for part in model.modules() if isinstance(part, SideBySide)]
    if not stacks:
        return None
    inside = {id(parameter) for stack in stacks for parameter in stack.parameters()}
    counts = {stack.n_members for stack in stacks}
    if len(counts) > 1 or any(id(parameter) not in inside for parameter in model.parameters()):
        raise InvalidInput(
            "in a model with SideBySide parts, every parameter must belong to one of them, all with equally many "
            f"members; got members {sorted(counts)} and "
            f"{sum(id(parameter) not in inside for parameter in model.parameters())} parameters outside."
        )
    return counts.pop()
