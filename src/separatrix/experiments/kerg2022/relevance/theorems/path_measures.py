"""Gradients of a small attentive network by its definition, and what kerg2022's lemmas say of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from separatrix.core.random import spawn

from .coefficient_measures import chi


class SmallNetwork:
    """``h = tanh(V s + U x + b)``, attention of s to all h, ``s = h + c``; written out as in the document.

    Times go from 1; ``hidden[t - 1]`` is h_t and ``states[t]`` is s_t.
    """

    def __init__(self, n_units: int, n_inputs: int, n_steps: int, seed: int) -> None:
        generator = spawn(seed, "kergB-theorems", "small network")

        def drawn(*shape: int) -> Tensor:
            scale = 1.2 / max(1.0, float(shape[-1])) ** 0.5
            return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.recurrent, self.entering, self.bias = drawn(n_units, n_units), drawn(n_units, n_inputs), drawn(n_units)
        self.query, self.key, self.vector = drawn(n_units, n_units), drawn(n_units, n_units), 3 * drawn(n_units)
        self.inputs = torch.randn(n_steps, n_inputs, generator=generator, dtype=torch.float64)
        self.n_units, self.n_steps = n_units, n_steps
        self.hidden: list[Tensor] = []
        self.states = [torch.zeros(n_units, dtype=torch.float64)]
        for t in range(1, n_steps + 1):
            self.hidden.append(self.unit(self.states[-1], t))
            self.states.append(self.macro(self.hidden, self.states[-1]))

    def unit(self, state: Tensor, t: int) -> Tensor:
        """h_t from s_{t-1}."""
        return torch.tanh(self.recurrent @ state + self.entering @ self.inputs[t - 1] + self.bias)

    def logits(self, hidden: Sequence[Tensor], before: Tensor) -> Tensor:
        """e_{i,t} of all states."""
        return torch.tanh(self.query @ before + torch.stack(list(hidden)) @ self.key.mT) @ self.vector

    def macro(self, hidden: Sequence[Tensor], before: Tensor) -> Tensor:
        """s_t from h_1 .. h_t and s_{t-1}."""
        weights = torch.softmax(self.logits(hidden, before), 0)
        return hidden[-1] + weights @ torch.stack(list(hidden))

    def rest(self, h: Tensor, t: int) -> Tensor:
        """s_T as a function of h_t, which everything after it follows from."""
        hidden = [*self.hidden[: t - 1], h]
        state = self.macro(hidden, self.states[t - 1])
        for time in range(t + 1, self.n_steps + 1):
            hidden.append(self.unit(state, time))
            state = self.macro(hidden, state)
        return state


def partial_of_hidden(net: SmallNetwork, k: int, j: int) -> Tensor:
    """Partial derivative of s_k by h_j by autodiff: all else in s_k held fixed."""

    def function(h: Tensor) -> Tensor:
        return net.macro([*net.hidden[: j - 1], h, *net.hidden[j:k]], net.states[k - 1])

    return _jacobian(function, net.hidden[j - 1])


def partial_of_state(net: SmallNetwork, k: int) -> Tensor:
    """Partial derivative of s_k by s_{k-1}, through the query alone."""
    return _jacobian(lambda state: net.macro(net.hidden[:k], state), net.states[k - 1])


def jacobian(net: SmallNetwork, k: int) -> Tensor:
    """dh_{k+1}/ds_k."""
    return _jacobian(lambda state: net.unit(state, k + 1), net.states[k])


def _jacobian(function: Any, at: Tensor) -> Tensor:
    found = torch.autograd.functional.jacobian(function, at)
    assert isinstance(found, Tensor)
    return found


def closed_by_hidden(net: SmallNetwork, k: int, j: int) -> Tensor:
    """Lemma B.1.10 with Remark B.1.14: ``1[k = j] I + alpha (I + X)``."""
    weights, slopes = _attention(net, k)
    eye = torch.eye(net.n_units, dtype=torch.float64)
    context = weights @ torch.stack(net.hidden[:k])
    by_key = (net.vector * slopes[j - 1]) @ net.key
    X = torch.outer(net.hidden[j - 1] - context, by_key)
    return (eye if k == j else torch.zeros_like(eye)) + weights[j - 1] * (eye + X)


def closed_by_state(net: SmallNetwork, k: int) -> Tensor:
    """Lemma B.1.9 with Remark B.1.14: the sum of ``alpha Y``."""
    weights, slopes = _attention(net, k)
    by_query = (net.vector * slopes) @ net.query
    centred = by_query - weights @ by_query
    return torch.einsum("i,ia,ib->ab", weights, torch.stack(net.hidden[:k]), centred)


def _attention(net: SmallNetwork, k: int) -> tuple[Tensor, Tensor]:
    inner = torch.tanh(net.query @ net.states[k - 1] + torch.stack(net.hidden[:k]) @ net.key.mT)
    return torch.softmax(inner @ net.vector, 0), 1 - inner.square()


def path_terms(net: SmallNetwork, t: int) -> tuple[list[Tensor], dict[tuple[int, int], Tensor]]:
    """E_k and F_{k,j} of Proposition B.1.7 by autodiff."""
    last = net.n_steps - t
    E = [partial_of_hidden(net, t + k, t) for k in range(last + 1)]
    F = {}
    for k in range(1, last + 1):
        for j in range(k):
            F[k, j] = partial_of_hidden(net, t + k, t + j + 1) @ jacobian(net, t + j)
            if j == k - 1:
                F[k, j] = F[k, j] + partial_of_state(net, t + k)
    return E, F


def sum_over_paths(E: Sequence[Tensor], F: dict[tuple[int, int], Tensor], k: int, degree: int) -> Tensor:
    """xi(s) of Proposition B.1.7: all chains of that degree, one by one."""
    if degree == 0:
        return E[k]
    total = torch.zeros_like(E[0])
    for chain in itertools.combinations(range(k), degree):
        product = E[chain[0]]
        for lower, upper in itertools.pairwise((*chain, k)):
            product = F[upper, lower] @ product
        total = total + product
    return total


def path_errors(seed: int, n_units: int, n_steps: int) -> dict[str, float]:
    """Largest differences between derivatives by autodiff and what the lemmas say, over the size of the former."""
    net = SmallNetwork(n_units, 3, n_steps, seed)
    t, k = 1, n_steps - 1
    truth = _jacobian(lambda h: net.rest(h, t), net.hidden[t - 1])
    E, F = path_terms(net, t)
    parts = [sum_over_paths(E, F, k, degree) for degree in range(k + 1)]
    recursion = _by_degrees(E, F, k)
    printed_J = [_printed_jacobian(net, time) for time in range(1, n_steps)]
    wrong = {
        (upper, lower): partial_of_hidden(net, t + upper, t + lower + 1) @ printed_J[lower]
        + (partial_of_state(net, t + upper) if lower == upper - 1 else 0)
        for upper, lower in F
    }
    by_hidden = [
        _error(closed_by_hidden(net, time, j), partial_of_hidden(net, time, j))
        for time in range(1, n_steps + 1)
        for j in range(1, time + 1)
    ]
    by_state = [_error(closed_by_state(net, time), partial_of_state(net, time)) for time in range(2, n_steps + 1)]
    return {
        "paths": _error(torch.stack(parts).sum(0), truth),
        "degrees": _error(torch.stack(recursion), torch.stack(parts)),
        "printed_jacobian": _error(torch.stack(_by_degrees(E, wrong, k)).sum(0), truth),
        "by_hidden": max(by_hidden),
        "by_state": max(by_state),
        "without_X": max(
            _error(_without_products(net, time, j), partial_of_hidden(net, time, j))
            for time in range(2, n_steps + 1)
            for j in range(1, time + 1)
        ),
    }


def _printed_jacobian(net: SmallNetwork, k: int) -> Tensor:
    """ds_{k+1}/dh_k, which Lemma B.1.2 prints for J."""
    return partial_of_hidden(net, k + 1, k)


def _without_products(net: SmallNetwork, k: int, j: int) -> Tensor:
    weights, _ = _attention(net, k)
    eye = torch.eye(net.n_units, dtype=torch.float64)
    return (eye if k == j else torch.zeros_like(eye)) + weights[j - 1] * eye


def _by_degrees(E: Sequence[Tensor], F: dict[tuple[int, int], Tensor], k: int) -> list[Tensor]:
    """The same sums by a recursion over degrees, without enumeration."""
    zero = torch.zeros_like(E[0])
    latest = list(E[: k + 1])
    found = [latest[k]]
    for _ in range(k):
        latest = [sum((F[upper, j] @ latest[j] for j in range(upper)), zero) for upper in range(k + 1)]
        found.append(latest[k])
    return found


def _error(found: Tensor, truth: Tensor) -> float:
    return float((found - truth).abs().max() / truth.abs().max())


def parameter_errors(seed: int, n_units: int, n_steps: int) -> dict[str, float]:
    """Lemmas B.1.15 and B.1.16: gradients of a loss of s_T by parameters, against autograd."""
    from separatrix.theory import alignment_gradient

    net = SmallNetwork(n_units, 3, n_steps, seed)
    names = ("recurrent", "entering", "bias", "query", "key", "vector")
    leaves = {name: getattr(net, name).clone().requires_grad_() for name in names}
    for name, leaf in leaves.items():
        setattr(net, name, leaf)
    hidden: list[Tensor] = []
    states = [torch.zeros(n_units, dtype=torch.float64)]
    for t in range(1, n_steps + 1):
        hidden.append(net.unit(states[-1], t))
        states.append(net.macro(hidden, states[-1]))
    direction = torch.randn(n_units, generator=spawn(seed, "kergB-theorems", "loss"), dtype=torch.float64)
    wanted = [*leaves.values(), *hidden, *states[1:]]
    found = torch.autograd.grad(direction @ states[-1], wanted, allow_unused=True)
    truth = dict(zip(names, found, strict=False))
    by_hidden, by_states = found[len(names) : len(names) + n_steps], found[len(names) + n_steps :]
    alignment, recurrent, shifted = _summed(net, hidden, states, by_hidden, by_states, leaves, alignment_gradient)
    expected = torch.cat([truth[name].flatten() for name in ("query", "key", "vector")])
    stacked = torch.cat([truth["recurrent"], truth["entering"], truth["bias"].unsqueeze(1)], 1)
    return {
        "alignment": _error(alignment, expected),
        "recurrence": _error(recurrent, stacked),
        "recurrence_printed": _error(shifted, stacked),
    }


def _summed(
    net: SmallNetwork,
    hidden: Sequence[Tensor],
    states: Sequence[Tensor],
    by_hidden: Sequence[Tensor],
    by_states: Sequence[Tensor],
    leaves: dict[str, Tensor],
    formula: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """The sums over time of the two lemmas, the second also with the slope of the next step, as printed."""
    n_steps, n_units = net.n_steps, net.n_units
    weights = torch.zeros(n_steps, n_steps, dtype=torch.float64)
    values = torch.zeros(n_steps, n_steps, n_units, dtype=torch.float64)
    sizes = [leaves[name].numel() for name in ("query", "key", "vector")]
    by_parameter = torch.zeros(n_steps, n_steps, sum(sizes), dtype=torch.float64)
    for t in range(1, n_steps + 1):
        fixed = [h.detach() for h in hidden[:t]]
        logits = net.logits(fixed, states[t - 1].detach())
        weights[t - 1, :t] = torch.softmax(logits.detach(), 0)
        values[t - 1, :t] = torch.stack(fixed)
        for i in range(t):
            parts = torch.autograd.grad(logits[i], [leaves[n] for n in ("query", "key", "vector")], retain_graph=True)
            by_parameter[t - 1, i] = torch.cat([part.flatten() for part in parts])
    alignment = formula(weights, values, torch.stack(list(by_states)), by_parameter)
    slopes = [1 - h.detach().square() for h in hidden]
    rows = [torch.cat([states[t].detach(), net.inputs[t], torch.ones(1, dtype=torch.float64)]) for t in range(n_steps)]
    right = sum(torch.outer(slopes[t] * by_hidden[t], rows[t]) for t in range(n_steps))
    later = [*slopes[1:], torch.zeros_like(slopes[0])]  # a_t belongs to h_{t+1}; there is none after the last
    printed = sum(torch.outer(later[t] * by_hidden[t], rows[t]) for t in range(n_steps))
    assert isinstance(right, Tensor)
    assert isinstance(printed, Tensor)
    return alignment.detach(), right.detach(), printed.detach()


def even_attention_error(t: int, k: int, generator: torch.Generator) -> float:
    """Eq. (B.1.116): ds_{t+k}/dh_t of a linear recurrence that attends evenly, by autodiff and by powers of V."""
    V = torch.randn(4, 4, generator=generator, dtype=torch.float64) / 2
    past = list(torch.randn(t - 1, 4, generator=generator, dtype=torch.float64))

    def state_after(h: Tensor) -> Tensor:
        hidden = [*past, h]
        for _ in range(k):
            hidden.append(V @ _evenly_attended(hidden))
        return _evenly_attended(hidden)

    truth = _jacobian(state_after, torch.randn(4, generator=generator, dtype=torch.float64))
    powers = [float(chi(k, s, t)) * torch.linalg.matrix_power(V, s) for s in range(k + 1)]
    return _error(torch.stack(powers).sum(0), truth)


def _evenly_attended(hidden: list[Tensor]) -> Tensor:
    """The last hidden state and the mean of all."""
    return hidden[-1] + torch.stack(hidden).mean(0)
