"""Compiled code is used after enough work, sooner if it is there, and never if numba cannot be imported."""

from __future__ import annotations

import pytest

from separatrix.core.arithmetic.readiness import Readiness


@pytest.mark.parametrize("cached", [False, True])
def test_code_on_disk_is_used_at_once_and_other_code_after_more_work(cached: bool) -> None:
    asked: list[object] = []

    def look(kind: object) -> bool:
        asked.append(kind)
        return cached

    readiness = Readiness(look, import_after=2, compile_after=4)
    assert [readiness.after(1, "single") for _ in range(5)] == [False, cached, cached, True, True]
    assert asked == ["single"]


def test_numba_that_cannot_be_imported_is_never_used() -> None:
    tries: list[object] = []

    def fails(kind: object) -> bool:
        tries.append(kind)
        raise ImportError("numba needs another NumPy")

    readiness = Readiness(fails, import_after=1, compile_after=3)
    assert [readiness.after(2, "single") for _ in range(4)] == [False] * 4
    assert len(tries) == 1
