"""A file of weights without the code that runs them: what can be said all the same."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping

import torch
from torch import Tensor

from separatrix.core import InvalidInput

from ..detectors.layers.families import families_note, family_rows
from ..detectors.reporting import module_of
from ..findings.diagnosis import Diagnosis
from ..findings.finding import Finding, Place, Skipped
from ..recording.reductions import all_finite


def examine_weights(tensors: Mapping[str, Tensor], *, seed: int = 0) -> Diagnosis:
    """Look at weights alone: numbers that are not finite, rows that are equal, families and scales.

    Everything that needs a forward pass is listed in ``.skipped``.

    Raises:
        InvalidInput: there is no tensor of real numbers.

    Cost: one pass over the weights, and a spectrum per matrix of up to 1536 rows and columns.

    Example:
        >>> examine_weights({"a.weight": torch.full((4, 4), torch.nan)}).verdict
        'fault'
    """
    started = time.perf_counter()
    real = {name: value for name, value in tensors.items() if isinstance(value, Tensor) and value.is_floating_point()}
    if not real:
        raise InvalidInput("tensors must hold a tensor of real numbers; there is none.")
    findings = [
        Finding(
            "nonfinite_weights", "fault", Place(module_of(name), name), float((~torch.isfinite(value)).sum()),
            f"{name} holds {int((~torch.isfinite(value)).sum())} numbers that are not finite.",
            "Restore the last good checkpoint.", unit="numbers",
        )
        for name, value in real.items()
        if not all_finite(value)
    ]  # fmt: skip
    matrices = {name: value for name, value in real.items() if value.ndim >= 2 and all_finite(value)}
    findings += [_equal_rows(name, value) for name, value in matrices.items() if _has_equal_rows(value)]
    rows = family_rows(matrices)
    findings += [families_note(rows)] if rows else []
    return Diagnosis(
        findings=tuple(sorted(findings, key=lambda finding: finding.severity != "fault")),
        skipped=(Skipped("everything that runs the model", "weights alone", "the model's code (--arch) and a sample"),),
        profiles={"weights": rows},
        model={
            "class": "weights", "parameters": sum(value.numel() for value in real.values()), "trainable": 0,
            "dtypes": sorted({str(value.dtype).removeprefix("torch.") for value in real.values()}), "clocks": [],
        },
        sample={"shapes": [], "used": 0, "given": 0, "mode": "none", "said": "none", "loss": "no loss"},
        seed=seed,
        seconds=time.perf_counter() - started,
        peak_bytes=None,
        environment={"torch": torch.__version__, "python": platform.python_version(), "device": "cpu"},
        measures={},
    )  # fmt: skip


def _has_equal_rows(weight: Tensor) -> bool:
    """Whether all rows are one row that is not zero: copies, unless their gradients differ."""
    flat = weight.detach().flatten(1)
    return len(flat) > 1 and bool((flat[0] != 0).any()) and bool((flat == flat[0]).all())


def _equal_rows(name: str, weight: Tensor) -> Finding:
    return Finding(
        "equal_rows", "note", Place(module_of(name), name), 1.0,
        f"all {len(weight)} rows of {name} are equal: copies of one unit, unless what follows tells them apart.",
        "Check it with the model's code and a sample, which decides it by the gradients.", unit="share",
    )  # fmt: skip
