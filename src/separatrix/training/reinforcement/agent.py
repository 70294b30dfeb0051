"""A network that acts: it sees, remembers, and says what to do and what to expect."""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils import skip_init

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import suggest_options
from separatrix.core.random import spawn

from .states import mapped


@final
@suggest_options
class Agent(nn.Module):
    """Encoder, recurrent core, and two heads with one hidden layer: what to do, and the reward to expect.

    Args:
        encoder: observations (n, features) to numbers (n, ``core.input_size``).
        core: a recurrent network of this package, or one called alike: ``core(x, state, lengths)``. One that attends to
            its past must carry its memory (``carry_memory=True``), or it forgets it at each step.
        n_actions: how many actions there are.
        n_head: units of the hidden layers.
        seed: of the heads.
    """

    def __init__(self, encoder: nn.Module, core: nn.Module, n_actions: int, n_head: int = 64, seed: int = 0) -> None:
        super().__init__()
        _require_core(core)
        self.encoder, self.core = encoder, core
        self.n_actions = require_integer(n_actions, "n_actions", at_least=1)
        size = int(getattr(core, "output_size", core.hidden_size))  # type: ignore[arg-type]
        self.actor = _head(size, n_head, self.n_actions, spawn(seed, "actor"))
        self.critic = _head(size, n_head, 1, spawn(seed, "critic"))

    def initial_state(self, batch: int) -> Any:
        """What the core begins an episode with: what it says, or zeros."""
        if hasattr(self.core, "initial_state"):
            return self.core.initial_state(batch)  # type: ignore[operator]
        like, width = next(self.core.parameters()), int(self.core.input_size)  # type: ignore[arg-type]
        with torch.no_grad():
            return mapped(torch.zeros_like, self.core(like.new_zeros(batch, 1, width), None)[1])

    def forward(
        self, seen: Float[Tensor, "batch t d"], state: Any, lengths: Int[Tensor, " batch"] | None = None
    ) -> tuple[Float[Tensor, "batch t a"], Float[Tensor, "batch t"], Any]:
        """Logits of the actions and values at each step, and the state to go on with."""
        if seen.ndim != 3:
            raise ShapeError(f"seen must be (batch, time, features); got shape {tuple(seen.shape)}.")
        features = self.encoder(seen.flatten(0, 1)).unflatten(0, seen.shape[:2])
        output, state = self.core(features, state, lengths)
        return self.actor(output), self.critic(output).squeeze(-1), state


@final
@suggest_options
class GridEncoder(nn.Module):
    """What an agent of MiniGrid sees and is told, as 64 features, and 128 more for the words.

    Three convolutions of 2 by 2 (16, 32, 64 channels, a maximum over 2 by 2 after the first) and a gated network over
    the words of the mission: the usual reader of these environments.

    Args:
        shape: of the image within an observation: rows, columns, channels; it comes first.
        n_words: numbers of words; 0 if the mission is not to be read.
        seed: of the weights.
    """

    def __init__(self, shape: tuple[int, int, int], n_words: int = 0, seed: int = 0) -> None:
        super().__init__()
        self.shape, self.n_words = shape, require_integer(n_words, "n_words", at_least=0)
        first, second, third = (
            skip_init(nn.Conv2d, n_in, n_out, 2) for n_in, n_out in ((shape[2], 16), (16, 32), (32, 64))
        )
        self.image = nn.Sequential(
            first, nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU(), third, nn.ReLU(), nn.Flatten()
        )  # fmt: skip
        self.words = skip_init(nn.Embedding, n_words + 1, 32) if n_words else None
        self.reader = _empty_reader() if n_words else None
        with torch.no_grad():
            width = self.image(torch.zeros(1, shape[2], *shape[:2])).shape[1]
        self.output_size = width + (128 if n_words else 0)
        _draw(self, spawn(seed, "encoder"))

    def forward(self, seen: Float[Tensor, "n d"]) -> Float[Tensor, "n e"]:
        """Features of each observation."""
        n_entries = self.shape[0] * self.shape[1] * self.shape[2]
        image = seen[:, :n_entries].unflatten(1, self.shape).permute(0, 3, 1, 2)
        features = self.image(image)
        if self.words is None or self.reader is None:
            return features
        told, which = seen[:, n_entries:].long().unique(dim=0, return_inverse=True)  # few missions, many steps
        longest = max(1, int((told > 0).sum(1).max()))
        outputs, _ = self.reader(self.words(told[:, :longest]))
        ends = (told > 0).sum(1).clamp_min(1) - 1
        return torch.cat([features, outputs[torch.arange(len(told)), ends][which]], 1)


def _require_core(core: nn.Module) -> None:
    missing = [name for name in ("input_size", "hidden_size") if not hasattr(core, name)]
    if missing:
        raise InvalidInput(
            f"core must be recurrent, with input_size and hidden_size; {type(core).__name__} has no {missing[0]}."
        )
    if not getattr(core, "carries_memory", True):
        raise InvalidInput(
            f"core must be built with carry_memory=True, or {type(core).__name__} forgets its memory at each step."
        )


def _head(size: int, n_head: int, n_outputs: int, generator: torch.Generator) -> nn.Sequential:
    head = nn.Sequential(skip_init(nn.Linear, size, n_head), nn.Tanh(), skip_init(nn.Linear, n_head, n_outputs))
    _draw(head, generator)
    return head


def _empty_reader() -> nn.GRU:
    """A gated network whose weights are yet to be drawn; torch's would come from its global generator."""
    return nn.GRU(32, 128, batch_first=True, device="meta").to_empty(device="cpu")


def _draw(module: nn.Module, generator: torch.Generator) -> None:
    """Rows of matrices of length one, biases zero, from a stream of their own."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim < 2:
                parameter.zero_()
                continue
            parameter.normal_(0, 1, generator=generator)
            parameter.div_(parameter.flatten(1).norm(dim=1).view(-1, *(1,) * (parameter.ndim - 1)))
