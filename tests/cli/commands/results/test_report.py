from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Answer

Cli = Callable[..., Answer]


def test_published_results_make_pages_without_a_run(cli: Cli, tmp_path: Path) -> None:
    answer = cli("report", "anguita-fig4-4", "linear-conservation", "--published", "-o", tmp_path / "pages")
    assert answer.code == 0
    assert answer.out.strip() == str(tmp_path / "pages" / "index.html")
    front = (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")
    assert "published results that came with this version" in front
    assert front.count('class="picture"') == 2
    page = (tmp_path / "pages" / "experiments" / "linear-conservation-laptop.html").read_text(encoding="utf-8")
    assert "<figcaption>Left: rate at which each block" in page


def test_published_results_are_not_mixed_with_a_store(cli: Cli, tmp_path: Path) -> None:
    answer = cli("report", "--published", "--store", tmp_path, "-o", tmp_path / "pages")
    assert answer.code == 2
    assert "leave --store and --scale out" in answer.err
    assert not (tmp_path / "pages").exists()


def test_an_empty_store_points_to_the_published_results(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    answer = cli("report", "-o", tmp_path / "pages")
    assert answer.code == 2
    assert "separatrix report --published" in answer.err
    assert not (tmp_path / "pages").exists()
