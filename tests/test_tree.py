"""The tree of the tests is the tree of the package, so that a reader guesses where the test of a thing stands."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "separatrix"
OF_THE_SITE = "docs"
"""Tests of the documentation; there is no room for it."""

ACROSS = {
    "cli/test_dialect.py": "words of every command",
    "cli/test_wrong_words.py": "bad values for every option of every command",
    "cli/test_start_is_light.py": "imports of every command",
    "dynamics/integration/test_fresh_ends.py": "flows drawn at random, with a known end",
    "dynamics/integration/test_strangers.py": "everything that a flow of a stranger gets",
    "experiments/agarwala2022/test_ensembles.py": "one course of runs for several experiments",
    "experiments/altafini2025/test_motion.py": "one course of runs for several experiments",
    "experiments/altafini2025/test_theory.py": "one course of runs for several experiments",
    "experiments/anguita2024/test_anguita.py": "one course of runs for several experiments",
    "experiments/kerg2022/linear_memory/test_kerg3.py": "one course of runs for several experiments",
    "experiments/test_not_measured.py": "what is missing from the summary of any experiment",
    "experiments/test_halves.py": "half of the rows of any experiment",
    "experiments/test_one_rule.py": "what is too uncertain to tell, in any experiment",
    "experiments/test_nobody_learned.py": "what no network of any experiment learned",
    "experiments/ours/test_linear_regime.py": "one course of runs for several experiments",
    "experiments/test_dialect.py": "form of every experiment",
    "experiments/test_paper_scale.py": "every experiment at the size of its document",
    "experiments/test_power.py": "a counterfeit for every claim",
    "experiments/test_published_verdicts.py": "verdicts of every published result",
    "nn/test_memory_is_freed.py": "every layer",
    "nn/equilibrium/test_mapped_layers.py": "every layer under the transforms of torch.func",
    "theory/free_probability/test_laws.py": "every law against the same identities",
}
"""Files that name no module, each with its reason."""


def stray_folders(tests: Path, package: Path) -> list[str]:
    """Folders of the tests that are none of the package."""
    folders = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")} - {".", OF_THE_SITE}
    return sorted(folder for folder in folders if not (package / folder).is_dir())


def stray_files(tests: Path, package: Path) -> list[str]:
    """Test files below a room that name neither a module beside which they would stand, nor that (sub-)room, nor a
    contract."""
    stray = []
    for path in sorted(tests.rglob("test_*.py")):
        place = path.parent.relative_to(tests)
        if place == Path() or place.parts[0] == OF_THE_SITE:
            continue
        subject = path.stem.removeprefix("test_")
        room = package / place
        named = (room / f"{subject}.py").is_file() or (room / subject).is_dir() or subject == place.name
        if not named and not subject.endswith("_contract"):
            stray.append(path.relative_to(tests).as_posix())
    return stray


def test_every_folder_of_tests_is_a_room() -> None:
    assert stray_folders(TESTS, PACKAGE) == []


def test_every_test_file_names_what_it_tests() -> None:
    stray = stray_files(TESTS, PACKAGE)
    unknown = [name for name in stray if name not in ACROSS]
    assert unknown == [], f"no such module, sub-room or contract; rename them: {unknown}"
    needless = [name for name in ACROSS if (TESTS / name).is_file() and name not in stray]
    assert needless == [], f"these name their module by now and need no exemption: {needless}"


@pytest.mark.parametrize("name", ["attic/test_x.py", "core/test_nothing.py"])
def test_a_stray_file_is_noticed(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).touch()
    assert stray_files(tmp_path, PACKAGE) == [name]
    assert stray_folders(tmp_path, PACKAGE) == (["attic"] if name.startswith("attic") else [])


def test_the_architecture_page_names_every_sub_room_and_no_other() -> None:
    page = (PACKAGE.parent.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and "." in line.split("`")[1]}
    rooms = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")}
    assert named == {".".join(room.parts) for room in rooms if len(room.parts) > 1}
