"""Look inside anybody's recurrent network."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, Result, as_tensor, choose, require_integer, spawn
from separatrix.core.wording import folded, readable

from ..steps.network import RecurrentNetwork, run
from ..steps.reading import RecurrentSource, recurrent_networks
from ..steps.state_dicts import networks_of_state
from ..weight_files import read_weights, tensors_of
from .exponents import LyapunovSpectrum
from .jacobians import RunJacobians
from .layer_report import LayerReport, RunSettings, layer_report, run_exponents
from .linear import LinearRecurrence, recurrences_of_state

MADE_UP = ("zeros", "gaussian", "uniform")
_MADE_STEPS = 300


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RecurrentReport(Result):
    """What recurrent networks do: one report for each layer and direction."""

    layers: tuple[LayerReport, ...]
    linear: tuple[LinearRecurrence, ...]
    """State-space layers and other recurrences that are linear in the state."""
    inputs_are: str
    """What the networks were run on."""
    not_measured: tuple[str, ...]

    @property
    def verdicts(self) -> tuple[str, ...]:
        """All sentences, each with the name of its layer."""
        said = [f"{layer.name or layer.kind}: {sentence}" for layer in self.layers for sentence in layer.verdicts]
        return (*said, *(f"{part.name or part.kind}: {_linear_sentence(part)}" for part in self.linear))

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Flat rows: recurrent matrices, runs, linear recurrences."""
        return {
            "matrices": [
                {"layer": layer.name or layer.kind, **block.row()} for layer in self.layers for block in layer.blocks
            ],
            "runs": [_run_row(layer) for layer in self.layers if layer.spectrum is not None],
            "linear recurrences": [part.row() for part in self.linear],
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row for each recurrent matrix."""
        return self.tables()["matrices"]

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in (*self.verdicts, *self.not_measured))
        tables = "".join(_html_table(title, rows) for title, rows in self.tables().items() if rows)
        words = f"<details><summary>as text</summary><pre>{html.escape(repr(self))}</pre></details>"
        return f"<p><b>Recurrent networks</b>, {html.escape(self.inputs_are)}</p><ul>{said}</ul>{tables}{words}"

    def __repr__(self) -> str:
        lines = [f"RecurrentReport, {self.inputs_are}", *(repr(layer) for layer in self.layers)]
        lines += [f"{part.name or part.kind}: {_linear_sentence(part)}" for part in self.linear]
        return folded("\n".join([*lines, *self.not_measured]))


def recurrent(
    source: RecurrentSource,
    inputs: Any = None,
    *,
    states: Any = None,
    direct: Tensor | None = None,
    n_sequences: int = 2,
    n_exponents: int | None = None,
    warm_up: int | None = None,
    nonlinearity: str = "tanh",
    seed: int = 0,
) -> RecurrentReport:
    """Look inside a recurrent network: its matrices, and what signals and gradients do along a run.

    For each layer and direction: spectrum, singular values, non-normality and Schur form of each gate's matrix; along a
    run on the inputs the exponents of the products of Jacobians of the whole state (h and c of an LSTM), norms of
    those products and of gradients, and the Fisher memory of the linearisation at the mean state. A gated network is
    not judged by the radius of its matrices: in trained LSTMs it is 3 to 30, and they work. State-space layers and
    other linear recurrences get their time constants, exactly.

    Args:
        source: ``nn.RNN``, ``nn.GRU``, ``nn.LSTM``, their cells, a module with such inside, a module called as
            ``output, h_n = module(x, h_0)``, a function or method ``step(x, state)``, a state dict, or a
            ``.safetensors``, ``.npz``, weights-only checkpoint or TorchScript file (nothing in it is executed).
        inputs: sequences as the module takes them ((batch, time, features) for files and steps; for a whole model
            whatever it takes), a mapping from the names of several networks to theirs, or ``"zeros"``,
            ``"gaussian"`` or ``"uniform"`` for 300 made-up steps; without inputs only matrices are measured.
        states: a batch of states, for a step of which nothing else is known.
        direct: (batch, time, state) derivatives of your loss by each state; by default the loss is a random
            combination of the last one.
        n_sequences: most sequences of a batch that are used.
        n_exponents: how many; all up to 256 numbers in a state, else 20.
        warm_up: steps left out of the exponents; by default 100, or a quarter of a shorter run.
        nonlinearity: of plain networks in files, ``"tanh"`` or ``"relu"``.
        seed: of made-up inputs, tangent vectors and resampling.

    Raises:
        InvalidInput: there is no recurrent network, or the inputs do not fit it.

    Cost: a Jacobian and a QR decomposition per step and sequence; an LSTM of 128 units takes about a second for a
    hundred steps.

    Example:
        >>> found = recurrent(torch.nn.GRU(3, 8, batch_first=True), torch.zeros(1, 40, 3))
        >>> found.layers[0].gated, len(found.layers[0].spectrum.exponents)
        (True, 8)
    """
    require_integer(n_sequences, "n_sequences", at_least=1)
    if n_exponents is not None:
        require_integer(n_exponents, "n_exponents", at_least=1)
    if warm_up is not None:
        require_integer(warm_up, "warm_up", at_least=0)
    given = _given(inputs)
    networks, linear, missing = _everything(source, given, states, nonlinearity)
    settings = RunSettings(n_exponents, warm_up, direct, seed)
    reports: list[LayerReport] = []
    for place, network in enumerate(networks):
        x = _entering(network, given, place, seed)
        x = None if x is None else x[:n_sequences]
        if x is None:
            missing.append(_not_run(network, given))
        reports += _network_reports(network, x, settings)
    linear += [layer.linear for layer in reports if layer.linear is not None]
    return RecurrentReport(tuple(reports), tuple(linear), _described(given), tuple(missing))


def exponents_alone(
    source: nn.Module, inputs: Tensor, *, n_exponents: int, seed: int
) -> list[tuple[str, LyapunovSpectrum]]:
    """Exponents of each layer and direction of one recurrent module, with its name; nothing else is measured."""
    settings = RunSettings(n_exponents, None, None, seed)
    (network,) = recurrent_networks(source, inputs)
    found = []
    for level, entering in zip(network.levels, network.fed(network.sequences(inputs)), strict=True):
        for back, layer in enumerate(level):
            x = entering.flip(1) if back else entering
            jacobians = RunJacobians(layer, x, run(layer, x))
            found.append((layer.name, run_exponents(layer, x, jacobians, settings)))
    return found


def _given(inputs: Any) -> Any:
    if isinstance(inputs, str):
        return choose("inputs", inputs, MADE_UP, also="a tensor of sequences")
    plain = inputs is None or isinstance(inputs, Tensor | Mapping | tuple)
    return inputs if plain else as_tensor(inputs, "inputs")


def _everything(
    source: RecurrentSource, inputs: Any, states: Any, nonlinearity: str
) -> tuple[list[RecurrentNetwork], list[LinearRecurrence], list[str]]:
    """Recurrent networks and linear recurrences; if there are only the latter, why the former are not."""
    state: Mapping[str, Tensor] | None = None
    if isinstance(source, nn.Module):
        state = source.state_dict()
    elif isinstance(source, Mapping):
        state = tensors_of(source)
    elif isinstance(source, str | Path):
        state = read_weights(Path(source))
    linear = recurrences_of_state(state) if state is not None else []
    try:
        if state is None or isinstance(source, nn.Module):
            return recurrent_networks(source, inputs, states, nonlinearity=nonlinearity), [], []
        kind: Any = choose("nonlinearity", nonlinearity, ("tanh", "relu"))
        return networks_of_state(state, kind), linear, []
    except InvalidInput as error:
        if not linear:
            raise
        return [], linear, [f"Not run: {error}"]


def _network_reports(network: RecurrentNetwork, x: Tensor | None, settings: RunSettings) -> list[LayerReport]:
    """A report for each level and direction; a backward layer sees its input from the end."""
    fed = [None] * len(network.levels) if x is None else network.fed(x)
    reports = []
    for number, (level, entering) in enumerate(zip(network.levels, fed, strict=True)):
        is_top = number == len(network.levels) - 1
        own = settings if is_top and len(level) == 1 else dataclasses.replace(settings, direct=None)
        for back, layer in enumerate(level):
            given = None if entering is None else entering.flip(1) if back else entering
            _check_direct(own.direct, given, layer.state_size)
            reports.append(layer_report(layer, given, own))
    return reports


def _check_direct(direct: Tensor | None, x: Tensor | None, size: int) -> None:
    if direct is None or x is None:
        return
    if direct.ndim != 3 or len(direct) < len(x) or direct.shape[1:] != (x.shape[1], size):
        raise InvalidInput(
            f"direct must be (batch, {x.shape[1]}, {size}), a derivative by the state of the top layer at each step; "
            f"got {tuple(direct.shape)}."
        )


def _entering(network: RecurrentNetwork, inputs: Any, place: int, seed: int) -> Tensor | None:
    """What one network is run on; None if nothing that it could be run on was given."""
    if isinstance(inputs, str):
        return _made_up(inputs, network.input_size, seed)
    if network.captured is not None:
        return network.captured
    if isinstance(inputs, Mapping):
        own = inputs.get(network.name)
        return None if own is None else network.sequences(as_tensor(own, "inputs"), f"inputs[{network.name!r}]")
    if isinstance(inputs, Tensor) and (place == 0 or inputs.shape[-1] == network.input_size):
        return network.sequences(inputs) if place == 0 else None
    return None


def _made_up(kind: str, size: int, seed: int) -> Tensor:
    shape, generator = (2, _MADE_STEPS, size), spawn(seed, "diagnose", "inputs")
    if kind == "zeros":
        return torch.zeros(shape, dtype=torch.float64)
    if kind == "gaussian":
        return torch.randn(shape, generator=generator, dtype=torch.float64)
    return torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1


def _not_run(network: RecurrentNetwork, inputs: Any) -> str:
    where = network.name or "the network"
    if inputs is None:
        return f"Not run: no inputs were given for {where}; matrices alone say nothing about a gated network."
    return f"Not run: what reaches {where} is not known; pass inputs={{{network.name!r}: sequences}}."


def _described(inputs: Any) -> str:
    if inputs is None:
        return "without inputs"
    if isinstance(inputs, str):
        return f"run on made-up inputs ({inputs}, {_MADE_STEPS} steps)"
    return "run on the inputs given"


def _run_row(layer: LayerReport) -> dict[str, Any]:
    spectrum, flow, memory = layer.spectrum, layer.gradients, layer.memory
    assert spectrum is not None
    assert flow is not None
    assert memory is not None
    return {
        "layer": layer.name or layer.kind,
        "top exponent": float(spectrum.exponents[0]),
        "standard error": float(spectrum.standard_errors[0]),
        "extinguished": spectrum.n_extinguished,
        "dimension": spectrum.dimension,
        "gradient steps to e": flow.steps_to_e,
        "memory": None if memory.totals is None else float(memory.totals.max()),
    }


def _html_table(title: str, rows: list[dict[str, Any]]) -> str:
    table = readable(rows, title=title)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in table.cells)
    return f"<table><caption>{html.escape(title)}</caption><tr>{head}</tr>{body}</table>"


def _linear_sentence(part: LinearRecurrence) -> str:
    row = part.row()
    words = (
        f"{row['kind']}: {row['modes']} modes with time constants from {row['shortest']:.3g} to {row['longest']:.3g} "
        f"steps (median {row['median']:.3g}); {row['accumulators (1000 steps)']} of them sum their inputs over 1000 "
        "steps as if they never forgot"
    )
    return words + (f"; {row['unstable']} grow without end." if row["unstable"] else ".")
