"""What ``kerg2-gradients`` measures, one function per statement: number of instances and generator to numbers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from separatrix.lab import Payload

from ...worst_case import highest
from .lemma_measures import central_differences, randn

if TYPE_CHECKING:
    from torch import Tensor

WIDTHS = (4, 5, 3, 6)
"""Units of each layer of the deep networks, the input first."""
STEPS = 5
POWER = 2000
"""Steps after which a product is looked at: eigenvalues 1 % off the circle have grown or fallen by 10^8."""
FAR = 1e6
"""A norm above this has exploded, below its inverse vanished."""


def deep_gradients(n_instances: int, generator: Any) -> Payload:
    """Equations (2.1.1) to (2.1.10): products of transposed Jacobians, against central differences."""
    import torch

    found = {"error, states": 0.0, "error, weights": 0.0, "error, offsets": 0.0}
    for _ in range(n_instances):
        weights = [randn(generator, out, into) for into, out in itertools.pairwise(WIDTHS)]
        offsets = [randn(generator, out) for out in WIDTHS[1:]]
        states, target = [randn(generator, WIDTHS[0])], randn(generator, WIDTHS[-1])
        for weight, offset in zip(weights, offsets, strict=True):
            states.append(torch.tanh(weight @ states[-1] + offset))
        layers = [(lambda f, w=w, b=b: torch.tanh(w @ f + b)) for w, b in zip(weights, offsets, strict=True)]

        def loss(state: Tensor, first: int, layers: Any = layers, target: Tensor = target) -> Tensor:
            for layer in layers[first:]:
                state = layer(state)
            return (state - target).square().sum() / 2

        jacobians = [torch.func.jacfwd(layer)(state) for layer, state in zip(layers, states, strict=False)]
        for at in range(1, len(WIDTHS)):
            back = states[-1] - target
            for jacobian in reversed(jacobians[at:]):
                back = jacobian.mT @ back
            inner = (1 - states[at].square()) * back  # diag(phi') of tanh
            weight, offset, before = weights[at - 1], offsets[at - 1], states[at - 1]
            by_state = central_differences(lambda f, at=at: loss(f, at), states[at])  # type: ignore[misc]
            by_weight = central_differences(
                lambda w, b=offset, f=before, at=at: loss(torch.tanh(w @ f + b), at),  # type: ignore[misc]
                weight,
            )
            by_offset = central_differences(
                lambda b, w=weight, f=before, at=at: loss(torch.tanh(w @ f + b), at),  # type: ignore[misc]
                offset,
            )
            gaps = (back - by_state, torch.outer(inner, before) - by_weight, inner - by_offset)
            for name, gap in zip(found, gaps, strict=True):
                found[name] = highest(found[name], float(gap.abs().max()))
    return found


def cross_entropy(n_instances: int, generator: Any) -> Payload:
    """Equations (2.2.5) to (2.2.7) for targets that sum to one, and the gradient that follows."""
    import torch

    found = {"error, loss": 0.0, "error, gradient": 0.0}
    for _ in range(n_instances):
        outputs, target = randn(generator, 6), randn(generator, 6).softmax(0)
        printed = -(target * outputs.softmax(0).log()).sum()
        found["error, loss"] = highest(found["error, loss"], float((printed - _entropy(outputs, target)).abs()))
        by_output = central_differences(lambda o, y=target: -(y * o.softmax(0).log()).sum(), outputs)  # type: ignore[misc]
        gap = torch.softmax(outputs, 0) - target - by_output
        found["error, gradient"] = highest(found["error, gradient"], float(gap.abs().max()))
    return found


def _entropy(outputs: Tensor, target: Tensor) -> Tensor:
    return outputs.logsumexp(0) - (target * outputs).sum()


def recurrent_gradients(n_instances: int, generator: Any) -> Payload:
    """Equations (2.2.8) to (2.2.10) and the five sums before them, against central differences."""
    import torch

    names = ("V", "U", "W", "b", "c")
    found = {f"error, {name}": 0.0 for name in (*names, "states")}
    for _ in range(n_instances):
        inputs, targets = randn(generator, STEPS, 3), randn(generator, STEPS, 4).softmax(-1)
        parameters = [randn(generator, *shape) / 2 for shape in ((5, 5), (5, 3), (4, 5), (5,), (4,))]
        start, nothing = randn(generator, 5), torch.zeros(STEPS, 5, dtype=torch.float64)

        def forward(parameters: Any, pushed: Tensor, x: Tensor = inputs, h: Tensor = start) -> tuple[Any, Any]:
            v, u, w, b, c = parameters
            states, outputs = [h], []
            for step in range(STEPS):  # each state may be pushed, which is how the loss depends on it
                states.append(torch.tanh(u @ x[step] + v @ states[-1] + b) + pushed[step])
                outputs.append(w @ states[-1] + c)
            return states, outputs

        def loss(parameters: Any, pushed: Tensor, y: Tensor = targets, forward: Any = forward) -> Tensor:
            outputs = forward(parameters, pushed)[1]
            return torch.stack([_entropy(o, own) for o, own in zip(outputs, y, strict=True)]).sum()

        v, _, w, _, _ = parameters
        states, outputs = forward(parameters, nothing)
        errors = [o.softmax(0) - y for o, y in zip(outputs, targets, strict=True)]
        slope = [1 - state.square() for state in states[1:]]
        by_state = []
        for t in range(STEPS):
            total = torch.zeros(5, dtype=torch.float64)
            for last in range(t, STEPS):
                product = torch.eye(5, dtype=torch.float64)
                for s in range(t + 1, last + 1):
                    product = product @ (slope[s][:, None] * v).mT
                total = total + product @ w.mT @ errors[last]
            by_state.append(total)
        inner = [d * g for d, g in zip(slope, by_state, strict=True)]
        sums = {
            "V": sum(torch.outer(g, h) for g, h in zip(inner, states, strict=False)),
            "U": sum(torch.outer(g, x) for g, x in zip(inner, inputs, strict=True)),
            "W": sum(torch.outer(e, h) for e, h in zip(errors, states[1:], strict=True)),
            "b": sum(inner),
            "c": sum(errors),
        }
        for index, name in enumerate(names):
            changed = central_differences(
                lambda p, at=index, own=parameters, f=loss, z=nothing: f([*own[:at], p, *own[at + 1 :]], z),  # type: ignore[misc]
                parameters[index],
            )
            found[f"error, {name}"] = highest(found[f"error, {name}"], float((sums[name] - changed).abs().max()))
        pushes = central_differences(lambda push, own=parameters, loss=loss: loss(own, push), nothing)  # type: ignore[misc]
        gap = torch.stack(by_state) - pushes
        found["error, states"] = highest(found["error, states"], float(gap.abs().max()))
    return found


def products_of_jacobians(n_instances: int, generator: Any) -> Payload:
    """Section 2.2.3: powers of symmetric matrices whose eigenvalues lie on both sides of the unit circle, and on it."""
    import torch

    counts = {"neither": 0, "neither, none on the circle": 0, "neither, all on the circle": 0, "error": 0.0}
    for _ in range(n_instances):
        basis = torch.linalg.qr(randn(generator, 5, 5))[0]
        inside = 0.98 * torch.rand(5, generator=generator, dtype=torch.float64)
        outside, some = inside.clone(), inside.clone()
        outside[0], some[0] = 1.05, 1.0
        cases = {"in": inside, "out": outside, "some": some, "all": torch.ones(5, dtype=torch.float64)}
        for name, eigenvalues in cases.items():
            matrix = (basis * eigenvalues) @ basis.mT
            power = torch.linalg.matrix_power(matrix, POWER)
            norm = float(torch.linalg.matrix_norm(power, 2))
            middling = 1 / FAR < norm < FAR
            counts["neither"] += name != "all" and middling
            counts["neither, none on the circle"] += name in ("in", "out") and middling
            counts["neither, all on the circle"] += name == "all" and middling
            exact = (basis * eigenvalues**POWER) @ basis.mT
            gap = float((power - exact).abs().max()) / max(1.0, norm)
            counts["error"] = highest(counts["error"], gap)
    return counts
