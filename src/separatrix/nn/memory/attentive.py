"""What attentive recurrent networks share: parameters, torch's calling convention, and a record of the last call."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from separatrix.core.arithmetic.transforms import is_mapped, transforms_active
from separatrix.core.arrays import require_finite, require_integer
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import choose, resolve
from separatrix.core.networks.trace import Trace
from separatrix.core.random import default_generator
from separatrix.core.result import Result
from separatrix.core.scalars import in_words, is_number, require_flags

from ..orthogonal.starts import STARTS, rotation_start
from ..recurrent.calling import AbstractSequenceCore, checked_lengths, masked_beyond
from ..recurrent.elman_core import BIAS_RANGE
from ..recurrent.steps.elman import NONLINEARITIES, find_nonlinearity
from .keeping.screening import AbstractScreening
from .steps.alignment import ALIGNMENTS
from .steps.attend import run
from .steps.cells import AbstractCell, ElmanCell, LstmCell
from .steps.setup import Carried, Given, RunRecord, Setup

PAPER_MIX = (1.0, 1.0)


class GrowthWarning(UserWarning):
    """States of this network may grow without bound."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Recall(Result):
    """What the last call of an attentive network left behind, without gradients."""

    trace: Trace
    """Macro-states, hidden states, what was attended to and how much."""
    relevant_index: Int[Tensor, "batch rho"] | None
    """Steps (from 0) kept beyond the buffer after each sequence, ascending; -1 for empty places."""
    scores: Float[Tensor, "batch t"] | None
    """With which each state left the buffer, or what it had at the end; 0 beyond the end of its sequence."""


@dataclasses.dataclass(frozen=True)
class Options:
    """How an attentive network is built; see the classes."""

    mix: Any
    alignment: str
    combine: str
    memory: str
    readout: str
    check: bool
    carry_memory: bool
    detach_memory: bool = False
    screening: AbstractScreening | None = None
    n_buffer: int | None = None
    n_relevant: int = 0
    log_attention: bool = True


class AbstractAttentive(AbstractSequenceCore):
    """``h = cell(V s + U x)``, attention from s to earlier h, and ``s = a h + b c``; called as torch's own networks.

    State is the macro-state (1, batch, state_size); for LSTM cells a pair of it and the cell vector; with
    ``carry_memory`` a tuple that holds the memory too: states, steps and scores, without gradient.

    For implementers: the classes of this room differ in their cell and in what they remember, nothing else.
    """

    last: Recall | None
    """What the last call did."""
    _is_gated: bool

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        options: Options,
        *,
        nonlinearity: str = "tanh",
        start: str = "henaff",
        batch_first: bool,
        generator: torch.Generator | None,
        dtype: torch.dtype,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first=batch_first)
        require_flags(
            check=options.check,
            carry_memory=options.carry_memory,
            detach_memory=options.detach_memory,
            log_attention=options.log_attention,
        )
        choose("combine", options.combine, ("sum", "concat"))
        choose("memory", options.memory, ("recompute", "store"))
        choose("readout", options.readout, ("h", "s"))
        resolve("alignment", options.alignment, ALIGNMENTS)
        self._options = options
        self.mix = _checked_mix(options.mix, options.combine)
        self.nonlinearity = find_nonlinearity(nonlinearity).name
        choose("start", start, STARTS)
        if self.mix is not None and sum(map(abs, self.mix)) > 1 and not self._is_gated and self.nonlinearity != "tanh":
            warnings.warn(
                f"mix {self.mix} with {self.nonlinearity} lets states grow without bound; use (0.5, 0.5) or tanh.",
                GrowthWarning,
                stacklevel=3,
            )
        self.last = None
        self.screening = options.screening
        """The policy; ``None`` for a memory of everything. One with weights is a part of the module."""
        policy = options.screening
        if options.carry_memory and policy is not None and (policy.gates or policy.has_state):
            reason = "which has weights" if policy.gates else "whose own state would be lost between two windows"
            raise InvalidInput(f"carry_memory must be false with screening {policy.name!r}, {reason}.")
        self._build(start, default_generator(generator), dtype)

    def _build(self, start: str, generator: torch.Generator, dtype: torch.dtype) -> None:
        n, m, width = self.hidden_size, self.input_size, self.state_size
        parts = 4 if self._is_gated else 1
        if self._is_gated:
            entries = torch.empty(parts * n, width + m, dtype=torch.float64)
            entries.normal_(0, (2 / (n + width + m)) ** 0.5, generator=generator)
            matrix, entering = entries.split([width, m], 1)
        else:
            matrix = rotation_start(start, n, generator=generator)
            if width > n:  # the context starts with the same map: together they are that of a half sum
                matrix = torch.cat([matrix, matrix], 1) / 2
            entering = torch.empty(n, m, dtype=torch.float64).normal_(0, (2 / (n + m)) ** 0.5, generator=generator)
        bias = torch.zeros(parts * n, dtype=torch.float64)
        if not self._is_gated and self.nonlinearity == "modrelu":
            bias.uniform_(-BIAS_RANGE, BIAS_RANGE, generator=generator)
        query, key = (
            torch.empty(n, size, dtype=torch.float64).uniform_(-(size**-0.5), size**-0.5, generator=generator)
            for size in (width, n)
        )
        self.matrix = nn.Parameter(matrix.to(dtype, copy=True))
        self.input_weight = nn.Parameter(entering.to(dtype, copy=True))
        self.bias = nn.Parameter(bias.to(dtype))
        self.query_weight, self.key_weight = nn.Parameter(query.to(dtype)), nn.Parameter(key.to(dtype))
        if ALIGNMENTS[self._options.alignment].has_vector:
            vector = torch.empty(n, dtype=torch.float64).normal_(0, (2 / (n + 1)) ** 0.5, generator=generator)
            self.alignment_vector: nn.Parameter | None = nn.Parameter(vector.to(dtype))
        else:
            self.register_parameter("alignment_vector", None)

    @property
    def state_size(self) -> int:
        """Numbers in a macro-state."""
        return self.hidden_size * (2 if self._options.combine == "concat" else 1)

    @property
    def carries_memory(self) -> bool:
        """Whether the state that a call returns holds the memory."""
        return self._options.carry_memory

    @property
    def output_size(self) -> int:
        """Features of the output."""
        return self.hidden_size if self._options.readout == "h" else self.state_size

    def recurrent(self) -> Tensor:
        """The matrix from macro-state to pre-activation."""
        return self.matrix

    def forward(
        self, x: Tensor | PackedSequence, state: Any = None, lengths: Int[Tensor, " batch"] | None = None
    ) -> tuple[Any, Any]:
        """Outputs of all steps, and the state to go on with."""
        if isinstance(x, PackedSequence):
            return self._forward_packed(x, state, lengths)
        self._refuse_mapping(x)
        inputs, is_single = self._time_first(x)
        inputs = inputs.to(self.matrix.dtype)
        if lengths is not None:
            lengths = checked_lengths(lengths, inputs)
            beyond = torch.arange(len(inputs), device=inputs.device).unsqueeze(1) >= lengths
            inputs = inputs.masked_fill(beyond.unsqueeze(-1), 0.0)  # what stands there counts for nothing
        if self._options.check:
            require_finite(inputs, "x")
        macro, cell, carried = self._unpack(state, inputs.shape[1], is_single)
        if len(inputs) == 0:
            output = macro.new_zeros(0, inputs.shape[1], self.output_size)
            carried = self._empty_memory(macro) if self._options.carry_memory and carried is None else carried
            return self._shaped(output, is_single), self._packed_state(macro, cell, carried, is_single)
        record = RunRecord()
        hidden, states, cells = self._walk(inputs, macro, cell, carried, record, lengths)
        self.last = self._recall(record, macro, hidden, states, inputs, lengths)
        output = masked_beyond(hidden if self._options.readout == "h" else states, lengths)
        end, cell_end = _last(states, macro, lengths), None if cells is None else _last(cells, cell, lengths)
        kept = record.memory if self._options.carry_memory else None
        return self._shaped(output, is_single), self._packed_state(end, cell_end, kept, is_single)

    def _refuse_mapping(self, x: Any) -> None:
        """Which states are kept depends on numbers, sample by sample: a batch can do that, a mapped axis cannot."""
        if transforms_active() and any(is_mapped(one) for one in (x, *self.parameters()) if isinstance(one, Tensor)):
            raise InvalidInput(
                f"{type(self).__name__} cannot run inside torch.func.vmap; give sequences as a batch, and networks one "
                "after another."
            )

    def initial_state(self, batch: int) -> Any:
        """What sequences begin with if no state is given; where memory is carried, an empty one."""
        macro, cell, _ = self._unpack(None, require_integer(batch, "batch", at_least=0), False)
        memory = self._empty_memory(macro) if self._options.carry_memory else None
        return self._packed_state(macro, cell, memory, False)

    def _walk(
        self,
        x: Tensor,
        macro: Tensor,
        cell: Tensor | None,
        carried: Carried | None,
        record: RunRecord,
        lengths: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        options = self._options
        has_own_bias = not self._is_gated and NONLINEARITIES[self.nonlinearity].has_bias
        # as it is stored, the gradient of the weight is a slow product of thin matrices
        drives = x @ self.input_weight.mT.contiguous()
        given = Given(
            drives if has_own_bias else drives + self.bias,
            macro,
            cell,
            torch.cat([self.matrix, self.query_weight]),
            self.key_weight,
            self.alignment_vector,
            self.bias if has_own_bias else None,
        )
        setup = Setup(
            self._cell,
            ALIGNMENTS[options.alignment],
            self.mix,
            self._buffer_for(len(x)),
            options.n_relevant,
            options.screening,
            options.detach_memory,
            options.log_attention,
            lengths,
            x.detach(),
        )
        with torch.autocast(x.device.type, enabled=False):  # the buffers have one dtype
            return run(setup, given, carried, record, plain=options.memory == "store")

    def _buffer_for(self, n_steps: int) -> int | None:
        """Places of the buffer in a run: none beyond the last step, which a memory that is carried on would need."""
        n_buffer = self._options.n_buffer
        is_whole = n_buffer is None or self._options.carry_memory
        return n_buffer if is_whole else min(n_buffer, max(1, n_steps))  # type: ignore[type-var]

    def attentive_steps(self) -> Steps:
        """The halves of a step, for following gradients through them."""
        if self.screening is not None and self.screening.gates:
            raise InvalidInput(
                f"paths cannot be followed through screening {self.screening.name!r}, which changes states."
            )
        return Steps(self)

    def _cell(self, bias: Tensor | None) -> AbstractCell:
        return LstmCell() if self._is_gated else ElmanCell(find_nonlinearity(self.nonlinearity), bias)

    def _recall(
        self, record: RunRecord, macro: Tensor, hidden: Tensor, states: Tensor, x: Tensor, lengths: Tensor | None
    ) -> Recall:
        everything = record.states  # as large as the output: not to be copied
        if everything is None:
            everything = torch.cat([macro.detach().unsqueeze(0), states.detach()])
        trace = Trace(
            everything.transpose(0, 1),
            indices=None if record.index is None else record.index.transpose(0, 1),
            weights=None if record.weights is None else record.weights.transpose(0, 1),
            lengths=lengths,
            hidden=hidden.detach().transpose(0, 1),
        )
        return Recall(trace, record.relevant, record.scores)

    def _shaped(self, output: Tensor, is_single: bool) -> Tensor:
        if is_single:
            return output.squeeze(1)
        return output.transpose(0, 1) if self.batch_first else output

    def _unpack(self, state: Any, batch: int, is_single: bool) -> tuple[Tensor, Tensor | None, Carried | None]:
        like = self.matrix.detach()
        sizes = [(self.state_size,), (self.hidden_size,)][: 2 if self._is_gated else 1]
        if state is None:
            zeros = [like.new_zeros(batch, *size) for size in sizes]
            return zeros[0], zeros[1] if self._is_gated else None, None
        parts = list(state) if isinstance(state, tuple | list) else [state]
        extra = 3 if self._options.carry_memory and len(parts) == len(sizes) + 3 else 0
        if len(parts) != len(sizes) + extra or not all(isinstance(part, Tensor) for part in parts):
            raise ShapeError(f"state must be what an earlier call of this network returned; got {in_words(state)}.")
        parts = [part.unsqueeze(1) for part in parts] if is_single else parts
        for part, size in zip(parts, sizes, strict=False):
            if tuple(part.shape) != (1, batch, *size):
                raise ShapeError(f"state must have shape {(1, batch, *size)}; got {tuple(part.shape)}.")
        parts = [part.squeeze(0) for part in parts]
        carried = None
        if extra:
            values, index, scores = (part.detach() for part in parts[-3:])
            self._check_memory(values, index, scores, batch)
            carried = Carried(values.to(like.dtype), index, scores.to(like.dtype))
        return parts[0].to(like.dtype), parts[1].to(like.dtype) if self._is_gated else None, carried

    def _empty_memory(self, macro: Tensor) -> Carried:
        options, batch = self._options, len(macro)
        places = 0 if options.n_buffer is None else options.n_buffer + options.n_relevant
        scores = macro.new_zeros(batch, places)
        scores[:, options.n_buffer or 0 :] = -torch.inf
        index = torch.full((batch, places), -1, device=macro.device)
        return Carried(macro.new_zeros(batch, places, self.hidden_size), index, scores)

    def _check_memory(self, values: Tensor, index: Tensor, scores: Tensor, batch: int) -> None:
        options = self._options
        places = index.shape[-1] if options.n_buffer is None else options.n_buffer + options.n_relevant
        expected = (batch, places)
        if tuple(index.shape) != expected or index.shape != scores.shape or values.shape[:2] != index.shape:
            raise ShapeError(
                f"the memory of state must have {places} places for {batch} sequences; got {tuple(index.shape)}."
            )

    def _packed_state(self, macro: Tensor, cell: Tensor | None, memory: Carried | None, is_single: bool) -> Any:
        parts = [macro] if cell is None else [macro, cell]
        if memory is not None:
            parts += [memory.values.detach(), memory.index, memory.scores]
        parts = [part if is_single else part.unsqueeze(0) for part in parts]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        options = self._options
        places = "" if options.n_buffer is None else f", n_buffer={options.n_buffer}, n_relevant={options.n_relevant}"
        return f"{super().extra_repr()}{places}, mix={self.mix}, alignment={options.alignment!r}"


@final
class Steps:
    """The two halves of a step of such a network."""

    def __init__(self, network: AbstractAttentive) -> None:
        self.network, self.mix = network, network.mix
        self.alignment = ALIGNMENTS[network._options.alignment]
        own = not network._is_gated and NONLINEARITIES[network.nonlinearity].has_bias
        self.cell = network._cell(network.bias if own else None)
        self.bias = None if own else network.bias
        self.n_passing = network._options.n_buffer if network._options.detach_memory else None
        """How many places gradients go into, where not into all."""

    def unit(self, x: Tensor, state: Tensor, carried: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Hidden state, and what is carried on."""
        drive = x @ self.network.input_weight.mT
        drive = drive if self.bias is None else drive + self.bias
        return self.cell.advance(drive + state @ self.network.matrix.mT, carried)

    def attend(self, before: Tensor, unit: Tensor, seen: Tensor, present: Tensor) -> Tensor:
        """Macro-state."""
        network = self.network
        if self.n_passing is not None:
            seen = torch.cat([seen[:, : self.n_passing], seen[:, self.n_passing :].detach()], 1)
        query, keys = before @ network.query_weight.mT, seen @ network.key_weight.mT
        logits = self.alignment.logits(query, keys, network.alignment_vector).masked_fill(~present, -torch.inf)
        context = (torch.softmax(logits, -1).unsqueeze(-1) * seen).sum(1)
        return torch.cat([unit, context], -1) if self.mix is None else self.mix[0] * unit + self.mix[1] * context

    def carried(self, batch: int) -> Tensor | None:
        """Zeros for gated cells."""
        return self.network.matrix.new_zeros(batch, self.network.hidden_size) if self.cell.has_carry else None


def _checked_mix(mix: Any, combine: str) -> tuple[float, float] | None:
    if isinstance(mix, str):
        choose("mix", mix, ("paper",), also="two numbers")
        mix = PAPER_MIX
    is_pair = isinstance(mix, tuple | list) and len(mix) == 2 and all(is_number(part) for part in mix)
    if not is_pair or not all(abs(float(part)) < float("inf") for part in mix):
        raise InvalidInput(f"mix must be two finite numbers or 'paper'; got {in_words(mix)}.")
    if combine == "concat":
        if tuple(mix) != (0.5, 0.5):
            raise InvalidInput(f"mix must be left out with combine='concat', which mixes nothing; got {in_words(mix)}.")
        return None
    return float(mix[0]), float(mix[1])


def _last(states: Tensor, initial: Tensor | None, lengths: Tensor | None) -> Tensor:
    """After the last step of each sequence; the initial one where there is none."""
    if lengths is None:
        return states[-1].clone()  # a view would keep the whole sequence alive
    assert initial is not None
    samples = torch.arange(states.shape[1], device=states.device)
    return torch.cat([initial.unsqueeze(0), states])[lengths, samples]
