from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.diagnose.weight_files import read_weights


@pytest.mark.parametrize("kind", [">f4", ">f8", "longdouble", "clongdouble", ">i2"])
def test_numbers_of_other_widths_and_orders_are_read(tmp_path: Path, kind: str) -> None:
    numpy.savez(tmp_path / "w.npz", a=numpy.arange(3).astype(kind))
    assert read_weights(tmp_path / "w.npz")["a"].tolist() == [0, 1, 2]


def test_numbers_of_eight_bits_are_read(tmp_path: Path) -> None:
    torch.save({"a": torch.tensor([0.5, -2.0]).to(torch.float8_e4m3fn)}, tmp_path / "w.pt")
    assert read_weights(tmp_path / "w.pt")["a"].tolist() == [0.5, -2.0]


@pytest.mark.parametrize("tensor", [torch.eye(3).to_sparse(), torch.empty(3, device="meta")])
def test_tensors_without_their_numbers_are_refused(tmp_path: Path, tensor: torch.Tensor) -> None:
    torch.save({"a": tensor}, tmp_path / "w.pt")
    with pytest.raises(InvalidInput, match=r"'a' in .* must be a dense tensor"):
        read_weights(tmp_path / "w.pt")


def test_an_archive_with_a_damaged_directory_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(3)}, tmp_path / "w.pt")
    whole = bytearray((tmp_path / "w.pt").read_bytes())
    whole[whole.find(b"PK\x01\x02") + 2] ^= 4
    (tmp_path / "w.pt").write_bytes(whole)
    with pytest.raises(InvalidInput, match="not a plain collection of tensors"):
        read_weights(tmp_path / "w.pt")
