from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from separatrix.core.errors import InvalidInput, MissingData
from separatrix.lab import Record, Store, publish, verify
from separatrix.lab.experiment.instruction_sets import named
from separatrix.lab.results.verification import _check, kernels_of, promised
from short_experiments import SHORT, run_inline


@pytest.fixture
def published(tmp_path: Path) -> Path:
    with Store(tmp_path / "store") as store:
        run_inline(store, (SHORT, SHORT.params("laptop"), "laptop"))
        publish([SHORT], store, tmp_path)
    return tmp_path / "short.json"


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))


def test_an_honest_file_is_verified_bit_for_bit(published: Path) -> None:
    found = verify(published, SHORT)
    assert found.ok
    assert (found.n_cells, len(found.checks)) == (6, 6)
    assert {check.agreement for check in found.checks} == {"bit for bit"}
    assert set(found.rules.values()) == {"judged by the rule that stood before the run"}


def test_a_sample_is_drawn_by_its_seed(published: Path) -> None:
    chosen = [[check.cell.key for check in verify(published, SHORT, sample=2, seed=seed).checks] for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]
    assert len(set(chosen[0])) == 2


def test_an_edited_number_is_found_with_its_cell(published: Path) -> None:
    def forge(body: dict[str, Any]) -> None:
        kept = next(iter(body["records"].values()))
        kept["digest"], path = "0" * 64, next(iter(kept["numbers"]))
        kept["numbers"][path] += 0.5

    edit(published, forge)
    found = verify(published, SHORT)
    assert not found.ok
    (wrong,) = [check for check in found.checks if check.agreement == "different"]
    assert "published was" in wrong.reason


def test_another_machine_may_differ_by_rounding(published: Path) -> None:
    def elsewhere(body: dict[str, Any]) -> None:
        for kept in body["records"].values():
            kept["digest"] = "0" * 64
            kept["numbers"] = {path: value * (1 + 1e-9) for path, value in kept["numbers"].items()}

    edit(published, elsewhere)
    found = verify(published, SHORT)
    assert found.ok
    assert {check.agreement for check in found.checks} == {"within tolerance"}
    assert not verify(published, SHORT, rtol=1e-12).ok


def test_what_cannot_be_verified_is_one_sentence(published: Path) -> None:
    with pytest.raises(InvalidInput, match="sample must be a positive number"):
        verify(published, SHORT, sample=0)
    with pytest.raises(MissingData, match="this code has another version"):
        verify(published, dataclasses.replace(SHORT, version=2))
    edit(published, lambda body: body.pop("records"))
    with pytest.raises(MissingData, match="published without its records"):
        verify(published, SHORT)


def forge_number(body: dict[str, Any]) -> None:
    kept = next(iter(body["records"].values()))
    kept["numbers"][next(iter(kept["numbers"]))] += 0.5


def forge_verdicts(body: dict[str, Any]) -> None:
    for claim in body["claims"].values():
        claim["verdict"] = "refuted" if claim["verdict"] == "confirmed" else "confirmed"


def forge_rows(body: dict[str, Any]) -> None:
    for claim in body["claims"].values():
        for row in claim["rows"]:
            row["measured"] = 123.0


def forge_summary(body: dict[str, Any]) -> None:
    for name, value in body["summary"].items():
        if isinstance(value, float):
            body["summary"][name] = value + 1e-3


def forge_rules(body: dict[str, Any]) -> None:
    for claim in body["claims"].values():
        claim["rule"], claim["rules_of_run"] = "0" * 64, ["0" * 64]


def forge_seed(body: dict[str, Any]) -> None:
    next(iter(body["records"].values()))["seed"] += 100


def drop_cells(body: dict[str, Any]) -> None:
    for key in list(body["records"])[:-1]:
        del body["records"][key]


def forge_nan(body: dict[str, Any]) -> None:
    numbers = next(iter(body["records"].values()))["numbers"]
    numbers[next(iter(numbers))] = float("nan")


FORGERIES = {
    "not a number": (forge_nan, "although its digest is right"),
    "a title": (lambda body: body.update(title="A proof"), "its title is 'A proof'; that of the experiment is"),
    "a scale": (lambda body: body.update(scale="paper"), "it calls itself paper, with the parameters of"),
    "seeds": (lambda body: body["provenance"].update(seeds=[0, 1, 2]), r"it claims the seeds \[0, 1, 2\]"),
    "a number whose digest is right": (forge_number, "although its digest is right"),
    "verdicts": (forge_verdicts, "does not follow from the summary by the rule of this code: verdict"),
    "rows": (forge_rows, "does not follow from the summary by the rule of this code: .*rows"),
    "no summary": (lambda body: body.update(summary={}), "the published summary is none of short"),
    "a summary": (forge_summary, "of its summary does not follow from its records"),
    "rules": (forge_rules, "does not follow from the summary by the rule of this code: rule"),
    "a seed": (forge_seed, "stands there as"),
    "cells left out": (drop_cells, "5 of the 6 cells that a file of its parameters has are missing"),
    "claims left out": (lambda body: body.update(claims={}), "is missing"),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_is_found_out(published: Path, name: str) -> None:
    forge, reason = FORGERIES[name]
    edit(published, forge)
    found = verify(published, SHORT)
    assert not found.ok
    assert re.search(reason, " / ".join([*found.faults, *(check.reason for check in found.checks)]))


def test_errors_of_rounding_alone_are_not_compared_by_their_ratio() -> None:
    cell = SHORT.cells(SHORT.params("smoke"))[0]
    record = Record(cell, {"residue": 1.3e-14}, {})
    near, far = ({"digest": "0" * 64, "numbers": {"/residue": value}} for value in (3.5e-15, 3.5e-9))
    assert _check(cell, record, near, 1e-6).agreement == "within tolerance"
    assert _check(cell, record, far, 1e-6).agreement == "different"


@pytest.mark.parametrize(
    ("then", "now", "words"),
    [
        ([""], ["torch AVX2"], "not recorded then"),
        (["torch AVX2"], ["torch AVX2"], "equal bits are promised"),
        (["torch AVX2"], ["torch AVX512"], "for equal bits try ATEN_CPU_CAPABILITY=avx2 separatrix verify"),
        (["torch AVX2", "torch AVX512"], ["torch AVX2"], "equal up to rounding"),
    ],
)
def test_what_may_be_asked_for_follows_from_the_kernels(then: list[str], now: list[str], words: str) -> None:
    assert words in promised(["cpu"], ["cpu"], then, now)


def test_a_published_file_names_its_kernels(published: Path) -> None:
    found = verify(published, SHORT)
    assert "by the same kernels then and now" in found.promise
    edit(published, lambda body: body["provenance"]["machines"][0].update(kernels="torch AVX9"))
    assert "computed by other kernels then (torch AVX9)" in verify(published, SHORT).promise


KNOWN = "OpenBLAS Haswell, oneDNN AVX512, torch AVX512"


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ([], "not recorded then"),
        ([5], "not recorded then"),
        ([["torch AVX2"]], "not recorded then"),
        (["rubbish"], "not recorded then"),
        (["torch AVX2; rm -rf ~"], "not recorded then"),
        (["OpenBLAS Haswell, torch AVX512"], "as far as both are recorded (OpenBLAS Haswell, torch AVX512)"),
        (["OpenBLAS Haswell"], "as far as both are recorded (OpenBLAS Haswell)"),
        (["torch AVX512, OpenBLAS Haswell, oneDNN AVX512"], "by the same kernels then and now"),
        (["OpenBLAS Haswell, torch AVX2"], "by other kernels then"),
    ],
)
def test_kernels_of_a_file_are_read_library_by_library(then: list[Any], words: str) -> None:
    """A record names the libraries that its process had loaded, and older ones name fewer."""
    told = promised(["cpu"], ["cpu"], then, [KNOWN])
    assert words in told
    assert "rm" not in told.split()
    assert "try  " not in told


@pytest.mark.parametrize(
    "machines", [None, [], "x", [5], [{}], [{"kernels": ["torch AVX2"]}], [{"kernels": None}, {"kernels": 5}]]
)
def test_a_forged_machine_is_one_that_tells_nothing(machines: Any) -> None:
    assert all(named(told) == {} for told in kernels_of({"machines": machines}))
