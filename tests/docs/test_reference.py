"""The reference (a page per sub-room, an anchor for every public name, formulas that can be set) and the whole folder.

What needs every page stands in this file: tests of one file share a process, in which the pages are made once.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import generate
from separatrix.core.rooms import offered
from sitegen import commands, definitions, docstrings, pages, records, reference, rooms

DOCS = Path(generate.__file__).parent
ALL = [room for outer in rooms.rooms() for room in outer.walk()]
FENCED = re.compile(r"^ *(`{3,4}).*?^ *\1$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(`{1,2})[^`]+\1")
FORMULA = re.compile(r"\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^\s$](?:[^$\n]*[^\s$])?)\$", re.DOTALL)
ANCHOR = re.compile(r"\{ ?#([\w.-]+) ?\}")


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return reference.pages()


def without_code(text: str) -> str:
    return INLINE.sub("", FENCED.sub("", text))


def test_every_room_and_sub_room_has_a_page_of_its_own(made: dict[str, str]) -> None:
    stubs = [stub.parent for stub in rooms.PACKAGE.rglob("__init__.pyi") if stub.parent != rooms.PACKAGE]
    assert {room.folder for room in ALL} == set(stubs)
    assert set(made) == {room.page for room in ALL} | {reference.INDEX}


def test_every_public_name_of_every_room_has_an_anchor(made: dict[str, str]) -> None:
    anchors = {anchor for text in made.values() for anchor in ANCHOR.findall(text)}
    for room in ALL:
        modules, names = offered(room.folder / "__init__.pyi")
        public = {*modules, *(name for listed in names.values() for name in listed)}
        missing = sorted(name for name in public if f"{room.dotted}.{name}" not in anchors)
        assert not missing, f"{room.dotted}: no anchor for {missing}"


def test_no_anchor_stands_twice(made: dict[str, str]) -> None:
    for page, text in made.items():
        found = ANCHOR.findall(without_code(text))
        assert len(found) == len(set(found)), f"{page}: {sorted({a for a in found if found.count(a) > 1})}"


def test_every_link_leads_to_an_anchor_that_exists(made: dict[str, str]) -> None:
    where = {page: set(ANCHOR.findall(text)) for page, text in made.items()}
    for page, text in made.items():
        for address, anchor in re.findall(r"\]\(([^)#\s]*\.md)?#([\w.]+)\)", FENCED.sub("", text)):
            target = (
                (Path("/") / Path(page).parent / address).resolve().relative_to("/").as_posix() if address else page
            )
            assert anchor in where[target], f"{page} leads to {address}#{anchor}"


def test_every_link_of_the_equation_index_leads_to_an_anchor(made: dict[str, str]) -> None:
    for page, anchor in re.findall(r"\]\((reference/[^)#]*)#([^)]*)\)", records.equations_page()):
        assert f"{{ #{anchor} }}" in made[page], anchor


def test_the_whole_folder_is_written_and_replaces_an_older_one(whole: Path, made: dict[str, str]) -> None:
    root = whole / "pages"
    assert not (root / "gone.md").exists()
    expected = {page.path for page in pages.present()} | set(made)
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert {path.relative_to(root).as_posix() for path in root.rglob("*.md")} == expected | written
    assert not list(root.rglob("*.py"))
    settings = (whole / "mkdocs.yml").read_text()
    assert settings.startswith((DOCS / "site.yml").read_text())
    assert all((root / asset).is_file() for asset in re.findall(r"- (assets/\S+)", settings))


def all_pages(whole: Path) -> dict[str, str]:
    return {path.relative_to(whole).as_posix(): path.read_text() for path in (whole / "pages").rglob("*.md")}


def test_dollars_enclose_formulas_and_nothing_else(whole: Path) -> None:
    for page, text in all_pages(whole).items():
        rest = FORMULA.sub("", without_code(text))
        assert "$" not in rest, f"{page}: {rest[max(rest.find('$') - 60, 0) : rest.find('$') + 60]!r}"
        stray = re.search(r"\\[A-Za-z]{2,}|:math:|\.\. math", rest)
        assert stray is None, f"{page}: {stray} stands outside a formula"


def test_formulas_are_balanced(whole: Path) -> None:
    count = 0
    for page, text in all_pages(whole).items():
        for match in FORMULA.finditer(without_code(text)):
            count += 1
            assert fault_of(match["display"] or match["inline"]) == "", f"{page}: {match[0]}"
    assert count > 150


def fault_of(tex: str) -> str:
    """What the setter would refuse, as far as it shows without one: braces, environments, delimiters, alignment."""
    plain = re.sub(r"\\[{}]", "", tex)
    depth = 0
    for sign in plain:
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            return "a brace is closed that was not opened"
    if depth:
        return "a brace stays open"
    if re.findall(r"\\begin\{(\w+)\}", tex) != re.findall(r"\\end\{(\w+)\}", tex):
        return "an environment stays open"
    if len(re.findall(r"\\left\b", tex)) != len(re.findall(r"\\right\b", tex)):
        return "left and right do not pair"
    return "alignment outside an environment" if "&" in tex and r"\begin" not in tex else ""


@pytest.mark.parametrize("tex", ["{a", "a}{", r"\begin{pmatrix} a", r"\left( a", "a &= b"])
def test_the_check_of_formulas_notices(tex: str) -> None:
    assert fault_of(tex)


def test_docstrings_become_markdown() -> None:
    text = r"""Mean of :math:`x` if a < b, 2*c*d, the *square* of it.

    .. math:: a + b,
        \qquad c

    Args:
        n1, n2: tokens of
            both kinds.
        **options: more.

    Returns:
        The mean.

    Source: a document,
    on two lines.

    Cost: linear.

    Example:
        >>> mean([1])
        1
    """
    assert docstrings.to_markdown(inspect.cleandoc(text)) == "\n\n".join(
        [
            r"Mean of $x$ if a &lt; b, 2\*c\*d, the *square* of it.",
            "\n$$\na + b,\n\\qquad c\n$$\n",
            "**Args**",
            "- `n1, n2`: tokens of\n    both kinds.\n- `**options`: more.",
            "**Returns** The mean.",
            "**Source** a document,\non two lines.",
            "Cost: linear.",
            "**Example**",
            "```pycon\n>>> mean([1])\n1\n```",
        ]
    )


def test_lines_of_a_formula_are_aligned_as_help_means_them() -> None:
    shown = docstrings.to_markdown(".. math::\n    a &= b \\\\\n    c &= d")
    assert shown.strip() == "$$\n\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}\n$$"


def test_declarations_are_shown_as_written(tmp_path: Path) -> None:
    file = tmp_path / "made_up.py"
    file.write_text(
        'LIMIT: int = 3\n"""Most of it."""\n\n'
        'def short(x: \'Float[Tensor, "n"]\', /, *, by: str = "a") -> int:\n    """Doc."""\n\n'
        'class Thing(Base):\n    """A thing."""\n\n    size: int = 1\n    """How large."""\n    _hidden = 2\n\n'
        '    @property\n    def half(self) -> float:\n        """Half."""\n\n    def _private(self): ...\n'
    )
    limit, short, thing = (definitions.define(file, name) for name in ("LIMIT", "short", "Thing"))
    assert (limit.declaration, limit.docstring) == ("LIMIT: int = 3", "Most of it.")
    assert short.declaration == 'def short(x: \'Float[Tensor, "n"]\', /, *, by: str = "a") -> int'
    assert thing.declaration == "class Thing(Base):\n    size: int = 1"
    assert "size: How large." in thing.docstring
    assert [member.declaration for member in thing.members] == ["@property\ndef half() -> float"]
    with pytest.raises(LookupError, match="does not define missing"):
        definitions.define(file, "missing")


def test_every_command_is_on_the_page_with_its_options() -> None:
    page = commands.commands_page()
    for anchor in ("run", "claims", "data-get", "attention-count"):
        assert f"{{ #{anchor} }}" in page
    assert "<code>--scale" in page
