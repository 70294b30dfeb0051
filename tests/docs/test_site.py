"""The site as the builder makes it. Needs the docs extra; formulas are set for real where node is installed."""

from __future__ import annotations

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import generate
from sitegen import notebooks, rooms

pytestmark = pytest.mark.slow
KATEX = Path(generate.__file__).parent / "assets" / "katex" / "katex.min.js"
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
SET_ALL = """
const katex = require(process.argv[1]);
const faults = [];
for (const text of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  try { katex.renderToString(text.slice(2, -2), { displayMode: text.startsWith("\\\\["), strict: "error" }); }
  catch (error) { faults.push(error.message); }
}
console.log(JSON.stringify(faults));
"""


class Reader(html.parser.HTMLParser):
    """Formulas, running text, anchors and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.formulas: list[str] = []
        self.text, self.anchors, self.loaded, self.links = "", set[str](), set[str](), set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        if tag == "a":
            self.links.add(found.get("href") or "")
        if tag in ("script", "img", "link"):
            self.loaded.add(found.get("src") or found.get("href") or "")
        if tag in VOID:
            return
        kind = "code" if tag in ("code", "pre", "script", "style") else ""
        if "arithmatex" in (found.get("class") or "").split():
            kind = "formula"
            self.formulas.append("")
        self.open.append((tag, kind))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        kinds = {kind for _, kind in self.open}
        if "formula" in kinds:
            self.formulas[-1] += data
        elif "code" not in kinds:
            self.text += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the site is built, with quick notebooks."""
    for module in ("material", "jupytext", "nbclient", "ipykernel"):
        pytest.importorskip(module, reason="the docs extra is not installed")
    whole = tmp_path_factory.mktemp("whole")
    generate.main(whole, quick=True)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(whole / "mkdocs.yml")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        [*command, "--site-dir", str(whole / "site")], env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return whole / "site"


@pytest.fixture(scope="module")
def site(folder: Path) -> dict[str, Reader]:
    return {path.relative_to(folder).as_posix(): Reader(path.read_text()) for path in folder.rglob("*.html")}


def test_no_formula_stands_outside_its_container(site: dict[str, Reader]) -> None:
    for page, read in site.items():
        stray = re.search(r"\$|\\[A-Za-z]{2,}|\\[(\[]|:math:", read.text)
        assert stray is None, f"{page}: {read.text[max(stray.start() - 60, 0) : stray.end() + 60]!r}"


def test_every_formula_is_delimited(site: dict[str, Reader]) -> None:
    formulas = [text.strip() for read in site.values() for text in read.formulas]
    assert len(formulas) > 150
    assert all(re.fullmatch(r"\\\(.+\\\)|\\\[.+\\\]", text, re.DOTALL) for text in formulas)


def test_every_formula_can_be_set(site: dict[str, Reader]) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; test_reference checks the balance of every formula")
    formulas = json.dumps([text.strip() for read in site.values() for text in read.formulas])
    done = subprocess.run([node, "-e", SET_ALL, str(KATEX)], input=formulas, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_every_public_name_has_an_anchor_on_its_page(site: dict[str, Reader]) -> None:
    for dotted, place in rooms.places().items():
        page, anchor = place.split("#")
        assert anchor in site[page.replace(".md", ".html")].anchors, dotted


def test_pages_load_nothing_from_elsewhere(site: dict[str, Reader]) -> None:
    for page, read in site.items():
        assert not [address for address in read.loaded if re.match(r"(https?:)?//", address)], page


def test_every_notebook_is_a_page_with_outputs_and_can_be_downloaded(site: dict[str, Reader]) -> None:
    for source in notebooks.sources():
        read = site[f"notebooks/{source.stem}.html"]
        assert any(address.startswith(f"{source.stem}_") for address in read.loaded) or "output" in read.text
        assert f"{source.stem}.ipynb" in read.links


def test_every_local_picture_and_link_leads_to_a_file(site: dict[str, Reader], folder: Path) -> None:
    for page, read in site.items():
        for address in {*read.loaded, *read.links}:
            place = re.sub(r"[?#].*", "", address)
            if place and not re.match(r"[a-z]+:|//", address):
                start = folder if place.startswith("/") else (folder / page).parent  # 404.html is served anywhere
                assert (start / place.lstrip("/")).exists(), f"{page} points to {address}"


def test_the_gallery_shows_every_shipped_figure(site: dict[str, Reader]) -> None:
    shown = [address for address in site["gallery.html"].loaded if address.startswith("figures/")]
    assert len(shown) > 100
