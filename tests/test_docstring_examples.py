"""Every example in a docstring runs and shows what it says."""

from __future__ import annotations

import doctest
import importlib
import math
import re
from pathlib import Path

import pytest

import separatrix
from separatrix.tasks.store import catalogue

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


ROOT = Path(separatrix.__file__).parent
FILES = [file for file in sorted(ROOT.rglob("*.py")) if ">>> " in file.read_text(encoding="utf-8")]
FINDER = doctest.DocTestFinder()


@pytest.mark.sampled(30)
@pytest.mark.usefixtures("formulas_put_back")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_examples_show_what_they_say(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "_OTHERS", {})  # an example registers a data set; others must not meet it
    module = importlib.import_module(".".join(("separatrix", *file.relative_to(ROOT).with_suffix("").parts)))
    examples = [test for test in FINDER.find(module, module.__name__) if test.examples]
    report: list[str] = []
    for example in examples:
        runner = doctest.DocTestRunner(checker=CloseNumbers(), optionflags=FLAGS)
        runner.run(example, out=report.append, clear_globs=False)
        assert runner.summarize(verbose=False).failed == 0, "".join(report)
    assert examples, "the examples stand where nobody finds them"


def test_there_are_examples() -> None:
    assert len(FILES) > 40


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
