"""A machine's kind is told by the kernels that its libraries chose, not by the name of its architecture."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from separatrix.lab import machine
from separatrix.lab.experiment.instruction_sets import chosen_kernels, named, settings_for


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


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the variable is read where OpenBLAS chooses at run time"
)
def test_kernels_of_another_processor_are_taken_and_named_by_the_variables_that_are_told() -> None:
    usual = told()
    plain = told(ATEN_CPU_CAPABILITY="default")
    assert "torch DEFAULT" in plain
    settings = dict(pair.split("=") for pair in settings_for(plain).split())
    assert told(**settings) == plain
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
