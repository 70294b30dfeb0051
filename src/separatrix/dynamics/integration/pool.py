"""Working state: trajectories that are advanced together, and what is remembered of each to recognise a return."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, final

import torch
from torch import Tensor

Kind = TypeVar("Kind", bound="Rows")


class Rows:
    """A dataclass of tensors with one entry per trajectory on their first axis (or None, or a common flag)."""

    def keep(self: Kind, chosen: Tensor | slice) -> Kind:
        """The trajectories ``chosen`` by a mask, indices or a slice."""
        return type(self)(**{name: _chosen(item, chosen) for name, item in _items(self)})

    @classmethod
    def join(cls: type[Kind], parts: list[Kind]) -> Kind:
        """One object of several; all must have the same fields present."""
        if len(parts) == 1:
            return parts[0]
        names = [name for name, _ in _items(parts[0])]
        return cls(**{name: _joined([getattr(part, name) for part in parts]) for name in names})


def _items(rows: Any) -> list[tuple[str, Any]]:
    return [(field.name, getattr(rows, field.name)) for field in dataclasses.fields(rows)]


def _chosen(item: Any, chosen: Tensor | slice) -> Any:
    if isinstance(item, Rows):
        return item.keep(chosen)
    return item[chosen] if isinstance(item, Tensor) else item


def _joined(items: list[Any]) -> Any:
    if isinstance(items[0], Rows):
        return type(items[0]).join(items)
    return torch.cat(items) if isinstance(items[0], Tensor) else items[0]


@final
@dataclasses.dataclass
class Anchor(Rows):
    """A place on each trajectory to which it may return.

    ``height`` is the signed distance from the section through the anchor, normal to the velocity there; ``extent`` the
    largest distance from the anchor so far; ``until`` the number of steps at which the anchor is renewed.
    """

    x: Tensor
    velocity: Tensor
    t: Tensor
    height: Tensor
    extent: Tensor
    until: Tensor


@final
@dataclasses.dataclass
class Pool(Rows):
    """Trajectories with the same number of rows and the same precision. Mutable.

    ``x`` has one row per token, or after merging one per cluster with ``sizes`` (zero for a place holder) and
    ``labels`` from the original tokens to rows. Speeds are judged in ``unit``, absolute tolerances in ``length``;
    ``threshold`` is the relative speed at
    which the next attempt to finish is due (zero while a trajectory leaves a saddle). ``stiff`` trajectories are
    advanced by an implicit method; those with an ``anchor`` are watched for a return.
    """

    index: Tensor
    x: Tensor
    velocity: Tensor
    speed: Tensor
    t: Tensor
    h: Tensor
    last_error: Tensor
    threshold: Tensor
    unit: Tensor
    length: Tensor
    labels: Tensor
    sizes: Tensor | None = None
    anchor: Anchor | None = None
    stiff: bool = False

    @property
    def key(self) -> tuple[int, bool, torch.dtype, bool, bool]:
        """What trajectories of one pool have in common."""
        return self.x.shape[1], self.sizes is not None, self.x.dtype, self.anchor is not None, self.stiff

    def to(self, dtype: torch.dtype) -> Pool:
        """The same trajectories in another precision."""
        if dtype == self.x.dtype:
            return self
        floats: dict[str, Any] = {
            name: item.to(dtype)
            for name, item in _items(self)
            if name in ("x", "velocity", "speed", "sizes") and item is not None
        }
        return dataclasses.replace(self, **floats)

    def tokens(self) -> Tensor:
        """The state of all original tokens, in float64."""
        return self.spread_out(self.x).double()

    def spread_out(self, rows: Tensor) -> Tensor:
        """One row per original token."""
        if self.sizes is None:
            return rows
        return rows.gather(1, self.labels.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))

    @property
    def ratio(self) -> Tensor:
        """Speed in its unit."""
        return self.speed.double() / self.unit

    @property
    def live(self) -> Tensor | None:
        """1 for rows that stand for tokens, 0 for place holders; None if every row is a token."""
        return None if self.sizes is None else (self.sizes > 0).to(self.x.dtype).unsqueeze(-1)
