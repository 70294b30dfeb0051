"""What every relational network shares: encoding distinct images once, normalising, and being called with indices."""

from __future__ import annotations

import abc
import inspect
import math
from typing import Any, Literal, TypeAlias, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import choose, suggest_options
from separatrix.core.random import default_generator

from .context_norm import ContextNorm, Normalisation, Segments, require_segments
from .encoder import WIDTH, GlyphEncoder
from .starts import linear

EncoderMode: TypeAlias = Literal["learned", "frozen"]


class AbstractRelationalNetwork(nn.Module, abc.ABC):
    """Encoder, an optional penalised layer, normalisation over positions, and what a network makes of the objects.

    Called as ``network(images, index)``: images are distinct pictures (n, 3, h, w), or features (n, 128) that
    ``features`` gave for them, and index (batch, T) says which of them stand where. Each image is encoded once however
    often it occurs, which is the same function with the same gradients. Without an index, images are (batch, T, 3, h,
    w). The result has ``n_answers`` logits a problem.

    Args:
        seq_len: T, positions of a problem.
        n_answers: y.
        image_size: pixels a side of an image.
        normalise: ``"tcn"`` over the positions; ``"l2"``, each object to length 1; ``"none"``.
        segments: positions that ``"tcn"`` normalises together; all by default.
        encoder: ``"learned"``, or ``"frozen"`` at its random start.
        l1: weight of the absolute values of a further linear layer behind the encoder; ``None`` for no such layer.
        symmetric: whether both sides of a similarity are the same features; otherwise each has a linear map of its own,
            before the normalisation.
        generator: source of the first weights; by default one with seed 0.

    For implementers: write ``answer``, and ``relations`` where there is a relation matrix. Networks without a
    similarity between objects refuse ``symmetric=False``.
    """

    has_similarity: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Spell out the options that every network has, so that people see them and a misspelt one is refused."""
        super().__init_subclass__(**options)
        own = inspect.signature(cls.__init__)
        spelt = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
        if len(spelt) < len(own.parameters):
            shared = inspect.signature(AbstractRelationalNetwork.__init__).parameters.values()
            spelt += [one for one in shared if one.kind is one.KEYWORD_ONLY and one.name not in own.parameters]
            cls.__init__.__signature__ = own.replace(parameters=spelt)  # type: ignore[attr-defined]
        suggest_options(cls)

    def __init__(
        self,
        seq_len: int,
        n_answers: int,
        *,
        image_size: int = 32,
        normalise: Normalisation = "tcn",
        segments: Segments | None = None,
        encoder: EncoderMode = "learned",
        l1: float | None = None,
        symmetric: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.seq_len = require_integer(seq_len, "seq_len", at_least=1)
        self.n_answers = require_integer(n_answers, "n_answers", at_least=2)
        if normalise == "tcn" and seq_len < 2:
            raise InvalidInput("seq_len must be at least 2 for normalise='tcn': one position has no variance; got 1.")
        self.encoder_mode = choose("encoder", encoder, ("learned", "frozen"))
        if l1 is not None:
            require_positive(l1, "l1")
        if not symmetric and not self.has_similarity:
            raise InvalidInput(f"symmetric=False is for networks with a similarity; {type(self).__name__} has none.")
        self.l1, self.symmetric = l1, symmetric
        stream = default_generator(generator)
        self.encoder = GlyphEncoder(image_size, generator=stream)
        self.encoder.requires_grad_(encoder == "learned")
        self.penalised = linear(WIDTH, WIDTH, stream) if l1 is not None else None
        self.first_map = None if symmetric else linear(WIDTH, WIDTH, stream)
        self.second_map = None if symmetric else linear(WIDTH, WIDTH, stream)
        self.norm = ContextNorm(WIDTH, normalise, segments)
        if self.norm.segments is not None:
            require_segments(self.norm.segments, seq_len)

    @abc.abstractmethod
    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits from encoded objects that are not normalised yet."""

    def relations(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch t t"]:
        """The relation matrix, where a network has one."""
        raise InvalidInput(f"{type(self).__name__} has no relation matrix.")

    def penalty(self) -> Tensor:
        """What is added to the loss: the weighted absolute values of the penalised layer, or 0."""
        if self.penalised is None or self.l1 is None:
            return torch.zeros(())
        return self.l1 * sum((p.abs().sum() for p in self.penalised.parameters()), torch.zeros(()))

    def forward(self, images: Tensor, index: Int[Tensor, "batch t"] | None = None) -> Float[Tensor, "batch y"]:
        """Logits."""
        return self.answer(self.objects(images, index))

    @final
    def relation_matrix(
        self, images: Tensor, index: Int[Tensor, "batch t"] | None = None
    ) -> Float[Tensor, "batch t t"]:
        """How each position relates to each other one."""
        return self.relations(self.objects(images, index))

    @final
    def features(self, images: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n 128"]:
        """Encoded images; with a frozen encoder they can be kept for a whole run and given in place of images."""
        if self.encoder_mode == "frozen":
            with torch.no_grad():
                encoded: Tensor = self.encoder(images)
            return encoded
        return self.encoder(images)

    @final
    def objects(self, images: Tensor, index: Int[Tensor, "batch t"] | None = None) -> Float[Tensor, "batch t 128"]:
        """Encoded objects of each problem, before normalisation."""
        if not isinstance(images, Tensor):
            raise InvalidInput(f"images must be a tensor; got {type(images).__name__}.")
        if index is None:
            if images.ndim != 5 or images.shape[1] != self.seq_len:
                raise ShapeError(
                    f"without an index, images must be (batch, {self.seq_len}, 3, h, w); got {tuple(images.shape)}."
                )
            return self._squeezed(self.features(images.flatten(0, 1))).unflatten(0, tuple(images.shape[:2]))
        if not isinstance(index, Tensor) or index.dtype not in (torch.int64, torch.int32):
            kind = f"one of {index.dtype}" if isinstance(index, Tensor) else type(index).__name__
            raise InvalidInput(f"index must be a tensor of whole numbers (int64); got {kind}.")
        if index.ndim != 2 or index.shape[1] != self.seq_len:
            raise ShapeError(f"index must be (batch, {self.seq_len}); got shape {tuple(index.shape)}.")
        if images.ndim not in (2, 4) or (images.ndim == 2 and images.shape[1] != WIDTH):
            raise ShapeError(f"images must be (n, 3, h, w) or features (n, {WIDTH}); got {tuple(images.shape)}.")
        if not len(images):
            raise InvalidInput("images must hold at least one; got none.")
        encoded = self._squeezed(images if images.ndim == 2 else self.features(images))
        try:  # the gradient of encoded[index] adds its rows one by one: 16 times as slow with five images
            return functional.embedding(index, encoded)
        except IndexError:
            raise InvalidInput(
                f"index must lie in 0 to {len(encoded) - 1}, of {len(encoded)} images; got {int(index.min())} to "
                f"{int(index.max())}."
            ) from None

    def _squeezed(self, encoded: Tensor) -> Tensor:
        return encoded if self.penalised is None else self.penalised(encoded)

    def sides(self, encoded: Float[Tensor, "batch t 128"]) -> tuple[Tensor, Tensor]:
        """Both sides of a similarity, normalised: the same features, or each through its own map."""
        if self.first_map is None or self.second_map is None:
            normal = self.norm(encoded)
            return normal, normal
        return self.norm(self.first_map(encoded)), self.norm(self.second_map(encoded))


def front_stream(front: dict[str, Any]) -> tuple[dict[str, Any], torch.Generator]:
    """The options with one generator in them that encoder and decoder draw from in turn."""
    stream = default_generator(front.get("generator"))
    return {**front, "generator": stream}, stream


def in_numbers(temperature: float | str | None, normalise: str) -> float:
    """A temperature: a number, ``"sqrt_d"`` for the root of the width, ``None`` for 1 (0.1 with lengths of 1)."""
    if temperature is None:
        return 0.1 if normalise == "l2" else 1.0
    if temperature == "sqrt_d":
        return math.sqrt(WIDTH)
    if isinstance(temperature, str):
        choose("temperature", temperature, ("sqrt_d",), also="a positive number")
    return float(require_positive(temperature, "temperature"))
