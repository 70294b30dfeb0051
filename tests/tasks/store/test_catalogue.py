from __future__ import annotations

from pathlib import Path

import pytest

from separatrix.core import InvalidInput
from separatrix.tasks import datasets, find_dataset, locate

KNOWN = datasets()


def test_penn_treebank_asks_for_its_licence() -> None:
    assert {name for name, dataset in KNOWN.items() if dataset.confirm} == {"ptb", "ptb-char"}


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'mnist'"):
        find_dataset("mnits")


def test_digest_of_a_set_depends_on_its_files_and_not_on_their_order() -> None:
    import dataclasses

    mnist = KNOWN["mnist"]
    assert dataclasses.replace(mnist, files=mnist.files[::-1]).sha256 == mnist.sha256
    assert dataclasses.replace(mnist, files=mnist.files[1:]).sha256 != mnist.sha256


@pytest.mark.needs_data
@pytest.mark.parametrize("name", [name for name in KNOWN if name not in ("ptb", "ptb-char", "text8")])
def test_real_files_have_the_registered_content(name: str, data_dir: Path) -> None:
    located = locate(name, path=data_dir)
    assert located.verified
    assert dict(located.sha256) == {file.split: file.sha256 for file in KNOWN[name].files}
