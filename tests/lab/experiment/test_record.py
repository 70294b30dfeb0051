from __future__ import annotations

import hashlib
import json
import math

import hypothesis.extra.numpy as arrays
import numpy
import pytest
import torch
from hypothesis import given, settings, strategies as st

from separatrix.core.errors import CorruptData, InvalidInput, StoreError
from separatrix.lab import Cell, Record
from separatrix.lab.experiment.cell import canonical_json

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


KEYS = st.one_of(st.text(max_size=4), st.sampled_from(["__array__", "__float__", "__items__", "shape", "base64"]))
PAYLOADS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.dictionaries(KEYS, PAYLOADS, max_size=4))
def test_what_is_read_back_is_what_was_written(payload: dict[str, object]) -> None:
    text = Record(CELL, payload, {}).to_text()
    assert Record.from_text(text).payload == payload
    assert Record.from_text(text).digest == Record(CELL, payload, {}).digest


@pytest.mark.parametrize(
    "payload",
    [{"__float__": "3.5"}, {"__array__": "x"}, {"a": [{"__items__": 3}]}, {"big": 10**3999}, {"tie": {"": ""}}],
)
def test_names_of_our_own_are_no_trap(payload: dict[str, object]) -> None:
    assert Record.from_text(Record(CELL, payload, {}).to_text()).payload == payload


LOOP: dict[str, object] = {}
LOOP["loop"] = LOOP


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        ({"a": {1: "a", "1": "b"}}, "strings as keys; got 1"),
        ({"a": {None: 1}}, "strings as keys; got None"),
        ({"a": "\ud800"}, "text that can be written"),
        ({"\ud800": 1}, "text that can be written"),
        ({"a": 10**5000}, "at most 4000 digits"),
        (LOOP, "nor contain itself"),
        ({"a": 1j}, "got complex"),
        ({"a": torch.zeros(2, dtype=torch.bfloat16)}, "of a type that NumPy has"),
        ({"a": torch.zeros(2).to_sparse()}, "dense"),
        ({"a": numpy.array([object()])}, "dtype object"),
    ],
)
def test_what_would_not_come_back_is_refused_at_writing(payload: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Record(CELL, payload, {}).to_text()


@pytest.mark.parametrize(
    "planted",
    [{"__array__": "x"}, {"__array__": "<f8", "shape": [10**15], "base64": ""}, {"__float__": []}, {"__items__": [1]}],
)
def test_a_planted_payload_is_corrupt_and_nothing_worse(planted: dict[str, object]) -> None:
    body = json.loads(Record(CELL, {"x": 1.0}, {}).to_text())
    body["payload"] = {"x": planted}
    body["digest"] = hashlib.sha256(canonical_json([CELL.identity(), body["payload"]]).encode()).hexdigest()
    with pytest.raises(CorruptData, match="not a whole record"):
        Record.from_text(json.dumps(body))
    with pytest.raises(CorruptData, match="not a whole record"):
        Record.from_text("[" * 200_000)
