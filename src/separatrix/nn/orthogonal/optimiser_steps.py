"""Whether an optimiser is in the middle of a step.

Some optimisers (line searches, L-BFGS) call the model several times within one step and go back to where a parameter
was. A parametrisation that moves its base in between would answer from another place each time. Torch tells when a
step begins and ends, for every optimiser of its own kind; nothing else about optimisers is touched.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

_numbers = itertools.count(1)
_here = threading.local()


def running_step() -> int | None:
    """The number of the optimiser's step that called us, each one its own; None outside of steps."""
    number: int | None = getattr(_here, "number", None)
    return number


def _begin(*_: Any) -> None:
    # a step that ended with an exception never said so: the next one takes its place
    _here.number = next(_numbers)


def _end(*_: Any) -> None:
    _here.number = None


register_optimizer_step_pre_hook(_begin)
register_optimizer_step_post_hook(_end)
