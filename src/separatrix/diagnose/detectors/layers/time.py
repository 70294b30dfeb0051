"""Memory along a sequence: how gradients fall or grow per step, and where they are cut."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core import stream_seed

from ...findings.finding import Certainty, Finding, Place
from ...findings.thresholds import threshold
from ...recording.observed import Observed
from ...recording.subject import open_kernels

_MOST = 16
_KINDS = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN_TANH": nn.RNN, "RNN_RELU": nn.RNN}
_THEORY = "kerg2022, chapter 3: norms of products of Jacobians along a sequence"


@dataclasses.dataclass(frozen=True)
class Rate:
    """Slope per step of lag of ln |d(u.h_T) / dx_t|: mean and standard error over samples."""

    mean: float
    se: float
    n: int
    r2: float
    norms: Tensor
    """Mean over samples of the logarithm, by lag."""


def fitted_rate(norms: Tensor) -> Rate | None:
    """From gradient norms (samples, time). Zeros, which float64 underflows to, are left out."""
    length = norms.shape[1]
    lag = torch.arange(length - 1, -1, -1, dtype=torch.float64)
    slopes, fits = [], []
    for row in norms.double():
        kept = (row > 1e-290) & torch.isfinite(row)
        if int(kept.sum()) < 4:
            continue
        x, y = lag[kept], row[kept].log()
        x, y = x - x.mean(), y - y.mean()
        slope = float(x @ y / (x @ x))
        slopes.append(slope)
        total = float(y @ y)
        fits.append(1 - float((y - slope * x).square().sum()) / total if total > 0 else 0.0)
    if not slopes:
        return None
    values = torch.tensor(slopes, dtype=torch.float64)
    se = float(values.std() / math.sqrt(len(slopes))) if len(slopes) > 1 else math.inf
    logs = norms.double().clamp_min(1e-300).log().mean(0).flip(0)
    return Rate(float(values.mean()), se, len(slopes), sum(fits) / len(fits), logs)


def layer_rate(module: nn.RNNBase, x: Tensor, seed: int) -> Rate | None:
    """Of a recurrent layer by its own map, in float64, on at most 16 samples. Cost: its forward and backward."""
    kind = _KINDS.get(module.mode)
    if kind is None:
        return None
    options: dict[str, Any] = {"nonlinearity": module.nonlinearity} if kind is nn.RNN else {}
    if module.proj_size:
        options["proj_size"] = module.proj_size
    own = kind(
        module.input_size, module.hidden_size, module.num_layers, bias=module.bias, batch_first=True,
        bidirectional=module.bidirectional, dtype=torch.float64, **options,
    )  # fmt: skip
    values = module.state_dict()
    own.load_state_dict(
        {name: values[name].double().cpu() for name in own.state_dict() if name in values}, strict=False
    )
    rows = (x if module.batch_first else x.transpose(0, 1))[:_MOST].detach().double().cpu().requires_grad_()
    if rows.shape[1] < 6:
        return None
    with torch.enable_grad(), open_kernels():
        last = own(rows)[0][:, -1]
        width = last.shape[-1] // 2 if module.bidirectional else last.shape[-1]
        generator = torch.Generator().manual_seed(stream_seed(seed, "check", "memory"))
        u = torch.randn(last.shape[0], width, generator=generator, dtype=torch.float64)
        (gradient,) = torch.autograd.grad((last[:, :width] * u).sum(), [rows])
    return fitted_rate(gradient.norm(dim=-1))


def memory(facts: Observed) -> list[Finding]:
    """``short_memory``, ``time_growth``, or a note with the horizon, of recurrent layers and of loops."""
    if facts.subject.sample.packed:
        facts.skip("time", "packed sequences", "a padded tensor")
        return []
    found: list[Finding] = []
    layers = _layers(facts)
    for name, module, x in layers:
        rate = layer_rate(module, x, facts.subject.seed)
        if rate is not None and math.isfinite(rate.se):
            found.append(_judged_layer(facts, name, type(module).__name__, rate))
    if layers:
        return found
    return _of_loops(facts)


def _layers(facts: Observed) -> list[tuple[str, nn.RNNBase, Tensor]]:
    found: dict[str, tuple[str, nn.RNNBase, Tensor]] = {}
    for name, x in facts.forward.functions.recurrent:
        module = facts.subject.model.get_submodule(name)
        if isinstance(module, nn.RNNBase):
            found.setdefault(name, (name, module, x))
    return list(found.values())


def _judged_layer(facts: Observed, name: str, kind: str, rate: Rate) -> Finding:
    facts.profiles.setdefault("time", {})[name or kind] = {"rate": rate.mean, "se": rate.se, "log_norms": rate.norms}
    facts.measures["recurrent_rate_min"] = min(rate.mean, facts.measures.get("recurrent_rate_min", math.inf))
    facts.measures["recurrent_rate_max"] = max(rate.mean, facts.measures.get("recurrent_rate_max", -math.inf))
    place, sure = Place(name, kind), Certainty("se", se=rate.se, n=rate.n)
    short, growth = threshold("short_memory", "fault"), threshold("time_growth", "fault")
    said = f"gradients change by e^{rate.mean:.3g} per step along {name or kind}"
    if rate.mean + 2 * rate.se < short:
        return Finding(
            "short_memory", "fault", place, rate.mean, f"{said}: it remembers {-1 / rate.mean:.2g} steps.",
            "Start with an orthogonal recurrent matrix; in an LSTM with a forget bias of +1 to +2.",
            "nn.init.orthogonal_(rnn.weight_hh_l0)", theory=_THEORY, unit="per step", certainty=sure, threshold=short,
        )  # fmt: skip
    if rate.mean - 2 * rate.se > growth:
        return Finding(
            "time_growth", "fault", place, rate.mean,
            f"{said}: they pass 10^6 after {math.log(1e6) / rate.mean:.0f} steps.",
            "Start with an orthogonal recurrent matrix, or scale it down; clip gradients.",
            "nn.init.orthogonal_(rnn.weight_hh_l0)", theory=_THEORY, unit="per step", certainty=sure, threshold=growth,
        )  # fmt: skip
    horizon = f"horizon {-1 / rate.mean:.2g} steps" if rate.mean < 0 else "no decay"
    advice = "For longer dependencies: orthogonal recurrent matrix, forget bias +1 to +2." if rate.mean < -0.05 else ""
    return Finding(
        "memory", "note", place, rate.mean, f"{said} ({horizon}).", advice, theory=_THEORY, unit="per step",
        certainty=sure,
    )  # fmt: skip


def recurrent_evidence(facts: Observed) -> bool:
    """Whether some parameter takes part in about as many operations as there are steps."""
    length = facts.subject.sample.time_length
    counts = facts.evaluated.operations.touches.values()
    return length is not None and length >= 6 and max(counts, default=0) >= length - 1


def _of_loops(facts: Observed) -> list[Finding]:
    norms = time_norms(facts)
    if norms is None:
        facts.skip("time", "no sequence axis, or nothing recurrent along it")
        return []
    rate = fitted_rate(norms)
    if rate is None or rate.r2 < threshold("time_growth", "r2") or not math.isfinite(rate.se):
        return []
    facts.profiles.setdefault("time", {})["model"] = {"rate": rate.mean, "se": rate.se, "log_norms": rate.norms}
    facts.measures["loop_rate"] = rate.mean
    sure, said = Certainty("se", se=rate.se, n=rate.n), f"gradients change by e^{rate.mean:.3g} per step of the input"
    if rate.mean + 2 * rate.se < threshold("short_memory", "fault"):
        return [
            Finding(
                "short_memory", "fault", Place(), rate.mean, f"{said}: memory of {-1 / rate.mean:.2g} steps.",
                "Start with an orthogonal recurrent matrix, or decay factors nearer to 1.", theory=_THEORY,
                unit="per step", certainty=sure, threshold=threshold("short_memory", "fault"),
            )
        ]  # fmt: skip
    if rate.mean - 2 * rate.se > threshold("time_growth", "loop"):
        strong = rate.mean - 2 * rate.se > threshold("time_growth", "fault")
        return [
            Finding(
                "time_growth", "fault" if strong else "warning", Place(), rate.mean,
                f"{said}: they pass 10^6 after {math.log(1e6) / rate.mean:.0f} steps.",
                "Keep the factors of the recurrence below 1 in size.", theory=_THEORY, unit="per step",
                certainty=sure, threshold=threshold("time_growth", "loop"),
                evidence="on short inputs a head can adapt to the growth; certain is the length at which it overflows",
            )
        ]  # fmt: skip
    horizon = f"horizon {-1 / rate.mean:.2g} steps" if rate.mean < 0 else "no decay"
    return [
        Finding("memory", "note", Place(), rate.mean, f"{said} ({horizon}).", theory=_THEORY, unit="per step",
                certainty=sure)
    ]  # fmt: skip


def time_norms(facts: Observed) -> Tensor | None:
    """|d(last output) / dx_t| by sample and step, in evaluation; None for models that are not recurrent in time."""
    if facts.timed_leaf is None or facts.evaluated.operations.rows or not recurrent_evidence(facts):
        return None
    rows = facts.timed_prediction
    value = rows[:, -1] if rows is not None else facts.prediction_rows
    if value is None or not value.requires_grad:
        return None
    gradient = facts.evaluated_gradient(value, facts.timed_leaf)
    return None if gradient is None else gradient.detach().double().flatten(2).norm(dim=-1)


def time_cut(facts: Observed) -> list[Finding]:
    """df/dx_t exactly 0 for every sample while df/dx_{t+1} is more than 1e-20 of the largest."""
    norms = time_norms(facts)
    if norms is None:
        return []
    sizes = norms.amax(0)
    largest = float(sizes.max())
    if not largest > 0:
        return []
    cut = [
        t for t in range(len(sizes) - 1)
        if float(sizes[t]) == 0.0 and float(sizes[t + 1]) > threshold("time_cut", "next") * largest
    ]  # fmt: skip
    if not cut:
        return []
    events = facts.forward.functions.detached
    place = Place(events[-1][0], "detach", events[-1][1]) if events else Place()
    return [
        Finding(
            "time_cut", "fault", place, float(cut[-1]),
            f"input steps up to {cut[-1]} have no influence on the last output, step {cut[-1] + 1} has.",
            "Remove detach(), .data or no_grad() inside the loop over time.", unit="step",
        )
    ]  # fmt: skip
