"""Where frozen parts would rest: fixed points of recurrent layers, stable states of attention layers."""

from __future__ import annotations

import math
from collections import Counter

import torch
from torch import nn

from separatrix.core import SeparatrixError, spawn

from ...attention import attention_layers, frozen_flow, head_predictions
from ...findings.finding import Certainty, Finding, Place
from ...recording.observed import Observed
from ...rest_points import fixed_points
from .guard import never_fatal

_LARGEST_STATE, _STARTS = 96, 24
_LARGEST_WIDTH, _MOST_LAYERS, _TOKENS = 64, 4, 12
_REST = "agarwala2022, Eq. (29): a rest point is stable if the Jacobian's eigenvalues lie inside the unit circle"
_ATTENTION = (
    "altafini2025, Theorem 2, Eq. (9), as corrected by E12: consensus and bipartite consensus of a frozen layer"
)


@never_fatal
def rest_points(facts: Observed) -> list[Finding]:
    """Certified fixed points of each recurrent layer, held at its mean input. Cost: O(starts m^3) a Newton step."""
    found: list[Finding] = []
    for name, x in dict(facts.forward.functions.recurrent).items():
        module = facts.subject.model.get_submodule(name)
        if not isinstance(module, nn.RNNBase) or module.bidirectional or module.proj_size:
            continue
        size = module.hidden_size * module.num_layers
        estimate = _STARTS * 40 * (1e-3 + (size / 100) ** 3 * 2e-3)
        if size > _LARGEST_STATE or not facts.budget.allows(estimate):
            facts.skip(f"rest points of {name or type(module).__name__}", "too large or no time left",
                       f"about {estimate:.0f} more seconds")  # fmt: skip
            continue
        mean = x.detach().double().flatten(0, 1).mean(0)
        try:
            points = fixed_points(module, mean, n_starts=_STARTS, rounds=0, seed=facts.subject.seed)
        except SeparatrixError as error:
            facts.skip(f"rest points of {name}", " ".join(str(error).split())[:120])
            continue
        found.append(_rest_note(name, module.mode, points))
    return found


def _rest_note(name: str, kind: str, points: object) -> Finding:
    states, stable = points.states, points.stable  # type: ignore[attr-defined]
    count, steady = len(states), int(stable.sum())
    if count == 0:
        said, value = f"held at its mean input {name or kind} has no certified fixed point among its searches.", 0.0
    else:
        top = float(points.eigenvalues[0, 0].abs())  # type: ignore[attr-defined]
        slow = f", the slowest mode lasts {-1 / math.log(top):.2g} steps" if 0 < top < 1 else ""
        said = f"held at its mean input {name or kind} has {count} certified fixed point{'s' * (count > 1)}, {steady} "
        said, value = f"{said}stable (largest |eigenvalue| {top:.3g}{slow}).", float(count)
    n = int(points.n_searches)  # type: ignore[attr-defined]
    sure = Certainty("exact") if count else Certainty("none", needs=f"more than {n} searches")
    return Finding("rest_points", "note", Place(name, kind), value, said, theory=_REST, unit="points", certainty=sure)


@never_fatal
def attention_equilibria(facts: Observed) -> list[Finding]:
    """What each attention layer does if it is iterated, frozen. Cost: a few hundred velocities per layer."""
    if not facts.forward.operations.rows:
        return []
    try:
        layers = attention_layers(facts.subject.model).layers
    except SeparatrixError as error:
        facts.skip("attention_equilibria", " ".join(str(error).split())[:110])
        return []
    ends: Counter[str] = Counter()
    heads = consensus = bipartite = 0
    generator = spawn(facts.subject.seed, "check", "attention equilibria")
    for layer in layers[:_MOST_LAYERS]:
        width = int(layer.values.shape[-1])
        estimate = 2e-7 * width**2 * _TOKENS * 10
        if width > _LARGEST_WIDTH or not facts.budget.allows(estimate):
            facts.skip(
                f"frozen flow of {layer.name}", "too large or no time left", f"about {estimate:.0f} more seconds"
            )
            continue
        told = head_predictions(layer, n_tokens=_TOKENS)
        heads, consensus = heads + len(told.consensus), consensus + int(told.consensus.sum())
        bipartite += int((told.bipartite | told.bipartite_last).sum())
        tokens = torch.randn(1, _TOKENS, width, generator=generator, dtype=torch.float64)
        tokens = tokens / tokens.norm(dim=-1, keepdim=True)
        ends.update(end.sentence for end in frozen_flow(layer, tokens, t_max=50.0))
    if not ends:
        return []
    words = "; ".join(f"{count} {sentence}" for sentence, count in ends.most_common(2))
    said = f"frozen layers, iterated: {words}; stable by closed form: consensus in {consensus} and two groups in "
    return [
        Finding("attention_equilibria", "note", Place(layers[0].name), float(consensus),
                f"{said}{bipartite} of {heads} heads.", theory=_ATTENTION, unit="heads", certainty=Certainty("exact"))
    ]  # fmt: skip
