from __future__ import annotations

import collections
import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import separatrix
from check_recipes.networks import mlp
from separatrix.diagnose.model_call import with_tensor

CE = nn.functional.cross_entropy


class Wrapped(nn.Module):
    """Scores of an MLP inside something else, with a second tensor beside them."""

    def __init__(self, last: nn.Module, wrap: Any) -> None:
        super().__init__()
        self.body, self.last, self.wrap = mlp([6, 20, 5]), last, wrap

    def forward(self, x: Tensor) -> Any:
        return self.wrap(self.last(self.body(x)), x)


Named = collections.namedtuple("Named", ["state", "probs"])


@dataclasses.dataclass
class Held:
    state: Tensor
    probs: Tensor


FORMS = {
    "dict": (lambda f, x: {"state": x, "probs": f}, lambda o, y: CE(o["probs"], y)),
    "tuple": (lambda f, x: (x, (f,)), lambda o, y: CE(o[1][0], y)),
    "named": (lambda f, x: Named(x, f), lambda o, y: CE(o.probs, y)),
    "data class": (lambda f, x: Held(x, f), lambda o, y: CE(o.probs, y)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("last", [nn.Softmax(-1), nn.Identity()], ids=["softmax", "scores"])
def test_a_softmax_before_the_loss_is_seen_inside_any_output(form: str, last: nn.Module) -> None:
    wrap, loss = FORMS[form]
    found = separatrix.check(Wrapped(last, wrap), torch.randn(24, 6), loss=loss, target=torch.randint(0, 5, (24,)))
    told = found.find("output_loss_mismatch")
    assert told is not None
    assert told.severity == ("fault" if isinstance(last, nn.Softmax) else "ok")
    assert abs(found.measures["initial_loss"]) < 0.6


def test_a_tensor_is_exchanged_wherever_it_stands() -> None:
    old, new = torch.zeros(2), torch.ones(2)
    other = torch.zeros(2)
    changed = with_tensor({"a": [other, (old,)], "b": Named(old, None), "c": Held(other, old), "d": "text"}, old, new)
    assert changed["a"][0] is other
    assert changed["a"][1][0] is new
    assert changed["b"].state is new
    assert changed["c"].probs is new
    assert changed["c"].state is other


@pytest.mark.parametrize("loss", ["cross_entropy", nn.CrossEntropyLoss(reduction="sum")])
def test_scores_that_happen_to_lie_between_0_and_1_are_no_probabilities(loss: Any) -> None:
    """A quiet body leaves the head's biases alone to speak, and those may all be positive."""
    model = mlp([6, 20, 3])
    nn.init.uniform_(model[-1].bias, 0.2, 0.8)  # type: ignore[arg-type]
    nn.init.uniform_(model[-1].weight, -1e-3, 1e-3)  # type: ignore[arg-type]
    found = separatrix.check(model, torch.randn(24, 6), loss=loss, target=torch.randint(0, 3, (24,)))
    assert found.find("output_loss_mismatch").severity == "ok"  # type: ignore[union-attr]


def test_a_sigmoid_before_the_loss_is_still_found() -> None:
    model = nn.Sequential(mlp([6, 20, 3]), nn.Sigmoid())
    found = separatrix.check(model, torch.randn(24, 6), loss="cross_entropy", target=torch.randint(0, 3, (24,)))
    assert found.find("output_loss_mismatch").severity == "fault"  # type: ignore[union-attr]


class WithOwnLoss(nn.Module):
    def __init__(self, gain: float) -> None:
        super().__init__()
        self.table, self.head, self.gain = nn.Embedding(20, 12), nn.Linear(12, 20), gain

    def forward(self, ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.gain * self.head(torch.tanh(self.table(ids)))
        return {"loss": CE(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()), "logits": logits}


@pytest.mark.parametrize(("gain", "severity"), [(1.0, "ok"), (200.0, "warning")])
def test_a_models_own_loss_is_compared_with_knowing_nothing(gain: float, severity: str) -> None:
    torch.manual_seed(0)
    ids = torch.randint(0, 20, (8, 12))
    found = separatrix.check(WithOwnLoss(gain), {"ids": ids, "labels": ids})
    assert found.find("initial_loss").severity == severity  # type: ignore[union-attr]


def test_a_loss_of_probabilities_as_targets_is_taken() -> None:
    target = torch.rand(24, 3).softmax(-1)
    found = separatrix.check(mlp([6, 20, 3]), torch.randn(24, 6), loss="cross_entropy", target=target)
    assert found.verdict == "ok"
    assert abs(found.measures["initial_loss"]) < 0.6
