"""How the functions of this room are compiled, and which files their code on disk depends on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba

from separatrix.core.arithmetic.keeping import kept

# Fused multiply-add; NaN and infinity keep their meaning. The order of sums is free only where no vector is written
# out: rounding to whole numbers in ``powers`` would be simplified away.
VECTORS, SUMS = {"contract", "nsz", "arcp"}, {"contract", "nsz", "arcp", "reassoc"}
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INSIDE: Any = {**_OPTIONS, "no_cpython_wrapper": True}
_FILES = sorted(map(str, Path(__file__).parent.glob("*.py")))
"""Each function may call those of any other file here, and is compiled with them."""

part = numba.njit(fastmath=VECTORS, **_INSIDE)
"""Called by compiled functions only, with vectors written out."""
plain_part = numba.njit(fastmath=SUMS, **_INSIDE)
"""The same, without."""
inlined = numba.njit(fastmath=VECTORS, inline="always", **_INSIDE)
"""Between ``carry`` and a step: numba optimises every function together with all that it calls, so a chain of calls
would be optimised as often as it has links. Written into their caller they take a third less time to compile."""
kept_part = kept(*_FILES, fastmath=VECTORS, **_OPTIONS)
"""Called from outside, by the tests if by nobody else, and therefore kept on disk."""
kept_plain = kept(*_FILES, fastmath=SUMS, **_OPTIONS)
"""The same, without vectors written out."""
