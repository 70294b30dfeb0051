"""What the pages name exists: modules and their names, files and folders, and pages that the code points to."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent
PACKAGE = PROJECT / "src" / "separatrix"
TOP = [PROJECT / name for name in ("README.md", "CONTRIBUTING.md")]
PAGES = sorted([*TOP, *(PROJECT / "docs").rglob("*.md")])
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())
DOTTED = re.compile(r"\bseparatrix(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(rf"(?<![\w/.])(?:src|tests|docs|benchmarks|results|\.github|{'|'.join(ROOMS)})/[\w./<>*-]*[\w>]")
EXPLANATION = re.compile(r"\b(?:explanation|how-to|decisions)/[\w-]+")


def unresolved(dotted: str) -> bool:
    """Whether a dotted name leads nowhere; a part is an attribute or a module."""
    parts = dotted.split(".")
    value: object = importlib.import_module(parts[0])
    for length, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(parts[:length]))
            except ModuleNotFoundError:
                return True
    return False


def missing(place: str, page: Path) -> bool:
    """Whether no file has this path, below the project, the package or the page; ``<word>`` stands for anything."""
    pattern = re.sub(r"<\w+>", "*", place)
    return not any(list(base.glob(pattern)) for base in (PROJECT, PACKAGE, PROJECT / "docs", page.parent))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_every_name_and_path_on_the_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [name for name in sorted(set(DOTTED.findall(text))) if unresolved(name)] == []
    assert [place for place in sorted(set(FILE.findall(text))) if missing(place, page)] == []


def test_a_name_or_path_that_does_not_exist_is_noticed(tmp_path: Path) -> None:
    assert unresolved("separatrix.dynamics.no_such_name")
    assert not unresolved("separatrix.dynamics.flows.attention.AttentionFlow")
    assert FILE.findall("in `tests/<room>/test_nothing.py`") == ["tests/<room>/test_nothing.py"]
    assert missing("tests/<room>/test_nothing.py", tmp_path)
    assert not missing("sources/<document>.py", tmp_path)


def test_pages_that_docstrings_and_comments_point_to_exist() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        for place in EXPLANATION.findall(path.read_text(encoding="utf-8")):
            assert (PROJECT / "docs" / f"{place}.md").is_file(), f"{path} points to {place}"
