"""The bounded cache as a ``Cache`` of Hugging Face transformers."""

from __future__ import annotations

import contextlib
import copy
import weakref
from typing import TYPE_CHECKING, Any, NoReturn, final

import torch
from jaxtyping import Int
from torch import Tensor

from separatrix.core.errors import InvalidInput, MissingExtra
from separatrix.core.names import suggest_options

from .bounded import BoundedKeys

try:
    from transformers.cache_utils import Cache, CacheLayerMixin
except ImportError as error:
    raise MissingExtra("RelevanceCache needs transformers 5: install separatrix[hub].") from error

if TYPE_CHECKING:
    from .attached import Attachment


@final
class RelevanceLayer(CacheLayerMixin):
    """One layer: bounded keys, and the newest tokens between their arrival and their attention."""

    is_compileable = False
    is_croppable = False
    is_sliding = False
    supports_early_init = False

    def __init__(self, bounded: BoundedKeys) -> None:
        self.bounded = bounded
        self.pending: tuple[Tensor, Tensor] | None = None

    @property
    def keys(self) -> Tensor | None:
        """Those that are kept, after rotary embedding, (batch, heads, kept, d)."""
        return None if self.bounded.held is None else self.bounded.held.keys

    @property
    def values(self) -> Tensor | None:
        """Those that are kept."""
        return None if self.bounded.held is None else self.bounded.held.values

    @property
    def is_initialized(self) -> bool:
        """Whether anything has come."""
        return self.bounded.held is not None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to be done: the first tokens bring shape and dtype."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Hold the newest tokens until their attention is computed."""
        self.pending = (key_states, value_states)
        return self.pending

    def take_pending(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens that ``update`` held, if ``key`` is what it handed out."""
        held = self.pending
        if held is None or held[0] is not key:
            raise InvalidInput(
                "the model was called without the cache of this context (with none, or with a static one), or changes "
                "keys after storing them: pass past_key_values=cache to every call inside relevance_attention, and no "
                "cache_implementation."
            )
        self.pending = None
        return held

    def get_seq_length(self) -> int:
        """Tokens seen, those forgotten included."""
        return self.bounded.seen

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Keys that the next tokens meet, and how many came before the first of as many."""
        kept = self.bounded.n_kept
        return kept + query_length, self.bounded.seen - kept

    def get_max_length(self) -> int:
        """No maximum: what is seen may be arbitrarily long."""
        return -1

    def reset(self) -> None:
        """Forget everything."""
        self.bounded.reset()
        self.pending = None

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keys, values, positions and scores of the chosen beams."""
        self.bounded.select(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Each sequence several times."""
        if self.bounded.held is not None:
            self.bounded.select(torch.arange(len(self.bounded.held.positions)).repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Some of the sequences."""
        self.bounded.select(indices)

    def crop(self, tokens_to_remove: int) -> NoReturn:
        """Refused: what was forgotten for the removed tokens is gone."""
        _refuse_rollback()

    def offload(self) -> NoReturn:
        """Refused: the keys are read at every step."""
        _refuse_offloading()

    def prefetch(self) -> NoReturn:
        """Refused with ``offload``."""
        _refuse_offloading()


@final
@suggest_options
class RelevanceCache(Cache):
    """A cache of at most ``n_buffer + n_relevant`` keys a head, for models of Hugging Face transformers.

    Use it inside ``relevance_attention``, which gives it the attention weights it judges keys by. Keys are stored after
    rotary embedding and keep their true positions. ``get_seq_length`` counts the tokens seen. Every layer and every key
    head keeps keys of its own; query heads that share a key head are averaged.

    Args:
        n_buffer: how many of the newest keys always stay.
        n_relevant: how many stay beyond them.
        policy: ``"screening"``, ``"heavy_hitter"`` (H2O), ``"tova"``, ``"sinks"``, ``"window"``, ``"append_only"``,
            another name of ``EVICTIONS`` or ``SCREENINGS``, or a policy.
        normalise: ``"none"``, ``"share"`` or ``"mean"``, for screening and heavy hitters.
        sinks: how many of the first keys always stay; they count among ``n_relevant``.
        prefill_chunk: how many tokens of a prompt are taken at once. Of tokens taken together, each sees all before it,
            and only queries less than ``n_buffer`` steps away count for screening; what has to go goes afterwards. With
            1 a prompt is read as the same tokens one by one would be; without it, all at once.
        pad_lengths: how many tokens at the left of each sequence are padding, (batch,).

    Raises:
        MissingExtra: transformers is not installed.

    Source: kerg2022, section 4.5, Algorithm 1, for keys instead of hidden states.

    Cost: n_buffer + n_relevant keys and values a head and layer, and as many products per token.
    """

    layers: list[RelevanceLayer]

    def __init__(
        self,
        n_buffer: int,
        n_relevant: int,
        policy: Any = "screening",
        normalise: str = "none",
        *,
        sinks: int = 0,
        prefill_chunk: int | None = None,
        pad_lengths: Int[Tensor, " batch"] | None = None,
    ) -> None:
        super().__init__(layers=[])
        self._settings = {
            "n_buffer": n_buffer,
            "n_relevant": n_relevant,
            "policy": policy,
            "normalise": normalise,
            "sinks": sinks,
            "prefill_chunk": prefill_chunk,
            "pad_lengths": pad_lengths,
        }
        self._pattern = BoundedKeys(**self._settings)
        self._attachment: Attachment | None = None
        self._model: weakref.ref[Any] | None = None
        self._is_torn = False

    @property
    def budget(self) -> int:
        """Most keys a head keeps."""
        return self._pattern.budget

    @property
    def policy(self) -> Any:
        """Who judges the keys."""
        return self._pattern.policy

    @property
    def kept_positions(self) -> tuple[Int[Tensor, "batch heads k"], ...]:
        """For each layer the positions that are kept, ascending, -1 for empty places at the end."""
        return tuple(layer.bounded.kept_positions for layer in self.layers)

    @property
    def pad_lengths(self) -> Tensor | None:
        """Padding of each sequence, in the order of the beams."""
        return self.layers[0].bounded.pad_lengths if self.layers else self._pattern.pad_lengths

    def attached_to(self, model: Any) -> contextlib.AbstractContextManager[RelevanceCache]:
        """``relevance_attention(model, self)``."""
        from .attached import relevance_attention

        return relevance_attention(model, self)

    def bind(self, model: Any, n_layers: int) -> bool:
        """Give the cache its layers; whether it is new to the model. Another model needs a cache of its own."""
        known = None if self._model is None else self._model()
        if self.layers and (known is not model or len(self.layers) != n_layers):
            if known is model or self._model is None:
                raise InvalidInput(
                    f"the cache has {len(self.layers)} layers and the model {n_layers}: take a new RelevanceCache."
                )
            raise InvalidInput(
                "the cache holds keys of another model: take a new RelevanceCache, or call its reset() first."
            )
        is_new = known is not model
        self._model = weakref.ref(model)
        if not self.layers:
            self.layers = [RelevanceLayer(BoundedKeys(**self._settings)) for _ in range(n_layers)]
        return is_new

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Take the newest keys and values of a layer; they are handed back as they are."""
        if self._attachment is None:
            raise InvalidInput(
                "a RelevanceCache needs the attention weights: call the model inside `with relevance_attention(model, "
                "cache):`."
            )
        if self._is_torn:
            raise InvalidInput("the cache was left in the middle of a call by an exception: call its reset() first.")
        self._attachment.require_in_force()
        if not 0 <= layer_idx < len(self.layers):
            raise InvalidInput(f"the cache has {len(self.layers)} layers; a model asked for layer {layer_idx}.")
        if any(layer.pending is not None for layer in self.layers):
            raise InvalidInput(
                "the tokens before these never got their attention from this context: another model uses the cache, or "
                "another attention implementation is in force, which gives no weights."
            )
        return self.layers[layer_idx].update(key_states, value_states)

    def attach(self, attachment: Attachment | None) -> None:
        """Say by whom weights are delivered; ``None`` at the end."""
        if attachment is not None and self._attachment is not None:
            raise InvalidInput("the cache is in use by an outer relevance_attention: take a second RelevanceCache.")
        self._attachment = attachment

    def close(self, *, failed: bool) -> None:
        """At the end of a context: mark the cache if a call was left in the middle."""
        unfinished = any(layer.pending is not None for layer in self.layers)
        seen = {layer.bounded.seen for layer in self.layers}
        for layer in self.layers:
            layer.pending = None
        self._is_torn = self._is_torn or unfinished or len(seen) > 1
        if self._is_torn and not failed:
            raise InvalidInput(
                "the last call inside relevance_attention did not reach all layers with this cache: another model used "
                "it, or another attention implementation was in force."
            )

    def reset(self) -> None:
        """Forget everything, the model included unless a context is open."""
        super().reset()
        self._is_torn = False
        if self._attachment is None:
            self.layers, self._model = [], None

    def activate_past_recording(self) -> NoReturn:
        """Refused: assisted decoding takes tokens back."""
        _refuse_rollback()

    def crop(self, tokens_to_remove: int) -> NoReturn:
        """Refused: what was forgotten for the removed tokens is gone."""
        _refuse_rollback()

    def __deepcopy__(self, memo: dict[int, Any]) -> RelevanceCache:
        """A branch of the conversation, for a context of its own."""
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        own = {"_attachment": None, "_model": self._model}
        for name, value in vars(self).items():
            setattr(twin, name, own[name] if name in own else copy.deepcopy(value, memo))
        return twin

    def __repr__(self) -> str:
        kept = max((layer.bounded.n_kept for layer in self.layers), default=0)
        return f"RelevanceCache({self.policy.name}, {kept} of at most {self.budget} keys, {self.get_seq_length()} seen)"


def _refuse_rollback() -> NoReturn:
    raise InvalidInput(
        "a RelevanceCache cannot take tokens back (crop, assisted decoding): what was forgotten for them is gone."
    )


def _refuse_offloading() -> NoReturn:
    raise InvalidInput("a RelevanceCache is not offloaded: its keys are few, and all are read at every step.")
