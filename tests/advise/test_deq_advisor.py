from __future__ import annotations

import json
import math

import pytest
import torch

from separatrix import advise
from separatrix.advise import deq_advisor
from separatrix.advise.deq_forecast import iterations
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.matrices.ensembles import GOE, Elliptic, Haar
from separatrix.report.figures.deq import advice as picture
from stranger_families import Circulant, Stretched


@pytest.fixture(scope="module")
def advice() -> advise.DeqAdvice:
    return advise.deq("hardtanh", 512, input_std=1.0, tol=1e-5)


def test_recommendation_aims_at_the_target_radius(advice: advise.DeqAdvice) -> None:
    assert advice.ensemble == "haar"
    low, high = advice.target_radius
    assert low <= advice.radius <= high
    assert advice.iterations == pytest.approx(math.log(1e-5) / math.log(advice.radius))


def test_every_family_has_a_forecast_inside_its_limits(advice: advise.DeqAdvice) -> None:
    assert {item.ensemble for item in advice.forecasts} == {
        "gaussian", "haar", "goe", "antisymmetric", "symmetric-orthogonal",
    }  # fmt: skip
    for item in advice.forecasts:
        assert item.valid
        assert item.weight_scale <= item.safe_scale < item.critical_scale
        assert item.iterations_largest >= item.iterations
        assert item.gradient_gain > 0


def test_weaker_injection_raises_the_radius(advice: advise.DeqAdvice) -> None:
    radii = [item["radius"] for item in advice.injection]
    finite = [radius for radius in radii if radius == radius]
    assert finite == sorted(finite, reverse=True)
    assert len(finite) >= 2


def test_advice_survives_json(advice: advise.DeqAdvice) -> None:
    assert json.loads(advice.to_json())["ensemble"] == "haar"


def test_gradient_gain_is_the_norm_of_the_resolvent(generator: torch.Generator) -> None:
    result = advise.deq("tanh", 300, ensemble="goe", weight_scale=0.5)
    w = Elliptic(1.0).sample(300, 0.25, generator=generator, batch=(8,))
    x = torch.randn(8, 300, generator=generator, dtype=torch.float64)
    z = x.clone()
    for _ in range(200):
        z = (z + torch.tanh((w @ z[..., None])[..., 0]) + x) / 2
    d = 1 - torch.tanh((w @ z[..., None])[..., 0]) ** 2
    response = torch.linalg.inv(torch.eye(300, dtype=torch.float64) - d[..., None] * w)
    measured = (response.square().sum((-2, -1)) / 300).sqrt()
    assert float(measured.mean()) == pytest.approx(result.forecasts[0].gradient_gain, rel=0.03)


def test_scale_past_the_transition_is_flagged() -> None:
    result = advise.deq("hardtanh", 512, ensemble="goe", weight_scale=2.0)
    assert not result.forecasts[0].valid
    assert math.isnan(result.radius)
    assert "no stable equilibrium" in result.warnings[0]
    assert "stay below" in result.reasons[0]


def test_budget_and_narrow_margins_are_warned_about() -> None:
    result = advise.deq("hardtanh", 64, ensemble="gaussian", weight_scale=1.6, budget=10)
    text = " ".join(result.warnings)
    assert "above the budget of 10" in text
    assert "past the transition at this width" in text


@pytest.mark.slow
def test_non_monotone_activation_leaves_symmetric_families_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deq_advisor, "ENSEMBLES", {f.name: f for f in (Haar(), GOE())})
    result = advise.deq(torch.sin, 256, weight_scale=0.5)
    assert {item.ensemble for item in result.forecasts} == {"haar"}
    assert "left out" in " ".join(result.warnings)


@pytest.mark.slow
def test_of_all_families_a_non_monotone_activation_leaves_the_bi_invariant_ones() -> None:
    result = advise.deq(torch.sin, 256, weight_scale=0.5)
    assert {item.ensemble for item in result.forecasts} == {"gaussian", "haar"}
    assert "left out" in " ".join(result.warnings)


def test_a_strangers_family_is_advised_on_and_drawn_as_it_says() -> None:
    result = advise.deq("hardtanh", 256, ensemble=Stretched())
    assert result.ensemble == "stretched"
    assert result.forecasts[0].valid
    assert json.loads(result.to_json())["ensemble"] == "stretched"
    legend = picture(result).axes[1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["stretched"]
    with pytest.raises(OutsideTheory, match="no theory covers the ensemble 'circulant'"):
        advise.deq("hardtanh", 256, ensemble=Circulant())


def test_registered_families_are_compared_or_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deq_advisor, "ENSEMBLES", {f.name: f for f in (Haar(), Stretched(), Circulant())})
    result = advise.deq("hardtanh", 256, weight_scale=0.3)
    assert [item.ensemble for item in result.forecasts] == ["haar", "stretched"]
    assert "circulant was left out: no theory covers the ensemble 'circulant'" in " ".join(result.warnings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ensemble": "elliptic:1e3"}, "tau must be a number that lies in"),
        ({"phi": "tahn"}, "unknown activation"),
        ({"ensemble": "wishart"}, "unknown ensemble"),
        ({"tol": 2.0}, r"tol must lie in \(0, 1\)"),
        ({"width": 1}, "width must be an integer of at least 2"),
        ({"input_std": 0.0}, "input_std must be a positive"),
        ({"weight_scale": "large"}, "weight_scale must be a positive number or 'recommend'"),
        ({"weight_scale": -1.0}, "weight_scale must be a positive"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        advise.deq(**{"phi": "hardtanh", "ensemble": "gaussian", **arguments})  # type: ignore[arg-type]


def test_iterations_are_infinite_without_contraction() -> None:
    values = iterations(torch.tensor([0.1, 0.5, 1.0, 1.3], dtype=torch.float64), 1e-5)
    assert values[:2].tolist() == pytest.approx([5.0, math.log(1e-5) / math.log(0.5)])
    assert bool(torch.isinf(values[2:]).all())
