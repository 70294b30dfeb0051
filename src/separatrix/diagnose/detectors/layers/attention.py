"""Attention: one key takes all, tokens become alike, the wrong axis, the future."""

from __future__ import annotations

from torch import Tensor

from ...findings.finding import EXACT, Finding, Place
from ...findings.thresholds import threshold
from ...recording.attention_rows import AttentionRow
from ...recording.observed import Observed
from ...recording.passes import gradients
from ...recording.subject import projected
from ..reporting import beyond, fine, judged, softened

_THEORY = "altafini2025: attention flows of frozen layers"


def _place(row: AttentionRow) -> Place:
    return Place(row.event.module, row.event.op, row.event.source)


def attention_collapse(facts: Observed) -> list[Finding]:
    """Mean over rows of the entropy over ln(number of keys that are not masked); the least over layers."""
    rows = [row for row in facts.evaluated.operations.rows if row.entropy is not None]
    facts.profiles["attention"] = [
        {"layer": row.event.module, "entropy": row.entropy, "mask": row.mask, "axis": row.axis, "keys": row.n_keys}
        for row in facts.evaluated.operations.rows[:512]
    ]
    if not rows:
        facts.skip("attention", "no attention was seen")
        return []
    limit = threshold("attention_collapse", "fault")
    worst = min(rows, key=lambda row: row.entropy or 0.0)
    value = worst.entropy or 0.0
    facts.measures["attention_collapse"] = value
    if value >= limit:
        return [fine("attention_entropy", value, f"attention entropy at least {value:.3g} of uniform")]
    finding = judged(
        "attention_collapse", "fault", value, limit,
        f"attention at {worst.event.module or 'the model'} has {value:.2g} of the entropy of uniform: each token looks "
        "at one other, and gradients through the softmax vanish.",
        where=_place(worst), certainty=beyond("attention_collapse"), theory=_THEORY,
        advice="Divide scores by sqrt(d), start queries and keys smaller, or normalise them.",
        code="scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5",
    )  # fmt: skip
    return [softened(finding, "The loss says the model is trained: one level milder.") if facts.trained else finding]


def softmax_axis(facts: Observed) -> list[Finding]:
    """A softmax over queries where keys are summed, or an output that sums to 1 over another axis than classes."""
    found = []
    for row in facts.evaluated.operations.rows:
        if row.axis in ("queries", "neither"):
            causal = any(other.mask in ("causal", "future") for other in facts.evaluated.operations.rows)
            over = "queries" if row.axis == "queries" else "an axis that is neither keys nor queries (heads?)"
            said = f"the softmax of attention runs over {over}, not over the keys that are summed"
            causal = causal and row.axis == "queries"
            found.append(
                Finding(
                    "softmax_axis",
                    "fault" if causal else "warning",
                    _place(row),
                    1.0,
                    f"{said}; under a causal mask the future leaks into the normalisation." if causal else f"{said}.",
                    "Normalise over keys.",
                    "scores.softmax(dim=-1)",
                    certainty=EXACT,
                    evidence="" if causal else "a design that normalises over queries on purpose exists",
                )
            )
            break
    return found + _output_axis(facts)


def _output_axis(facts: Observed) -> list[Finding]:
    f = facts.forward.predicted.detach()
    if f.ndim < 2 or f.shape[0] < 2 or f.is_complex() or not bool(((f >= 0) & (f <= 1)).all()):
        return []
    sums = {axis: f.double().sum(axis) for axis in range(f.ndim)}
    one = {axis: bool(((value - 1).abs() < 1e-4).all()) for axis, value in sums.items()}
    if one[f.ndim - 1] or (f.ndim > 2 and one[1]) or not any(one.values()):
        return []
    axis = next(axis for axis, is_one in one.items() if is_one)
    return [
        Finding(
            "softmax_axis", "fault" if axis == 0 else "warning", Place("output"), float(axis),
            f"the output sums to 1 over axis {axis}" + (", the samples" if axis == 0 else "") + ", not over classes.",
            "Normalise over the class axis.", "scores.softmax(dim=-1)", unit="axis",
        )
    ]  # fmt: skip


def causal_leak(facts: Observed) -> list[Finding]:
    """Of a model with some triangular mask: gradient of the output at T // 2 by later inputs over that by earlier."""
    rows = facts.evaluated.operations.rows
    future = next((row for row in rows if row.mask == "future"), None)
    if future is not None:
        return [
            Finding(
                "causal_leak", "fault", _place(future), 1.0,
                "this mask lets a token see the future alone: it is transposed or inverted.",
                "Mask what comes later.", "mask = torch.ones(T, T, dtype=torch.bool).triu(1)",
            )
        ]  # fmt: skip
    if not any(row.mask == "causal" for row in rows):
        return []
    predicted, leaf = facts.timed_prediction, facts.timed_leaf
    if predicted is None or leaf is None:
        return []
    middle = predicted.shape[1] // 2
    forward, shape = facts.evaluated, (facts.subject.sample.n, predicted.shape[1])
    streams = [part for part in (*forward.leaves, *forward.functions.looked_up) if part.shape[:2] == shape]
    ratios = [_ahead(facts, predicted[:, middle], part, middle) for part in streams if part.ndim == 3]
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return []
    value = min(known)  # an encoder sees all of its own sequence: only what the masked layers read must not leak
    facts.measures["causal_leak"] = value
    if value <= threshold("causal_leak", "fault"):
        return [fine("causal_leak", value, "future influence exactly 0" if value == 0 else "no future influence")]
    open_layers = [row for row in rows if row.mask not in ("causal", "future")]
    return [
        Finding(
            "causal_leak", "fault", _place(open_layers[0]) if open_layers else Place(), value,
            f"some layers are masked, yet the output at step {middle} depends on later inputs "
            f"({value:.2g} of the dependence on earlier ones).",
            "Mask every layer, and normalise over no axis that mixes steps.",
            threshold=threshold("causal_leak", "fault"),
        )
    ]  # fmt: skip


def _ahead(facts: Observed, value: Tensor, stream: Tensor, middle: int) -> float | None:
    """Dependence on later steps of one input sequence over that on earlier ones; None if there is neither."""
    gradient = gradients(projected(value, facts.subject.seed, "part"), [stream])[0]
    if gradient is None:
        return None
    sizes = gradient.detach().double().flatten(2).norm(dim=-1).norm(dim=0)
    past, ahead = float(sizes[: middle + 1].max()), float(sizes[middle + 1 :].max())
    if past > 0:
        return ahead / past
    return None if ahead == 0 else float("inf")


def rank_collapse(facts: Observed) -> list[Finding]:
    """|X - mean over tokens| / |X| where the trunk ends, against where it begins; and the differences themselves fell.

    A common part that grows beside differences that stay (latent tokens that start small) is no collapse: such networks
    learn to tell their tokens apart.
    """
    forward = facts.evaluated
    if not forward.operations.rows:
        return []
    use, tokens = forward.functions.uses[-1] if forward.functions.uses else None, forward.functions.last_stream
    end = (
        (use.diversity_in, use.diversity_in * use.rms_in) if use is not None and use.diversity_in is not None else None
    )
    tokens = use.tokens_in if use is not None and end is not None else tokens
    stream = forward.functions.streams.get(tokens) if tokens is not None else None
    if stream is None:
        return []
    first, (last, size) = stream[0].share, end if end is not None else (stream[1].share, stream[1].size)
    facts.measures["rank_collapse"] = last
    limit, fall = threshold("rank_collapse", "fault"), threshold("rank_collapse", "fall")
    if last >= limit or last >= fall * first or size >= fall * stream[0].size:
        return [fine("rank_collapse", last, f"token diversity {last:.3g} at the end")]
    return [
        judged(
            "rank_collapse", "fault", last, limit,
            f"tokens become alike: they differ by {last:.2g} of their size at the end, {first:.2g} at the beginning.",
            where=Place(forward.functions.uses[-1].module), certainty=beyond("rank_collapse"), theory=_THEORY,
            advice="Add residual connections around attention, or use fewer layers.", code="x = x + attention(norm(x))",
        )
    ]  # fmt: skip
