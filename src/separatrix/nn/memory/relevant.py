"""Attentive recurrent networks with a bounded memory: relevancy screening."""

from __future__ import annotations

from typing import Literal, final

import torch

from separatrix.core.arrays import require_integer
from separatrix.core.names import suggest_options

from .attentive import AbstractAttentive, Options
from .keeping.policies import find_screening
from .keeping.screening import AbstractScreening


@final
@suggest_options
class RelRNN(AbstractAttentive):
    r"""A recurrent network that attends to the states it found relevant.

    The memory of a step holds the newest ``n_buffer`` states and ``n_relevant`` older ones: those that had the most
    attention while they were in the buffer. After a call, ``last.relevant_index`` says which were kept and
    ``last.trace`` what was attended to. Scores are compared in the precision of the network: in another precision
    near ties may fall otherwise.

    .. math:: h_t = \phi(V s_{t-1} + U x_t + b), \quad
        s_t = a h_t + b \sum_{i\in S_t\cup R_t}\alpha_{i,t}h_i, \quad
        \alpha_{\cdot,t} = \mathrm{softmax}_i\, v^\top\tanh(W s_{t-1} + U_a h_i)

    Cost: T steps of nu + rho attentions; memory for the gradient grows like T (n + nu + rho).


    Args:
        input_size: features of a step.
        hidden_size: n.
        n_buffer: nu, how many of the newest states are in memory whatever happens.
        n_relevant: rho, how many more are kept; 0 for a plain window.
        mix: a and b of ``s = a h + b c``; ``"paper"`` for (1, 1), under which unbounded units explode.
        normalise: of the scores, ``"none"``, ``"share"`` or ``"mean"``; see ``AttentionSum``.
        screening: another policy than summed attention, by name (``SCREENINGS``) or as an object.
        alignment: ``"additive"``, ``v . tanh(W s + U h)``, or ``"dot"``, ``(W s) . (U h) / sqrt(n)``.
        combine: ``"sum"``, or ``"concat"`` for ``s = [h; c]``.
        detach_memory: whether gradients into kept states are cut; those into the buffer pass.
        carry_memory: whether the state that is returned holds the memory, without gradient, for the next window.
        memory: ``"recompute"``, or ``"store"`` to keep every activation as autograd does by itself.
        readout: ``"h"`` or ``"s"``: which of the two is the output.
        nonlinearity: ``"tanh"``, ``"modrelu"``, ``"relu"`` or ``"linear"``.
        start: initial V, as in ``FreeRNN``.
        check: whether inputs that are not finite are refused.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.

    Source: kerg2022, sections 2.7 and 4.5.

    Example:
        >>> rnn = RelRNN(10, 16, n_buffer=3, n_relevant=2)
        >>> output, state = rnn(torch.zeros(2, 7, 10))
        >>> output.shape, rnn.last.relevant_index.tolist()
        (torch.Size([2, 7, 16]), [[0, 1], [0, 1]])
    """

    _is_gated = False

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        n_buffer: int = 10,
        n_relevant: int = 10,
        mix: tuple[float | int, float | int] | Literal["paper"] = (0.5, 0.5),
        normalise: Literal["none", "share", "mean"] = "none",
        *,
        screening: str | AbstractScreening | None = None,
        alignment: Literal["additive", "dot"] = "additive",
        combine: Literal["sum", "concat"] = "sum",
        detach_memory: bool = False,
        carry_memory: bool = False,
        memory: Literal["recompute", "store"] = "recompute",
        readout: Literal["h", "s"] = "h",
        nonlinearity: str = "tanh",
        start: str = "henaff",
        check: bool = True,
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        options = Options(
            mix,
            alignment,
            combine,
            memory,
            readout,
            check,
            carry_memory,
            detach_memory,
            find_screening(screening, normalise),
            require_integer(n_buffer, "n_buffer", at_least=1),
            require_integer(n_relevant, "n_relevant", at_least=0),
        )
        super().__init__(
            input_size,
            hidden_size,
            options,
            nonlinearity=nonlinearity,
            start=start,
            batch_first=batch_first,
            generator=generator,
            dtype=dtype,
        )


@final
@suggest_options
class RelLSTM(AbstractAttentive):
    r"""An LSTM that attends to the states it found relevant.

    The gates read the macro-state in place of the hidden state; the cell vector is carried as it is, and attention is
    over hidden states, as in ``RelRNN``. One bias per gate.


    Args:
        input_size: features of a step.
        hidden_size: n.
        n_buffer: nu, how many of the newest states are in memory whatever happens.
        n_relevant: rho, how many more are kept; 0 for a plain window.
        mix: a and b of ``s = a h + b c``; ``"paper"`` for (1, 1), under which unbounded units explode.
        normalise: of the scores, ``"none"``, ``"share"`` or ``"mean"``; see ``AttentionSum``.
        screening: another policy than summed attention, by name (``SCREENINGS``) or as an object.
        alignment: ``"additive"``, ``v . tanh(W s + U h)``, or ``"dot"``, ``(W s) . (U h) / sqrt(n)``.
        combine: ``"sum"``, or ``"concat"`` for ``s = [h; c]``.
        detach_memory: whether gradients into kept states are cut; those into the buffer pass.
        carry_memory: whether the state that is returned holds the memory, without gradient, for the next window.
        memory: ``"recompute"``, or ``"store"`` to keep every activation as autograd does by itself.
        readout: ``"h"`` or ``"s"``: which of the two is the output.
        check: whether inputs that are not finite are refused.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.

    Source: kerg2022, sections 2.7 and 4.5.

    """

    _is_gated = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        n_buffer: int = 10,
        n_relevant: int = 10,
        mix: tuple[float | int, float | int] | Literal["paper"] = (0.5, 0.5),
        normalise: Literal["none", "share", "mean"] = "none",
        *,
        screening: str | AbstractScreening | None = None,
        alignment: Literal["additive", "dot"] = "additive",
        combine: Literal["sum", "concat"] = "sum",
        detach_memory: bool = False,
        carry_memory: bool = False,
        memory: Literal["recompute", "store"] = "recompute",
        readout: Literal["h", "s"] = "h",
        check: bool = True,
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        options = Options(
            mix,
            alignment,
            combine,
            memory,
            readout,
            check,
            carry_memory,
            detach_memory,
            find_screening(screening, normalise),
            require_integer(n_buffer, "n_buffer", at_least=1),
            require_integer(n_relevant, "n_relevant", at_least=0),
        )
        super().__init__(
            input_size,
            hidden_size,
            options,
            batch_first=batch_first,
            generator=generator,
            dtype=dtype,
        )
