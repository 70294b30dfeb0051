"""What the theory of recurrent networks adds: exponents of the products of Jacobians along a run."""

from __future__ import annotations

import math

from torch import nn

from ...findings.finding import Certainty, Finding, Place
from ...recording.observed import Observed
from ...recurrence.report import exponents_alone

_LARGEST = 256
_EXPONENTS = 4
_THEORY = "kerg2022, Eq. (3.3): products of Jacobians; Benettin's QR method"


def exponents(facts: Observed) -> list[Finding]:
    """The largest Lyapunov exponent of each recurrent layer.

    Cost: a Jacobian and a QR decomposition per step, of two sequences.
    """
    found: list[Finding] = []
    seen: set[str] = set()
    for name, x in facts.forward.functions.recurrent:
        module = facts.subject.model.get_submodule(name)
        if name in seen or not isinstance(module, nn.RNNBase) or x.shape[1 if module.batch_first else 0] < 12:
            continue
        seen.add(name)
        size = module.hidden_size * (2 if module.mode == "LSTM" else 1)
        length = x.shape[1 if module.batch_first else 0]
        estimate = module.num_layers * length * 2 * (5e-4 + 5e-3 * (size / 256) ** 3)
        if size > _LARGEST or not facts.budget.allows(estimate):
            facts.skip(f"exponents of {name}", "too large or no time left", f"about {estimate:.0f} more seconds")
            continue
        rows = x[:2] if module.batch_first else x[:, :2]
        for layer, spectrum in exponents_alone(module, rows, n_exponents=_EXPONENTS, seed=facts.subject.seed):
            top, error = float(spectrum.exponents[0]), float(spectrum.standard_errors[0])
            if not math.isfinite(top):
                continue
            kind = "settles" if top + 2 * error < 0 else "is chaotic" if top - 2 * error > 0 else "is at the edge"
            said = f"largest exponent of {layer or name} {top:.3g} per step: it {kind} on this input."
            found.append(
                Finding(
                    "exponents",
                    "note",
                    Place(name, module.mode),
                    top,
                    said,
                    theory=_THEORY,
                    unit="per step",
                    certainty=Certainty("se", se=error, n=length),
                )
            )
    return found
