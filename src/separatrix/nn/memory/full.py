"""Attentive recurrent networks that remember every state."""

from __future__ import annotations

from typing import Literal, final

import torch

from separatrix.core.names import suggest_options

from .attentive import AbstractAttentive, Options


@final
@suggest_options
class MemRNN(AbstractAttentive):
    r"""A recurrent network that attends to all its past states.

    As ``RelRNN`` with a buffer that never ends. ``last.trace`` has the states, and the attention if it is logged.

    Cost: T^2 attentions. With ``memory="recompute"`` memory for the gradient grows like T n: nothing of T^2 is kept.


    Args:
        input_size: features of a step.
        hidden_size: n.
        mix: a and b of ``s = a h + b c``; ``"paper"`` for (1, 1), under which unbounded units explode.
        alignment: ``"additive"``, ``v . tanh(W s + U h)``, or ``"dot"``, ``(W s) . (U h) / sqrt(n)``.
        combine: ``"sum"``, or ``"concat"`` for ``s = [h; c]``.
        carry_memory: whether the state that is returned holds the memory, without gradient, for the next window.
        memory: ``"recompute"``, or ``"store"`` to keep every activation as autograd does by itself.
        readout: ``"h"`` or ``"s"``: which of the two is the output.
        log_attention: whether ``last.trace`` holds the attention, which takes T^2 numbers per sequence.
        nonlinearity: ``"tanh"``, ``"modrelu"``, ``"relu"`` or ``"linear"``.
        start: initial V, as in ``FreeRNN``.
        check: whether inputs that are not finite are refused.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.

    Source: kerg2022, sections 2.7 and 4.4.

    """

    _is_gated = False

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        mix: tuple[float | int, float | int] | Literal["paper"] = (0.5, 0.5),
        *,
        alignment: Literal["additive", "dot"] = "additive",
        combine: Literal["sum", "concat"] = "sum",
        carry_memory: bool = False,
        memory: Literal["recompute", "store"] = "recompute",
        readout: Literal["h", "s"] = "h",
        log_attention: bool = False,
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
            log_attention=log_attention,
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
class MemLSTM(AbstractAttentive):
    r"""An LSTM that attends to all its past states.

    As ``RelLSTM`` with a buffer that never ends; cost and memory as for ``MemRNN``.


    Args:
        input_size: features of a step.
        hidden_size: n.
        mix: a and b of ``s = a h + b c``; ``"paper"`` for (1, 1), under which unbounded units explode.
        alignment: ``"additive"``, ``v . tanh(W s + U h)``, or ``"dot"``, ``(W s) . (U h) / sqrt(n)``.
        combine: ``"sum"``, or ``"concat"`` for ``s = [h; c]``.
        carry_memory: whether the state that is returned holds the memory, without gradient, for the next window.
        memory: ``"recompute"``, or ``"store"`` to keep every activation as autograd does by itself.
        readout: ``"h"`` or ``"s"``: which of the two is the output.
        log_attention: whether ``last.trace`` holds the attention, which takes T^2 numbers per sequence.
        check: whether inputs that are not finite are refused.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.

    Source: kerg2022, sections 2.7 and 4.4.

    """

    _is_gated = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        mix: tuple[float | int, float | int] | Literal["paper"] = (0.5, 0.5),
        *,
        alignment: Literal["additive", "dot"] = "additive",
        combine: Literal["sum", "concat"] = "sum",
        carry_memory: bool = False,
        memory: Literal["recompute", "store"] = "recompute",
        readout: Literal["h", "s"] = "h",
        log_attention: bool = False,
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
            log_attention=log_attention,
        )
        super().__init__(
            input_size,
            hidden_size,
            options,
            batch_first=batch_first,
            generator=generator,
            dtype=dtype,
        )
