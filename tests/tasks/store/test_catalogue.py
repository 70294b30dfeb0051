from __future__ import annotations

import re
from pathlib import Path

import pytest

from separatrix.core import InvalidInput
from separatrix.tasks import datasets, find_dataset, locate

KNOWN = datasets()


@pytest.mark.parametrize("name", KNOWN)
def test_every_entry_is_complete_enough_to_supply_the_files_by_hand(name: str) -> None:
    dataset = KNOWN[name]
    assert dataset.licence
    assert dataset.citation
    assert len(set(dataset.splits)) == len(dataset.files) > 0
    for file in dataset.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.n_bytes > 0
        assert all(mirror.url.startswith("https://") and mirror.n_bytes > 0 for mirror in file.mirrors)
        assert not Path(file.name).is_absolute()
        assert file.sha256 in dataset.summary()


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
