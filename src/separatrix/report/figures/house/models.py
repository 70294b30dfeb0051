"""How a network looks in figures: one colour, one marker and one name in the whole product."""

from __future__ import annotations

import re
from typing import TypeAlias

from separatrix.core.wording.names import model_name

from .families import Look
from .style import COLOURS

Line: TypeAlias = str | tuple[int, tuple[int, ...]]
"""A line as matplotlib takes it: a name, or an offset with the lengths of dashes and gaps."""

_FURTHER = {"brown": "#A0522D", "indigo": "#5B5BD6", "olive": "#8A8A00"}
"""Beyond the palette, for figures with more than eight networks; legible on white and on black."""

SHADES = COLOURS | _FURTHER
"""Every colour that a figure may use, by name."""

MODELS: dict[str, tuple[str, str]] = {
    # recurrent networks
    "nnRNN": ("blue", "o"),
    "expRNN": ("vermilion", "s"),
    "orth-RNN": ("green", "^"),
    "LSTM": ("sky", "D"),
    "RNN": ("grey", "v"),
    "GRU": ("orange", "P"),
    "GORU": ("indigo", "X"),
    "EURNN": ("olive", "<"),
    "uRNN": ("purple", ">"),
    "scoRNN": ("brown", "h"),
    "LRU": ("purple", "p"),
    # attentive recurrent networks
    "RelRNN": ("blue", "o"),
    "RelLSTM": ("purple", "o"),
    "MemRNN": ("orange", "s"),
    "MemLSTM": ("brown", "s"),
    "SAB": ("olive", "P"),
    "h-detach": ("yellow", "X"),
    # relational networks
    "CoRelNet": ("blue", "o"),
    "CoRelNet-T": ("vermilion", "s"),
    "ESBN": ("green", "^"),
    "PrediNet": ("purple", "v"),
    "Transformer": ("orange", "P"),
    "RN": ("grey", "X"),
    "NTM": ("olive", "<"),
    "MNM": ("indigo", ">"),
    "Abstractor": ("brown", "h"),
    "RelConvNet": ("yellow", "p"),
    "DualAttention": ("sky", "*"),
}
"""Colour and marker of each network. Two may share a colour only if no figure shows both."""

_VARIANTS: dict[str, tuple[str, Line, str | None]] = {
    "random encoder CoRelNet cat": ("//..", (0, (5, 1, 1, 1)), "brown"),
    "random encoder": ("//", "--", "sky"),
    "no TCN": ("-", (0, (4, 1)), "olive"),
    "l2": ("o", (0, (1, 1)), "indigo"),
    "asymmetric": ("xx", "-.", "olive"),
    "cat": ("..", ":", "brown"),
    "L1": ("++", (0, (6, 1, 1, 1, 1, 1)), "brown"),
    "nhid": ("oo", (0, (5, 4)), "brown"),
    "symmetric": ("\\\\", (0, (2, 2)), "brown"),
    "diff": ("--", (0, (3, 3)), "green"),
    "mix": ("\\\\", (0, (6, 3, 1, 3)), "purple"),
    "sqrt d": ("||", (0, (2, 1)), "brown"),
    "step by step": ("//", "--", None),
    "stored": ("..", ":", None),
    "parameters": ("xx", "--", None),
}
"""Hatching, line and colour of a variant of a network, by a word of its name; the network's own colour where it is the
same network under another condition. Two variants share a colour only if no figure shows both."""


def model_look(name: str) -> Look:
    """Colour, marker and label of a network or of a variant of it, which has the marker of the network it varies.

    A network that is not known here is grey; the marker then depends on its name.
    """
    label = model_name(name)
    base = _base(label)
    if base is None:
        return Look(COLOURS["grey"], "osD^vPX<>"[sum(map(ord, name)) % 9], label)
    colour, marker = MODELS[base]
    return Look(SHADES[_variant(name)[2] or colour], marker, label)


def is_model(name: str) -> bool:
    """Whether a name is that of a network with a look of its own."""
    return _base(model_name(name)) is not None


def hatch_of(name: str) -> str:
    """The hatching of a variant, none for the network itself."""
    return _variant(name)[0]


def line_of(name: str) -> Line:
    """The line of a variant, solid for the network itself."""
    return _variant(name)[1]


def _variant(name: str) -> tuple[str, Line, str | None]:
    return next((look for word, look in _VARIANTS.items() if word in name), ("", "-", None))


def _base(label: str) -> str | None:
    names = sorted(MODELS, key=len, reverse=True)
    return next((name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![A-Za-z])", label)), None)
