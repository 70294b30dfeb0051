from __future__ import annotations

import json
import math

import hypothesis.extra.numpy as arrays
import numpy
import pytest
import torch
from hypothesis import given, strategies as st

from separatrix.core.errors import CorruptData, InvalidInput, StoreError
from separatrix.lab import Cell, Record

CELL = Cell("short", 1, {"width": 3, "name": "a"}, 7, "short_experiments:short")


@given(
    arrays.arrays(
        dtype=st.sampled_from([numpy.float64, numpy.float32, numpy.int64, numpy.bool_, numpy.complex128]),
        shape=arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
)
def test_arrays_come_back_bit_for_bit(array: numpy.ndarray) -> None:
    read = Record.from_text(Record(CELL, {"a": array}, {}).to_text()).payload["a"]
    assert read.dtype == array.dtype
    assert read.shape == array.shape
    assert read.tobytes() == array.tobytes()


@given(st.floats())
def test_every_float_comes_back_exactly(number: float) -> None:
    read = Record.from_text(Record(CELL, {"x": number}, {}).to_text()).payload["x"]
    assert (math.isnan(number) and math.isnan(read)) or read == number


def test_tensors_are_stored_as_arrays() -> None:
    record = Record(CELL, {"w": torch.arange(4, dtype=torch.float32).reshape(2, 2)}, {})
    assert Record.from_text(record.to_text()).payload["w"].tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_digest_covers_cell_and_payload_but_not_the_machine() -> None:
    record = Record(CELL, {"x": 1.0}, {"machine": "a"})
    assert record.digest == Record(CELL, {"x": 1.0}, {"machine": "b"}).digest
    assert record.digest != Record(CELL, {"x": 1.5}, {"machine": "a"}).digest
    assert record.digest != Record(Cell("short", 2, CELL.args, 7, CELL.entry), {"x": 1.0}, {}).digest


@pytest.mark.parametrize("cut", [0, 1, 40, -2])
def test_a_truncated_record_is_refused(cut: int) -> None:
    text = Record(CELL, {"x": 1.0}, {}).to_text()
    with pytest.raises(CorruptData, match=r"r.json is not a whole record"):
        Record.from_text(text[:cut], name="r.json")


def test_an_edited_number_is_refused() -> None:
    text = Record(CELL, {"x": 1.25}, {}).to_text().replace("1.25", "1.26")
    with pytest.raises(CorruptData, match=r"r.json was changed"):
        Record.from_text(text, name="r.json")


def test_a_record_without_provenance_is_refused() -> None:
    body = json.loads(Record(CELL, {"x": 1.0}, {}).to_text())
    del body["provenance"]
    with pytest.raises(CorruptData, match="not a whole record"):
        Record.from_text(json.dumps(body))


def test_a_record_of_a_newer_version_is_not_called_corrupt() -> None:
    text = Record(CELL, {"x": 1.0}, {}).to_text().replace('"format": 1', '"format": 2')
    with pytest.raises(StoreError, match="newer version"):
        Record.from_text(text)


@pytest.mark.parametrize("value", [object(), numpy.array(["a"]), {1, 2}])
def test_a_payload_holds_only_data(value: object) -> None:
    with pytest.raises(InvalidInput, match="payload"):
        Record(CELL, {"x": value}, {}).to_text()
