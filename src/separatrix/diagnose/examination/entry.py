"""``check(model, sample)``: everything that one batch can tell, with what it could not."""

from __future__ import annotations

import dataclasses
import platform
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, require_integer, require_positive

from ..detectors.forward.numbers import forward_raised
from ..findings.diagnosis import Diagnosis
from ..findings.evidence import evidence
from ..findings.finding import Finding, Place
from ..losses import Loss, loss_function
from ..model_call import Pick, prediction
from ..optimisers import learning_rates
from ..recording.observed import Budget, Observed
from ..recording.passes import ForwardRaised
from ..recording.protection import untouched
from ..recording.samples import MOST, Sample, cut_target, read_sample
from ..recording.subject import Subject, as_left, own_loss
from .causes import ordered
from .order import STAGES, STATIC, Detector


def check(
    model: nn.Module,
    sample: Any,
    *,
    loss: Loss | Callable[[Tensor], Tensor] | None = None,
    target: Any = None,
    optimizer: torch.optim.Optimizer | None = None,
    output: Pick | None = None,
    chunk_size: int | str = "auto",
    budget_seconds: float | int = 120,
    seed: int = 0,
) -> Diagnosis:
    """Look inside any network: what is wrong, how sure that is, what to change, and what could not be seen.

    Nothing is trained and nothing stays changed: parameters, buffers, modes, ``requires_grad``, ``.grad``, hooks and
    random states are bit for bit as before, also if the forward raises or is interrupted. The model runs in the mode
    it is in. Nothing is recognised by the names of classes or attributes.

    Args:
        model: any ``torch.nn.Module``.
        sample: one batch: a tensor, a tuple of arguments or a mapping of them, samples along the first axis.
        loss: ``"mse"``, ``"cross_entropy"``, a function of prediction and target (with ``target``), or of the
            prediction alone. A ``loss`` in the model's own output is used if none is given.
        target: what the loss compares with.
        optimizer: a torch optimiser of the model; only its rates and its state are read.
        output: takes what the model returns and gives the prediction; by default ``logits`` or the first real tensor.
        chunk_size: how many samples are looked at; ``"auto"`` is up to 64, fewer for large models.
        budget_seconds: where to stop; what was not reached is in ``.skipped``.
        seed: of projections and of what the model draws.

    Returns:
        The diagnosis; ``print`` it, ``.save("report.html")``, ``.raise_if("fault")``.

    Raises:
        InvalidInput: the arguments cannot be looked at; one sentence says why.

    Cost: about 15 forwards, less if the budget ends; memory of one forward and backward and a copy of the weights.

    Example:
        >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        >>> check(model, torch.randn(32, 8, generator=torch.Generator().manual_seed(0))).verdict
        'ok'
    """
    started = time.perf_counter()
    model = _readable(model)
    require_positive(budget_seconds, "budget_seconds")
    require_integer(seed, "seed", at_least=0)
    batch = read_sample(sample)
    if loss is not None and not callable(loss):
        loss_function(loss)
    budget = Budget(float(budget_seconds), time.perf_counter)
    whole = batch
    batch = batch.first(_count(chunk_size, batch, model, budget))
    with untouched(model), torch.inference_mode(False), torch.enable_grad():
        subject = Subject(model, batch, None, False, target, optimizer, output or prediction, seed)
        facts, findings, ran = _examined(subject, whole, loss, target, budget)
        profiles, described = dict(facts.profiles), _described(facts)
    return Diagnosis(
        findings=ordered([_with_evidence(finding, optimizer) for finding in findings]),
        skipped=tuple(facts.skipped),
        profiles=profiles,
        model=_model_facts(model, facts),
        sample=described,
        seed=seed,
        seconds=time.perf_counter() - started,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        environment={"torch": torch.__version__, "python": platform.python_version(), "device": _device(model)},
        measures=dict(facts.measures),
        ran=ran,
    )


diagnose = check


def _readable(model: Any) -> nn.Module:
    if not isinstance(model, nn.Module):
        raise InvalidInput(f"model must be a torch.nn.Module; got {type(model).__name__}.")
    inner = getattr(model, "_orig_mod", None)
    model = inner if isinstance(inner, nn.Module) else model  # what torch.compile wraps
    if any(not hasattr(part, "training") for part in model.modules()):
        raise InvalidInput(
            "model is frozen TorchScript (torch.jit.freeze, or optimize_for_inference), whose weights are constants: "
            "pass the module it was made from."
        )
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if nn.parameter.is_lazy(value):
            raise InvalidInput(f"model has lazy modules ({name} has no shape yet): run one forward first.")
        if value.is_inference():
            raise InvalidInput(f"model was made under torch.inference_mode ({name}): no gradient can be taken of it.")
        if value.is_meta:
            raise InvalidInput(f"model has weights on the meta device ({name}): load real numbers first.")
    return model


def _count(chunk_size: int | str, batch: Sample, model: nn.Module, budget: Budget) -> int:
    """How many samples are looked at."""
    if chunk_size == "auto":
        most = min(batch.n, MOST)
        size = sum(value.numel() for value in model.parameters())
        positions = sum(tensor[0].numel() if not tensor.is_floating_point() else max(tensor[0].numel() // 256, 1)
                        for tensor in batch.tensors[:1] if tensor.ndim)  # fmt: skip
        work = 2.0 * size * max(positions, 1) / 2e10  # seconds of a forward of one sample on a slow core
        fitting = int(budget.seconds / (25 * work)) if work > 0 else most
        return max(min(most, fitting), min(most, 2))
    if isinstance(chunk_size, str):
        raise InvalidInput(f"chunk_size must be 'auto' or a number of samples; got {chunk_size!r}.")
    return min(require_integer(chunk_size, "chunk_size", at_least=1), batch.n)


def _examined(
    subject: Subject, whole: Sample, loss: Any, target: Any, budget: Budget
) -> tuple[Observed, list[Finding], bool]:
    facts = Observed(subject, budget)
    findings = _run(STATIC, facts)
    if any(finding.severity == "fault" for finding in findings):
        facts.skip("everything that runs the model", "numbers that are not finite come first")
        return facts, findings, True
    while True:
        try:
            _ = facts.forward
            break
        except ForwardRaised as raised:
            if "leaf variable" in str(raised.error) and not subject.direct:
                subject.direct = True
                continue
            if _out_of_memory(raised.error) and subject.sample.n > 2:
                subject.sample = subject.sample.first(subject.sample.n // 2)
                continue
            if not _out_of_memory(raised.error) and subject.sample.n < whole.n:
                subject.sample = whole  # a graph's edges point at nodes that were left out
                continue
            if _runs_unwatched(subject):
                reason = " ".join(f"{type(raised.error).__name__}: {raised.error}".split())[:160]
                facts.skip("everything else", f"the model runs, but not while it is watched ({reason})")
                return facts, findings, False
            facts.skip("everything else", "the forward raises")
            return facts, [*findings, forward_raised(raised)], False
    refused = _set_loss(facts, loss, target)
    if refused is not None:
        findings.append(refused)
    if _without_parameters(facts):
        facts.skip("gradients of parameters", "the model has no trainable parameter", "requires_grad_(True)")
    for stage in STAGES:
        estimate = stage.forwards * facts.forward_seconds
        if not budget.allows(estimate):
            facts.skip(stage.name, "no time left", f"about {estimate:.0f} more seconds")
            continue
        findings += _run(stage.detectors, facts)
        if any(finding.id == "nonfinite_output" for finding in findings):
            facts.skip("gradients and everything after", "the output is not finite")
            break
    return facts, findings, True


def _runs_unwatched(subject: Subject) -> bool:
    """Whether the forward raises only under our recorders: then the model is not to blame."""
    try:
        with as_left(subject.model):
            subject.forward()
    except Exception:
        return False
    return True


def _run(detectors: tuple[Detector, ...], facts: Observed) -> list[Finding]:
    found: list[Finding] = []
    for detector in detectors:
        begun = time.perf_counter()
        try:
            said = detector(facts)
        except ForwardRaised as raised:
            facts.skip(detector.__name__, f"the forward raises in evaluation mode: {raised}"[:160])
            continue
        except (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError, MemoryError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
            facts.skip(detector.__name__, f"could not be measured ({reason})")
            continue
        seconds = time.perf_counter() - begun
        found += [_with_cost(finding, seconds) for finding in said]
    return found


def _with_cost(finding: Finding, seconds: float) -> Finding:
    return dataclasses.replace(finding, cost_seconds=seconds)


def _with_evidence(finding: Finding, optimizer: torch.optim.Optimizer | None) -> Finding:
    """What the advice brought in paired experiments, behind what is not certain about it."""
    told = "" if finding.severity == "ok" or not finding.advice else evidence(
        finding.id, type(optimizer).__name__ if optimizer is not None else "")  # fmt: skip
    if not told:
        return finding
    return dataclasses.replace(finding, evidence=f"{told}; {finding.evidence}" if finding.evidence else told)


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "not enough memory" in str(error)


def _set_loss(facts: Observed, loss: Any, target: Any) -> Finding | None:
    """Make the loss a function of the prediction; a finding if it refuses what the model predicts."""
    subject, output = facts.subject, facts.forward.output
    if loss is None:
        subject.own_loss = own_loss(output) is not None
        return None
    if target is None and not callable(loss):
        raise InvalidInput(f"target must be given with loss={loss!r}; got None.")
    n = facts.subject.sample
    function = loss_function(loss)

    def first(count: int) -> Callable[[Any], Tensor]:
        goal = cut_target(target, n.given, count)
        alone = target is None and callable(loss)
        return (lambda f: function(f)) if alone else lambda f: function(f, goal)  # type: ignore[call-arg]

    subject.loss, subject.loss_of_first = first(n.n), first
    problem = _loss_problem(subject.loss, facts.forward.predicted)
    if problem is not None and callable(loss) and not isinstance(output, Tensor):
        subject.whole = _loss_problem(subject.loss, output) is None
    if problem is None or subject.whole:
        return None
    subject.loss = None
    facts.skip("loss", f"the loss {problem}", "a loss that fits the prediction")
    return Finding(
        "loss_raises", "fault", Place("loss"), None, f"the loss {problem}.",
        f"The prediction has shape {tuple(facts.forward.predicted.shape)} and type {facts.forward.predicted.dtype}: "
        "make loss and target fit it.",
    )  # fmt: skip


def _loss_problem(loss: Any, value: Any) -> str | None:
    """What is wrong with the loss of a value; a loss that takes something else may warn before it refuses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _scalar_problem(loss(value))
    except Exception as error:  # the user's own function
        return f"raises {type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _scalar_problem(value: Any) -> str | None:
    if not isinstance(value, Tensor):
        return f"returns a {type(value).__name__}, not a tensor"
    if value.numel() != 1:
        return f"returns {value.numel()} numbers, not one (reduction='none'?)"
    if value.is_complex():
        return "returns a complex number"
    return None


def _without_parameters(facts: Observed) -> bool:
    return not facts.subject.trainable


def _device(model: nn.Module) -> str:
    first = next(iter(model.parameters()), None)
    return "cpu" if first is None else str(first.device)


def _model_facts(model: nn.Module, facts: Observed) -> dict[str, Any]:
    parameters = facts.subject.parameters.values()
    clocks = ["depth"]
    clocks += ["time"] if facts.profiles.get("time") else []
    return {
        "class": type(model).__name__,
        "parameters": sum(value.numel() for value in parameters),
        "trainable": sum(value.numel() for value in parameters if value.requires_grad),
        "dtypes": sorted({str(value.dtype).removeprefix("torch.") for value in parameters}),
        "clocks": clocks,
    }


def _described(facts: Observed) -> dict[str, Any]:
    sample = facts.subject.sample
    first = sample.tensors[0]
    kind = " tokens" if sample.tokens else ""
    said = " x ".join(str(size) for size in first.shape) + kind
    if sample.n < sample.given:
        said += f" (of {sample.given})"
    optimiser = facts.subject.optimizer
    loss = "loss given" if facts.subject.loss is not None else "own loss" if facts.subject.own_loss else "no loss"
    if optimiser is not None:
        rates = learning_rates(optimiser)
        spread = " to ".join(f"{rate:.3g}" for rate in dict.fromkeys((*rates[:1], *rates[-1:])))
        loss += f"; {type(optimiser).__name__}" + (f" lr {spread}" if rates else "")
    return {
        "shapes": [list(tensor.shape) for tensor in sample.tensors],
        "used": sample.n,
        "given": sample.given,
        "mode": "train" if facts.subject.model.training else "eval",
        "said": said,
        "loss": loss,
    }
