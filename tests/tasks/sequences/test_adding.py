from __future__ import annotations

import pytest

from separatrix.core import spawn
from separatrix.tasks import Adding


@pytest.mark.parametrize("steps", [2, 3, 10, 11])
def test_one_marker_in_each_half(steps: int) -> None:
    batch = Adding(steps).sample(500, generator=spawn(0, "adding"))
    markers = batch.inputs[..., 1]
    assert bool((markers[:, : steps // 2].sum(1) == 1).all())
    assert bool((markers[:, steps // 2 :].sum(1) == 1).all())
    assert set(batch.oracle[:, 0].tolist()) == set(range(steps // 2))
    assert set(batch.oracle[:, 1].tolist()) == set(range(steps // 2, steps))
