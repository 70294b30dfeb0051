"""A diagnosis in a notebook: a short table, everything escaped, no script."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .diagnosis import Diagnosis
    from .finding import Finding

_COLOURS = {"fault": "#b3261e", "warning": "#9a6700", "note": "#3b5b92", "ok": "#2e7d32"}


def as_html(diagnosis: Diagnosis) -> str:
    """Heading, a row for each finding, and what was skipped."""
    model, sample = diagnosis.model, diagnosis.sample
    head = f"{model['class']}, {model['parameters']:,} parameters; sample {sample['said']}; {sample['loss']}"
    rows = "".join(_row(finding) for finding in diagnosis.findings)
    skipped = "; ".join(repr(skip) for skip in diagnosis.skipped)
    tail = f"<p><small>skipped: {html.escape(skipped)}</small></p>" if skipped else ""
    return (
        f"<div><p><b>separatrix.check: {html.escape(diagnosis.verdict)}</b>, {html.escape(head)}, "
        f"{diagnosis.seconds:.1f} s</p><table>{rows}</table>{tail}"
        f"<details><summary>what was looked at</summary><pre>{html.escape(str(diagnosis))}</pre></details></div>"
    )


def _row(finding: Finding) -> str:
    said = html.escape(finding.meaning)
    if finding.follows:
        said += f" <i>(follows from {html.escape(finding.follows)})</i>"
    if finding.advice:
        said += f"<br>{html.escape(finding.advice)}"
    if finding.code:
        said += f"<br><code>{html.escape(finding.code)}</code>"
    if finding.evidence:
        said += f"<br><small>{html.escape(finding.evidence)}</small>"
    colour = _COLOURS[finding.severity]
    return (
        f"<tr><td style='color:{colour};text-align:left'><b>{finding.severity}</b></td>"
        f"<td style='text-align:left'>{html.escape(finding.id)}</td>"
        f"<td style='text-align:left'>{html.escape(finding.where)}</td>"
        f"<td style='text-align:left'>{html.escape(str(finding.certainty))}</td>"
        f"<td style='text-align:left'>{said}</td></tr>"
    )
