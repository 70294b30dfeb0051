"""What an examination found, in sentences that hold its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .leaks import Leaks

if TYPE_CHECKING:
    from .examination import RelationalExamination

COLLAPSE = 0.05
"""How far accuracy on unseen pictures must fall below its greatest value to be called a collapse."""
NEAR = 0.02
"""Accuracies nearer than this are told as equal."""
LEARNED = 0.1
"""What does not get this far above chance has not learned enough to be explained."""
STRAY = 0.05
"""Answers may hang by a rounding: as many as this may differ without being told."""


def findings(found: RelationalExamination) -> list[str]:
    """Sentences about the task and what was learned of it, about the encoder, and about relations."""
    return [*_about_task(found), *_about_encoder(found), *_about_relations(found)]


def _about_task(found: RelationalExamination) -> list[str]:
    accuracy = found.accuracy
    sentences = [
        f"accuracy on problems of the test {accuracy.mean:.3f} ({accuracy.least:.3f} to {accuracy.greatest:.3f}), of "
        f"training {found.train.mean:.3f}; chance {found.chance:.3f}"
    ]
    if found.diverged:
        sentences.append(f"{found.diverged} of {accuracy.n} runs ended at a loss that is no number")
    if not _learned(found):
        sentences.append("training problems were not learned: nothing below says what the architecture can do")
    if found.shortcut_accuracy > found.chance + 0.1:
        sentences.append(
            f"the rule of thumb {found.shortcut!r} alone answers {found.shortcut_accuracy:.3f}: accuracy up to there "
            "shows nothing about relations"
        )
    if found.one_by_one > found.chance + 0.1:
        sentences.append(
            f"pictures one by one, no two of them together, answer {found.one_by_one:.3f}: up to there nothing has to "
            "be compared"
        )
    return [*sentences, *_about_oracle(found), *_about_leaks(found.leaks)]


def _learned(found: RelationalExamination) -> bool:
    return found.train.mean > found.chance + LEARNED


def _about_oracle(found: RelationalExamination) -> list[str]:
    told = f"a decoder that is told which objects are equal reaches {found.oracle:.3f}"
    if found.accuracy.mean > found.oracle + NEAR:
        return [f"{told}: what goes beyond is not owed to sameness"]
    if found.oracle < 0.98:
        worst = min(found.oracle_by_pattern, key=lambda name: found.oracle_by_pattern[name])
        return [
            f"{told} ({worst!r}: {found.oracle_by_pattern[worst]:.3f}): what training shows of sameness does not "
            "determine the answers"
        ]
    if found.accuracy.mean < found.oracle - NEAR:
        return [f"{told}: what fails are the relations or their training, not the decoder"]
    return []


def _about_leaks(leaks: Leaks) -> list[str]:
    sentences = []
    if leaks.shown > STRAY:
        sentences.append(
            f"{leaks.shown:.0%} of test problems show pictures of training alone: this is no accuracy about unseen ones"
        )
    if leaks.outside:
        sentences.append(f"{leaks.outside:.0%} of test problems hold pictures that the task does not list for the test")
    if leaks.by_batch > STRAY:
        sentences.append(f"{leaks.by_batch:.0%} of answers change with the other problems of the batch: they leak")
    if leaks.by_number > STRAY:
        sentences.append(f"{leaks.by_number:.0%} of answers change with the numbering of the pictures: they leak")
    if leaks.by_copy > STRAY:
        sentences.append(
            f"{leaks.by_copy:.0%} of answers change when equal pictures have different numbers: they are read from the "
            "index, and leak"
        )
    return sentences


def _about_encoder(found: RelationalExamination) -> list[str]:
    sentences = []
    if found.collapses:
        sentences.append(
            f"{found.collapses} of {found.accuracy.n} runs lost more than {COLLAPSE:g} on unseen pictures while "
            f"problems of training stayed right: greatest {found.greatest.mean:.3f}, last {found.accuracy.mean:.3f}"
        )
    if found.frozen is not None:
        gap = found.accuracy.mean - found.frozen.mean
        words = "learning to see adds nothing" if abs(gap) < NEAR else f"learning the encoder changes it by {gap:+.3f}"
        said = f": {words}" if _learned(found) else ""  # equal at chance is no evidence of anything
        sentences.append(f"with the encoder at its random start {found.frozen.mean:.3f}{said}")
    if found.gradient_ratio is not None and found.encoder_movement is not None:
        sentences.append(
            f"the encoder's gradient is {found.gradient_ratio:.2g} of the rest at the start; its weights moved by "
            f"{found.encoder_movement:.2%}"
        )
    return sentences


def _about_relations(found: RelationalExamination) -> list[str]:
    sentences = []
    if found.relation_score is not None:
        sentences.append(
            f"a pair of equal unseen objects has the greater relation with probability {found.relation_score:.3f}"
        )
    if found.margin is not None:
        side = "all equal pairs are more similar than all different ones" if found.margin > 0 else "they overlap"
        sentences.append(f"margin of similarities {found.margin:.3g}: {side}")
    if len(found.by_pattern) > 1:
        worst = min(found.by_pattern, key=lambda name: found.by_pattern[name])
        best = max(found.by_pattern, key=lambda name: found.by_pattern[name])
        if found.by_pattern[best] - found.by_pattern[worst] > 0.05:
            sentences.append(
                f"by pattern {found.by_pattern[worst]:.3f} ({worst}) to {found.by_pattern[best]:.3f} ({best})"
            )
    return sentences
