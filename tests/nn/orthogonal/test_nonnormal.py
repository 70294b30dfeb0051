from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.core import InvalidInput, spawn
from separatrix.matrices import spectral_distance
from separatrix.nn import NonNormalMatrix, SpectrumWarning


def made(n: int, block: Any = "strict", **options: Any) -> NonNormalMatrix:
    options = {"generator": spawn(0, "nonnormal"), "dtype": torch.float64, **options}
    return NonNormalMatrix(n, block, **options)


def scrambled(module: NonNormalMatrix, size: float = 0.3) -> NonNormalMatrix:
    with torch.no_grad():
        for index, parameter in enumerate(module.parameters()):
            parameter.add_(
                size * torch.randn(parameter.shape, dtype=parameter.dtype, generator=spawn(index, "scramble"))
            )
    return module


@pytest.mark.parametrize("block", ["strict", "complete"])
@pytest.mark.parametrize("n", [2, 3, 6, 7])
def test_the_spectrum_is_gamma_and_theta_whatever_the_rest(block: str, n: int) -> None:
    module = scrambled(made(n, block))
    found = torch.linalg.eigvals(module().detach())
    assert float(spectral_distance(found, module.eigenvalues())) < 1e-9
    moduli = module.eigenvalues().abs().sort().values
    gamma = module.gamma.detach().abs()
    expected = torch.cat([gamma, gamma[: n // 2]]).sort().values
    assert torch.allclose(moduli, expected)


def test_the_printed_block_does_not_control_its_spectrum_and_says_so() -> None:
    with pytest.warns(SpectrumWarning, match="not the eigenvalues"):
        module = made(2, "printed", start="identity")
    for theta, t, modulus in (
        (1.0, 0.3, 1.1191),
        (1.0, -0.5, 0.7611),
        (1.0, -2.0, 1.5277),
        (math.pi / 2, -0.5, 0.7071),
    ):
        with torch.no_grad():
            module.theta.fill_(theta)
            module.feedforward.fill_(t)
        assert float(module.eigenvalues().abs().max()) == pytest.approx(modulus, abs=5e-5)
        assert float(spectral_distance(torch.linalg.eigvals(module().detach()), module.eigenvalues())) < 1e-12


def test_the_printed_block_s_eigenvalues_are_exact_at_any_size() -> None:
    with pytest.warns(SpectrumWarning):
        module = scrambled(made(9, "printed"))
    assert float(spectral_distance(torch.linalg.eigvals(module().detach()), module.eigenvalues())) < 1e-9


def test_the_block_of_the_specification() -> None:
    module = made(2, "complete", start="identity")
    with torch.no_grad():
        module.gamma.fill_(0.9)
        module.theta.fill_(1.1)
        module.kappa.fill_(0.4)
    assert float(module.eigenvalues()[0].real) == pytest.approx(0.408237, abs=1e-6)
    assert float(torch.linalg.svdvals(module().detach())[0]) == pytest.approx(1.287866, abs=1e-6)


@pytest.mark.parametrize(("block", "count"), [("strict", 4 * 3), ("complete", 4 * 3 + 3), ("printed", 5 * 3)])
def test_degrees_of_freedom(block: str, count: int) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpectrumWarning)
        module = made(6, block)
    total = sum(parameter.numel() for parameter in module.parameters())
    assert total == 15 + 6 + count  # the basis, theta and gamma, T and kappa


def test_moduli_may_be_fixed() -> None:
    module = made(4, gamma=0.958)
    assert "gamma" not in dict(module.named_parameters())
    assert torch.allclose(module.eigenvalues().abs(), torch.full((4,), 0.958, dtype=torch.float64))
    assert float(module.modulus_penalty()) == pytest.approx(2 * 0.042**2)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan")])
def test_wrong_moduli_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="gamma"):
        NonNormalMatrix.__init__(torch.nn.Module.__new__(NonNormalMatrix), 4, gamma=bad, generator=spawn(0, "x"))


def test_gradients_reach_every_parameter() -> None:
    module = scrambled(made(5, "complete"))
    weight = torch.randn(5, 5, dtype=torch.float64, generator=spawn(1, "w"))

    def value(*parameters: Tensor) -> Tensor:
        names = [name for name, _ in module.named_parameters()]
        out: Tensor = torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), ())
        return (out * weight).sum()

    torch.autograd.gradcheck(value, tuple(p.detach().clone().requires_grad_() for p in module.parameters()))
