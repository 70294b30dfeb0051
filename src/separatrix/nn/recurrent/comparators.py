"""Networks that people take today, in short reference form, for comparison: LRU, minGRU, antisymmetric, coRNN."""

from __future__ import annotations

import math
from typing import final

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from separatrix.core.arrays import require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator

from ..orthogonal.algebra import skew
from .core import AbstractRecurrent
from .steps.diagonal import DiagonalStep, GatedDiagonalStep
from .steps.elman import ElmanStep, find_nonlinearity
from .steps.oscillator_step import OscillatorStep
from .steps.step import AbstractStep, Weights


def _normal(*shape: int, scale: float, generator: torch.Generator, dtype: torch.dtype) -> nn.Parameter:
    return nn.Parameter((scale * torch.randn(*shape, dtype=torch.float64, generator=generator)).to(dtype))


@final
@suggest_options
class LRU(AbstractRecurrent):
    r"""Linear recurrent unit: :math:`h' = \lambda \odot h + \sqrt{1 - |\lambda|^2}\, B x`, complex and diagonal.

    :math:`|\lambda| = e^{-e^{\nu}} < 1` for every nu. Comparator, after Orvieto et al. 2023; its output map is left to
    the read-out. ``recurrent()`` is the diagonal matrix of lambda.

    Args:
        input_size: features of a step.
        hidden_size: N complex units.
        r_min: least modulus at the start.
        r_max: largest modulus at the start; moduli are uniform in area between the two circles.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.
    """

    is_complex = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        r_min: float = 0.9,
        r_max: float = 0.999,
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first=batch_first)
        if not 0 <= r_min < r_max < 1:
            raise InvalidInput(f"r_min and r_max must satisfy 0 <= r_min < r_max < 1; got {r_min} and {r_max}.")
        generator = default_generator(generator)
        share, turn = torch.rand(2, self.hidden_size, dtype=torch.float64, generator=generator)
        modulus = torch.sqrt(r_min**2 + share * (r_max**2 - r_min**2)).clamp_min(1e-12)
        self.log_decay = nn.Parameter(torch.log(-torch.log(modulus)).to(dtype))
        self.angle = nn.Parameter((2 * math.pi * turn).to(dtype))
        scale = (2 * self.input_size) ** -0.5
        shape = (2, self.hidden_size, self.input_size)
        self.input_weight = _normal(*shape, scale=scale, generator=generator, dtype=dtype)

    @property
    def step(self) -> AbstractStep:
        """The formula of one step."""
        return DiagonalStep()

    def eigenvalues(self) -> Complex[Tensor, " h"]:
        """Exactly: lambda."""
        return self._factor().detach()

    def recurrent(self) -> Complex[Tensor, "h h"]:
        """The diagonal matrix of lambda."""
        return torch.diag(self._factor())

    def _factor(self) -> Complex[Tensor, " h"]:
        return torch.polar(torch.exp(-torch.exp(self.log_decay)), self.angle)

    def weights(self) -> Weights:
        """lambda."""
        return (self._factor(),)

    def drives(self, x: Tensor) -> Tensor:
        """B x, scaled so that white input gives states of unit variance."""
        scale = torch.sqrt(-torch.expm1(-2 * torch.exp(self.log_decay)))  # 1 - |lambda|^2 without cancellation
        return torch.complex(x @ self.input_weight[0].mT, x @ self.input_weight[1].mT) * scale


@final
@suggest_options
class MinGRU(AbstractRecurrent):
    """``h' = (1 - z) h + z c`` with z and c from the input alone. Comparator, after Feng et al. 2024.

    There is no recurrent matrix; ``recurrent()`` is the Jacobian of a step at zero input, diag(1 - sigmoid(b_z)).

    Args:
        input_size: features of a step.
        hidden_size: N.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first=batch_first)
        generator, n = default_generator(generator), self.hidden_size
        scale = (2 / (n + self.input_size)) ** 0.5
        self.input_weight = _normal(2 * n, self.input_size, scale=scale, generator=generator, dtype=dtype)
        self.bias = nn.Parameter(torch.zeros(2 * n, dtype=dtype))

    @property
    def step(self) -> AbstractStep:
        """The formula of one step."""
        return GatedDiagonalStep()

    def weights(self) -> Weights:
        """None: the drives hold everything."""
        return ()

    def recurrent(self) -> Float[Tensor, "h h"]:
        """The Jacobian at zero input."""
        return torch.diag(torch.sigmoid(-self.bias[: self.hidden_size]))

    def eigenvalues(self) -> Complex[Tensor, " h"]:
        """Exactly: the diagonal."""
        values = torch.sigmoid(-self.bias[: self.hidden_size].detach())
        return values.to(values.dtype.to_complex())

    def drives(self, x: Tensor) -> Tensor:
        """Gate and candidate side by side."""
        entering = x @ self.input_weight.mT + self.bias
        gate, candidate = entering.chunk(2, dim=-1)
        return torch.cat([torch.sigmoid(gate), candidate], dim=-1)


@final
@suggest_options
class AntisymmetricRNN(AbstractRecurrent):
    r"""``h' = h + eps tanh((W - W' - gamma I) h + U x + b)``: Euler steps of a stable flow.

    Comparator, after Chang et al. 2019. ``recurrent()`` is the Jacobian of a step where the tanh is not saturated, I +
    eps (W - W' - gamma I). Its eigenvalues lie outside the unit circle where eps omega^2 > 2 gamma, whatever the flow.

    Args:
        input_size: features of a step.
        hidden_size: N; N(N-1)/2 free entries of W.
        step_size: eps.
        damping: gamma.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        step_size: float = 0.01,
        damping: float = 0.01,
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first=batch_first)
        require_positive(step_size, "step_size")
        if not 0 <= damping < math.inf:
            raise InvalidInput(f"damping must be a number of at least 0; got {damping!r}.")
        self.step_size, self.damping = step_size, damping
        generator, n = default_generator(generator), self.hidden_size
        self.entries = _normal(n * (n - 1) // 2, scale=n**-0.5, generator=generator, dtype=dtype)
        scale = (2 / (n + self.input_size)) ** 0.5
        self.input_weight = _normal(n, self.input_size, scale=scale, generator=generator, dtype=dtype)
        self.bias = nn.Parameter(torch.zeros(n, dtype=dtype))

    @property
    def step(self) -> AbstractStep:
        """The formula of one step."""
        return ElmanStep(find_nonlinearity("tanh"), keep=1.0, rate=self.step_size)

    def _flow(self) -> Tensor:
        identity = torch.eye(self.hidden_size, dtype=self.bias.dtype, device=self.bias.device)
        return skew(self.entries, self.hidden_size) - self.damping * identity

    def weights(self) -> Weights:
        """W - W' - gamma I."""
        return (self._flow(),)

    def recurrent(self) -> Float[Tensor, "h h"]:
        """I + eps (W - W' - gamma I)."""
        flow = self._flow()
        return torch.eye(self.hidden_size, dtype=flow.dtype, device=flow.device) + self.step_size * flow

    def drives(self, x: Tensor) -> Tensor:
        """U x + b."""
        return x @ self.input_weight.mT + self.bias

    def pre_activations(self, x: Tensor, states: Tensor) -> Tensor:
        """What the tanh saw."""
        return self.drives(x) + states[:-1] @ self._flow().mT


@final
@suggest_options
class CoRNN(AbstractRecurrent):
    """Coupled oscillators, positions y and velocities z: ``z' = z + dt (tanh(W y + V z + U x + b) - gamma y - eps z)``,
    ``y' = y + dt z'``. Comparator, after Rusch and Mishra 2021.

    The state is (y, z), 2N numbers; the output is y. ``recurrent()`` is the 2N x 2N Jacobian of a step where the tanh
    is not saturated.

    Args:
        input_size: features of a step.
        hidden_size: N oscillators.
        dt: time step.
        stiffness: gamma.
        damping: eps.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        dt: float = 0.042,
        stiffness: float = 2.7,
        damping: float = 4.7,
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first=batch_first)
        for name, value in (("dt", dt), ("stiffness", stiffness), ("damping", damping)):
            require_positive(value, name)
        self.dt, self.stiffness, self.damping = dt, stiffness, damping
        self.state_size = 2 * self.hidden_size
        generator, n = default_generator(generator), self.hidden_size
        scale = (3 * (2 * n + self.input_size)) ** -0.5
        self.matrix = _normal(n, 2 * n, scale=scale, generator=generator, dtype=dtype)
        self.input_weight = _normal(n, self.input_size, scale=scale, generator=generator, dtype=dtype)
        self.bias = nn.Parameter(torch.zeros(n, dtype=dtype))

    @property
    def step(self) -> AbstractStep:
        """The formula of one step."""
        return OscillatorStep(self.dt, self.stiffness, self.damping)

    def weights(self) -> Weights:
        """[W V]."""
        return (self.matrix,)

    def drives(self, x: Tensor) -> Tensor:
        """U x + b."""
        return x @ self.input_weight.mT + self.bias

    def read(self, states: Tensor) -> Tensor:
        """The positions."""
        return states[..., : self.hidden_size]

    def recurrent(self) -> Float[Tensor, "h h"]:
        """The Jacobian of a step by (y, z), tanh not saturated."""
        n = self.hidden_size
        identity = torch.eye(n, dtype=self.bias.dtype, device=self.bias.device)
        by_y = self.dt * (self.matrix[:, :n] - self.stiffness * identity)
        by_z = identity + self.dt * (self.matrix[:, n:] - self.damping * identity)
        return torch.cat([torch.cat([identity + self.dt * by_y, self.dt * by_z], 1), torch.cat([by_y, by_z], 1)])

    def pre_activations(self, x: Tensor, states: Tensor) -> Tensor:
        """What the tanh saw."""
        return self.drives(x) + states[:-1] @ self.matrix.mT
