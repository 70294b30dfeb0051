"""The models of kerg2022's comparisons, built and trained as rows of its tables say."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from separatrix.sources.kerg2022.models import TABLES, ModelRow, model_row

if TYPE_CHECKING:
    from torch import nn

    from separatrix.training import ParameterGroup, TrainingSettings

MODELS = ("nnRNN", "expRNN", "RNN-orth", "EURNN", "LSTM", "RNN")
COUNTED = {
    "nnRNN": "nnrnn-printed",
    "expRNN": "exprnn",
    "EURNN": "exprnn",  # at full capacity, which has an angle for each pair of units
    "LSTM": "lstm",
    "RNN": "rnn",
    "RNN-orth": "rnn",
}


def find_row(table: str, name: str, sizes: tuple[int, int], n_hidden: int, match: str, lr_factor: float) -> ModelRow:
    """A row of a table with its rates times a factor.

    Args:
        table: name of the table.
        name: model, or row.
        sizes: numbers of inputs and outputs.
        n_hidden: size of the nnRNN that others are matched with; 0 is that of the table.
        match: ``"units"``, or ``"parameters"``: the size with the nearest number of parameters, among those of the
            table if ``n_hidden`` is 0.
        lr_factor: times both rates.
    """
    row = model_row(table, name)
    if match == "parameters" and name == row.model:
        row = _equal_row(table, row, sizes, n_hidden)
    elif n_hidden:
        row = dataclasses.replace(row, n_hidden=n_hidden)
    lr_orth = None if row.lr_orth is None else row.lr_orth * lr_factor
    return dataclasses.replace(row, lr=row.lr * lr_factor, lr_orth=lr_orth)


def _equal_row(table: str, row: ModelRow, sizes: tuple[int, int], n_hidden: int) -> ModelRow:
    from separatrix.nn import parameter_count

    n_inputs, n_outputs = sizes
    wanted = parameter_count("nnrnn-printed", n_inputs, n_hidden or model_row(table, "nnRNN").n_hidden, n_outputs)
    kind = COUNTED[row.model]

    def distance(size: int) -> int:
        return abs(parameter_count(kind, n_inputs, size, n_outputs) - wanted)

    if not n_hidden:
        return min((other for other in TABLES[table] if other.model == row.model), key=lambda o: distance(o.n_hidden))
    if row.model == "nnRNN":
        return dataclasses.replace(row, n_hidden=n_hidden)
    step = 2 if row.model == "EURNN" else 1  # its rotations turn pairs of units
    return dataclasses.replace(row, n_hidden=min(range(2, 2 * n_hidden, step), key=distance))


def build_core(row: ModelRow, n_inputs: int, generator: Any, *, gamma: Any = "learn", block: Any = "strict") -> Any:
    """The recurrent core of a row. EURNN gets its full capacity, which reaches all rotations; none is printed."""
    from separatrix import nn

    size, start = row.n_hidden, row.start
    if row.model == "nnRNN":
        return nn.NonNormalRNN(n_inputs, size, block, gamma=gamma, start=start, generator=generator)
    if row.model == "expRNN":
        return nn.ExpRNN(n_inputs, size, start=start, generator=generator)
    if row.model == "RNN-orth":
        return nn.FreeRNN(n_inputs, size, start=start, generator=generator)
    if row.model == "EURNN":
        return nn.EURNN(n_inputs, size, capacity=size, generator=generator)
    return glorot_core(row.model, n_inputs, size, generator)


def glorot_core(model: str, n_inputs: int, n_hidden: int, generator: Any) -> nn.Module:
    """torch's own RNN (tanh) or LSTM; the weights of each gate Glorot-normal over state and input together."""
    import torch
    from torch import nn

    kind = nn.LSTM if model == "LSTM" else nn.RNN
    core = kind(n_inputs, n_hidden, batch_first=True)
    scale = (2 / (2 * n_hidden + n_inputs)) ** 0.5
    with torch.no_grad():
        for name, parameter in core.named_parameters():
            if name.startswith("weight"):
                parameter.normal_(0, scale, generator=generator)
            else:
                parameter.uniform_(-(n_hidden**-0.5), n_hidden**-0.5, generator=generator)
    return core


def training_settings(row: ModelRow, n_steps: int, *, clip: float | None = None, **options: Any) -> TrainingSettings:
    """Optimiser, rates and groups of a row; further options are those of ``TrainingSettings``."""
    from separatrix.training import TrainingSettings

    momentum = {"beta1": 0.0} if row.optimiser == "adam" else {}
    return TrainingSettings(
        n_steps=n_steps,
        lr=row.lr,
        optimiser=row.optimiser,  # type: ignore[arg-type]
        beta2=row.alpha,
        groups=_groups(row),
        clip_norm=row.clip if clip is None else clip,
        **momentum,  # type: ignore[arg-type]
        **options,
    )


def _groups(row: ModelRow) -> tuple[ParameterGroup, ...]:
    from separatrix.training import ParameterGroup

    if row.model == "nnRNN":
        return (
            ParameterGroup(names="core.matrix.basis.*", lr=row.lr_orth),
            ParameterGroup(names="core.matrix.feedforward", weight_decay=row.decay),
        )
    if row.model == "expRNN":
        return (ParameterGroup(names="core.matrix.*", lr=row.lr_orth),)
    return ()


def with_penalty(loss: Any, model: Any, row: ModelRow) -> Any:
    """The loss to descend on: with the penalty on moduli, which no reported loss contains."""
    if row.model != "nnRNN" or row.delta == 0:
        return loss
    return loss + row.delta * model.core.matrix.modulus_penalty()
