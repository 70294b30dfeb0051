"""A diagnosis as one screen of text: 80 columns, 24 lines; what does not fit is counted and points to ``save``."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from .finding import Finding

if TYPE_CHECKING:
    from .diagnosis import Diagnosis

WIDTH = 80
LINES = 24
_INDENT = " " * 8
_BOUND = "\N{NO-BREAK SPACE}"
Detail = Literal["full", "short", "line"]


def as_text(diagnosis: Diagnosis, *, lines: int | None = LINES) -> str:
    """The screen; with ``lines=None`` everything, however long."""
    head, tail = _header(diagnosis), _skipped(diagnosis, whole=lines is None)
    shown = [finding for finding in diagnosis.findings if finding.severity != "ok"]
    fine = _ok_lines(diagnosis.of("ok"))
    quiet = [] if any(finding.severity in ("fault", "warning") for finding in shown) else [_quiet(diagnosis)]
    if lines is None:
        body = [line for finding in shown for line in _block(finding, "full")]
        return "\n".join([*head, *quiet, *body, *fine, *tail])
    room = lines - len(head) - len(quiet) - len(tail) - min(len(fine), 4)
    body = _fitted(_collapsed(shown), room)
    left = lines - len(head) - len(quiet) - len(tail) - len(body)
    return "\n".join([*head, *quiet, *body, *fine[: max(left, 0)], *tail][:lines])


def _quiet(diagnosis: Diagnosis) -> str:
    return "no fault, no warning." if diagnosis.ran else "the model could not be run."


def _header(diagnosis: Diagnosis) -> list[str]:
    """What was looked at, and how long that took; in two lines where one is too short."""
    model, sample = diagnosis.model, diagnosis.sample
    text = f"separatrix.check: {model['class']}, {model['parameters']:,} parameters; sample {sample['said']}"
    text += f"; {sample['loss']}; {diagnosis.seconds:.1f}{_BOUND}s"
    lines = textwrap.wrap(text, WIDTH, subsequent_indent=" " * 18, max_lines=2, placeholder=" ...")
    return [line.replace(_BOUND, " ") for line in lines]


def _block(finding: Finding, detail: Detail) -> list[str]:
    label = {"fault": "FAULT", "warning": "WARNING", "note": "note", "ok": "ok"}[finding.severity]
    pad = "  " if finding.follows else ""
    head = f"{pad}{label}"
    said = finding.meaning + (f" [follows from {finding.follows}]" if finding.follows else "")
    if detail == "line":
        return [_cut(f"{head:<8}{finding.id}: {finding.meaning}", WIDTH)]
    first = f"{head:<8}{finding.id}: {said}"
    lines = textwrap.wrap(first, WIDTH, subsequent_indent=_INDENT)
    if finding.where and str(finding.where) not in said:
        lines += _wrapped("Where: ", str(finding.where))
    if detail == "full":
        lines += _wrapped("Sure: ", str(finding.certainty)) if finding.severity != "note" else []
        lines += _wrapped("Do: ", finding.advice) if finding.advice else []
        lines += _wrapped("    ", finding.code) if finding.code else []
        lines += _wrapped("    ", f"({finding.evidence})") if finding.evidence and not finding.follows else []
    elif finding.advice and finding.severity in ("fault", "warning"):
        lines += _wrapped("Do: ", finding.advice)
    return lines


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(f"{_INDENT}{label}{text}", WIDTH, subsequent_indent=_INDENT + " " * len(label))


def _fitted(findings: Sequence[Finding], room: int) -> list[str]:
    """As much detail as fits: later findings lose theirs first."""
    details: list[Detail] = ["full"] * len(findings)
    for wanted in ("short", "line"):
        for place in reversed(range(len(findings))):
            if _height(findings, details) <= room:
                break
            details[place] = wanted
    blocks = [_block(finding, detail) for finding, detail in zip(findings, details, strict=True)]
    lines: list[str] = []
    for number, block in enumerate(blocks):
        last = number == len(blocks) - 1
        if len(lines) + len(block) + (0 if last else 1) > room:
            rest = len(blocks) - number
            return [*lines, f"and {rest} more finding{'s' * (rest > 1)}: diagnosis.save('report.html') shows them all"]
        lines += block
    return lines


def _height(findings: Sequence[Finding], details: Sequence[Detail]) -> int:
    return sum(len(_block(finding, detail)) for finding, detail in zip(findings, details, strict=True))


def _collapsed(findings: Sequence[Finding]) -> list[Finding]:
    """Equal findings at several places as the first of them, which then counts the others."""
    counts: dict[tuple[str, str], int] = {}
    for finding in findings:
        counts[finding.id, finding.severity] = counts.get((finding.id, finding.severity), 0) + 1
    kept: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.id, finding.severity)
        if key not in kept:
            more = counts[key] - 1
            said = finding.meaning + (f" And {more} more place{'s' * (more > 1)}." if more else "")
            kept[key] = dataclasses.replace(finding, meaning=said)
    return list(kept.values())


def _ok_lines(findings: Sequence[Finding]) -> list[str]:
    said: list[str] = []
    for finding in findings:
        if said and len(said[-1]) + len(finding.meaning) + 2 <= WIDTH - 8:
            said[-1] += f"; {finding.meaning}"
        else:
            said.append(finding.meaning)
    return [line for text in said for line in textwrap.wrap(f"ok      {text}", WIDTH, subsequent_indent=_INDENT)]


def _skipped(diagnosis: Diagnosis, *, whole: bool) -> list[str]:
    if not diagnosis.skipped:
        return []
    if whole:
        said = "; ".join(repr(skip) for skip in diagnosis.skipped)
    else:
        said = ", ".join(f"{skip.id} ({skip.reason})" for skip in diagnosis.skipped)
    lines = textwrap.wrap(f"skipped {said}", WIDTH, subsequent_indent=_INDENT)
    return lines if whole or len(lines) <= 4 else [*lines[:3], _cut(lines[3], WIDTH - 3) + "..."]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "~"
