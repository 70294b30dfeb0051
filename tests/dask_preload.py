"""Loaded by schedulers and workers of tests: they end with the tests, also when these are killed."""

from __future__ import annotations

import os

from separatrix.lab.engines.parent_process import watch_parent

watch_parent(int(os.environ["TESTS_PID"]))
