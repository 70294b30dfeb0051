"""Random streams derived by name, so that adding one draw does not shift the others.

Library code never reads or changes a global generator: functions that draw take ``generator=``, and people give an
integer seed only at the edges (command line, experiment parameters).
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from .errors import InvalidInput

if TYPE_CHECKING:
    import numpy
    import torch


def stream_seed(seed: int, *path: str | int) -> int:
    """A 63-bit seed that depends on the seed and every name of the path, the same on every machine."""
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InvalidInput(f"seed must be an integer; got {seed!r}.")
    digest = hashlib.sha256(json.dumps([seed, *path]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def spawn(seed: int, *path: str | int) -> torch.Generator:
    """A torch generator for one named purpose.

    Example:
        >>> a, b = spawn(0, "fig5", "init", 3), spawn(0, "fig5", "init", 3)
        >>> import torch
        >>> bool((torch.randn(4, generator=a) == torch.randn(4, generator=b)).all())
        True
    """
    import torch

    generator = torch.Generator()
    generator.manual_seed(stream_seed(seed, *path))
    return generator


def seed_global(seed: int) -> None:
    """Seed torch's global generators, for calls of other people's models inside a place that puts them back.

    ``torch.manual_seed`` keeps a call, with the whole stack as text, for every kind of device that is not in use: three
    times a millisecond, and memory that grows. Here only devices that are in use are seeded.
    """
    import torch

    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    for name, method in (("mps", "manual_seed"), ("xpu", "manual_seed_all"), ("mtia", "manual_seed_all")):
        device = getattr(torch, name, None)
        if device is not None and device.is_available():
            getattr(device, method)(seed)


DEFAULT_SEED = 0
"""Seed of the generator that calls of users get who give none; never the global one."""


def default_generator(generator: torch.Generator | None) -> torch.Generator:
    """The generator that was given, or a fresh one with ``DEFAULT_SEED``: two calls without one draw the same."""
    import torch

    return torch.Generator().manual_seed(DEFAULT_SEED) if generator is None else generator


def spawn_numpy(seed: int, *path: str | int) -> numpy.random.Generator:
    """A numpy generator for one named purpose, for code that calls SciPy or scikit-learn."""
    import numpy

    return numpy.random.Generator(numpy.random.PCG64(stream_seed(seed, *path)))


def generator_states(device: torch.device) -> dict[str, bytes]:
    """The state of the global generators that code on this device may draw from: torch's, Python's and numpy's.

    Example:
        >>> import torch
        >>> before = generator_states(torch.device("cpu"))
        >>> generators_moved(before, torch.device("cpu"))
        frozenset()
    """
    import random

    import numpy
    import torch

    numbers: Any = numpy.random.get_state(legacy=False)  # noqa: NPY002 - looked at, not drawn from
    parts = (*numbers["state"].values(), numbers["has_gauss"])
    states = {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "python": repr(hash(random.getstate())).encode(),
        "numpy": b"".join(numpy.asarray(part).tobytes() for part in parts),
    }
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device).numpy().tobytes()
    return states


def generators_moved(before: dict[str, bytes], device: torch.device) -> frozenset[str]:
    """Which of them something has been drawn from since."""
    return frozenset(name for name, state in generator_states(device).items() if state != before[name])
