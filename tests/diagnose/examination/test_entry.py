from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils._pytree import tree_leaves

import separatrix
from check_recipes import faults, healthy, scores
from check_recipes.cases import RECIPES
from check_recipes.networks import Recurrent, mlp
from separatrix.core import InvalidInput
from separatrix.diagnose import Diagnosis

_ = (faults, healthy)

SMOKE = (
    "nan_mlp", "log_of_negative", "bytes_into_mlp", "norm_over_one", "small_functional", "large_mlp", "dead_functional",
    "saturated_method", "constant_mlp", "rezero_and_zero_last", "cut_detach", "unused_layer", "frozen_middle",
    "linear_pair_norm", "double_softmax", "raw_into_nll", "large_head", "sgd_100", "gru_along_batch", "tiny_batch_mlp",
    "small_recurrence", "cut_every_few", "sharp_fused", "over_queries_causal", "one_open_layer", "gain_three",
    "residual_rezero", "residual_zero_last_zero_head", "lora", "experts", "former_tied", "mlp_relu_bn", "lstm_1",
    "two_heads", "equilibrium", "torch_encoder_post",
)  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", SMOKE)
def test_planted_faults_are_found_and_healthy_models_left_alone(name: str) -> None:
    one = scores.score(RECIPES[name], seed=40)
    if one.fault is None:
        assert one.accused == ()
    else:
        assert one.fault in one.accused


def accusations(found: Diagnosis) -> set[str]:
    return {finding.id for finding in found.findings if finding.severity in ("warning", "fault")}


def examine(model: nn.Module, x: Any, **options: Any) -> Diagnosis:
    return separatrix.check(model, x, **options)


# ---------------------------------------------------------------- the same whatever the form


class Renamed(nn.Module):
    """The same network behind other names and one more level."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.zzz = nn.ModuleDict({"q_proj": inner})

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return {"nested": [None, (self.zzz["q_proj"](*args, **kwargs),)]}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", ["dead_mlp", "gru_along_batch", "over_queries", "linear_pair", "lora", "former_causal"]
)
def test_other_names_and_nested_outputs_change_no_verdict(name: str) -> None:
    case = RECIPES[name].case(3)
    plain = scores.examine(case)
    wrapped = scores.examine(dataclasses.replace(case, model=Renamed(case.model)))
    assert accusations(wrapped) == accusations(plain)


def test_the_same_seed_gives_the_same_bytes() -> None:
    case = RECIPES["mlp_gelu_dropout"].case(1)
    first, second = (scores.examine(case).to_json(timing=False) for _ in range(2))
    assert first == second
    json.loads(first)


def test_rescaling_two_rectified_layers_against_each_other_changes_nothing() -> None:
    with seeded_torch(5):
        model, x = mlp([20, 40, 32, 5]), torch.randn(48, 20)
    before = accusations(examine(model, x, loss="cross_entropy", target=torch.arange(48) % 5))
    model[0].weight.data.mul_(8)
    model[0].bias.data.mul_(8)
    model[2].weight.data.div_(8)
    after = accusations(examine(model, x, loss="cross_entropy", target=torch.arange(48) % 5))
    assert before == after == set()


class Permuting(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.movedim(1, 0).movedim(0, 1))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["lstm_1", "gru_along_batch", "cnn_plain"])
def test_a_wrapper_that_permutes_there_and_back_changes_nothing(name: str) -> None:
    case = RECIPES[name].case(2)
    wrapped = dataclasses.replace(case, model=Permuting(case.model))
    assert accusations(scores.examine(wrapped)) == accusations(scores.examine(case))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["constant_mlp", "cut_data", "view_for_permute", "mlp_tanh_ln"])
def test_twice_the_batch_leaves_exact_findings_as_they_are(name: str) -> None:
    case = RECIPES[name].case(1)
    twice = dataclasses.replace(case, sample=torch.cat([case.sample] * 2), target=torch.cat([case.target] * 2))
    assert accusations(scores.examine(twice)) == accusations(scores.examine(case))


@pytest.mark.slow
def test_training_and_evaluation_agree_without_dropout_and_batch_statistics() -> None:
    case = RECIPES["former_pre"].case(1)
    first = scores.examine(case)
    case.model.eval()
    second = scores.examine(case)
    assert accusations(first) == accusations(second)
    assert first.measures == second.measures


def test_causes_come_before_what_follows_from_them() -> None:
    found = scores.examine(RECIPES["gru_along_batch"].case(0))
    ids = [finding.id for finding in found.findings]
    assert ids[:2] == ["batch_mixing", "time_cut"]
    assert found.findings[1].follows == "batch_mixing"
    assert "time_cut" in found.findings[0].consequences


# ---------------------------------------------------------------- what is skipped, and the budget


def test_without_a_loss_what_needs_one_is_listed() -> None:
    found = examine(mlp([4, 8, 2]), torch.randn(8, 4))
    assert {"loss", "learning_rate"} <= {skip.id for skip in found.skipped}
    assert next(skip for skip in found.skipped if skip.id == "loss").needs == "loss= and target="


def test_a_budget_that_is_spent_ends_the_work_and_says_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    from separatrix.diagnose.examination import entry

    ticks = iter(range(10**6))
    monkeypatch.setattr(entry.time, "perf_counter", lambda: 0.5 * next(ticks))
    found = examine(mlp([4, 8, 2]), torch.randn(8, 4), budget_seconds=6)
    late = [skip for skip in found.skipped if skip.reason == "no time left"]
    assert late
    assert all("more seconds" in skip.needs for skip in late)


# ---------------------------------------------------------------- bad input: handled, or one sentence


class Returns(nn.Module):
    def __init__(self, how: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.how = nn.Linear(4, 3), how

    def forward(self, x: Tensor) -> Any:
        return self.how(self.layer(x))


X = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("model", "sample", "words"),
    [
        (lambda: nn.Linear(4, 3), torch.zeros(0, 4), "must not be empty"),
        (lambda: nn.Linear(4, 3), torch.tensor(1.0), "single number"),
        (lambda: nn.Linear(4, 3), {}, "there is none in it"),
        (lambda: nn.Linear(4, 3), 5, "inputs must be a tensor"),
        (lambda: nn.Linear(4, 3), torch.zeros(2, 4, device="meta"), "meta device"),
        (lambda: nn.Linear(4, 3, device="meta"), X, "meta device"),
        (lambda: nn.LazyLinear(3), X, "lazy modules"),
        (lambda: Returns(lambda y: "text"), X, "without a tensor"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_in_one_sentence(model: Callable[[], Any], sample: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        examine(model(), sample)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"budget_seconds": 0}, {"seed": -1}, {"chunk_size": "all"}, {"chunk_size": 0}, {"loss": "hinge"}]
)
def test_options_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        examine(nn.Linear(4, 3), X, **options)


HANDLED: dict[str, tuple[Callable[[], nn.Module], Any, dict[str, Any], set[str]]] = {
    "wrong shape": (lambda: nn.Linear(4, 3), torch.randn(8, 5), {}, {"forward_raises"}),
    "one sample": (lambda: mlp([4, 8, 3]), X[:1], {}, set()),
    "one sample, batch norm": (lambda: mlp([4, 8, 3], norm=nn.BatchNorm1d), X[:1], {}, {"forward_raises"}),
    "one step": (lambda: Recurrent("GRU", 8, 1, 2), torch.randn(8, 1, 8), {}, set()),
    "whole numbers without a table": (lambda: mlp([4, 8, 3]), torch.ones(8, 4).long(), {}, {"forward_raises"}),
    "NaN sample": (lambda: mlp([4, 8, 3]), X / 0 * 0, {}, {"nonfinite_input"}),
    "no parameters": (nn.ReLU, X, {}, set()),
    "all frozen": (lambda: mlp([4, 8, 3]).requires_grad_(False), X, {}, set()),
    "no graph": (lambda: Returns(lambda y: y.detach()), X, {}, {"detached"}),
    "loss returns a vector": (
        lambda: mlp([4, 8, 3]), X, {"loss": nn.CrossEntropyLoss(reduction="none"), "target": torch.zeros(8).long()},
        {"loss_raises"},
    ),
    "loss raises": (lambda: mlp([4, 8, 3]), X, {"loss": "cross_entropy", "target": torch.full((8,), 9)},
                    {"loss_raises"}),
    "complex output": (lambda: Returns(lambda y: torch.complex(y, y)), X, {}, set()),
    "output overwrites": (lambda: Returns(lambda y: y.mul_(2)), X, {}, set()),
    "half": (lambda: mlp([4, 8, 3]).bfloat16(), X.bfloat16(), {}, set()),
    "nested": (lambda: Returns(lambda y: {"a": ([y.sum()], {"logits": y})}), X, {}, set()),
    "several outputs": (lambda: Returns(lambda y: (y.sum(), y, None, [y])), X, {}, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", HANDLED)
def test_unusual_input_is_handled(name: str) -> None:
    model, sample, options, expected = HANDLED[name]
    with seeded_torch(3):
        found = examine(model(), sample, **options)
    assert accusations(found) == expected
    assert all("\n" not in finding.meaning for finding in found.findings)


def test_packed_sequences_are_run_and_what_needs_a_batch_axis_is_skipped() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = nn.GRU(3, 8), nn.Linear(8, 2)

        def forward(self, x: Any) -> Tensor:
            return self.head(self.rnn(x)[1][-1])

    sample = pack_sequence([torch.randn(length, 3) for length in (6, 5, 3)])
    if tree_leaves(sample) == [sample]:  # torch 2.6 does not look into it
        with pytest.raises(InvalidInput, match="PackedSequence, which this torch cannot take apart"):
            examine(Packed(), sample)
        return
    found = examine(Packed(), sample)
    assert accusations(found) == set()
    assert "batch_mixing" in {skip.id for skip in found.skipped}


def test_scripted_models_are_looked_at() -> None:
    found = examine(torch.jit.trace(mlp([4, 8, 3]), X), X)
    assert found.verdict == "ok"
    assert found.ran


def test_inference_mode_around_the_call_does_no_harm() -> None:
    model = mlp([4, 8, 3])
    with torch.inference_mode():
        found = examine(model, torch.randn(8, 4), loss="cross_entropy", target=torch.zeros(8).long())
    assert found.verdict == "ok"
    assert "gradient_decades" in found.measures


def test_the_models_own_loss_is_used() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            y = self.layer(x)
            return {"loss": nn.functional.cross_entropy(y, labels), "logits": y}

    found = examine(Own(), {"x": X, "labels": torch.zeros(8).long()})
    assert found.sample["loss"] == "own loss"
    assert accusations(found) == set()


def test_fewer_samples_are_taken_and_said() -> None:
    found = examine(mlp([4, 8, 3]), torch.randn(200, 4))
    assert (found.sample["used"], found.sample["given"]) == (64, 200)
    assert "of 200" in str(found)


def seeded_torch(number: int) -> Any:
    """The global generator of torch, seeded inside and as before afterwards."""
    import contextlib

    @contextlib.contextmanager
    def inside() -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(number)
            yield

    return inside()


def test_frozen_torchscript_is_refused_in_one_sentence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer torch: torch.jit.script is deprecated
        frozen = torch.jit.freeze(torch.jit.script(nn.Linear(3, 2).eval()))
    with pytest.raises(InvalidInput, match="model is frozen TorchScript"):
        separatrix.check(frozen, torch.zeros(4, 3))
