"""Exact learning dynamics of every balanced two-layer linear network.

Gradient flow on ``L = |w2 w1 X - Y|^2 / (2 P)`` with white inputs, ``X X' / P = I``:
``tau w1' = w2' (corr_yx - w2 w1)``, ``tau w2' = (corr_yx - w2 w1) w1'``. If ``w2' w2 - w1 w1' = balance * I`` at the
start, it stays so, and product, representations and kernel are known at every time in closed form. Sizes may differ,
``n_hidden`` may be smaller or larger than both, the task may be singular, the balance may have any sign or be zero.

Full-batch gradient descent with step ``lr`` is the flow at ``t = lr * steps``, ``tau = 1``, up to an error of order
``lr``. See ``docs/explanation/what-balance-does``; the numerical twin is ``separatrix.dynamics.LinearNetworkFlow``.
"""

from __future__ import annotations

import functools
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import (
    InvalidInput,
    OutsideTheory,
    ShapeError,
    as_float64,
    as_tensor,
    formula,
    not_a_formula,
    require_positive,
    suggest_options,
)
from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.matrices import BalanceFit, fit_balance, require_pair, stack_weights

from .balanced_factor import LATEST, mode_coordinates, time_chunks
from .balanced_modes import BalancedModes, decompose
from .balanced_rotation import horizontal_lift
from .kernel import two_layer_ntk
from .white_inputs import require_white

_DISTINCT = 1e-6
"""Least gap of the singular values, relative to the largest, at which derivatives keep half of their digits."""
_BALANCE_TOL = {torch.float64: 1e-8, torch.float32: 1e-5}


@final
@suggest_options
class BalancedFlow:
    """Gradient flow of a balanced two-layer linear network, exactly.

    Args:
        w1: first layer at time zero, (*batch, n_hidden, n_in).
        w2: second layer at time zero, (*batch, n_out, n_hidden).
        corr_yx: input-output correlation ``Y X' / P``, (*batch, n_out, n_in).
        tau: time constant (1 / learning rate when time counts steps).
        learning_rates: factors of the two layers' speeds; the flow is then mapped exactly to one with equal speeds.
        input_var: c for inputs with ``X X' / P = c I`` (one-hot inputs: 1 / P). Other inputs are outside this theory,
            and a correlation alone cannot tell: ``from_data`` looks.
        balance: the coefficient, if you know it; it must agree with the weights. By default it is measured.
        saddle_tol: components of the start below this fraction of its norm count as zero, which keeps a start on a
            saddle there, as the exact flow does; by default rounding errors leave the saddle after about ``37 / rate``.
            Gradient descent leaves it sooner, by its finite steps, unless the start is aligned with the task.

    Raises:
        OutsideTheory: the weights are not balanced; the message has the measured deviation.

    Gradients with respect to the weights, and to a ``corr_yx`` whose singular values are distinct and not zero, are
    those of the exact flow; for another one backward raises.

    Cost: set-up one thin SVD and two QR decompositions; each time and network one QR of (2 r + 2 h, h).

    Example:
        >>> w1 = w2 = 0.1 * torch.eye(2, dtype=torch.float64)
        >>> flow = BalancedFlow(w1, w2, torch.diag(torch.tensor([2.0, 1.0], dtype=torch.float64)))
        >>> flow.product(1e9)
        tensor([[2., 0.],
                [0., 1.]], dtype=torch.float64)
    """

    fit: BalanceFit
    """How well the weights are balanced."""
    clock: float
    """Units of the dimensionless flow that pass in one unit of time."""

    def __init__(
        self,
        w1: Any,
        w2: Any,
        corr_yx: Any,
        tau: float = 1.0,
        learning_rates: tuple[float, float] | None = None,
        *,
        input_var: float = 1.0,
        balance: float | Tensor | None = None,
        saddle_tol: float = 0.0,
    ) -> None:
        first, second, corr = (as_tensor(x, name) for x, name in ((w1, "w1"), (w2, "w2"), (corr_yx, "corr_yx")))
        first, second, corr = _aligned_batches(first, second, corr)
        require_positive(tau, "tau")
        require_positive(input_var, "input_var")
        if not 0 <= saddle_tol < 1:
            raise InvalidInput(f"saddle_tol must lie in [0, 1); got {saddle_tol}.")
        self.dtype = torch.promote_types(torch.promote_types(first.dtype, second.dtype), corr.dtype)
        self.w1, self.w2, corr = (x.to(torch.float64) for x in (first, second, corr))
        self.target = _with_guarded_gradient(corr) / input_var
        self.input_var = input_var
        self.tau = tau
        self.learning_rates = _require_rates(learning_rates)
        e1, e2 = self.learning_rates
        self.clock = e1 * e2 * input_var / tau
        self.saddle_tol = saddle_tol
        self.fit = fit_balance(self.w1 / e1**0.5, self.w2 / e2**0.5)
        self.balance = _settle_balance(self.fit, balance, _BALANCE_TOL.get(self.dtype, 1e-5))

    @functools.cached_property
    def modes(self) -> BalancedModes:
        """The start in the coordinates where learning separates."""
        e1, e2 = self.learning_rates
        scaled = (self.w1 / e1**0.5, self.w2 / e2**0.5, self.target / (e1 * e2) ** 0.5)
        return decompose(*scaled, self.balance, self.saddle_tol)

    @classmethod
    @not_a_formula("a constructor")
    def from_data(
        cls,
        w1: Any,
        w2: Any,
        inputs: Any,
        targets: Any,
        tau: float = 1.0,
        learning_rates: tuple[float, float] | None = None,
        *,
        balance: float | Tensor | None = None,
        saddle_tol: float = 0.0,
        allow_non_white: bool = False,
    ) -> BalancedFlow:
        """The flow of a network on data, (samples, n_in) and (samples, n_out), whose inputs are checked to be white.

        Args:
            w1: first layer at time zero.
            w2: second layer at time zero.
            inputs: X, one row per sample; neither centred nor scaled here.
            targets: Y, one row per sample.
            tau: time constant.
            learning_rates: factors of the two layers' speeds.
            balance: as in the constructor.
            saddle_tol: as in the constructor.
            allow_non_white: compute the flow of white inputs of the same mean variance, with a ``NotWhiteWarning``.

        Raises:
            NotWhite: ``X'X / P`` is no multiple of the identity; the error has the measured deviation.
            OutsideTheory: the weights are not balanced.

        Example:
            >>> one = 0.1 * torch.eye(2, dtype=torch.float64)
            >>> x = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)
            >>> BalancedFlow.from_data(one, one, x, x).product(1e9)
            tensor([[1., 0.],
                    [0., 1.]], dtype=torch.float64)
        """
        x, y = as_tensor(inputs, "inputs"), as_tensor(targets, "targets")
        if y.ndim != 2 or x.ndim != 2 or y.shape[0] != x.shape[0]:
            raise ShapeError(
                "inputs and targets must have one row per sample, (P, n_in) and (P, n_out); "
                f"got {tuple(x.shape)} and {tuple(y.shape)}."
            )
        dtype = torch.promote_types(x.dtype, y.dtype)
        x, y = x.to(dtype), y.to(dtype)
        white = require_white(x, allow_non_white)
        return cls(
            w1,
            w2,
            y.mT @ x / x.shape[0],
            tau,
            learning_rates,
            input_var=white.input_var,
            balance=balance,
            saddle_tol=saddle_tol,
        )

    def __repr__(self) -> str:
        low, high = float(self.balance.min()), float(self.balance.max())
        balance = f"balance = {low:.4g}" if low == high else f"balance from {low:.4g} to {high:.4g}"
        sizes = f"{self.n_in}-{self.n_hidden}-{self.n_out}"
        return f"{type(self).__name__}({sizes}, {balance}, tau = {self.tau:g}, {str(self.dtype)[6:]})"

    @property
    def n_in(self) -> int:
        """Number of inputs."""
        return int(self.w1.shape[-1])

    @property
    def n_out(self) -> int:
        """Number of outputs."""
        return int(self.w2.shape[-2])

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return int(self.w1.shape[-2])

    @property
    def batch(self) -> torch.Size:
        """Shape of the batch of networks; results have shape (*times, *batch, ...)."""
        return self.w1.shape[:-2]

    @formula("anguita2024", "Theorem 3.3.1 (equal sizes); all sizes ours", erratum="anguita2024-3.3.1-item3")
    def product(self, t: Any) -> Float[Tensor, "*lead o i"]:
        """The network function ``w2 w1`` at times ``t``: (n_out, n_in) for a number, a leading axis for a list."""
        times, shape = self._times(t)
        chunks = [lower @ upper.mT for upper, lower in self._blocks(times)]
        chunks = chunks or [self.w1.new_empty(0, *self.batch, self.n_out, self.n_in)]
        return self._finish(torch.cat(chunks), times, self.w2 @ self.w1, shape)

    @formula("anguita2024", "Theorem 3.3.1, item 3", erratum="anguita2024-3.3.1-item3")
    def gram(self, t: Any) -> Float[Tensor, "*lead io io"]:
        """``Q Q'`` for the stacked weights ``Q = [w1'; w2]``: representations on the diagonal, the product off it."""
        times, shape = self._times(t)
        size = self.n_in + self.n_out
        chunks = [_outer(torch.cat(blocks, -2)) for blocks in self._blocks(times)]
        chunks = chunks or [self.w1.new_empty(0, *self.batch, size, size)]
        return self._finish(torch.cat(chunks), times, _outer(stack_weights(self.w1, self.w2)), shape)

    @formula("anguita2024", "Theorem 3.3.1, item 3", erratum="anguita2024-3.3.1-item3")
    def representations(self, t: Any) -> tuple[Float[Tensor, "*lead i i"], Float[Tensor, "*lead o o"]]:
        """``(w1' w1, w2 w2')`` at times ``t``: how the network represents its inputs and its outputs."""
        gram = self.gram(t)
        return gram[..., : self.n_in, : self.n_in], gram[..., self.n_in :, self.n_in :]

    @formula("anguita2024", "Eq. (4.40)", erratum="anguita2024-4.40")
    def loss(self, t: Any) -> Float[Tensor, "*lead"]:
        """Excess loss ``input_var / 2 |w2 w1 - corr_yx / input_var|^2``: the loss minus that of the best linear map."""
        times, shape = self._times(t)
        chunks = [(lower @ upper.mT - self.target).square().sum((-2, -1)) for upper, lower in self._blocks(times)]
        chunks = chunks or [self.w1.new_empty(0, *self.batch)]
        start = (self.w2 @ self.w1 - self.target).square().sum((-2, -1))
        return self._finish(torch.cat(chunks) * (self.input_var / 2), times, start * (self.input_var / 2), shape)

    @formula("anguita2024", "Eq. (4.17)", erratum="anguita2024-4.17")
    def ntk(self, t: Any, x: Any) -> Float[Tensor, "*lead op op"]:
        """Neural tangent kernel at times ``t`` on inputs ``x`` (samples, n_in); rows run over outputs, then samples."""
        inputs = as_float64(x, "x")
        if inputs.ndim != 2 or inputs.shape[-1] != self.n_in:
            raise ShapeError(f"x must have shape (samples, {self.n_in}); got {tuple(inputs.shape)}.")
        first, second = self.representations(t)
        kernel = two_layer_ntk(first.to(torch.float64), second.to(torch.float64), inputs)
        return kernel.to(self.dtype)

    @formula("separatrix", "weights of the balanced flow with their hidden rotation")
    def weights(self, t: Any, tol: float = 1e-8) -> tuple[Float[Tensor, "*lead h i"], Float[Tensor, "*lead o h"]]:
        """``(w1, w2)`` at times ``t``: the exact Gram matrix with the hidden rotation found to ``tol``.

        Product, representations and kernel do not need the rotation; use those where they suffice.

        Raises:
            NotConverged: the rotation did not settle to ``tol`` (relative to the norm of the weights).
        """
        require_positive(tol, "tol")
        times, shape = self._times(t)
        stacked = horizontal_lift(self.modes, times * self.clock, tol)
        e1, e2 = self.learning_rates
        w1 = e1**0.5 * stacked[..., : self.n_in, :].mT
        w2 = e2**0.5 * stacked[..., self.n_in :, :]
        return self._finish(w1, times, self.w1, shape), self._finish(w2, times, self.w2, shape)

    @formula("separatrix", "factors of the balanced flow up to a hidden rotation")
    def factors(self, t: float) -> tuple[Float[Tensor, "*batch k i"], Float[Tensor, "*batch o k"]]:
        """Weights ``(w1, w2)`` at one time up to a rotation of the hidden units, in float64: enough to start a new
        task.

        Hidden directions that no mode can use are left out, so that k may be smaller than ``n_hidden``.
        """
        times, _ = self._times(float(t))
        if float(t) == 0:
            return self.w1, self.w2
        upper, lower = self._blocks(times)[0]
        return upper[0].mT, lower[0]

    @formula("separatrix", "limit of the balanced flow")
    def limit(self) -> Float[Tensor, "*batch o i"]:
        """The network function as time goes to infinity: the best approximation of rank ``n_hidden`` it can reach.

        From a generic start that is the leading part of the task; a start without any component along a growing mode
        stays without it. That holds for the flow, not for gradient descent: from a generic start its finite steps leave
        such a saddle (``docs/explanation/what-balance-does``).
        """
        return self.product(LATEST * self.tau)

    @formula("separatrix", "limit of the Gram matrix of the balanced flow")
    def gram_limit(self) -> Float[Tensor, "*batch io io"]:
        """``Q Q'`` as time goes to infinity."""
        return self.gram(LATEST * self.tau)

    def _times(self, t: Any) -> tuple[Tensor, torch.Size]:
        times = as_float64(t, "t").to(self.w1.device)
        if bool((times < 0).any()):
            raise InvalidInput(f"t must not be negative; got {float(times.min()):g}.")
        return times.reshape(-1), times.shape

    def _blocks(self, times: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Factors ``(w1', w2)`` of the Gram matrix, up to one hidden rotation per time, chunk by chunk."""
        e1, e2 = self.learning_rates
        blocks = []
        for part in time_chunks(self.modes, times.shape[0]):
            stacked = self.modes.expand(mode_coordinates(self.modes, times[part] * self.clock))
            blocks.append((e1**0.5 * stacked[..., : self.n_in, :], e2**0.5 * stacked[..., self.n_in :, :]))
        return blocks

    def _finish(self, value: Tensor, times: Tensor, start: Tensor, shape: torch.Size) -> Tensor:
        """Exactly the start at time zero, in the caller's dtype and shape."""
        at_start = (times == 0).reshape(-1, *(1,) * start.ndim)
        return torch.where(at_start, start, value).reshape((*shape, *start.shape)).to(self.dtype)


def _outer(stacked: Tensor) -> Tensor:
    return stacked @ stacked.mT


def _with_guarded_gradient(corr: Tensor) -> Tensor:
    """The correlation; its gradient, if somebody asks for it, is refused where singular vectors have none.

    Everything here is smooth in the correlation, but it is computed from singular vectors. Where singular values are
    repeated or zero these are not unique, and automatic differentiation returns NaN or, unseen, a wrong number.
    """
    if not corr.requires_grad or not torch.is_grad_enabled() or transforms_active():
        return corr
    values = torch.linalg.svdvals(corr.detach())
    least = torch.cat([values[..., :-1] - values[..., 1:], values[..., -1:]], dim=-1).amin()
    smooth = bool(least > _DISTINCT * values.amax())

    def guarded(gradient: Tensor) -> Tensor:
        if not smooth:
            raise InvalidInput(
                "the gradient of a BalancedFlow with respect to corr_yx needs singular values that are distinct and "
                f"not zero; two of them, or one and zero, are {float(least):.2g} apart. Move corr_yx a little."
            )
        return gradient

    own = corr.clone()  # the hook is on a copy: the caller's tensor keeps none
    own.register_hook(guarded)
    return own


def _aligned_batches(w1: Tensor, w2: Tensor, corr: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    for tensor, name in ((w1, "w1"), (w2, "w2"), (corr, "corr_yx")):
        if tensor.ndim < 2 or tensor.is_complex():
            raise ShapeError(f"{name} must be a real matrix (..., rows, columns); got shape {tuple(tensor.shape)}.")
    n_out, n_in = w2.shape[-2], w1.shape[-1]
    if corr.shape[-2:] != (n_out, n_in):
        raise ShapeError(f"corr_yx must have shape (..., {n_out}, {n_in}) to fit the weights; got {tuple(corr.shape)}.")
    try:
        batch = torch.broadcast_shapes(w1.shape[:-2], w2.shape[:-2], corr.shape[:-2])
    except RuntimeError:
        raise ShapeError(
            "the batch axes of w1, w2 and corr_yx must broadcast; "
            f"got {tuple(w1.shape)}, {tuple(w2.shape)} and {tuple(corr.shape)}."
        ) from None
    w1, w2, corr = (x.expand(*batch, *x.shape[-2:]) for x in (w1, w2, corr))
    require_pair(w1, w2)
    return w1, w2, corr


def _require_rates(rates: tuple[float, float] | None) -> tuple[float, float]:
    if rates is None:
        return 1.0, 1.0
    if len(rates) != 2:
        raise InvalidInput(f"learning_rates must be two positive numbers, one per layer; got {rates!r}.")
    for rate in rates:
        require_positive(rate, "learning_rates")
    return float(rates[0]), float(rates[1])


def _settle_balance(fit: BalanceFit, given: float | Tensor | None, tol: float) -> Tensor:
    worst = float(fit.residual.max()) if fit.residual.numel() else 0.0
    if worst > tol:
        raise OutsideTheory(
            f"w1 and w2 must be balanced, w2'w2 - w1w1' = balance * I; the relative deviation is {worst:.2g} "
            f"(allowed {tol:g}) around the fitted balance {float(fit.balance.reshape(-1)[fit.residual.argmax()]):.6g}. "
            "Draw weights with matrices.balanced_pair, or integrate with dynamics.LinearNetworkFlow."
        )
    if given is None:
        return fit.balance
    lam = as_float64(given, "balance").expand(fit.balance.shape)
    off = (lam - fit.balance).abs() > 1e3 * tol * (1 + fit.balance.abs())
    if bool(off.any()):
        index = int(off.reshape(-1).nonzero()[0])
        raise OutsideTheory(
            f"balance was given as {float(lam.reshape(-1)[index]):g}, but the weights have "
            f"{float(fit.balance.reshape(-1)[index]):.6g}; leave it out to use the measured one."
        )
    return lam
