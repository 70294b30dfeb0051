"""A machine's kind is told by the kernels that its libraries chose, not by the name of its architecture."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from separatrix.lab import machine
from separatrix.lab.experiment import instruction_sets
from separatrix.lab.experiment.instruction_sets import _numpy_dispatch, chosen_kernels, named, settings_for


def test_a_record_names_the_kernels_of_the_libraries_that_are_loaded() -> None:
    assert torch.backends.cpu.get_cpu_capability() in chosen_kernels()
    assert machine()["kernels"] == chosen_kernels()


def told(**settings: str) -> str:
    code = "import numpy, torch; from separatrix.lab.experiment import instruction_sets as i; print(i.chosen_kernels())"
    found = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **settings}, check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def test_a_library_that_is_not_loaded_is_not_asked() -> None:
    code = (
        "import sys; from separatrix.lab.experiment.instruction_sets import chosen_kernels as chosen; "
        "print(chosen(), 'torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert found.strip().endswith("False")
    assert "torch" not in found


@pytest.fixture(scope="module")
def usual() -> str:
    return told()


@pytest.fixture(scope="module")
def limited() -> str:
    return told(
        ATEN_CPU_CAPABILITY="default",
        MKL_ENABLE_INSTRUCTIONS="AVX2",
        NPY_DISABLE_CPU_FEATURES=",".join(_numpy_dispatch()),
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the variable is read where OpenBLAS chooses at run time"
)
def test_kernels_of_another_processor_are_taken_and_named_by_the_variables_that_are_told(
    usual: str, limited: str
) -> None:
    assert "torch DEFAULT" in limited
    assert told(**dict(pair.split("=") for pair in settings_for(limited).split())) == limited
    assert told(**dict(pair.split("=") for pair in settings_for(usual).split())) == usual


def test_variables_of_kernels_are_those_of_the_libraries() -> None:
    assert settings_for("OpenBLAS SkylakeX, torch AVX2") == "OPENBLAS_CORETYPE=SkylakeX ATEN_CPU_CAPABILITY=avx2"
    assert settings_for("oneDNN AVX2, torch AVX2") == "ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2"
    assert settings_for("oneDNN AVX512, torch AVX512") == "ATEN_CPU_CAPABILITY=avx512"
    assert settings_for("") == ""


@pytest.mark.parametrize(
    "forged",
    ["torch AVX2; rm -rf ~", "torch $(id)", "torch", "rubbish", "\x1b[31mtorch AVX2", "torch  AVX2", 5, None, []],
)
def test_what_no_library_says_sets_nothing(forged: Any) -> None:
    """A published file is somebody else's text, and the settings are there to be pasted into a shell."""
    assert settings_for(forged) == ""
    assert named(forged) == {}


def test_two_copies_that_chose_differently_cannot_be_set_by_one_variable() -> None:
    assert settings_for("OpenBLAS Haswell and SkylakeX, torch AVX2") == "ATEN_CPU_CAPABILITY=avx2"


@pytest.mark.slow
@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="torch without MKL is for other processors")
def test_every_library_that_adds_up_numbers_is_named(usual: str, limited: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch multiplies by MKL and NumPy has loops of its own; their bits differ where only these settings do."""
    before, after = named(usual), named(limited)
    wide = before["MKL"] in ("AVX2", "AVX512")  # to MKL the processors of other makers are all alike, and take no limit
    assert (after["MKL"], after["NumPy"]) == ("AVX2" if wide else before["MKL"], "baseline")
    monkeypatch.setenv("MKL_CBWR", "AVX2")  # reproducible loops are others
    assert named(chosen_kernels())["MKL"].endswith(" CBWR")


def test_what_numba_compiles_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.core.config, "CPU_NAME", "skylake-avx512")
    assert named(chosen_kernels())["numba"] == "skylake-avx512"


def test_numpy_without_one_of_its_sets_is_not_named_as_if_it_had_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from numpy._core import _multiarray_umath

    monkeypatch.setattr(_multiarray_umath, "__cpu_dispatch__", ["X86_V3", "X86_V4", "AVX512_ICL"])
    monkeypatch.setattr(_multiarray_umath, "__cpu_features__", {"X86_V3": True, "X86_V4": False, "AVX512_ICL": True})
    assert named(chosen_kernels())["NumPy"] == "X86_V3 AVX512_ICL"
    assert "NPY" not in settings_for(chosen_kernels())


def test_a_limit_above_the_processor_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruction_sets, "_widest", lambda: "AVX2")
    for limit, named_then in (("AVX512_CORE_FP16", "AVX2"), ("all", "AVX2"), ("", "AVX2"), ("SSE41", "SSE41")):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
        assert named(chosen_kernels())["oneDNN"] == named_then


def test_numpy_is_told_what_not_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruction_sets, "_numpy_dispatch", lambda: ["X86_V3", "X86_V4", "AVX512_ICL"])
    assert settings_for("NumPy X86_V3") == "NPY_DISABLE_CPU_FEATURES=X86_V4,AVX512_ICL"
    assert settings_for("NumPy AVX512_ICL") == settings_for("NumPy ASIMD") == settings_for("MKL COMPATIBLE") == ""
    assert settings_for("numba skylake-avx512") == "NUMBA_CPU_NAME=skylake-avx512"
