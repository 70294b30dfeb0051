"""Notebooks run from the first cell to the last: with few updates every day, in full with the slow tests."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from sitegen import notebooks

FOLDER = notebooks.SOURCES
SWITCH = notebooks.SWITCH


def run(path: Path, *, quick: bool) -> dict[str, Any]:
    source = path.read_text(encoding="utf-8")
    assert "# %%" in source
    assert source.count(SWITCH) <= 1
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source.replace(SWITCH, f"quick = {quick}"), str(path), "exec"), names)
    return names


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", sorted({path.stem for path in FOLDER.glob("*.py")} - {"memory_of_three_bits"}))
def test_a_notebook_runs(name: str) -> None:
    assert run(FOLDER / f"{name}.py", quick=True)


def test_a_notebook_on_the_memory_of_a_network_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(FOLDER / "memory_of_three_bits.py", quick=True)
    assert names["losses"][-1] < names["losses"][0]
    assert names["ax"].get_xlabel().startswith("first component")
    assert "top exponent" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({path.stem for path in FOLDER.glob("*.py")} - {"memory_of_three_bits"}))
def test_a_notebook_runs_in_full(name: str) -> None:
    assert run(FOLDER / f"{name}.py", quick=False)


def test_every_notebook_is_listed_and_begins_with_its_title() -> None:
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    for path in notebooks.sources():
        assert f"]({path.stem}.md)" in index
        first = path.read_text(encoding="utf-8").split("# %% [markdown]\n")[1].splitlines()[0]
        assert first.startswith("# # ")


def test_outputs_of_a_cell_are_text_pictures_and_tables_in_their_order(tmp_path: Path) -> None:
    def shown(data: dict[str, str], metadata: dict[str, Any]) -> Any:
        return notebook_output(output_type="display_data", data=data, metadata=metadata)

    picture = base64.b64encode(b"pixels").decode()
    outputs = [
        notebook_output(output_type="stream", name="stdout", text="one\n"),
        notebook_output(output_type="stream", name="stderr", text="a warning\n"),
        notebook_output(output_type="stream", name="stdout", text="two\n"),
        shown({"image/png": picture, "text/plain": "<Axes>"}, {"image/png": {"width": 600}}),
        shown({"text/html": "<b>\n\n  x</b>", "text/plain": "x"}, {}),
        shown({"text/plain": "3"}, {}),
    ]
    assert list(notebooks.shown_outputs(outputs, "page_1", tmp_path)) == [
        '```text title="output"\none\ntwo\n```',
        '![what the cell drew](page_1_3.png){ width="600" }',
        '<div class="result"><b> x</b></div>',
        '```text title="output"\n3\n```',
    ]
    assert (tmp_path / "page_1_3.png").read_bytes() == b"pixels"


class notebook_output(dict[str, Any]):  # nbformat's nodes are dictionaries with attributes
    __getattr__ = dict.__getitem__


@pytest.mark.slow
def test_in_full_it_finds_the_eight_memories() -> None:
    names = run(FOLDER / "memory_of_three_bits.py", quick=False)
    points = names["points"]
    stable = names["memories"][points.stable]
    assert names["losses"][-1] < 0.05
    assert len({tuple(row) for row in stable.int().tolist()}) == 8
    assert int((~points.stable).sum()) > 0
