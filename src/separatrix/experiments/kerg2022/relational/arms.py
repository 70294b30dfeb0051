"""What figures compare: networks with their options, by the name a figure gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from separatrix.core.names import resolve

if TYPE_CHECKING:
    import torch

    from separatrix.nn import AbstractRelationalNetwork
    from separatrix.tasks import RelationalTask

FROZEN = {"encoder": "frozen"}
ASYMMETRIC = {"symmetric": False}
SENSORY = {"sensory": True}
COOLER = {"temperature": "sqrt_d"}

ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("CoRelNet", "CoRelNet-T", "ESBN", "PrediNet", "Transformer")},
    **{name: (name, {}) for name in ("RN", "LSTM", "NTM", "MNM", "CoRelNet-diff", "CoRelNet-mix")},
    **{name: (name, {}) for name in ("Abstractor", "RelConvNet", "DualAttention")},
    **{f"random encoder {name}": (name, FROZEN) for name in ("CoRelNet", "CoRelNet-T", "ESBN")},
    **{f"asymmetric {name}": (name, ASYMMETRIC) for name in ("CoRelNet", "CoRelNet-T", "ESBN")},
    **{f"{name} cat": (name, SENSORY) for name in ("CoRelNet", "CoRelNet-T", "ESBN")},
    "random encoder CoRelNet cat": ("CoRelNet", {**FROZEN, **SENSORY}),
    **{f"L1 {name}": (name, {"l1": 0.0}) for name in ("CoRelNet", "ESBN")},
    "CoRelNet-nhid": ("CoRelNet", {"hidden": 0}),
    "symmetric Transformer": ("Transformer", {"tied": True}),
    "CoRelNet / sqrt d": ("CoRelNet", COOLER),
    "CoRelNet, l2": ("CoRelNet", {"normalise": "l2"}),
    "CoRelNet, no TCN": ("CoRelNet", {**FROZEN, "normalise": "none"}),
}
"""Network and options; a penalty or number of hidden units of 0 is that of the task."""

PENALTY = {"rmts_colour": 5.0, "rmts": 5.0}
"""Weight of the absolute values by task; 1 for the others."""


def build(arm: str, task: RelationalTask, generator: torch.Generator) -> AbstractRelationalNetwork:
    """The network of an arm for a task."""
    from separatrix import nn

    name, options = resolve("model", arm, ARMS)
    options = dict(options)
    if options.get("l1") == 0.0:
        options["l1"] = PENALTY.get(task.name, 1.0)
    if options.get("hidden") == 0:
        options["hidden"] = nn.MATCHED_HIDDEN[task.name]
    if task.name.startswith("game_"):
        options["image_size"] = 12
    return nn.make_network(name, task.seq_len, task.n_answers, generator=generator, **options)
