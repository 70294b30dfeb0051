"""The rules of the compiled loop: the numbers by which pools of torch decide, for one plan."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from ..methods.control import ATOL, SAFETY, SHRINK, SMALLEST_STEP, DisplacementControl
from ..plan import Plan
from ..stepping import LARGEST_IMPLICIT, RELAX_STEPS, ROUND, SINGLE_PRECISION_FLOOR, SMALL_STEP, SMALL_TURN
from ..stopping import REARM, REARMED

MERGE_AFTER = 4
"""Steps between two looks whether tokens have come together; a look costs about a fiftieth of a step."""


def rules_of(kernels: ModuleType, plan: Plan, dtype: torch.dtype) -> Any:
    """What decides in the loop, as it does in the pools of torch."""
    control = plan.control
    assert isinstance(control, DisplacementControl)
    return kernels.Rules(
        order=float(plan.method.order),
        rtol=float(control.rtol),
        atol=float(ATOL[dtype] if control.atol is None else control.atol),
        farthest=float(control.largest_displacement),
        grow=float(control.grow),
        first=float(control.first_displacement),
        safety=SAFETY,
        shrink=SHRINK,
        smallest=SMALLEST_STEP,
        rearm_above=REARM,
        rearm_to=REARMED,
        distance=0.0 if plan.merging is None else float(plan.merging.distance),
        floor=SINGLE_PRECISION_FLOOR,
        small=SMALL_STEP,
        turn=SMALL_TURN,
        old=float(RELAX_STEPS),
        looks=float(plan.stiff is not None),
        implicit=float(LARGEST_IMPLICIT),
        watches=float(plan.returns is not None),
        max_steps=float(plan.max_steps),
        round=float(ROUND),
        merge_after=float(MERGE_AFTER),
    )
