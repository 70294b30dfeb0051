"""When attentive networks run by compiled loops, and how those are called.

Summed attention as the policy (or a memory of everything), the additive alignment and ``s = a h + b c`` have compiled
loops, for all cells; whatever else is asked for, or a memory that is carried in, runs by torch. In the mode ``auto``
loops run by torch until they have made as many steps as import and compilation are worth; see the scan.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, final

import numpy
import torch
from torch import Tensor

from separatrix.core.arithmetic.backend import current_backend, has_numba
from separatrix.core.arithmetic.readiness import Readiness

from ...recurrent.steps.compiled import PRECISIONS
from ...recurrent.steps.elman import NONLINEARITIES
from ..keeping.policies import AttentionSum
from ..keeping.slots import sorted_index
from .alignment import ALIGNMENTS
from .cells import ElmanCell, LstmCell
from .setup import Carried, Given, RunRecord, Setup

IMPORT_AFTER = 5_000
COMPILE_AFTER = 100_000
"""Steps by torch that take about as long as importing numba, and as compiling."""


@final
class CompiledRun:
    """One sequence by the compiled loops: the tables they fill on the way forward, and the way back."""

    def __init__(self, setup: Setup, given: Given) -> None:
        n_steps, batch = given.drives.shape[:2]
        size = given.key.shape[0]
        self.setup, self.shape = setup, (n_steps, batch, size)
        self.loops = _loops()
        self.cell = setup.make_cell(given.bias)
        new = given.drives.new_empty
        self.hidden, self.keys, self.queries = new(self.shape), new(self.shape), new(self.shape)
        self.states = new(n_steps + 1, batch, size)
        self.cells = new(n_steps + 1 if self.cell.has_carry else 1, batch, size)
        self.gates = new(n_steps if self.cell.has_carry else 0, batch, 4 * size)
        self.kept = torch.full((n_steps, batch, setup.n_relevant), -1, dtype=torch.int32)
        self.logged = given.drives.new_zeros(n_steps if setup.logs else 0, batch, self.n_buffer + setup.n_relevant)

    @property
    def n_buffer(self) -> int:
        """Newest rows that every step sees; all of them without screening."""
        return self.shape[0] if self.setup.n_buffer is None else self.setup.n_buffer

    def forward(self, given: Given, record: RunRecord) -> None:
        """All steps."""
        n_steps, batch, _ = self.shape
        self.states[0] = given.state
        if given.carried_cell is not None:
            self.cells[0] = given.carried_cell
        lengths = _steps(self.setup.lengths, n_steps, batch)
        kept_end = torch.full((batch, self.setup.n_relevant), -1, dtype=torch.int32)
        scores, final_scores = given.drives.new_zeros(2, n_steps, batch)
        vector, bias = given.vector, given.bias
        assert vector is not None
        packed = self.loops.packed
        panels, key_panels = packed(_array(given.projection.mT)), packed(_array(given.key.mT))
        self.loops.forward(
            _array(given.drives),
            tuple(map(_array, (self.hidden, self.keys, self.queries, self.states, self.cells))),
            (panels, key_panels, _array(vector), _array(torch.zeros_like(vector) if bias is None else bias)),
            self._settings(),
            lengths,
            *map(_array, (self.kept, kept_end, scores, final_scores, self.logged, self.gates)),
            self._space(2, panels, key_panels, 2),
            self._wide(),
        )
        self._leave(record, kept_end.long(), final_scores)

    def _settings(self) -> tuple[Any, ...]:
        assert self.setup.mix is not None
        kind = _array(self.hidden).dtype.type
        phi = self.loops.GATED if self.cell.has_carry else self.loops.CODES[self.cell.phi.name]  # type: ignore[attr-defined]
        screening = self.setup.screening
        normalise = "none" if screening is None else screening.normalise  # type: ignore[attr-defined]
        a, b = (kind(part) for part in self.setup.mix)
        width = self.loops.row_length(self.shape[2], self.hidden.element_size())
        return phi, self.n_buffer, self.loops.NORMALISATIONS[normalise], a, b, width

    def _leave(self, record: RunRecord, kept: Tensor, scores: Tensor) -> None:
        """What remains, in the form of the stores."""
        n_steps, batch, _ = self.shape
        ends = torch.full((batch,), n_steps) if self.setup.lengths is None else self.setup.lengths
        if self.setup.logs:
            record.weights, record.index = self.logged, self._history()
        if self.setup.n_buffer is None:
            steps = torch.arange(n_steps)
            index = torch.where(steps < ends.unsqueeze(1), steps, -1)
            record.memory = Carried(self.hidden.transpose(0, 1), index, torch.zeros_like(self.hidden[..., 0].mT))
            return
        record.relevant, record.scores = sorted_index(kept), scores.mT
        ring = ends.unsqueeze(1) - self.n_buffer + torch.arange(self.n_buffer)
        index = torch.cat([ring.clamp_min(-1), kept], 1)
        samples, rows = torch.arange(batch).unsqueeze(1), index.clamp_min(0)
        earned = torch.where(index >= 0, scores[rows, samples], 0.0)
        earned[:, self.n_buffer :].masked_fill_(kept < 0, -torch.inf)
        record.memory = Carried(self.hidden[rows, samples], index, earned)

    def _history(self) -> Tensor:
        """Steps that each attention saw, in the order of the places."""
        n_steps, batch, _ = self.shape
        steps = torch.arange(n_steps, dtype=torch.int32).unsqueeze(1)
        places = torch.arange(self.n_buffer, dtype=torch.int32)
        standing = (steps - (steps - places) % self.n_buffer).clamp_min(-1).unsqueeze(1).expand(-1, batch, -1)
        if self.setup.n_buffer is None and self.setup.lengths is not None:
            standing = torch.where(standing < self.setup.lengths.view(1, -1, 1), standing, -1)
        return torch.cat([standing, self.kept], 2)

    def backward(self, given: Given, incoming: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """Gradients by everything given; may be walked more than once."""
        _, batch, size = self.shape
        assert given.vector is not None
        by_drives = torch.empty_like(given.drives, memory_format=torch.contiguous_format)
        vector, bias = torch.zeros(2, size, dtype=torch.float64)
        initial, by_cell = given.drives.new_zeros(2, batch, size)
        none = given.drives.new_empty(0, batch, size)
        matrix, query = given.projection.split([len(given.projection) - size, size])
        panels = tuple(self.loops.packed(_array(weight)) for weight in (matrix, query, given.key))
        columns = panels[0].shape[0] * panels[0].shape[2]
        weights = tuple(given.drives.new_zeros(len(weight), columns) for weight in (matrix, query, given.key))
        self.loops.backward(
            tuple(_array(none if by is None else by) for by in incoming),
            tuple(map(_array, (self.hidden, self.keys, self.queries, self.states, self.cells))),
            (*panels, _array(given.vector)),
            self._settings(),
            *map(_array, (self.kept, self.logged, self.gates)),
            tuple(map(_array, (by_drives, *weights, vector, bias, initial, by_cell))),
            self._space(4, panels[0], panels[2], 3),
            self._wide(),
            self._portion(panels[0]),
        )
        by_matrix, by_query, by_key = (weight[:, :size] for weight in weights)
        by_bias = None if given.bias is None else bias.to(given.bias.dtype)
        carried = None if given.carried_cell is None else by_cell
        projection = torch.cat([by_matrix, by_query])
        return by_drives, initial, carried, projection, by_key.contiguous(), vector.to(given.vector.dtype), by_bias

    def _space(self, n_tables: int, panels: Any, key_panels: Any, n_lists: int) -> tuple[numpy.ndarray, ...]:
        """Working memory: tables of the slots, lines, sums of two products, lists of numbers of the slots."""
        n_steps, batch, _ = self.shape
        width = self._settings()[-1]
        n_slots = min(self.n_buffer, n_steps) + self.setup.n_relevant
        sums = [batch * table.shape[0] * table.shape[2] for table in (panels, key_panels)]
        lists = [self.loops.row_length(n_slots, self.hidden.element_size())] * n_lists
        sizes = [*[batch * n_slots * width] * n_tables, self.loops.N_LINES * width, *sums, *lists]
        return tuple(self.hidden.new_zeros(count).numpy() for count in sizes)

    def _wide(self) -> numpy.ndarray:
        n_steps, batch, _ = self.shape
        return numpy.zeros((batch, min(self.n_buffer, n_steps) + self.setup.n_relevant), numpy.bool_)

    def _portion(self, panels: numpy.ndarray) -> tuple[numpy.ndarray, ...]:
        """Room for what is added up for some steps at a time."""
        n_steps, batch, size = self.shape
        steps = min(n_steps, max(1, self.loops.TERMS // batch))
        query, key = self.hidden.new_empty(2, steps, batch, size)
        panel = self.hidden.new_zeros(self.loops.OUTER_TERMS, panels.shape[2])
        return tuple(map(_array, (query, key, panel, self.hidden.new_zeros(1, size))))


def runs_compiled(setup: Setup, given: Given, carried: Carried | None) -> bool:
    """Whether this sequence is to be run by the compiled loops, by what ``use_backend`` says."""
    chosen = current_backend()
    if chosen == "torch" or not has_numba() or not _can_run(setup, given, carried):
        return False
    return chosen == "numba" or _READINESS.after(len(given.drives), given.drives.dtype)


def _can_run(setup: Setup, given: Given, carried: Carried | None) -> bool:
    policy = setup.screening
    screens = setup.n_buffer is None or type(policy) is AttentionSum
    if carried is not None or not screens or setup.detach_memory or setup.mix is None:
        return False
    if setup.alignment is not ALIGNMENTS["additive"] or given.drives.dtype not in PRECISIONS:
        return False
    cell = setup.make_cell(given.bias)
    if not isinstance(cell, LstmCell) and not (
        isinstance(cell, ElmanCell) and NONLINEARITIES.get(cell.phi.name) is cell.phi
    ):
        return False
    return (
        given.state.numel() > 0
        and not torch.compiler.is_compiling()
        and all(map(_is_plain(given), vars(given).values()))
    )


def _is_plain(given: Given) -> Any:
    dtype = given.drives.dtype
    return lambda tensor: (
        tensor is None
        or (type(tensor) in (Tensor, torch.nn.Parameter) and tensor.device.type == "cpu" and tensor.dtype == dtype)
    )


def _loops() -> ModuleType:
    return importlib.import_module(f"{__package__}.attend_loops")


def is_cached(dtype: torch.dtype) -> bool:
    """Whether code for this precision lies on disk."""
    loops = _loops()
    one = torch.zeros(1, dtype=dtype).numpy()
    cube, flat, line = one.reshape(1, 1, 1), one.reshape(1, 1), one
    counts, wide = numpy.zeros((1, 1, 1), numpy.int32), numpy.zeros(1)
    is_wide = numpy.zeros((1, 1), numpy.bool_)
    settings = (0, 1, 0, one[0], one[0], 1)
    forward: tuple[Any, ...] = (
        cube,
        (cube,) * 5,
        (cube, cube, line, line),
        settings,
        numpy.ones(1, numpy.int64),
        counts,
    )
    forward += (counts[0], flat, flat, cube, cube, (line,) * 7, is_wide)
    backward: tuple[Any, ...] = ((cube,) * 3, (cube,) * 5, (cube, cube, cube, line), settings, counts, cube, cube)
    backward += ((cube, flat, flat, flat, wide, wide, flat, flat), (line,) * 10, is_wide, (cube, cube, flat, flat))
    return loops.has_code(loops.forward, forward) and loops.has_code(loops.backward, backward)


_READINESS = Readiness(is_cached, IMPORT_AFTER, COMPILE_AFTER)


def _array(tensor: Tensor) -> numpy.ndarray:
    return tensor.detach().contiguous().numpy()


def _steps(lengths: Tensor | None, n_steps: int, batch: int) -> numpy.ndarray:
    return numpy.full(batch, n_steps) if lengths is None else _array(lengths.to("cpu", torch.int64))
