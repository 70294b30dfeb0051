"""One recurrent layer looked at: its matrices, and what it does along a run."""

from __future__ import annotations

import dataclasses
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Result
from separatrix.core.wording import folded
from separatrix.matrices import robust_eigenvalues

from ..steps.base import AbstractRecurrentMap
from ..steps.called import CalledMap
from ..steps.network import run
from .blocks import BlockMeasures, measured_blocks
from .exponents import LyapunovSpectrum, lyapunov_spectrum
from .gradients import GradientFlow, gradient_flow
from .jacobians import RunJacobians
from .linear import LinearRecurrence, recurrence_of_map
from .memory import LinearisedMemory, linearised_memory
from .verdict import exponent_sentence, gradient_sentence, memory_sentence, normality_sentence, radius_sentence

ALL_EXPONENTS = 256
"""Entries of a state up to which all exponents are computed by default."""
FEW_EXPONENTS = 20
_LOOKED_AT = 12


@final
@dataclasses.dataclass(frozen=True)
class RunSettings:
    """How a run is looked at."""

    n_exponents: int | None
    warm_up: int | None
    direct: Tensor | None
    seed: int


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LayerReport(Result):
    """A layer of one direction. What needs a run is None without inputs."""

    name: str
    kind: str
    gated: bool
    """Whether it is refused to judge it by its matrices."""
    state_size: int
    blocks: tuple[BlockMeasures, ...]
    visited_radius: Float[Tensor, " s"] | None
    """Spectral radius of the Jacobian of the whole state at visited states along the run."""
    spectrum: LyapunovSpectrum | None
    gradients: GradientFlow | None
    memory: LinearisedMemory | None
    linear: LinearRecurrence | None
    """If the step is linear in the state."""
    verdicts: tuple[str, ...]
    note: str = ""

    def __repr__(self) -> str:
        lines = [f"{self.name or 'the layer'}: {self.kind}, {self.state_size} numbers in its state"]
        lines += [f"  {_shown(block.row())}" for block in self.blocks]
        return folded("\n".join([*lines, *(f"  {sentence}" for sentence in self.verdicts)]))


def layer_report(
    layer: AbstractRecurrentMap, x: Float[Tensor, "batch t i"] | None, settings: RunSettings
) -> LayerReport:
    """Everything of one layer, given what enters it."""
    called = isinstance(layer, CalledMap)
    blocks = measured_blocks(layer.blocks)
    if x is None:
        sentences = _without_run(blocks, layer, called=called)
        return LayerReport(
            layer.name, layer.kind, layer.gated, layer.state_size, tuple(blocks), None, None, None, None, None,
            sentences, layer.note,
        )  # fmt: skip
    states = run(layer, x)
    if not blocks:
        centre, entering = states[:, 1:].mean((0, 1)).unsqueeze(0), x.mean((0, 1)).unsqueeze(0)
        blocks = measured_blocks({"Jacobian at the mean state": layer.jacobian(entering, centre)[0]})
    jacobians, shape = RunJacobians(layer, x, states), (*x.shape[:2], layer.state_size)
    spectrum = run_exponents(layer, x, jacobians, settings)
    flow = gradient_flow(jacobians, shape, settings.direct, settings.seed)
    memory = linearised_memory(layer, x, states)
    linear = recurrence_of_map(layer, x.flatten(0, 1)) if called else None
    sentences = (
        *_without_run(blocks, layer, called=called),
        exponent_sentence(spectrum, states),
        gradient_sentence(flow),
        memory_sentence(memory),
    )
    return LayerReport(
        layer.name, layer.kind, layer.gated, layer.state_size, tuple(blocks), _visited_radius(layer, x, states),
        spectrum, flow, memory, linear, sentences, layer.note,
    )  # fmt: skip


def run_exponents(
    layer: AbstractRecurrentMap, x: Float[Tensor, "batch t i"], jacobians: RunJacobians, settings: RunSettings
) -> LyapunovSpectrum:
    """Exponents of the products of Jacobians along a run."""
    shape = (*x.shape[:2], layer.state_size)
    return lyapunov_spectrum(jacobians, shape, _count(layer, settings), _warm_up(x, settings), settings.seed)


def _without_run(blocks: list[BlockMeasures], layer: AbstractRecurrentMap, *, called: bool) -> tuple[str, ...]:
    said = (radius_sentence(blocks, layer.kind, gated=layer.gated, called=called), normality_sentence(blocks))
    return tuple(sentence for sentence in said if sentence)


def _visited_radius(layer: AbstractRecurrentMap, x: Tensor, states: Tensor) -> Tensor:
    steps = torch.linspace(0, x.shape[1] - 1, min(_LOOKED_AT, x.shape[1])).long()
    jacobians = layer.jacobian(x[0, steps], states[0, steps])
    return robust_eigenvalues(jacobians).abs().amax(-1)


def _count(layer: AbstractRecurrentMap, settings: RunSettings) -> int:
    if settings.n_exponents is not None:
        return min(settings.n_exponents, layer.state_size)
    return layer.state_size if layer.state_size <= ALL_EXPONENTS else FEW_EXPONENTS


def _warm_up(x: Tensor, settings: RunSettings) -> int:
    if settings.warm_up is None:
        return min(100, x.shape[1] // 4)
    if settings.warm_up >= x.shape[1]:
        raise InvalidInput(f"warm_up must leave some of the {x.shape[1]} steps; got {settings.warm_up}.")
    return settings.warm_up


def _shown(row: dict[str, Any]) -> str:
    numbers = [f"{name} {value:.4g}" for name, value in row.items() if isinstance(value, float)]
    return f"{row['gate']}: {', '.join(numbers)}"
