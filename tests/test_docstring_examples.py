"""Every example in a docstring runs and shows what it says."""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil
import re
from pathlib import Path

import pytest

import separatrix

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w])")


class CloseNumbers(doctest.OutputChecker):
    """Floats may differ in their last digits, as they do from one processor to the next."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        wanted, found = NUMBER.findall(want), NUMBER.findall(got)
        same_words = super().check_output(NUMBER.sub("#", want), NUMBER.sub("#", got), optionflags)
        return same_words and len(wanted) == len(found) and all(map(close, wanted, found))


def close(wanted: str, found: str) -> bool:
    """Whether a float is right to the digits shown; whole numbers must be equal."""
    if "." not in wanted and "e" not in wanted.lower():
        return wanted == found
    return math.isclose(float(wanted), float(found), rel_tol=1e-4, abs_tol=1e-7)


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder()
    found: list[doctest.DocTest] = []
    for info in pkgutil.walk_packages(separatrix.__path__, "separatrix."):
        if not info.name.endswith("__main__"):
            module = importlib.import_module(info.name)
            found += [test for test in finder.find(module, info.name) if test.examples]
    return found


EXAMPLES = examples()


pytestmark = pytest.mark.usefixtures("formulas_put_back")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name.removeprefix("separatrix."))
def test_an_example_shows_what_it_says(
    example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    runner = doctest.DocTestRunner(checker=CloseNumbers(), optionflags=FLAGS)
    runner.run(example, out=report.append, clear_globs=False)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 50


@pytest.mark.parametrize(
    ("want", "got", "right"),
    [
        ("0.157907\n", "0.15790701\n", True),
        ("0.156914\n", "0.157907\n", False),
        ("[1004, 0]\n", "[1005, 0]\n", False),
        ("tensor([2.0, 1.0])\n", "tensor([2.0000001, 1.0])\n", True),
        ("(True, 1.0)\n", "(False, 1.0)\n", False),
    ],
)
def test_numbers_are_compared_as_numbers(want: str, got: str, right: bool) -> None:
    assert CloseNumbers().check_output(want, got, FLAGS) is right
