"""Recurrences that are linear in the state: their eigenvalues are their time constants, exactly.

State-space layers and linear recurrent units are found by the names of their tensors in a file (there is nothing to
ask), and by a probe in a module: a step is linear if its Jacobian does not depend on the state.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, final

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import Result, require_integer, spawn
from separatrix.matrices import robust_eigenvalues
from separatrix.theory import normal_memory

from ..steps.base import AbstractRecurrentMap

_NEVER = 1e12
"""Time constants from which on a mode counts as one that never forgets."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LinearRecurrence(Result):
    """Eigenvalues of one step of a linear recurrence, and what they mean."""

    name: str
    kind: str
    eigenvalues: Complex[Tensor, " m"]
    """Of one step, by falling modulus; at the resting step size where the input sets the step."""
    time_constants: Float[Tensor, " m"]
    """Steps in which each mode falls to 1/e; infinite where it does not."""
    accumulator_distance: Float[Tensor, " m"]
    """|1 - eigenvalue|: a mode at distance d sums its inputs over about 1/d steps as if it never forgot."""
    note: str = ""

    @property
    def accumulators(self) -> int:
        """Modes that over 1000 steps are no different from a sum of their inputs."""
        return self.accumulators_over(1000)

    def accumulators_over(self, n_steps: int) -> int:
        """Modes that over so many steps neither forget nor turn: |1 - eigenvalue| < 1 / n_steps."""
        require_integer(n_steps, "n_steps", at_least=1)
        return int((self.accumulator_distance < 1 / n_steps).sum())

    def drift_from(self, before: LinearRecurrence) -> float:
        """Mean change of log |1 - eigenvalue| since an earlier state: negative means towards a pure accumulator."""
        floor = 1e-300
        now, then = (part.accumulator_distance.clamp_min(floor).log().mean() for part in (self, before))
        return float(now - then)

    def memory(self, n_steps: int, source_weight: Tensor | None = None) -> Float[Tensor, " k"]:
        r"""Exact Fisher memory of the diagonal system, :math:`\sum_i w_i (1 - |\lambda_i|^2) |\lambda_i|^{2k}`.

        Args:
            n_steps: length of the curve.
            source_weight: squared weight of the input in each mode, which sum to one; equal weights by default.
        """
        n_steps = require_integer(n_steps, "n_steps", at_least=1)
        moduli = self.eigenvalues.abs()
        weight = torch.full_like(moduli, 1 / len(moduli)) if source_weight is None else source_weight.to(moduli)
        return normal_memory(moduli, weight, torch.arange(n_steps))

    def row(self) -> dict[str, Any]:
        """The numbers for a table."""
        lasting = self.time_constants
        return {
            "layer": self.name,
            "kind": self.kind,
            "modes": len(lasting),
            "shortest": float(lasting.min()),
            "median": float(lasting.median()),
            "longest": float(lasting.max()),
            "accumulators (1000 steps)": self.accumulators,
            "unstable": int((self.eigenvalues.abs() > 1).sum()),
        }


def recurrence_of(name: str, kind: str, eigenvalues: Tensor, note: str = "") -> LinearRecurrence:
    """What eigenvalues mean, from those of one step."""
    values = eigenvalues.detach().reshape(-1).to("cpu", torch.complex128)
    values = values[values.abs().argsort(descending=True)]
    rates = -values.abs().log()
    constants = torch.where(rates > 1 / _NEVER, rates.reciprocal(), math.inf)
    return LinearRecurrence(name, kind, values, constants, (1 - values).abs(), note)


def recurrences_of_state(state: Mapping[str, Tensor]) -> list[LinearRecurrence]:
    """Linear recurrences of a state dict: LRU, S4D and S5, Mamba and Mamba-2, by the names of their tensors."""
    found = []
    for name in state:
        prefix, _, last = name.rpartition(".")
        own = {key[len(prefix) + bool(prefix) :]: tensor for key, tensor in state.items() if key.startswith(prefix)}
        if (reader := _READERS.get(last)) is not None and (values := reader(own)) is not None:
            found.append(recurrence_of(prefix, *values))
    return found


def _mamba(own: Mapping[str, Tensor]) -> tuple[str, Tensor, str] | None:
    """exp(-exp(A_log) softplus(b)): the step size at zero input, which inputs shorten or lengthen."""
    rates = own["A_log"].double().exp()
    bias = own.get("dt_bias", own.get("dt_proj.bias"))
    if bias is None or len(bias) != len(rates):
        return None
    step = torch.nn.functional.softplus(bias.double()).reshape(-1, *([1] * (rates.ndim - 1)))
    kind = "Mamba" if rates.ndim > 1 else "Mamba-2"
    return kind, torch.exp(-rates * step).to(torch.complex128), "at the step size of zero input; inputs change it"


def _lru(own: Mapping[str, Tensor]) -> tuple[str, Tensor, str] | None:
    """exp(-exp(nu) + i theta), theta itself stored as a logarithm."""
    if "theta_log" not in own:
        return None
    modulus, angle = torch.exp(-own["nu_log"].double().exp()), own["theta_log"].double().exp()
    return "LRU", torch.polar(modulus, angle), ""


def _our_lru(own: Mapping[str, Tensor]) -> tuple[str, Tensor, str] | None:
    if "angle" not in own:
        return None
    return "LRU", torch.polar(torch.exp(-own["log_decay"].double().exp()), own["angle"].double()), ""


def _s5(own: Mapping[str, Tensor]) -> tuple[str, Tensor, str] | None:
    """exp(Lambda dt), each conjugate pair by one of its members."""
    if not {"Lambda_im", "log_step"} <= set(own):
        return None
    poles = torch.complex(own["Lambda_re"].double(), own["Lambda_im"].double())
    return "S5", torch.exp(poles * own["log_step"].double().exp().reshape(poles.shape)), "zero-order hold"


def _s4d(own: Mapping[str, Tensor]) -> tuple[str, Tensor, str] | None:
    if not {"A_imag", "log_dt"} <= set(own):
        return None
    poles = torch.complex(-own["log_A_real"].double().exp(), own["A_imag"].double())
    return "S4D", torch.exp(poles * own["log_dt"].double().exp().unsqueeze(-1)), "zero-order hold"


_READERS = {"A_log": _mamba, "nu_log": _lru, "log_decay": _our_lru, "Lambda_re": _s5, "log_A_real": _s4d}


def recurrence_of_map(layer: AbstractRecurrentMap, x: Float[Tensor, "s i"]) -> LinearRecurrence | None:
    """The recurrence of a layer that is affine in its state, with the same matrix at all inputs; else None.

    Affine is what superposition shows, at large and at small states: a nonlinearity that bends only near zero, or that
    is linear in pieces, has one Jacobian almost everywhere and fails it.

    Cost: one Jacobian at four states, and an eigenvalue problem.
    """
    generator = spawn(0, "diagnose", "linear")
    states = torch.randn(2, 4, layer.state_size, generator=generator, dtype=torch.float64)
    states[:, 2:] *= 1e-3
    held = x[torch.linspace(0, len(x) - 1, 4).long()]
    jacobians = layer.jacobian(held, states[0])
    rest = layer.advance(held, torch.zeros_like(states[0]))
    parts = [layer.advance(held, part) - rest for part in (states[0], states[1], states[0] + states[1])]
    excess = (parts[2] - parts[0] - parts[1]).abs().amax(-1) / parts[2].abs().amax(-1).clamp_min(1e-300)
    spread = (jacobians - jacobians[:1]).abs().amax() / jacobians.abs().amax().clamp_min(1e-300)
    if float(torch.maximum(excess.max(), spread)) > 1e6 * layer.rounding:
        return None
    kind = "linear in the state, the same at every step"
    return recurrence_of(layer.name, kind, robust_eigenvalues(jacobians[0]))
