"""What moves: the interface that every flow implements and everything else in this room uses."""

from __future__ import annotations

import abc
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, choose, require_flags, require_kind

from .sphere import angles, normalise, tangent_basis, tangent_part

SLOWEST, FASTEST = 1e-100, 1e100
"""Rates of a flow on the sphere whose squares are numbers; rates of zero are left alone."""

DENSE_LIMIT = 6000
"""A dense Jacobian with more rows than this needs ``force=True``: at 6000 it takes 288 MB per element."""


class AbstractFlow(abc.ABC):
    """dx/dt = velocity(x), where a state is n tokens of dimension d on a space given by ``project``.

    For implementers: write ``velocity``, ``jvp``, ``select`` and ``to``; ``project`` and ``basis`` too if the states
    are constrained. Jacobians, integration, equilibrium search, Lyapunov exponents and cycles follow from these. A
    flow is immutable. If its weights have leading axes, say so by ``instances``; if they vary in time, set
    ``autonomous = False``: then ``velocity`` and ``jvp`` are given a time, and nobody looks for rest. A system
    without tokens has n = 1. See ``docs/how-to/add-a-flow``.
    """

    autonomous: bool = True
    """Whether the velocity depends on the state alone."""

    def __repr__(self) -> str:
        return described(self, ())

    @property
    def instances(self) -> tuple[int, ...]:
        """Leading axes of the weights, which broadcast against those of the states. The default is one instance."""
        return ()

    @abc.abstractmethod
    def velocity(self, x: Float[Tensor, "*batch n d"], t: Tensor | None = None) -> Float[Tensor, "*batch2 n d"]:
        """Time derivative at x (``t``, one time per element, matters only to flows whose weights vary)."""

    @abc.abstractmethod
    def jvp(
        self, x: Float[Tensor, "*batch n d"], u: Float[Tensor, "*batch2 n d"], t: Tensor | None = None
    ) -> Float[Tensor, "*batch3 n d"]:
        """Derivative of the velocity at x in direction u, without forming a matrix; extra leading axes broadcast.

        Flows that are autonomous are never given a ``t``.
        """

    def velocity_and_jvp(
        self, x: Float[Tensor, "*batch n d"], u: Float[Tensor, "*batch2 n d"], t: Tensor | None = None
    ) -> tuple[Float[Tensor, "*batch3 n d"], Float[Tensor, "*batch4 n d"]]:
        """Both at once, for flows that can share work between them."""
        return self.velocity(x, t), self.jvp(x, u) if self.autonomous else self.jvp(x, u, t)

    @abc.abstractmethod
    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> AbstractFlow:
        """The flow of the elements ``index`` of a flattened batch of shape ``batch_shape``; itself if all share it."""

    @abc.abstractmethod
    def to(self, dtype: torch.dtype) -> AbstractFlow:
        """The same flow computing in another precision."""

    def project(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """Nearest admissible state. The default space is all of R^(n x d)."""
        return x

    def basis(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d e"]:
        """Orthonormal basis of the directions each token may move in. The default is every direction."""
        eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
        return eye.expand(*x.shape[:-1], *eye.shape)

    def distances(self, x: Float[Tensor, "*batch n d"], y: Float[Tensor, "*batch2 n d"]) -> Float[Tensor, "*batch3 n"]:
        """How far the tokens of one state are from those of another. The default is the length of the difference."""
        return torch.linalg.vector_norm(x - y, dim=-1)

    def residual(self, x: Float[Tensor, "*batch n d"], t: Tensor | None = None) -> Float[Tensor, "*batch"]:
        """Speed of the fastest token."""
        return torch.linalg.vector_norm(self.velocity(x, t), dim=-1).amax(dim=-1)

    def jacobian(
        self, x: Float[Tensor, "*batch n d"], space: str = "tangent", *, force: bool = False
    ) -> Float[Tensor, "*batch2 rows rows"]:
        """Dense derivative of the velocity.

        Args:
            x: states (..., n, d).
            space: ``"tangent"`` compresses to the admissible directions, (n e) x (n e) with e = d - 1 on the sphere;
                ``"ambient"`` is the whole (n d) x (n d) matrix, whose radial eigenvalues carry no dynamics.
            force: allow more than 6000 rows.

        Cost: n d Jacobian-vector products unless the flow knows its derivative in closed form.
        """
        require_autonomous(self, "the Jacobian")
        check_dense(x, space, force=force)
        full = self.ambient_jacobian(x)
        if space == "ambient":
            return full.flatten(-4, -3).flatten(-2, -1)
        basis = self.basis(x)
        inner = torch.einsum("...iae,...iahb->...iehb", basis, full)
        return torch.einsum("...iehb,...hbf->...iehf", inner, basis).flatten(-4, -3).flatten(-2, -1)

    def ambient_jacobian(
        self, x: Float[Tensor, "*batch n d"], t: Tensor | None = None
    ) -> Float[Tensor, "*batch2 n d n d"]:
        """Derivative of coordinate (i, a) of the velocity in coordinate (h, b) of the state."""
        n, d = x.shape[-2:]
        directions = torch.eye(n * d, dtype=x.dtype, device=x.device).reshape(n * d, *(1,) * (x.ndim - 2), n, d)
        every = directions.expand(n * d, *x.shape)
        along = self.jvp(x, every) if self.autonomous else self.jvp(x, every, t)
        return along.movedim(0, -1).unflatten(-1, (n, d))


class AbstractSphereFlow(AbstractFlow):
    """A flow of unit tokens in which tokens at the same place move alike unless a mask or bias tells them apart.

    For implementers: write ``pull`` (the velocity is its tangent part) and ``pull_and_jvp``, ``select``, ``to``,
    ``value_sum``, ``sizes``, ``with_sizes`` and ``reducible``; clustering, polishing, classification and censuses
    follow. Sizes are (..., m), one number of tokens per row: a flow of m clusters must move them as it moves all
    their tokens, and a row of size zero moves the others not at all. See
    ``docs/how-to/bring-your-own-part``. Checked by
    ``tests/dynamics/flows/test_sphere_flow_contract.py``, where yours is one line.
    """

    @abc.abstractmethod
    def pull(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch2 m d"]:
        """What each token is pulled by, before the radial part is removed (m = n, or 1 if all are pulled alike)."""

    def velocity(self, x: Float[Tensor, "*batch n d"], t: Tensor | None = None) -> Float[Tensor, "*batch2 n d"]:
        """Tangent part of the pull (``t`` is not used: the weights are constant)."""
        return tangent_part(x, self.pull(x))

    @abc.abstractmethod
    def pull_and_jvp(
        self, x: Float[Tensor, "*batch n d"], u: Float[Tensor, "*batch2 n d"]
    ) -> tuple[Float[Tensor, "*batch3 m d"], Float[Tensor, "*batch4 m d"]]:
        """The pull at x and its derivative in direction u."""

    def jvp(
        self, x: Float[Tensor, "*batch n d"], u: Float[Tensor, "*batch2 n d"], t: Tensor | None = None
    ) -> Float[Tensor, "*batch3 n d"]:
        """Derivative of the velocity in direction u; valid for any u, tangent or not."""
        return self.velocity_and_jvp(x, u)[1]

    def velocity_and_jvp(
        self, x: Float[Tensor, "*batch n d"], u: Float[Tensor, "*batch2 n d"], t: Tensor | None = None
    ) -> tuple[Float[Tensor, "*batch3 n d"], Float[Tensor, "*batch4 n d"]]:
        """Velocity and its derivative in direction u, from one evaluation of the pull."""
        pull, dpull = self.pull_and_jvp(x, u)
        gamma = (x * pull).sum(dim=-1, keepdim=True)
        inner = (x * dpull).sum(dim=-1, keepdim=True) + (u * pull).sum(dim=-1, keepdim=True)
        return pull - gamma * x, dpull - gamma * u - inner * x

    @property
    @abc.abstractmethod
    def value_sum(self) -> Float[Tensor, "*instances d d"]:
        """The matrix whose unit eigenvectors are the consensus equilibria."""

    @property
    @abc.abstractmethod
    def reducible(self) -> bool:
        """Whether tokens at one place may be replaced by one token with a multiplicity."""

    @abc.abstractmethod
    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> AbstractSphereFlow:
        """The flow of the elements ``index`` of a flattened batch of shape ``batch_shape``; itself if all share it."""

    @abc.abstractmethod
    def to(self, dtype: torch.dtype) -> AbstractSphereFlow:
        """The same flow computing in another precision."""

    @property
    @abc.abstractmethod
    def sizes(self) -> Float[Tensor, "*axes m"] | None:
        """How many tokens each row stands for; None if every row is one token."""

    @abc.abstractmethod
    def with_sizes(self, sizes: Float[Tensor, "*batch m"] | None) -> AbstractSphereFlow:
        """The same flow on m clusters of the given sizes (real and positive; zero for a place holder)."""

    def __repr__(self) -> str:
        return described(self, (f"d = {self.dim}", str(self.dtype).removeprefix("torch.")))

    @property
    def dim(self) -> int:
        """Dimension of a token."""
        return int(self.value_sum.shape[-1])

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights."""
        return self.value_sum.dtype

    @property
    def instances(self) -> tuple[int, ...]:
        """Leading axes of the weights, which broadcast against those of the states."""
        return tuple(self.value_sum.shape[:-2])

    @property
    def rate(self) -> Float[Tensor, "*instances"]:
        """Spectral norm of ``value_sum``: the unit in which speeds are judged small."""
        return torch.linalg.matrix_norm(self.value_sum, ord=2)

    def project(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """Each token divided by its length."""
        return normalise(x)

    def basis(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d e"]:
        """Orthonormal bases of the tangent spaces."""
        return tangent_basis(x)

    def distances(self, x: Float[Tensor, "*batch n d"], y: Float[Tensor, "*batch2 n d"]) -> Float[Tensor, "*batch3 n"]:
        """Angles in radians."""
        return angles(x, y)


def require_flow(flow: object) -> AbstractFlow:
    """The flow itself; anything else is refused in one sentence."""
    found: AbstractFlow = require_kind(
        flow, "flow", AbstractFlow, "a flow (AbstractFlow), such as AttentionFlow or OjaFlow"
    )
    return found


def require_rate(flow: AbstractSphereFlow) -> None:
    """Refuse values so small or so large that squares of speeds are not numbers: rescaling them only rescales time."""
    for rate in flow.rate.reshape(-1).tolist():
        if rate != 0 and not SLOWEST <= rate <= FASTEST:
            raise InvalidInput(
                f"the value matrices of flow must be zero, or of norm {SLOWEST:g} to {FASTEST:g}; got {rate:.3g}. A "
                "factor of all values is a unit of time: divide by it."
            )


def require_autonomous(flow: AbstractFlow, what: str) -> None:
    """Refuse a flow whose velocity depends on time, for ``what`` knows no time."""
    if not flow.autonomous:
        raise InvalidInput(f"{what} needs a flow that is constant in time; {type(flow).__name__} is not.")


def common_axes(flow: AbstractFlow, x: Tensor, name: str) -> tuple[int, ...]:
    """Leading axes of states and weights together, refused by name where they do not broadcast."""
    if not flow.instances or x.shape[:-2] == flow.instances:
        return tuple(x.shape[:-2])
    try:
        return tuple(torch.broadcast_shapes(x.shape[:-2], flow.instances))
    except RuntimeError:
        raise ShapeError(
            f"{name} must have leading axes that broadcast against those of the weights, {tuple(flow.instances)}; "
            f"got shape {tuple(x.shape)}."
        ) from None


def described(flow: AbstractFlow, facts: Iterable[str]) -> str:
    """A flow on one line: its class, what it is made of, and its instances if it has several."""
    parts = list(facts)
    if flow.instances:
        parts.append(f"instances {'x'.join(str(size) for size in flow.instances)}")
    return f"{type(flow).__name__}({', '.join(parts)})"


def require_sphere(flow: AbstractFlow, what: str) -> AbstractSphereFlow:
    """The flow itself if its tokens live on the sphere; otherwise one sentence that says who needs it."""
    if not isinstance(flow, AbstractSphereFlow):
        raise InvalidInput(f"{what} needs a flow on the sphere (AbstractSphereFlow); got {type(flow).__name__}.")
    return flow


def check_dense(x: Tensor, space: str, *, force: bool) -> None:
    """Refuse an unknown space, and a dense matrix that would be too large unless forced."""
    require_flags(force=force)
    choose("space", space, ("tangent", "ambient"))
    rows = x.shape[-2] * x.shape[-1]
    if rows > DENSE_LIMIT and not force:
        raise InvalidInput(
            f"a dense Jacobian needs n * d <= {DENSE_LIMIT}; got {x.shape[-2]} * {x.shape[-1]} = {rows}. "
            "Use jvp, reduce the state to clusters, or pass force=True."
        )


def select_leading(tensor: Tensor, batch_shape: tuple[int, ...], index: Tensor, trailing: int) -> Tensor:
    """Rows ``index`` of the flattened leading axes of ``tensor`` after broadcasting them to ``batch_shape``."""
    return tensor.expand(*batch_shape, *tensor.shape[tensor.ndim - trailing :]).flatten(0, len(batch_shape) - 1)[index]
