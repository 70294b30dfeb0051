"""The balance of layer pairs, which gradient flow keeps."""

from __future__ import annotations

import torch

from separatrix.core import SeparatrixError

from ...balance import Keeps, Law, balance_profile
from ...findings.finding import Certainty, Finding, Place
from ...recording.observed import Observed
from ...recording.subject import open_kernels
from .guard import never_fatal

_THEORY = "anguita2024, Theorem 4.5.1: lambda* = Tr(W2'W2 - W1W1') / n_h"
_LARGEST = 20_000_000
_KEPT = (Keeps.TO_SECOND_ORDER, Keeps.TO_FIRST_ORDER)


@never_fatal
def balance(facts: Observed) -> list[Finding]:
    """A note on the pairs whose law holds on this sample. Cost: a dozen passes and a product per pair."""
    sizes = [sorted(value.flatten(1).shape) for value in facts.matrices.values()]
    estimate = 14 * facts.forward_seconds + sum(2e-10 * low * high**2 for low, high in sizes)
    total = sum(value.numel() for value in facts.matrices.values())
    if total > _LARGEST or not facts.budget.allows(estimate):
        facts.skip("balance", "too large or no time left", f"about {estimate:.0f} more seconds")
        return []
    if any(isinstance(module, torch.jit.ScriptModule) for module in facts.subject.model.modules()):
        facts.skip("balance", "scripted modules cannot be traced", "the model before scripting")
        return []
    sample = facts.subject.sample.first(min(facts.subject.sample.n, 8))
    args, kwargs, _ = sample.leaves()  # copies: a model may overwrite what it is given
    inputs = dict(kwargs) if kwargs else tuple(args)
    try:
        with open_kernels():
            profile = balance_profile(
                facts.subject.model,
                example_inputs=inputs,
                output=facts.subject.pick,
                optimiser=facts.subject.optimizer or "gd",
            )
    except SeparatrixError as error:
        facts.skip("balance", f"could not be measured ({' '.join(str(error).split())[:80]})")
        return []
    kept = [pair for pair in profile.pairs if pair.law in (Law.FULL, Law.DIAGONAL, Law.ROTATION_PAIRS)]
    if not kept:
        facts.skip("balance", "no pair of layers whose balance training keeps")
        return []
    facts.profiles["balance"] = [
        {"pair": pair.name, "law": pair.law.label, "balance": pair.balance, "spread": pair.spread} for pair in kept
    ]
    top = max(kept, key=lambda pair: abs(pair.balance))
    low, high = min(pair.balance for pair in kept), max(pair.balance for pair in kept)
    one = len(kept) == 1
    many = f"{top.name} keeps its balance" if one else f"{len(kept)} pairs keep their balance"
    if profile.optimiser.keeps not in _KEPT:  # gradient flow would, this optimiser does not
        which = f"the balance of {top.name}" if one else f"the balance of {len(kept)} pairs"
        verb = "" if profile.optimiser.keeps is Keeps.DECAYS else "is "
        fate = f"it {verb}{profile.optimiser.keeps.label}"
        many = f"gradient flow keeps {which}, under {profile.optimiser.name} {fate}"
    many += f": lambda* {top.balance:.3g}" if one else f": lambda* {low:.3g} to {high:.3g}"
    said = f"{many}; furthest from 0 at {top.name} (spread {top.spread:.2g} a unit)."
    return [
        Finding("balance", "note", Place(top.name), top.balance, said, theory=_THEORY, unit="lambda*",
                certainty=Certainty("exact"))
    ]  # fmt: skip
