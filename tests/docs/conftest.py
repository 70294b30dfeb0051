from __future__ import annotations

from pathlib import Path

import pytest

import generate


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder from which the site is built, written over an older one."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "gone.md").write_text("old")
    generate.main(folder)
    return folder
