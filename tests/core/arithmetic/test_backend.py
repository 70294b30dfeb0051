from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from separatrix.core import InvalidInput, MissingExtra, use_backend
from separatrix.core.arithmetic.backend import current_backend, has_numba


def test_a_choice_holds_within_its_block_and_may_be_nested() -> None:
    with use_backend("auto"):
        with use_backend("torch"):
            assert current_backend() == "torch"
        assert current_backend() == "auto"


def test_a_choice_ends_with_an_error_too() -> None:
    before = current_backend()
    with pytest.raises(RuntimeError, match="stop"), use_backend("auto"):
        raise RuntimeError("stop")
    assert current_backend() == before


def test_an_unknown_backend_is_refused_with_its_neighbours() -> None:
    with pytest.raises(InvalidInput, match="numba"):
        next(inspect.unwrap(use_backend)("nunba"))  # type: ignore[arg-type, call-overload]


def test_without_numba_its_backend_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"install separatrix\[fast\]"), use_backend("numba"):
        pass


@pytest.mark.slow
@pytest.mark.skipif(not has_numba(), reason="needs numba: install separatrix[fast]")
def test_importing_networks_and_running_a_short_one_does_not_import_numba() -> None:
    code = (
        "import sys, torch; from separatrix.nn import ExpRNN; ExpRNN(2, 4)(torch.zeros(1, 3, 2)); "
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(not has_numba(), reason="needs numba: install separatrix[fast]")
def test_a_compiler_that_is_switched_off_counts_as_none_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not inspect.unwrap(has_numba)()
    with pytest.raises(MissingExtra, match="NUMBA_DISABLE_JIT"), use_backend("numba"):
        pass


def test_numba_that_cannot_be_imported_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "numba"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('numba needs another NumPy')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name == "numba" or name.startswith("numba.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtra, match="cannot be imported: numba needs another NumPy"), use_backend("numba"):
        pass
