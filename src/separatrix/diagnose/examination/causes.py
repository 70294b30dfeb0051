"""Which finding is the cause of which: one cause is said first, and what follows from it under it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..findings.finding import Finding
from ..findings.severity import rank

CAUSES: dict[str, tuple[str, ...]] = {
    "nonfinite_weights": ("nonfinite_output", "nonfinite_gradient"),
    "nonfinite_input": ("nonfinite_output", "nonfinite_gradient"),
    "nonfinite_output": ("nonfinite_gradient",),
    "unscaled_input": ("saturated", "initial_loss", "exploding", "vanishing", "learning_rate", "dead_units"),
    "softmax_axis": ("causal_leak", "batch_mixing"),
    "batch_mixing": ("time_cut",),
    "symmetric_units": ("stuck_weights", "dead_units", "saturated", "rank_collapse", "short_memory", "time_growth",
                        "vanishing", "exploding", "attention_collapse", "input_lost"),
    "stale_statistics": ("dead_units", "vanishing", "stuck_weights", "exploding", "initial_loss", "input_lost"),
    "tiny_norm_batch": ("dead_units", "vanishing", "stuck_weights", "input_lost"),
    "dead_units": ("stuck_weights", "input_lost", "vanishing"),
    "time_growth": ("saturated", "exploding", "initial_loss"),
    "short_memory": ("saturated", "vanishing"),
    "no_equilibrium": ("saturated", "exploding"),
    "attention_collapse": ("vanishing", "exploding", "initial_loss"),
    "rank_collapse": ("vanishing", "input_lost"),
    "exploding": ("initial_loss", "learning_rate", "saturated", "attention_collapse"),
    "input_lost": ("stuck_weights", "vanishing"),
    "initial_loss": ("learning_rate",),
    "saturated": ("vanishing", "stuck_weights"),
    "detached": ("frozen_layer", "vanishing", "input_lost", "time_cut"),
}  # fmt: skip
"""Measured on the bench: what each planted fault brings along."""


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Worst first, each cause directly before its consequences; notes and what is fine at the end."""
    present = {finding.id for finding in findings if rank(finding.severity) >= 2}
    cause_of: dict[str, str] = {}
    for cause, effects in CAUSES.items():
        if cause in present:
            for effect in effects:
                if effect in present or any(finding.id == effect for finding in findings):
                    cause_of.setdefault(effect, cause)
    for effect in list(cause_of):  # two that name each other: the one listed first is the cause
        if cause_of.get(cause_of[effect]) == effect:
            del cause_of[effect]
    roots = [finding for finding in findings if finding.id not in cause_of or finding.severity == "ok"]
    roots.sort(key=lambda finding: -_weight(finding, findings, cause_of))
    result: list[Finding] = []
    last = {root.id: root for root in roots}
    for root in roots:
        follow = _effects(root.id, findings, cause_of)
        ids = tuple(dict.fromkeys(finding.id for finding in follow))
        result.append(dataclasses.replace(root, consequences=ids) if ids else root)
        if last[root.id] is root:
            everything = _all_effects(root.id, findings, cause_of)
            result += [dataclasses.replace(effect, follows=cause_of[effect.id]) for effect in everything]
    return tuple(result)


def _weight(finding: Finding, findings: Sequence[Finding], cause_of: dict[str, str]) -> int:
    """A cause counts as much as the worst that follows from it."""
    if finding.severity in ("ok", "note"):
        return rank(finding.severity)
    return max([rank(finding.severity), *(rank(other.severity) for other in _effects(finding.id, findings, cause_of))])


def _effects(id: str, findings: Sequence[Finding], cause_of: dict[str, str]) -> list[Finding]:
    return [finding for finding in findings if cause_of.get(finding.id) == id and finding.severity != "ok"]


def _all_effects(id: str, findings: Sequence[Finding], cause_of: dict[str, str]) -> list[Finding]:
    result = []
    for effect in _effects(id, findings, cause_of):
        result += [effect, *_all_effects(effect.id, findings, {k: v for k, v in cause_of.items() if k != effect.id})]
    return result
