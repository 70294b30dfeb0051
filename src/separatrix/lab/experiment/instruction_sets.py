"""Which kernels the numerical libraries chose for this processor: what makes machines of one kind.

Sums are taken in the order of the vector registers, so a record has the same bits wherever the same kernels ran, and
others, up to rounding, elsewhere. Two processors may both be called x86_64 and differ in them.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
from pathlib import Path

_CORENAMES = tuple(f"{prefix}openblas_get_corename{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", ""))
VARIABLES = {"torch": "ATEN_CPU_CAPABILITY", "OpenBLAS": "OPENBLAS_CORETYPE", "oneDNN": "ONEDNN_MAX_CPU_ISA"}
"""By library, the variable that makes it take the kernels of another processor. oneDNN is torch's for convolutions."""

WIDEST = "AVX512"
_PART = re.compile(r"([A-Za-z]+) ([A-Za-z0-9_]+(?: [A-Za-z0-9_]+)*)")


def chosen_kernels() -> str:
    """Library by library, the kernels of those that this process has loaded; empty if none tells.

    Example:
        ``"OpenBLAS SkylakeX, oneDNN AVX512, torch AVX512"``
    """
    found = {"OpenBLAS": _openblas(), "oneDNN": _onednn(), "torch": _torch()}
    return ", ".join(f"{library} {chosen}" for library, chosen in found.items() if chosen)


def named(chosen: object) -> dict[str, str]:
    """By library, the kernels that a record names; what is not of the form of ``chosen_kernels`` names none.

    Published files are written by others, so nothing but plain names is taken from them.
    """
    parts = [_PART.fullmatch(part) for part in chosen.split(", ")] if isinstance(chosen, str) else []
    if not all(parts):
        return {}
    return {found[1]: found[2] for found in parts if found is not None and found[1] in VARIABLES}


def settings_for(chosen: object) -> str:
    """The variables under which a process on a processor that knows them takes these kernels."""
    known = named(chosen)
    if known.get("oneDNN") == WIDEST:
        del known["oneDNN"]  # the variable is an upper limit, and none is needed
    return " ".join(
        f"{VARIABLES[library]}={name.lower() if library == 'torch' else name}"
        for library, name in known.items()
        if " " not in name  # copies that chose differently, or "NO AVX": no one setting
    )


def _torch() -> str:
    torch = sys.modules.get("torch")
    return str(torch.backends.cpu.get_cpu_capability()) if torch is not None else ""


def _onednn() -> str:
    """What oneDNN may use, which does not tell what it chose: the limit that was set, else the processor's (Linux)."""
    if "torch" not in sys.modules:
        return ""
    limit = os.environ.get(VARIABLES["oneDNN"], "").upper()
    return limit or _widest()


@functools.cache
def _widest() -> str:
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return ""
    return WIDEST if "avx512f" in flags else "AVX2" if "avx2" in flags else ""


def _openblas() -> str:
    """The name of the core that OpenBLAS took this processor for (Linux; NumPy and SciPy have a copy each)."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    loaded = sorted({line.split()[-1] for line in lines if "openblas" in line and line.split()[-1].startswith("/")})
    return " and ".join(sorted({name for path in loaded if (name := _corename(path))}))


@functools.cache
def _corename(path: str) -> str:
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return ""
    for symbol in _CORENAMES:
        function = getattr(library, symbol, None)
        if function is not None:
            function.restype = ctypes.c_char_p
            return str((function() or b"").decode())
    return ""
