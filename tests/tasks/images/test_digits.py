from __future__ import annotations

import importlib

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput, MissingExtra
from separatrix.tasks import load_digits


def test_digits_split_into_training_and_test_without_overlap(generator: torch.Generator) -> None:
    pytest.importorskip("sklearn", reason="install scikit-learn for the 8 x 8 digits")
    digits = load_digits(600, generator=generator)
    assert digits.train_x.shape == (600, 64)
    assert digits.test_x.shape == (1197, 64)
    assert float(digits.train_x.min()) >= 0
    assert float(digits.train_x.max()) == 1
    together = torch.cat([digits.train_y, digits.test_y]).bincount()
    assert together.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # the published class counts


def test_the_order_is_that_of_the_generator() -> None:
    pytest.importorskip("sklearn", reason="install scikit-learn for the 8 x 8 digits")
    draws = [load_digits(10, generator=seeded(seed)).train_y for seed in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_bad_sizes_and_a_missing_library_are_named(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="below 1797"):
        load_digits(1797, generator=generator)

    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtra, match="install scikit-learn"):
        load_digits(10, generator=generator)
