"""Does ``rich_lazy`` say the right word? Planted cases, judged by linearised training with the same optimiser.

A network is trained; then its linearisation at the start is trained by the same optimiser with the same learning rate
for as many steps. How far the two functions are apart on inputs neither has seen, relative to how far training went, is
the truth: below 0.2 the training was lazy, above 0.5 rich, between the two in between. These two numbers were fixed
beforehand. The measures of ``rich_lazy`` never see the linearised training.

Two sets of cases differ in seeds, sizes, scales and tasks: thresholds are chosen on ``calibration``; ``reported`` is
run after they have been fixed. Usage: ``python benchmarks/rich_lazy.py reported out.json [architecture ...]``.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from separatrix.core import spawn
from separatrix.diagnose import rich_lazy, train_to_loss
from separatrix.diagnose.losses import loss_function
from separatrix.diagnose.regime.equal_loss import OPTIMISERS, stable_lr, state_of

LAZY_BELOW, RICH_ABOVE = 0.2, 0.5
DROPS = (0.3, 0.5, 0.7)
N_SAMPLES, N_OUTPUTS, MAX_STEPS = 40, 2, 1500


@dataclasses.dataclass(frozen=True)
class Case:
    """One training: which network, how wide, how strongly its output is scaled, on what, by what."""

    architecture: str
    width: int
    scale: float
    optimiser: str
    loss: str
    n_inputs: int
    seed: int


class Scaled(nn.Module):
    """``scale * (network(x) - network at the start)``: the larger the scale, the lazier the training."""

    def __init__(self, net: nn.Module, scale: float) -> None:
        super().__init__()
        self.net, self.twin, self.scale = net, copy.deepcopy(net).requires_grad_(False), scale

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * (self.net(x) - self.twin(x))


class Tied(nn.Module):
    """One hidden matrix used three times."""

    def __init__(self, n_inputs: int, width: int) -> None:
        super().__init__()
        self.into, self.hidden = nn.Linear(n_inputs, width), nn.Linear(width, width)
        self.out = nn.Linear(width, N_OUTPUTS)

    def forward(self, x: Tensor) -> Tensor:
        x = self.into(x).tanh()
        for _ in range(3):
            x = self.hidden(x).tanh()
        return self.out(x)


class Tokens(nn.Module):
    """A transformer block on the inputs cut into tokens."""

    def __init__(self, n_inputs: int, width: int) -> None:
        super().__init__()
        self.size = n_inputs // 4
        self.embed = nn.Linear(self.size, width)
        self.block = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.out = nn.Linear(width, N_OUTPUTS)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.block(self.embed(x.unflatten(-1, (4, self.size)))).mean(-2))


def network(case: Case) -> nn.Module:
    """The network of a case, drawn by its seed."""
    n, w = case.n_inputs, case.width
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case.seed)
        if case.architecture in ("relu", "tanh"):
            act = {"relu": nn.ReLU, "tanh": nn.Tanh}[case.architecture]
            net: nn.Module = nn.Sequential(nn.Linear(n, w), act(), nn.Linear(w, w), act(), nn.Linear(w, N_OUTPUTS))
        elif case.architecture == "linear":
            net = nn.Sequential(nn.Linear(n, w, bias=False), nn.Linear(w, w, bias=False), nn.Linear(w, N_OUTPUTS))
        elif case.architecture == "batch norm":
            net = nn.Sequential(
                nn.Unflatten(1, (1, n // 4, 4)),
                *(nn.Conv2d(1, w // 3, 3, padding=1), nn.BatchNorm2d(w // 3), nn.ReLU()),
                *(nn.Conv2d(w // 3, w // 3, 3, padding=1), nn.BatchNorm2d(w // 3), nn.ReLU()),
                *(nn.Flatten(), nn.Linear(n * (w // 3), N_OUTPUTS)),
            )
        else:
            net = {"transformer": Tokens, "tied": Tied}[case.architecture](n, w)
        return Scaled(net, case.scale).double()


def task(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, targets, and inputs that training does not see."""
    generator = spawn(case.seed, "rich-lazy", "task")
    x = torch.randn(2 * N_SAMPLES, case.n_inputs, generator=generator, dtype=torch.float64)
    teacher = torch.randn(case.n_inputs, N_OUTPUTS, generator=generator, dtype=torch.float64) / case.n_inputs**0.5
    y = x @ teacher if case.architecture == "linear" else (2 * x @ teacher).tanh() + 0.5 * x[:, :N_OUTPUTS].abs()
    target = y[:N_SAMPLES] if case.loss == "half_mse" else y[:N_SAMPLES].argmax(-1)
    return x[:N_SAMPLES], target, x[N_SAMPLES:]


def jacobian(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs and their derivatives in all trained parameters, (outputs,) and (outputs, parameters)."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    outputs = model(x).flatten()
    rows = [
        torch.cat([part.flatten() for part in torch.autograd.grad(value, parameters, retain_graph=True)])
        for value in outputs
    ]
    return outputs.detach(), torch.stack(rows)


def linearised_training(model: nn.Module, case: Case, lr: float, stops: list[int]) -> list[Tensor]:
    """Outputs of the linearised network on unseen inputs after each number of steps."""
    x, target, unseen = task(case)
    (f0, j0), (g0, k0) = jacobian(model, x), jacobian(model, unseen)
    shift = nn.Parameter(torch.zeros(j0.shape[1], dtype=torch.float64))
    stepper, measure, found = OPTIMISERS[case.optimiser]([shift], lr), loss_function(case.loss), []
    for step in range(max(stops) + 1):
        if step in stops:
            found.append((g0 + k0 @ shift.detach()).reshape(N_SAMPLES, N_OUTPUTS))
        stepper.zero_grad()
        measure((f0 + j0 @ shift).reshape(N_SAMPLES, N_OUTPUTS), target).backward()
        stepper.step()
    return found


def run(case: Case) -> dict[str, object]:
    """Measures of ``rich_lazy`` and the truth, at every level of the loss."""
    model = network(case).train()
    x, target, unseen = task(case)
    lr = 0.02 / max(case.scale, 2.0) if case.optimiser == "adam" else 0.5 * stable_lr(model, x)
    lr *= 0.1 if case.optimiser == "momentum" else 1.0
    first = float(loss_function(case.loss)(model(x), target).detach())
    start = state_of(model)
    for attempt in range(5):  # a rate at which training stays finite and does learn
        lr /= 4 if attempt else 1
        history = train_to_loss(
            copy.deepcopy(model), (x, target), 0.1 * first, loss=case.loss, optimiser=case.optimiser, lr=lr,
            levels=[first * (1 - drop) for drop in DROPS], max_steps=MAX_STEPS,
        )  # fmt: skip
        if history.loss < first:
            break
    passed = {step: (step, loss, state) for step, loss, state in history.passed}  # one step may pass two levels
    marks = list({**passed, history.steps: (history.steps, history.loss, history.state)}.values())
    found = rich_lazy(
        model, (x, target), loss=case.loss, before=start, after=marks[-1][2], checkpoints=[m[2] for m in marks[:-1]]
    )
    lines = linearised_training(network(case).train(), case, lr, [mark[0] for mark in marks])
    points = []
    for mark, line, point in zip(marks, lines, found.curve, strict=True):
        probe = network(case).train()
        with torch.no_grad():
            begin = probe(unseen)
            probe.load_state_dict(mark[2])
            end = probe(unseen)
        truth = float((end - line).norm() / (end - begin).norm())
        points.append({"step": mark[0], "truth": truth, **dataclasses.asdict(point)})
    return {**dataclasses.asdict(case), "lr": lr, "outcome": history.outcome.label, "points": points}


def truth_word(value: float) -> str:
    """The word for a distance from linearised training; a linearised training that diverges is rich."""
    return "lazy" if value < LAZY_BELOW else "in between" if value <= RICH_ABOVE else "rich"


ARCHITECTURES = ("relu", "tanh", "linear", "batch norm", "transformer", "tied")
SETS = {
    "calibration": [
        Case(arch, width, scale, optimiser, loss, 12, 1000 + 37 * i + int(scale * 10))
        for i, (arch, optimiser) in enumerate((a, o) for a in ARCHITECTURES for o in OPTIMISERS)
        for scale, width, loss in (
            (0.3, 18, "half_mse"),
            (3.0, 24, "cross_entropy"),
            (12.0, 30, "half_mse"),
            (60.0, 18, "half_mse"),
        )
    ],
    "reported": [
        Case(arch, 12 if arch == "transformer" else width, scale, optimiser, loss, 16, 5000 + 41 * i + int(scale * 10))
        for i, (arch, optimiser) in enumerate((a, o) for a in ARCHITECTURES for o in OPTIMISERS)
        for scale, width, loss in ((0.5, 24, "half_mse"), (6.0, 36, "cross_entropy"), (80.0, 21, "half_mse"))
    ],
}


def main(name: str, out: str, *architectures: str) -> None:
    """Run a set of cases, or some architectures of it, one line of progress each."""
    torch.set_num_threads(1)
    rows = []
    for case in [case for case in SETS[name] if not architectures or case.architecture in architectures]:
        row = run(case)
        rows.append(row)
        last = row["points"][-1]  # type: ignore[index]
        print(case, f"{last['truth']:.3f} {truth_word(last['truth'])} | {last['word']}", flush=True)
        Path(out).write_text(json.dumps({"set": name, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
