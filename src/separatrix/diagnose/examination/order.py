"""The order of work: certain and cheap first, spectra last; what no longer fits the budget is listed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..detectors.forward import batch, numbers, signal, structure, units
from ..detectors.layers import attention, families, iterated, recurrence, time
from ..detectors.theory import balance, blocks, equilibria
from ..detectors.training import laziness, loss, precision, sharpness, stuck
from ..findings.finding import Finding
from ..recording.observed import Observed

Detector = Callable[[Observed], list[Finding]]

STATIC: tuple[Detector, ...] = (numbers.nonfinite_weights, numbers.nonfinite_input, numbers.unscaled_input)
"""Without running the model."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """Detectors that share their passes, and what these cost in forwards."""

    name: str
    detectors: tuple[Detector, ...]
    forwards: float


STAGES: tuple[Stage, ...] = (
    Stage("forward", (numbers.nonfinite_output, loss.output_loss_mismatch, loss.initial_loss), 0.5),
    Stage("operations", (units.dead_units, units.saturated, batch.tiny_norm_batch, batch.stale_statistics,
                         iterated.no_equilibrium), 0.2),
    Stage("structure", (structure.detached, structure.unused_parameters, structure.frozen_layer,
                        structure.missing_activation, structure.broken_tie), 0.3),
    Stage("gradients", (numbers.backward_raises, numbers.nonfinite_gradient, units.symmetric_units, signal.input_lost,
                        signal.vanishing, signal.exploding), 5.0),
    Stage("samples", (batch.batch_mixing,), 4.0),
    Stage("attention", (attention.attention_collapse, attention.softmax_axis, attention.rank_collapse,
                        attention.causal_leak), 2.5),
    Stage("time", (time.memory, time.time_cut), 2.5),
    Stage("zero gradients", (stuck.stuck_weights,), 0.0),
    Stage("one step", (loss.learning_rate, laziness.lazy), 3.0),
    Stage("weights", (families.initial_families,), 1.0),
    Stage("exponents", (recurrence.exponents,), 0.0),
    Stage("sharpness", (sharpness.sharpness,), 0.0),
    Stage("precision", (precision.precision,), 12.0),
    Stage("theory", (blocks.block_spectra, balance.balance, equilibria.rest_points,
                     equilibria.attention_equilibria), 0.0),
)  # fmt: skip
