"""What the attention layers of a real model would do to tokens if iterated, and what they do at their real depth."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix import dynamics
from separatrix.core import InvalidInput, Result, choose, require_integer, require_positive
from separatrix.core.random import default_generator

from .alignment import Alignment, alignments
from .frozen_flow import FrozenEnd, frozen_flow
from .layer import AttentionLayer
from .sources import attention_layers
from .spectra import HeadPrediction, LayerSpectrum, head_predictions, value_spectra
from .token_geometry import TokenGeometry, token_geometry
from .token_streams import Streams, check_streams, redrawn_model, streams_of_model

NO_TEXTS = "not measured: no texts"


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LayerDiagnosis(Result):
    """One layer: spectra, predictions per head, the ends of the frozen layer, and the tokens where texts were given."""

    name: str
    variable: str
    note: str
    spectrum: LayerSpectrum
    heads: HeadPrediction
    ends: tuple[FrozenEnd, ...]
    geometry: TokenGeometry | None = None
    alignment: tuple[Alignment, ...] = ()

    @property
    def verdict(self) -> str:
        """What this layer does if iterated, and whether the real tokens show it."""
        counts = Counter(end.sentence for end in self.ends)
        if not counts:
            parts = "not iterated"
        elif len(counts) == 1:
            parts = f"iterated, {next(iter(counts))} ({len(self.ends)} of {len(self.ends)} starts)"
        else:
            listed = "; ".join(f"{number} of {len(self.ends)} starts {words}" for words, number in counts.most_common())
            parts = f"iterated, has several ends: {listed}"
        return f"{_called(self.name)}: this layer, {parts}. {self._at_depth()}"

    def _at_depth(self) -> str:
        if not self.alignment:
            return f"Real tokens: {NO_TEXTS}."
        update = next(item for item in self.alignment if item.what == "update")
        factor = update.energy.mean / update.chance
        standing = "beyond the nulls" if update.above_chance else "within the nulls"
        return f"On real tokens its update has {factor:.1f} times chance energy in the dominant subspace ({standing})."


@final
@dataclasses.dataclass(frozen=True, repr=False)
class AttentionDiagnosis(Result):
    """All layers of a model, a control with weights drawn anew, and what was skipped or not measured."""

    layers: tuple[LayerDiagnosis, ...]
    control: tuple[LayerDiagnosis, ...]
    skipped: Mapping[str, str]
    not_measured: tuple[str, ...]
    output: TokenGeometry | None = None
    """The tokens that leave the last layer."""
    seed: int | None = None
    """Of the generator that drew starts, nulls and the control."""

    @property
    def verdicts(self) -> list[str]:
        """One plain sentence or two per layer."""
        return [layer.verdict for layer in self.layers]

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Flat rows by title: spectra, heads, frozen layers, tokens, alignment; the control is marked."""
        marked = [(layer, False) for layer in self.layers] + [(layer, True) for layer in self.control]
        found: dict[str, list[dict[str, Any]]] = {
            "Spectra": [_spectrum_row(layer) | {"control": control} for layer, control in marked],
            "Heads": [_head_row(layer) | {"control": control} for layer, control in marked],
            "Frozen layers": [
                _end_row(_called(layer.name), end) | {"control": control}
                for layer, control in marked
                for end in layer.ends
            ],
        }
        seen = [layer.geometry for layer in self.layers if layer.geometry is not None]
        seen += [] if self.output is None else [self.output]
        unlike = [layer.geometry for layer in self.control if layer.geometry is not None]
        if seen:
            found["Tokens"] = [_geometry_row(g) | {"control": False} for g in seen]
            found["Tokens"] += [_geometry_row(g) | {"control": True} for g in unlike]
            found["Alignment"] = [
                _alignment_row(item) | {"control": control} for layer, control in marked for item in layer.alignment
            ]
        return found


def attention_dynamics(
    source: nn.Module | Mapping[str, Tensor] | str | Path,
    texts: Sequence[str] | None = None,
    *,
    tokenizer: Callable[..., Any] | None = None,
    hidden_states: Sequence[Sequence[Tensor]] | None = None,
    n_heads: int | None = None,
    causal: bool | None = None,
    norm: str = "auto",
    biases: bool = False,
    token_norm: int | float | str = "standard",
    n_starts: int = 2,
    n_tokens: int = 48,
    t_max: int | float = 200.0,
    rank: int = 8,
    control: bool = True,
    generator: torch.Generator | None = None,
) -> AttentionDiagnosis:
    """Measure the attention dynamics of a model with real weights.

    Args:
        source: what ``attention_layers`` reads: a module, a state dict, a safetensors file or a checkpoint.
        texts: texts for a Hugging Face model in evaluation mode, with its ``tokenizer``.
        tokenizer: called as ``tokenizer(text, return_tensors="pt")``.
        hidden_states: instead of texts, the residual stream itself: for each layer a list of texts (tokens, d).
        n_heads, causal, norm: as in ``attention_layers``.
        biases: keep the biases of the projections in the frozen flow.
        token_norm: length of the tokens a layer reads, which sets the inverse temperature to its square: sqrt(d)
            (``"standard"``), the mean length of the given tokens (``"measured"``), or a number.
        n_starts: random starts of each frozen layer; as many texts, if there are any, are starts as well.
        n_tokens: tokens of a random start, and of the predictions per head.
        t_max: time limit of the frozen flow in units of one over the principal real part of V_S.
        rank: dimension of the dominant subspace.
        control: measure the same for weights drawn anew at the same scale.
        generator: for random starts, nulls and the control.

    Returns:
        Per layer: spectra, predictions per head, ends of the frozen layer; with tokens also their likeness and their
        energy in the dominant subspace against nulls, with intervals over texts. What could not be measured is named.

    Cost: a frozen start takes seconds to minutes at d = 384; an eigendecomposition of a d x d matrix per rotated null.

    Example:
        >>> import torch
        >>> from separatrix.core import spawn
        >>> from separatrix.diagnose import attention_dynamics
        >>> layer = torch.nn.MultiheadAttention(8, 2)
        >>> found = attention_dynamics(layer, n_starts=1, n_tokens=6, control=False, generator=spawn(0, "example"))
        >>> len(found.layers)
        1
    """
    generator = default_generator(generator)
    require_integer(n_starts, "n_starts", at_least=0)
    require_integer(n_tokens, "n_tokens", at_least=4)
    found = attention_layers(source, n_heads=n_heads, causal=causal, norm=norm)
    streams = _streams(source, texts, tokenizer, hidden_states, found.layers)
    if isinstance(token_norm, int | float):
        require_positive(token_norm, "token_norm")
    else:
        choose("token_norm", token_norm, ("standard", "measured"), also="a positive number")
    if token_norm == "measured" and streams is None:
        raise InvalidInput("token_norm='measured' needs texts or hidden_states; without them give a number.")
    run = _Settings(biases, token_norm, n_starts, n_tokens, t_max, rank, generator)
    layers = _diagnosed(found.layers, streams, run)
    others: tuple[LayerDiagnosis, ...] = ()
    if control:
        others = _controls(
            source, texts, tokenizer, found.layers, streams, run, {"n_heads": n_heads, "causal": causal, "norm": norm}
        )
    output = token_geometry("output", streams[-1]) if streams and len(streams) > len(found.layers) else None
    missing = () if streams else (f"tokens and alignment {NO_TEXTS}",)
    return AttentionDiagnosis(layers, others, found.skipped, missing, output, generator.initial_seed())


@final
@dataclasses.dataclass(frozen=True)
class _Settings:
    biases: bool
    token_norm: int | float | str
    n_starts: int
    n_tokens: int
    t_max: int | float
    rank: int
    generator: torch.Generator

    def length(self, layer: AttentionLayer, texts: Sequence[Tensor] | None) -> float:
        """The length of the tokens that a layer reads."""
        if self.token_norm == "standard":
            return math.sqrt(layer.dim)
        if self.token_norm == "measured" and texts is not None:
            lengths = [torch.linalg.vector_norm(layer.read(text), dim=-1).mean() for text in texts]
            return float(torch.stack(lengths).mean())
        return float(self.token_norm)


def _streams(
    source: object,
    texts: Sequence[str] | None,
    tokenizer: Callable[..., Any] | None,
    given: Sequence[Sequence[Tensor]] | None,
    layers: Sequence[AttentionLayer],
) -> Streams | None:
    if given is not None:
        if texts is not None:
            raise InvalidInput("give texts or hidden_states, not both.")
        return check_streams(given, len(layers), layers[0].dim)
    if texts is None:
        return None
    if not isinstance(source, nn.Module) or tokenizer is None:
        raise InvalidInput(
            "texts need a model that can read them and its tokenizer; from a file of weights pass hidden_states."
        )
    return streams_of_model(source, texts, tokenizer, len(layers))


def _diagnosed(layers: Sequence[AttentionLayer], streams: Streams | None, run: _Settings) -> tuple[LayerDiagnosis, ...]:
    leaning: list[list[Alignment]] = [[] for _ in layers]
    entering: Streams | None = None
    if streams is not None:
        entering = streams[: len(layers)]
        leaning = alignments(layers, entering, rank=min(run.rank, layers[0].dim - 1), generator=run.generator)
    return tuple(
        _diagnosis(layer, None if entering is None else entering[i], tuple(leaning[i]), run)
        for i, layer in enumerate(layers)
    )


def _diagnosis(
    layer: AttentionLayer,
    texts: Sequence[Float[Tensor, "_ d"]] | None,
    leaning: tuple[Alignment, ...],
    run: _Settings,
) -> LayerDiagnosis:
    length = run.length(layer, texts)
    return LayerDiagnosis(
        name=layer.name,
        variable=layer.variable,
        note=layer.note,
        spectrum=value_spectra(layer),
        heads=head_predictions(layer, n_tokens=run.n_tokens, token_norm=length),
        ends=tuple(_ends(layer, texts, run, length)),
        geometry=None if texts is None else token_geometry(layer.name, texts),
        alignment=leaning,
    )


def _ends(
    layer: AttentionLayer, texts: Sequence[Float[Tensor, "_ d"]] | None, run: _Settings, length: float
) -> list[FrozenEnd]:
    """Ends from random tokens, and from the tokens of the first texts."""
    starts: list[tuple[str, Tensor]] = []
    if run.n_starts:
        x = dynamics.random_tokens(run.n_tokens, layer.dim, run.n_starts, generator=run.generator)
        starts.append(("random tokens", x))
    for number, text in enumerate((texts or [])[: run.n_starts]):
        starts.append((f"text {number + 1}", dynamics.normalise(layer.read(text))))
    found: list[FrozenEnd] = []
    for start, x in starts:
        found += frozen_flow(layer, x, start=start, biases=run.biases, token_norm=length, t_max=run.t_max)
    return found


def _controls(
    source: object,
    texts: Sequence[str] | None,
    tokenizer: Callable[..., Any] | None,
    layers: Sequence[AttentionLayer],
    streams: Streams | None,
    run: _Settings,
    facts: dict[str, Any],
) -> tuple[LayerDiagnosis, ...]:
    """The same measurement with weights drawn anew: a whole model if texts can be run through it, else the layers."""
    if texts is not None and tokenizer is not None and isinstance(source, nn.Module):
        model = redrawn_model(source, run.generator)
        redrawn = attention_layers(model, **facts).layers
        streams = streams_of_model(model, texts, tokenizer, len(redrawn))
        return _diagnosed(
            [dataclasses.replace(layer, name=f"{layer.name} (redrawn)") for layer in redrawn], streams, run
        )
    return _diagnosed([layer.redrawn(run.generator) for layer in layers], streams, run)


def _spectrum_row(layer: LayerDiagnosis) -> dict[str, Any]:
    s = layer.spectrum
    return {
        "layer": _called(layer.name),
        "principal": f"{s.principal.real:.4f}" if s.is_real else f"{s.principal.real:.4f} +- {s.principal.imag:.4f}i",
        "real": s.is_real,
        "gap": s.gap,
        "least real part": s.least_real,
        "radius": s.radius,
        "asymmetry": s.asymmetry,
        "coupling symmetry": s.coupling_symmetry,
    }


def _head_row(layer: LayerDiagnosis) -> dict[str, Any]:
    h = layer.heads
    return {
        "layer": _called(layer.name),
        "heads": len(h.principal),
        "stable consensus": int(h.consensus.sum()),
        "consensus cycle": int(h.consensus_cycle.sum()),
        "stable balanced bipartite": int(h.bipartite.sum()),
        "stable bipartite on the most negative": int(h.bipartite_last.sum()),
    }


def _called(name: str) -> str:
    """The name of a layer; weights of one layer alone have none."""
    return name if name and not name.startswith(" ") else f"the layer{name}"


def _end_row(name: str, end: FrozenEnd) -> dict[str, Any]:
    return {
        "layer": name,
        "start": end.start,
        "end": end.kind,
        "groups": "/".join(str(size) for size in end.sizes),
        "alignment": end.alignment,
        "stable": "" if end.stable is None else end.stable,
        "time": end.time,
        "residual": end.residual,
    }


def _geometry_row(geometry: TokenGeometry) -> dict[str, Any]:
    row: dict[str, Any] = {"layer": _called(geometry.name)}
    for field in ("cosine", "centred_cosine", "rank", "centred_rank", "length"):
        interval = getattr(geometry, field)
        row |= {field: interval.mean, f"{field} low": interval.low, f"{field} high": interval.high}
    return row


def _alignment_row(item: Alignment) -> dict[str, Any]:
    return {
        "layer": _called(item.name),
        "what": item.what,
        "energy": item.energy.mean,
        "low": item.energy.low,
        "high": item.energy.high,
        "chance": item.chance,
        "random high": item.random.high,
        "other layers": item.other_layers.mean,
        "rotated": item.rotated.mean,
        "rotated high": item.rotated.high,
        "beyond nulls": item.above_chance,
    }
