from __future__ import annotations

import os
import subprocess
import sys

import threadpoolctl
import torch  # noqa: F401  (one of the libraries)
from scipy import linalg  # noqa: F401  (another)


def test_every_library_of_linear_algebra_has_one_thread() -> None:
    found = {library["filepath"]: library["num_threads"] for library in threadpoolctl.threadpool_info()}
    assert found
    assert set(found.values()) == {1}, found


def test_so_has_a_process_that_a_test_starts() -> None:
    script = "import numpy, threadpoolctl; print({one['num_threads'] for one in threadpoolctl.threadpool_info()})"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    assert answer.stdout.strip() == "{1}"
