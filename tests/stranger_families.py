"""Families that somebody else wrote: what a stranger's class has to look like, and no more."""

from __future__ import annotations

from typing import ClassVar

import torch

from separatrix.matrices.ensembles import AbstractEnsemble, BiInvariant, Facts, Haar, RotationInvariant


class SignedPermutation(AbstractEnsemble):
    """Orthogonal, with one entry +-1 in each row: linear theory holds, but the basis is not uniform."""

    name: ClassVar[str] = "signed-permutation"
    law: ClassVar[str] = "a uniform permutation with independent signs"

    def unit(self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()) -> torch.Tensor:
        order = torch.rand(*batch, width, generator=generator, dtype=torch.float64).argsort(-1)
        signs = 2.0 * torch.randint(0, 2, (*batch, width), generator=generator).double() - 1
        matrix = torch.zeros(*batch, width, width, dtype=torch.float64)
        return matrix.scatter(-1, order[..., None], signs[..., None])

    def facts(self) -> Facts:
        return Facts.two_sided(excess=0.0, uniform_basis=False)


class Stretched(AbstractEnsemble):
    """Singular values 0.6 and sqrt(1.64), half of each, between two uniform bases; theory of it is quick."""

    name: ClassVar[str] = "stretched"
    law: ClassVar[str] = "O_1 diag(0.6, 1.28, ...) O_2 with uniform O_1, O_2"
    label: ClassVar[str] = "stretched"
    colour: ClassVar[str] = "yellow"
    marker: ClassVar[str] = "*"

    def unit(self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()) -> torch.Tensor:
        return BiInvariant([0.6, 1.64**0.5]).unit(width, generator=generator, batch=batch)

    def facts(self) -> Facts:
        return Facts.two_sided(excess=(0.6**4 + 1.64**2) / 2 - 1)


class ThreePoint(AbstractEnsemble):
    """Symmetric with eigenvalues -sqrt(2), 0 and sqrt(2), masses 1/4, 1/2, 1/4, and a uniform basis."""

    name: ClassVar[str] = "three-point"
    law: ClassVar[str] = "O diag(-sqrt 2, 0, 0, sqrt 2, ...) O^T with O uniform"
    label: ClassVar[str] = "three points"
    colour: ClassVar[str] = "yellow"
    marker: ClassVar[str] = "*"

    def unit(self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()) -> torch.Tensor:
        values = [-1.0, 0.0, 0.0, 1.0]
        return RotationInvariant(values).unit(width, generator=generator, batch=batch)

    def facts(self) -> Facts:
        return Facts.normal([-(2**0.5), 0.0, 2**0.5], [0.25, 0.5, 0.25])


class Circulant(AbstractEnsemble):
    """A family that states no facts: it is sampled and used, and theory refuses it in words."""

    name: ClassVar[str] = "circulant"
    law: ClassVar[str] = "every row is the one above it, shifted; the first is N(0, 1 / width)"

    def unit(self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()) -> torch.Tensor:
        first = torch.randn(*batch, width, generator=generator, dtype=torch.float64) / width**0.5
        index = torch.arange(width)
        return first[..., (index[None, :] - index[:, None]) % width]


class Boastful(AbstractEnsemble):
    """Claims to be a uniform orthogonal family and is a signed permutation: the contract must notice."""

    name: ClassVar[str] = "boastful"
    law: ClassVar[str] = "not what it says"

    def unit(self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()) -> torch.Tensor:
        return SignedPermutation().unit(width, generator=generator, batch=batch)

    def facts(self) -> Facts:
        return Haar().facts()
