"""What is packed: the source archive holds what the tests read, the index page has no dead link."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
HOME = {"GITHUB_SERVER_URL": "https://example.org", "GITHUB_REPOSITORY": "a/b"}
ALWAYS_PACKED = {"pyproject.toml", ".gitignore"}  # by hatchling itself


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The hook of the build; the builder need not be installed to test what it computes."""
    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = type("MetadataHookInterface", (), {"root": str(ROOT)})  # type: ignore[attr-defined]
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def packed() -> set[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return set(settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]) | ALWAYS_PACKED


def test_the_source_archive_holds_everything_that_is_kept() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode or not (ROOT / ".git").exists():
        pytest.skip("not a checkout; what is here is what was packed")
    assert {name.split("/")[0] for name in listed.stdout.split("\n") if name} <= packed()
    assert all((ROOT / name).exists() for name in packed())


def metadata(hook: ModuleType, monkeypatch: pytest.MonkeyPatch, **env: str) -> dict[str, dict[str, str]]:
    for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_REF_NAME", "GITHUB_REF_TYPE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    filled: dict[str, dict[str, str]] = {}
    hook.IndexPage().update(filled)
    return filled


def test_a_release_has_no_relative_link_on_its_index_page(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = metadata(hook, monkeypatch, **HOME, GITHUB_REF_NAME="v1.2.0", GITHUB_REF_TYPE="tag")
    targets = re.findall(r"\]\(([^)]*)\)", filled["readme"]["text"])
    ours = [target for target in targets if target.startswith("https://example.org/a/b/")]
    assert [target for target in targets if not target.startswith("https://")] == []
    assert len(ours) > 20
    for target in ours:
        kind, ref, path = target.removeprefix("https://example.org/a/b/").split("/", 2)
        assert (kind, ref) == ("raw" if path.endswith(".png") else "blob", "v1.2.0")
        assert (ROOT / path).exists(), path
    assert filled["urls"]["Source"] == "https://example.org/a/b"
    assert filled["urls"]["Changelog"] == "https://example.org/a/b/blob/v1.2.0/CHANGELOG.md"


def test_a_branch_is_no_release(hook: ModuleType) -> None:
    assert hook.home_of({**HOME, "GITHUB_REF_NAME": "main", "GITHUB_REF_TYPE": "branch"})[1] == "HEAD"


def test_a_build_that_knows_no_home_names_none(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = metadata(hook, monkeypatch)
    assert filled["urls"] == {}
    assert filled["readme"]["text"] == (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_within_code_anchors_and_addresses_stay(hook: ModuleType) -> None:
    text = "[a](x.md) [b](https://e.org) [c](#d) [`e`](f) ![g](h.png)\n```python\nrow[0](1)\n```\n"
    assert hook.absolute(text, "H", "R") == (
        "[a](H/blob/R/x.md) [b](https://e.org) [c](#d) [`e`](H/blob/R/f) ![g](H/raw/R/h.png)\n"
        "```python\nrow[0](1)\n```\n"
    )
