from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import generate
from sitegen import reference, relational


@pytest.fixture(scope="session", autouse=True)
def _reference_made_once() -> Iterator[None]:
    """Every page of the reference follows from the code alone: the tests read the same ones. How far rules of thumb
    go is of no interest to them, so few problems tell it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relational, "PROBLEMS", 200)
        patch.setattr(reference, "pages", functools.cache(reference.pages))
        yield


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder from which the site is built, without pictures and notebooks, written over an older one."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "gone.md").write_text("old")
    generate.main(folder, pictures=False)
    return folder
