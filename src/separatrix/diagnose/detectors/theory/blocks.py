"""Blocks that map a state to a state of equal shape: spectra of their Jacobians, non-normality, transients.

A block is a module whose output has the shape of its input, with a sibling of the same shape (or alone if there is
none). Its Jacobian is taken for one sample in evaluation mode: whole where it is small, else by products.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as tree

from separatrix.core import stream_seed
from separatrix.matrices import henrici
from separatrix.matrices.spectra.robust_eigenvalues import robust_eigenvalues

from ...findings.finding import Certainty, Finding, Place
from ...model_call import evaluation_mode
from ...recording.observed import Observed
from ...recording.subject import open_kernels
from .guard import never_fatal

MOST, _DENSE, _PRODUCTS, _PROBES = 8, 128, 12, 6
_THEORY = "kerg2022, section 2.3.1 (Henrici's departure from normality) and 3.4.1 (transients)"


@dataclasses.dataclass(frozen=True)
class Block:
    """A module with what entered it for the first sample."""

    name: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shape: tuple[int, ...]
    kind: type


@dataclasses.dataclass(frozen=True)
class BlockJacobian:
    """One Jacobian: mean square gain with its error, norm, spectral radius, and for small ones the departure."""

    name: str
    size: int
    gain: float
    gain_se: float
    norm: float
    radius: float
    departure: float | None

    @property
    def transient(self) -> float:
        """How much more one step can stretch than repetition keeps: the norm over the radius."""
        return self.norm / self.radius if self.radius > 0 else math.inf


@never_fatal
def block_spectra(facts: Observed) -> list[Finding]:
    """A note on all blocks; ``profiles["blocks"]`` has a row for each. Cost: a few dozen passes of each block."""
    if facts.subject.sample.packed or not facts.budget.allows(6 * facts.forward_seconds):
        facts.skip("block_spectra", "packed sequences" if facts.subject.sample.packed else "no time left",
                   f"about {6 * facts.forward_seconds:.0f} more seconds")  # fmt: skip
        return []
    rows = []
    blocks = found_blocks(facts)
    for block in blocks:
        estimate = (2 * _PRODUCTS + _PROBES) * 2.5 * facts.forward_seconds / max(len(blocks), 1)
        if not facts.budget.allows(estimate):
            facts.skip(f"spectrum of {block.name}", "no time left", f"about {estimate:.0f} more seconds")
            break
        rows.append(spectrum_of(block, facts.subject.seed))
    if not blocks:
        facts.skip("block_spectra", "no block whose output has the shape of its input")
    if not rows:
        return []
    facts.profiles["blocks"] = [dataclasses.asdict(row) for row in rows]
    return [_note(rows)]


def _note(rows: list[BlockJacobian]) -> Finding:
    top = max(rows, key=lambda row: row.norm)
    logs = sum(0.5 * math.log(max(row.gain, 1e-300)) for row in rows) / len(rows)
    se = math.sqrt(sum((row.gain_se / (2 * max(row.gain, 1e-300))) ** 2 for row in rows)) / len(rows)
    many = f"{len(rows)} blocks" if len(rows) > 1 else f"block {top.name}"
    norms, radii = [row.norm for row in rows], [row.radius for row in rows]
    said = f"{many}: Jacobians of norm {_span(norms)}, radius {_span(radii)}; rms gain x {math.exp(logs):.3g} each"
    departures = [row.departure for row in rows if row.departure is not None]
    said += f"; non-normal part {_span(departures)} of the norm" if departures else ""
    return Finding(
        "block_spectra", "note", Place(top.name), math.exp(logs), said + ".", theory=_THEORY, unit="gain",
        certainty=Certainty("se", se=math.exp(logs) * se, n=_PROBES),
    )  # fmt: skip


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def found_blocks(facts: Observed) -> list[Block]:
    """Blocks in the order in which they run, those inside another block left out, at most ``MOST`` spread evenly."""
    seen: dict[str, Block] = {}
    calls: dict[str, int] = {}
    n = facts.subject.sample.n

    def hook(name: str) -> Any:
        def note(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            calls[name] = calls.get(name, 0) + 1
            first, last = _first(args), output[0] if isinstance(output, tuple) and output else output
            fits = isinstance(last, Tensor) and first is not None and last.shape == first.shape
            if fits and first.is_floating_point() and first.ndim > 1 and first.shape[0] == n:  # type: ignore[union-attr]
                kept = tuple(_one(value, n) for value in args), {key: _one(value, n) for key, value in kwargs.items()}
                seen[name] = Block(name, module, *kept, tuple(first.shape[1:]), type(module))  # type: ignore[union-attr]

        return note

    model = facts.subject.model
    owners = {name: module for name, module in model.named_modules() if name and _is_map(module)}
    handles = [module.register_forward_hook(hook(name), with_kwargs=True) for name, module in owners.items()]
    try:
        args, kwargs, _ = facts.subject.sample.leaves(direct=facts.subject.direct)
        with evaluation_mode(model), torch.no_grad(), open_kernels():
            facts.subject.call(args, kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return _chosen([block for name, block in seen.items() if calls[name] == 1])


def _is_map(module: nn.Module) -> bool:
    return not isinstance(module, torch.jit.ScriptModule) and any(p.ndim > 1 for p in module.parameters())


def _first(args: tuple[Any, ...]) -> Tensor | None:
    return args[0] if args and isinstance(args[0], Tensor) else None


def _one(value: Any, n: int) -> Any:
    """The first sample of what counts samples along its first axis."""

    def first(part: Any) -> Any:
        if not isinstance(part, Tensor):
            return part if isinstance(part, bool | int | float | str | None) else None  # a cache of the whole batch
        return part[:1].detach().clone() if part.ndim > 1 and part.shape[0] == n else part

    return tree.tree_map(first, value)


def _chosen(blocks: list[Block]) -> list[Block]:
    """The widest family of siblings of one class and shape; without siblings the outermost single blocks."""
    families: dict[tuple[Any, ...], list[Block]] = {}
    for block in blocks:
        families.setdefault((block.name.rpartition(".")[0], block.kind, block.shape), []).append(block)
    several = [family for family in families.values() if len(family) > 1]
    if several:
        kept = max(several, key=lambda family: (sum(_matrices(block.module) for block in family), len(family)))
    else:
        names = [block.name for block in blocks]
        kept = [block for block in blocks if not any(block.name.startswith(f"{other}.") for other in names)]
    step = max(len(kept) / MOST, 1.0)
    return [kept[int(k * step)] for k in range(min(len(kept), MOST))]


def _matrices(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters() if p.ndim > 1)


def spectrum_of(block: Block, seed: int) -> BlockJacobian:
    """Norm, radius and gain of the Jacobian of a block at its own input."""
    generator = torch.Generator().manual_seed(stream_seed(seed, "check", "blocks", block.name))
    with evaluation_mode(block.module), torch.inference_mode(False), torch.enable_grad(), open_kernels():
        x = block.args[0].detach().clone().requires_grad_()
        output = block.module(x, *block.args[1:], **block.kwargs)
        y = output[0] if isinstance(output, tuple) else output
        size = x.numel()

        def pull(v: Tensor) -> Tensor:
            found = torch.autograd.grad(y, x, v.view(y.shape).to(y.dtype), retain_graph=True, allow_unused=True)[0]
            return torch.zeros(size, dtype=torch.float64) if found is None else found.detach().double().flatten()

        if size <= _DENSE:
            return _dense(block.name, torch.stack([pull(row) for row in torch.eye(size, dtype=x.dtype)]))
        probes = torch.randn(_PROBES, size, generator=generator, dtype=torch.float64)
        squares = torch.stack([pull(v).square().sum() / size for v in probes])
        gain, se = float(squares.mean()), float(squares.std() / math.sqrt(_PROBES))
        start = torch.randn(size, generator=generator, dtype=torch.float64)
        radius, norm = _arnoldi(pull, start)
    return BlockJacobian(block.name, size, gain, se, max(norm, math.sqrt(gain)), radius, None)


def _dense(name: str, jacobian: Tensor) -> BlockJacobian:
    size = len(jacobian)
    radius = float(robust_eigenvalues(jacobian).abs().max())
    departure = float(henrici(jacobian, relative=True))
    gain = float(jacobian.square().sum()) / size
    return BlockJacobian(name, size, gain, 0.0, float(torch.linalg.matrix_norm(jacobian, 2)), radius, departure)


def _arnoldi(pull: Callable[[Tensor], Tensor], start: Tensor) -> tuple[float, float]:
    """Largest Ritz modulus of J' and the norm of its projection, after a dozen products; both from below."""
    basis, columns = [start / start.norm()], []
    for step in range(_PRODUCTS):
        w = pull(basis[-1])
        column = torch.zeros(_PRODUCTS + 1, dtype=torch.float64)
        for place, vector in enumerate(basis):
            column[place] = w @ vector
            w = w - column[place] * vector
        column[step + 1] = w.norm()
        columns.append(column)
        if float(w.norm()) <= 1e-10 * float(column.norm()):
            break
        basis.append(w / w.norm())
    h = torch.stack(columns, 1)
    k = h.shape[1]
    return float(robust_eigenvalues(h[:k, :k]).abs().max()), float(torch.linalg.matrix_norm(h[: k + 1], 2))
