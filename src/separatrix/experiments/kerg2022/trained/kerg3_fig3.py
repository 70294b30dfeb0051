"""kerg2022, Fig. 3: the Schur form that an nnRNN learns for copy and for characters."""

from __future__ import annotations

from typing import Any

from separatrix.lab import Cell, Claim, Experiment, Judgement, Payload, in_turn, instead, interval_row, judge

from .schur_forms import FORMS, GAPS, Measured, Settings, draw, expand, form_row, gap_row, moved, run_form, summarise

CRITICAL = 1.36
"""Kolmogorov's five per cent."""
SMOKE = {
    "n_hidden": 12,
    "delay": 5,
    "copy_steps": 6,
    "pixels_data": "digits",
    "pixels_batch": 400,
    "pixels_epochs": 1,
    "text": "made-up",
    "context": 8,
    "text_batch": 8,
    "text_steps": 6,
    "n_characters": 2000,
}
LAPTOP = {
    "n_hidden": 64,
    "copy_rate": 4.0,
    "pixels_rate": 4.0,
    "characters_rate": 2.0,
    "delay": 50,
    "copy_steps": 500,
    "pixels_data": "digits",
    "pixels_batch": 50,
    "pixels_epochs": 10,
    "text": "tiny-shakespeare",
    "context": 80,
    "text_batch": 20,
    "text_steps": 400,
    "n_characters": 50_000,
}


def run(cell: Cell) -> Payload:
    """Train one nnRNN and read its form."""
    return run_form(cell)


def judge_normal(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch3-fig3-copy``."""
    singular = form_row(summary, "copy", "largest_singular_value")
    share = form_row(summary, "copy", "feedforward")
    rows = [
        interval_row("largest singular value, copy", singular["mean"], (singular["low"], singular["high"]), below=1.1)
    ]
    small = [interval_row("share of T in the form", share["mean"], (share["low"], share["high"]), below=0.5)]
    evidence = f"T has {share['mean']:.2f} of the norm of the form; largest singular value {singular['mean']:.2f}"
    return judge(evidence, rows, instead("T stays smaller than the rotations, and is not zero", small))


def judge_structure(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch3-fig3-text``."""
    row = gap_row(summary, "copy", "characters", "feedforward")
    means = [form_row(summary, task, "feedforward")["mean"] for task in ("copy", "characters")]
    rows = [interval_row("share of T, characters minus copy", row["gap"], (row["low"], row["high"]), above=0.0)]
    return judge(f"T has {means[0]:.2f} of the norm of the form after copy, {means[1]:.2f} after characters", rows)


def judge_angles(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch3-fig3-angles``."""
    copy = form_row(summary, "copy", "angle_distance")
    gap = gap_row(summary, "copy", "characters", "angle_distance")
    rows = [
        interval_row("distance from uniform, copy", copy["mean"], (copy["low"], copy["high"]), below=CRITICAL),
        interval_row("distance, characters minus copy", gap["gap"], (gap["low"], gap["high"]), above=0.0),
    ]
    text = form_row(summary, "characters", "angle_distance")["mean"]
    return judge(f"distance from uniform {copy['mean']:.2f} (copy), {text:.2f} (characters); 1.36 is critical", rows)


def judge_moduli(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch3-fig3-moduli``."""
    copy, text = (form_row(summary, task, "mean_modulus") for task in ("copy", "characters"))
    rows = [
        interval_row("mean modulus, characters", text["mean"], (text["low"], text["high"]), below=0.99),
        interval_row("mean modulus, copy", copy["mean"], (copy["low"], copy["high"]), above=0.99),
    ]
    return judge(f"mean modulus {copy['mean']:.3f} (copy), {text['mean']:.3f} (characters)", rows)


def form_claim(id: str, statement: str, measures: str, test: str, **rest: Any) -> Claim:
    """A claim of this figure, which training must have gone some way for; T grows with every step."""
    return Claim(id=id, statement=statement, measures=measures, test=test, scale="laptop", **rest)


EXPERIMENT = Experiment(
    name="kerg3-fig3",
    title="Learned Schur forms of copy and characters",
    document="kerg2022",
    place="Fig. 3, section 3.6.3",
    version=1,
    scales={"smoke": Settings(seeds=(0, 1), **SMOKE), "laptop": Settings(**LAPTOP), "paper": Settings()},  # type: ignore[arg-type]
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        form_claim(
            "kerg2022-ch3-fig3-copy",
            "After the copy task the form consists of rotation blocks: T = 0, and the network is normal.",
            "largest singular value, which is the largest modulus for a normal matrix; share of T",
            "95 % interval over seeds below 1.1",
            judge=judge_normal,
            counterfeit=moved(FORMS, 1.5, 2.5, task="copy", quantity="largest_singular_value"),
            genuine=moved(FORMS, 1.0, 1.05, task="copy", quantity="largest_singular_value"),
            erratum="kerg2022-copy-normal",
        ),
        form_claim(
            "kerg2022-ch3-fig3-text",
            "Characters make much more use of T than the copy task.",
            "share of T in the norm of the form, characters minus copy, seed by seed",
            "95 % interval above 0",
            judge=judge_structure,
            counterfeit=moved(GAPS, -0.3, -0.1, quantity="feedforward"),
            genuine=moved(GAPS, 0.1, 0.3, quantity="feedforward"),
        ),
        form_claim(
            "kerg2022-ch3-fig3-angles",
            "Angles stay roughly uniform for copy and align strongly for characters.",
            "Kolmogorov distance of the angles from the uniform law",
            "95 % intervals: below 1.36 for copy, larger for characters",
            judge=judge_angles,
            counterfeit=moved(GAPS, -1.0, -0.5, quantity="angle_distance"),
            genuine=in_turn(
                moved(GAPS, 0.5, 1.0, quantity="angle_distance"),
                moved(FORMS, 0.5, 1.0, task="copy", quantity="angle_distance"),
            ),
        ),
        form_claim(
            "kerg2022-ch3-fig3-moduli",
            "The mean modulus falls below one for characters and stays at one for copy.",
            "mean of gamma after training",
            "95 % intervals: below .99 for characters, above .99 for copy",
            judge=judge_moduli,
            counterfeit=moved(FORMS, 1.01, 1.05, task="characters", quantity="mean_modulus"),
            genuine=in_turn(
                moved(FORMS, 0.95, 0.97, task="characters", quantity="mean_modulus"),
                moved(FORMS, 0.995, 1.005, task="copy", quantity="mean_modulus"),
            ),
        ),
    ),
    draw=draw,
    data=("tiny-shakespeare", "ptb-char"),
)
