"""Code on disk is renewed when a watched file changes; without a place for it functions are compiled all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from separatrix.core.arithmetic.backend import has_numba
from separatrix.core.arithmetic.keeping import kept

pytestmark = pytest.mark.skipif(not has_numba(), reason="needs numba: install separatrix[fast]")


def test_a_change_of_a_watched_file_is_a_change_of_the_function(tmp_path: Path) -> None:
    watched = tmp_path / "called.py"
    watched.write_text("1")

    def stamp() -> object:
        return kept(str(watched))(_one)._cache._cache_file._source_stamp

    first = stamp()
    assert stamp() == first
    watched.write_text("2")
    assert stamp() != first


def test_functions_are_compiled_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    caching = pytest.importorskip("numba.core.caching")
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert kept(nogil=True)(_one)() == 1


def _one() -> int:
    return 1
