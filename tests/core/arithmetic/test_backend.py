from __future__ import annotations

import inspect
import subprocess
import sys

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
    monkeypatch.setattr("separatrix.core.arithmetic.backend.has_numba", lambda: False)
    with pytest.raises(MissingExtra, match=r"install separatrix\[fast\]"), use_backend("numba"):
        pass


@pytest.mark.skipif(not has_numba(), reason="needs numba: install separatrix[fast]")
def test_importing_networks_and_running_a_short_one_does_not_import_numba() -> None:
    code = (
        "import sys, torch; from separatrix.nn import ExpRNN; ExpRNN(2, 4)(torch.zeros(1, 3, 2)); "
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
