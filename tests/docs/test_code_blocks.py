"""Every example of the documentation runs.

Per page, in order, in one namespace and one empty folder:

* a ``python`` block is executed; with ``title="name.py"`` it is first saved under that name, to be imported by others;
* in a ``console`` block each line ``$ separatrix ...`` is run and must succeed; other lines are not compared.

* a block ``text title="output"`` shows what the Python block before it printed, up to the fourth digit of a number.

Blocks in any other language (``sh``, ``text``, ``toml``) are for reading.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backwards_engine import compute_here
from separatrix.cli.app import app
from separatrix.core import FORMULAS
from separatrix.matrices.ensembles.catalogue import ENSEMBLES, PARAMETRIC_ENSEMBLES
from sitegen import examples

PROJECT = Path(__file__).parent.parent.parent


def pages() -> list[Path]:
    written = (PROJECT / "docs").rglob("*.md")
    top = [path for name in ("README.md", "CONTRIBUTING.md") if (path := PROJECT / name).is_file()]
    runnable = [path for path in (*top, *written) if re.search(r"^```(python|console)", path.read_text(), re.MULTILINE)]
    return sorted(runnable)


def run_page(text: str, name: str, folder: Path) -> int:
    """Run what a page shows, and count blocks of Python and commands."""
    return examples.run_page(text, name, folder, run_command)[0]


def run_command(line: str) -> None:
    result = CliRunner().invoke(app, shlex.split(line)[1:])
    assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; the reader's own store, cache and modules stay untouched. Commands compute in this
    process, which has imported what their workers would have to."""
    compute_here(monkeypatch)
    inherited = os.environ.get("PYTHONPATH", "")
    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *([inherited] if inherited else [])]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    # an example's closed form is not one of the package; those of modules that it imported first are
    for name in [name for name in FORMULAS if not name.startswith("separatrix.")]:
        del FORMULAS[name]
    # nor is a matrix family that an example registers: the advisor would compare it in other tests
    for families in (ENSEMBLES, PARAMETRIC_ENSEMBLES):
        for name in [name for name, family in families.items() if not _of_the_package(family)]:
            del families[name]
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def _of_the_package(family: object) -> bool:
    kind = family if isinstance(family, type) else type(family)
    return kind.__module__.startswith("separatrix.")


@pytest.mark.sampled(9)
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_every_example_of_the_page_runs(page: Path, folder: Path) -> None:
    assert run_page(page.read_text(encoding="utf-8"), str(page), folder) > 0


def test_blocks_share_a_namespace_and_titled_ones_become_files(folder: Path) -> None:
    run_page(
        '```python title="mine.py"\nx = 1\n```\n\n```python\nimport mine\nassert mine.x == x\n```\n', "page", folder
    )
    assert (folder / "mine.py").read_text() == "x = 1\n"


def test_failing_block_and_failing_command_are_noticed(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", "page", folder)
    with pytest.raises(AssertionError, match="separatrix show nothing-like-this"):
        run_page("```console\n$ separatrix show nothing-like-this\n```\n", "page", folder)


def test_other_languages_are_not_run(folder: Path) -> None:
    assert not run_page("```sh\nexit 1\n```\n\n```text\n$ separatrix no\n```\n", "page", folder)


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        ("a 1.0001 b", True),
        ("a 1.01 b", False),
        ("a 1.0 c", False),
        ("a 1.0 b\nmore", False),
        ("...", True),
    ],
)
def test_output_on_a_page_is_compared_with_what_is_printed(shown: str, same: bool, folder: Path) -> None:
    page = f'```python\nprint("a 1.0 b")\n```\n\n```text title="output"\n{shown}\n```\n'
    if same:
        assert run_page(page, "page", folder) == 1
    else:
        with pytest.raises(examples.OutputDiffers, match="page, line 6"):
            run_page(page, "page", folder)


@pytest.mark.parametrize(("within", "same"), [("0.2", True), ("0.01", False), ("any", True)])
def test_a_page_says_how_near_a_number_must_be(within: str, same: bool, folder: Path) -> None:
    page = f'```python\nprint("loss 1.1")\n```\n\n```text title="output" data-within="{within}"\nloss 1.0\n```\n'
    if same:
        assert run_page(page, "page", folder) == 1
    else:
        with pytest.raises(examples.OutputDiffers):
            run_page(page, "page", folder)
    with pytest.raises(examples.OutputDiffers):
        run_page(page.replace("loss 1.0", "gain 1.0"), "page", folder)


def test_durations_on_a_page_may_differ() -> None:
    assert examples.difference("done in 4.3 s\n", "done in 12 s") == ""


def test_outputs_are_filled_in() -> None:
    page = '```python\nprint(2)\n```\n\n```text title="output"\nold\n```\n'
    assert '```text title="output"\n2\n```' in examples.filled(page, ["2\n"])
