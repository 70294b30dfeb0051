from __future__ import annotations

import dataclasses

import torch
from torch import nn

import separatrix
from separatrix.diagnose import Finding, Place
from separatrix.diagnose.findings.text import as_text


def test_a_screen_is_at_most_80_columns_and_24_lines_however_much_there_is() -> None:
    found = separatrix.check(nn.Linear(3, 2), torch.randn(8, 3))
    many = tuple(
        Finding(f"finding_{i % 20}", "fault", Place("a" * 70, "op"), 1.0, "word " * 60, "do " * 60, code="x" * 100)
        for i in range(60)
    )
    lines = as_text(dataclasses.replace(found, findings=many)).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "more findings: diagnosis.save" in "\n".join(lines)


def test_equal_findings_are_counted_not_repeated() -> None:
    found = separatrix.check(nn.Linear(3, 2), torch.randn(8, 3))
    twelve = tuple(Finding("dead_units", "fault", Place(f"layer{i}"), 1.0, "all off.") for i in range(12))
    text = as_text(dataclasses.replace(found, findings=twelve))
    assert text.count("dead_units") == 1
    assert "And 11 more places." in text


def test_the_whole_text_names_everything() -> None:
    found = separatrix.check(nn.Linear(3, 2), torch.randn(8, 3))
    whole = as_text(found, lines=None)
    assert all(skip.id in whole for skip in found.skipped)
