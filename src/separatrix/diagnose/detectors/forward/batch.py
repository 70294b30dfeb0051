"""Samples that see each other, and statistics over the batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils import _pytree as tree

from ...findings.finding import EXACT, Finding, Place
from ...findings.thresholds import threshold
from ...model_call import evaluation_mode
from ...recording.mixing import first_mixing, related_by_sample
from ...recording.observed import Observed
from ...recording.subject import open_kernels
from ..reporting import beyond, fine, judged

_SHARE = 0.1
"""Share of the budget that may be spent on looking at every sample instead of one."""


def batch_mixing(facts: Observed) -> list[Finding]:
    """Largest gradient of a sample's output by another sample's input, over the largest by any, in evaluation.

    A middle sample is looked at first, then parts of the batch, so that any two samples are parted once. Inputs without
    a gradient are tried by exchanging the other samples. Cost: a forward, and 1 + 2 log2(n) backwards.
    """
    sample = facts.subject.sample
    if sample.n < 2 or sample.packed:
        facts.skip("batch_mixing", "packed sequences" if sample.packed else "one sample", "a batch of at least 2")
        return []
    rows = facts.prediction_rows
    if rows is None:
        facts.skip("batch_mixing", f"the first axis of the prediction {tuple(facts.evaluated.predicted.shape)} does "
                   f"not count the {sample.n} samples", "samples along the first axis")  # fmt: skip
        return []
    middle = sample.n // 2
    value = _by_gradient(facts, rows, middle)
    limit = threshold("batch_mixing", "fault")
    every = value is not None
    if value is not None and value <= limit:
        middle, value, every = _by_parts(facts, rows, middle, limit)
    value = _by_exchange(facts, rows, middle) if value is None else value
    if value is None:
        return []
    facts.measures["batch_mixing"] = value
    if value <= limit:
        said = "no mixing between samples (exact)" if every else f"output {middle} reacts to no other sample"
        return [fine("batch_mixing", value, said)]
    place, said = _suspect(facts)
    relation = _relation(facts)
    if relation:
        return [
            Finding(
                "batch_mixing", "note", place, value,
                f"output {middle} reacts to other rows, along {relation} in the sample itself: a graph, whose rows are "
                "nodes and no samples?", "Ignore this if rows are nodes; findings about samples are about nodes then.",
                threshold=limit, certainty=EXACT,
            )
        ]  # fmt: skip
    return [
        Finding(
            "batch_mixing", "fault", place, value,
            f"output {middle} reacts to other samples, up to {value:.2g} of its strongest reaction{said}",
            "Keep samples apart: batch_first=True, permute() instead of view() or reshape(), softmax and "
            "normalisation not over the batch axis.", threshold=limit, certainty=EXACT,
        )
    ]  # fmt: skip


def _by_parts(facts: Observed, rows: Tensor, middle: int, limit: float) -> tuple[int, float, bool]:
    """A sample that reads another one and how much, or the middle one and nothing; and whether all could be looked at.

    The parts are the digits of the samples' numbers in base two: any two samples differ in one of them.
    """
    n_digits = (len(rows) - 1).bit_length()
    estimate = 4 * n_digits * facts.forward_seconds
    if estimate > _SHARE * facts.budget.seconds or not facts.budget.allows(estimate):
        return middle, 0.0, False
    index = torch.arange(len(rows), device=rows.device)
    for place in range(n_digits):
        for part in ((index >> place) % 2 == 1, (index >> place) % 2 == 0):
            if (_reaction(facts, rows, part) or 0.0) > limit:
                for row in index[part].tolist():  # somebody in it does: who?
                    value = _by_gradient(facts, rows, row) or 0.0
                    if value > limit:
                        return row, value, True
    return middle, 0.0, True


def _by_gradient(facts: Observed, rows: Tensor, sample: int) -> float | None:
    return _reaction(facts, rows, torch.arange(len(rows), device=rows.device) == sample)


def _reaction(facts: Observed, rows: Tensor, part: Tensor) -> float | None:
    """Largest gradient of the outputs of a part of the samples by the inputs of the others, over the largest by any."""
    ratios = []
    for place, leaf in enumerate(facts.evaluated.leaves):
        if leaf.ndim < 2 or leaf.shape[0] != facts.subject.sample.n or not rows.requires_grad:
            continue
        gradient = facts.evaluated_gradient(rows[part], place)
        if gradient is None:
            continue
        sizes = gradient.detach().flatten(1).abs().double().amax(1)
        largest = float(sizes.max())
        if largest > 0:
            ratios.append(float(sizes[~part.to(sizes.device)].max()) / largest)
    return max(ratios, default=None)


def _by_exchange(facts: Observed, rows: Tensor, middle: int) -> float | None:
    """How much one output changes when all other samples are exchanged, over its size.

    A change is compared with one that no exchange made: the recorded pass had gradients, and some models return
    something else without them, or at every call.
    """
    n = facts.subject.sample.n
    order = torch.tensor([*range(1, n), 0])
    order[middle] = middle
    order[(middle - 1) % n] = (middle + 1) % n
    after = _without_gradients(facts, rows, order)
    if after is None:
        return None
    value = _share(rows.detach(), after, middle)
    if value <= threshold("batch_mixing", "fault"):
        return value
    before = _without_gradients(facts, rows, torch.arange(n))
    again = _without_gradients(facts, rows, torch.arange(n))
    if before is None or again is None:
        return None
    value = _share(before, after, middle)
    return value if value > 2 * _share(before, again, middle) else None


def _without_gradients(facts: Observed, rows: Tensor, order: Tensor) -> Tensor | None:
    """The prediction, in evaluation, of the samples in another order; None if it has another size."""
    n = facts.subject.sample.n

    def exchanged(value: object) -> object:
        return value[order] if isinstance(value, Tensor) and value.ndim and value.shape[0] == n else value

    args, kwargs, _ = facts.subject.sample.leaves(direct=facts.subject.direct)
    args, kwargs = tree.tree_map(exchanged, (args, kwargs))
    with evaluation_mode(facts.subject.model), torch.no_grad(), open_kernels():
        predicted = facts.subject.predicted(facts.subject.call(args, kwargs))
    return predicted.detach().reshape(rows.shape) if predicted.numel() == rows.numel() else None


def _share(before: Tensor, after: Tensor, sample: int) -> float:
    """The largest change of a sample's output over the largest output; zero for what rounding does."""
    size = float(before[sample].abs().double().max())
    change = float((before[sample] - after[sample]).abs().double().max())
    return change / size if size > 0 and change > 1e-5 * size else 0.0


def _relation(facts: Observed) -> str:
    try:
        return related_by_sample(facts.subject)
    except (RuntimeError, ValueError, TypeError, IndexError):  # without this look the finding stands as it is
        return ""


def _suspect(facts: Observed) -> tuple[Place, str]:
    """A recurrent layer that ran along the samples, or the first operation that shows it."""
    n = facts.subject.sample.n
    for name, x in facts.evaluated.functions.recurrent:
        module = facts.subject.model.get_submodule(name)
        if isinstance(module, nn.RNNBase) and not module.batch_first and x.shape[0] == n:
            kind = type(module).__name__
            return Place(name, kind), f"; {name or kind} has batch_first=False and ran along the {n} samples."
    try:
        event = first_mixing(facts.subject, (n // 2 + 1) % n)
    except Exception:  # the place is an extra; the finding stands without it
        event = None
    if event is None:
        return Place(), "."
    return Place(event.module, event.op, event.source), f"; first seen at {event.op}."


def _tracked(model: nn.Module, address: int) -> tuple[str, int]:
    """The module whose running mean lies at an address, and how many batches it has seen (-1 if it does not count)."""
    for name, module in model.named_modules():
        mean = getattr(module, "running_mean", None)
        if isinstance(mean, Tensor) and mean.data_ptr() == address:
            seen = getattr(module, "num_batches_tracked", None)
            return name, int(seen) if isinstance(seen, Tensor) else -1
    return "", -1


def stale_statistics(facts: Observed) -> list[Finding]:
    """In evaluation, after training: medians over channels of |ln(var batch / var running)| and of the shift of the
    mean in running deviations."""
    found, n = [], facts.subject.sample.n
    forward = facts.forward if any(not norm.training for norm in facts.forward.operations.norms) else None
    for norm in forward.operations.norms if forward is not None else ():
        name, seen = _tracked(facts.subject.model, norm.running)
        if norm.training or seen <= 0 or norm.variance is None or norm.mean is None or norm.values < 8 or n < 4:
            continue
        for measure, value in (("stale_variance", norm.variance), ("stale_mean", norm.mean)):
            facts.measures[measure] = max(value, facts.measures.get(measure, 0.0))
        if norm.variance > threshold("stale_statistics", "variance") or norm.mean > threshold(
            "stale_statistics", "mean"
        ):
            by_variance = norm.variance > threshold("stale_statistics", "variance")
            value = norm.variance if by_variance else norm.mean
            limit = threshold("stale_statistics", "variance" if by_variance else "mean")
            found.append(
                judged(
                    "stale_statistics",
                    "fault",
                    value,
                    limit,
                    f"the batch at {name} differs from the running statistics: variances by a factor of "
                    f"{2.718281828**norm.variance:.3g}, means by {norm.mean:.2g} deviations (medians over channels).",
                    where=Place(name, norm.event.op, norm.event.source),
                    certainty=beyond("stale_variance" if by_variance else "stale_mean"),
                    advice="Preprocess as in training, or estimate the statistics again on such data.",
                    code="model.train(); [model(x) for x in loader]; model.eval()",
                )
            )
    return found


def tiny_norm_batch(facts: Observed) -> list[Finding]:
    """Values per channel of batch normalisation in training mode."""
    limit = int(threshold("tiny_norm_batch", "warning"))
    small = [norm for norm in facts.forward.operations.norms if norm.training and norm.values < limit]
    small = [norm for norm in small if facts.subject.sample.given == facts.subject.sample.n]
    if not small:
        return []
    least = min(small, key=lambda norm: norm.values)
    return [
        Finding(
            "tiny_norm_batch", "warning", Place(least.event.module, least.event.op, least.event.source),
            float(least.values),
            f"batch normalisation estimates each channel from {least.values} values: its output is mostly noise.",
            "Use a larger batch, or GroupNorm or LayerNorm.", threshold=float(limit), unit="values",
        )
    ]  # fmt: skip
