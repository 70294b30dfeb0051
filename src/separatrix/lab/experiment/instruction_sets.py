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
from typing import Any

_CORENAMES = tuple(f"{prefix}openblas_get_corename{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", ""))
VARIABLES = {
    "torch": "ATEN_CPU_CAPABILITY",
    "MKL": "MKL_ENABLE_INSTRUCTIONS",
    "NumPy": "NPY_DISABLE_CPU_FEATURES",
    "OpenBLAS": "OPENBLAS_CORETYPE",
    "numba": "NUMBA_CPU_NAME",
    "oneDNN": "ONEDNN_MAX_CPU_ISA",
}
"""By library, the variable that makes it take the kernels of another processor. Torch multiplies and decomposes
matrices by MKL and convolves by oneDNN; NumPy has loops of its own beside OpenBLAS; numba compiles them."""

WIDEST = "AVX512"
_NAME = r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*"
_PART = re.compile(rf"([A-Za-z]+) ({_NAME}(?: {_NAME})*)")
_MKL = {0: "COMPATIBLE", 3: "SSE4_2", 4: "AVX", 5: "AVX2", 7: "AVX512"}
"""What MKL calls its levels in the variable; the first has none there."""
BASELINE = "baseline"


def chosen_kernels() -> str:
    """Library by library, the kernels of those that this process has loaded; empty if none tells.

    Example:
        ``"MKL AVX512, NumPy X86_V4, OpenBLAS SkylakeX, oneDNN AVX512, torch AVX512"``
    """
    found = {
        "MKL": _mkl(),
        "NumPy": _numpy(),
        "OpenBLAS": _openblas(),
        "numba": _numba(),
        "oneDNN": _onednn(),
        "torch": _torch(),
    }
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
    values = {library: _value(library, name) for library, name in known.items()}
    return " ".join(f"{VARIABLES[library]}={value}" for library, value in values.items() if value)


def _value(library: str, name: str) -> str:
    """What the variable of a library is set to for kernels of a name; empty if no one setting gives them."""
    if " " in name or (library == "MKL" and name == _MKL[0]):  # copies that chose differently, or "NO AVX"
        return ""
    if library == "NumPy":  # it is told what not to use
        known = [BASELINE, *_numpy_dispatch()]
        return ",".join(known[known.index(name) + 1 :]) if name in known else ""
    return name.lower() if library == "torch" else name


def _torch() -> str:
    torch = sys.modules.get("torch")
    return str(torch.backends.cpu.get_cpu_capability()) if torch is not None else ""


def _mkl() -> str:
    """The level that MKL, which is part of torch on some processors, takes the processor for."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.backends.mkl.is_available():
        return ""
    level = _mkl_level(str(Path(str(torch.__file__)).parent / "lib" / "libtorch_cpu.so"))
    branch = os.environ.get("MKL_CBWR", "").strip()
    return f"{level} CBWR" if level and branch else level


@functools.cache
def _mkl_level(path: str) -> str:
    try:
        level = int(ctypes.CDLL(path).mkl_serv_cpu_detect())
    except (OSError, AttributeError):
        return ""
    return _MKL.get(level, f"level{level}")


def _numpys(name: str) -> Any:
    """What NumPy's compiled module, which moved in version 2, says of the processor."""
    for place in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):
        if place in sys.modules:
            return getattr(sys.modules[place], name, None)
    return None


def _numpy_dispatch() -> list[str]:
    """Sets of instructions for which NumPy has loops, the widest last."""
    return list(_numpys("__cpu_dispatch__") or ())


def _numpy() -> str:
    """The widest of them that this process uses."""
    known = _numpy_dispatch()
    if not known:
        return ""
    used = _numpys("__cpu_features__") or {}
    chosen = [name for name in known if used.get(name)]
    return (chosen or [BASELINE])[-1] if chosen == known[: len(chosen)] else " ".join(chosen)


def _numba() -> str:
    """The processor that numba compiles for."""
    if "numba" not in sys.modules:
        return ""
    from llvmlite import binding
    from numba.core import config

    return str(getattr(config, "CPU_NAME", None) or binding.get_host_cpu_name())


def _onednn() -> str:
    """What oneDNN may use, which does not tell what it chose: the limit that was set, else the processor's (Linux)."""
    if "torch" not in sys.modules:
        return ""
    limit = os.environ.get(VARIABLES["oneDNN"], "").upper()
    widest = _widest()
    above = limit.startswith(WIDEST) and widest not in ("", WIDEST)
    return widest if above or limit in ("", "ALL", "DEFAULT") else limit


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
