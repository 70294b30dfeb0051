"""What every recurrent core promises. A core of yours is one line in CORES."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from separatrix import nn as layers
from separatrix.core import InvalidInput, ShapeError, spawn
from separatrix.matrices import spectral_distance
from separatrix.nn import AbstractRecurrent, AbstractStep
from separatrix.nn.recurrent.steps.scan import plain_scan

FEATURES, HIDDEN, BATCH, TIME = 3, 8, 4, 6
LENGTHS = torch.tensor([3, 6, 1, 5])


class Rotor(AbstractRecurrent):
    """A stranger's core, without a kernel: one angle per pair of units."""

    def __init__(self, generator: torch.Generator, dtype: torch.dtype, batch_first: bool = True) -> None:
        super().__init__(FEATURES, HIDDEN, batch_first=batch_first)
        self.angle = nn.Parameter(torch.randn(HIDDEN // 2, generator=generator, dtype=torch.float64).to(dtype))
        self.entering = nn.Parameter(torch.randn(HIDDEN, FEATURES, generator=generator, dtype=torch.float64).to(dtype))

    @property
    def step(self) -> AbstractStep:
        return Squash()

    def weights(self) -> tuple[Tensor, ...]:
        return (self.recurrent(),)

    def drives(self, x: Tensor) -> Tensor:
        return x @ self.entering.mT

    def recurrent(self) -> Tensor:
        cos, sin = torch.cos(self.angle), torch.sin(self.angle)
        blocks = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
        return torch.block_diag(*blocks.unbind(0))


class Squash(AbstractStep):
    def advance(self, drive: Tensor, state: Tensor, weights: tuple[Tensor, ...]) -> Tensor:
        return torch.atan(drive + state @ weights[0].mT)


def of(make: Callable[..., AbstractRecurrent], *args: Any, **fixed: Any) -> Callable[..., AbstractRecurrent]:
    return lambda **options: make(FEATURES, HIDDEN, *args, **fixed, **options)


CORES: dict[str, Callable[..., AbstractRecurrent]] = {
    **{f"orthogonal, {name}": of(layers.OrthogonalRNN, name) for name in layers.ORTHOGONAL_MAPS},
    "orthogonal, tanh": of(layers.OrthogonalRNN, nonlinearity="tanh"),
    "exp": of(layers.ExpRNN),
    "sco": of(layers.ScoRNN),
    "householder": of(layers.HouseholderRNN, 3),
    "eurnn": of(layers.EURNN, 4),
    "urnn": of(layers.URNN),
    "svd": of(layers.SVDRNN, 0.3),
    "strict": of(layers.NonNormalRNN),
    "complete": of(layers.NonNormalRNN, "complete"),
    "printed": of(layers.NonNormalRNN, "printed"),
    "fixed moduli": of(layers.NonNormalRNN, gamma=0.95),
    "free": of(layers.FreeRNN),
    "driven": of(layers.DrivenLinearRNN),
    "irnn": of(layers.IRNN, 0.9),
    "goru": of(layers.GORU),
    "goru, exp": of(layers.GORU, "exp"),
    "lru": of(layers.LRU),
    "mingru": of(layers.MinGRU),
    "antisymmetric": of(layers.AntisymmetricRNN, step_size=0.3),
    "cornn": of(layers.CoRNN),
    "stranger": lambda **options: Rotor(**options),
}


def make(
    name: str, *, batch_first: bool = True, dtype: torch.dtype = torch.float64, seed: int = 0
) -> AbstractRecurrent:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", layers.SpectrumWarning)
        core = CORES[name](batch_first=batch_first, dtype=dtype, generator=spawn(seed, "core"))
    with torch.no_grad():  # away from special starts
        for index, parameter in enumerate(core.parameters()):
            parameter.add_(
                0.1 * torch.randn(parameter.shape, generator=spawn(index, "away"), dtype=torch.float64).to(dtype)
            )
    return core


def inputs(dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(BATCH, TIME, FEATURES, generator=spawn(0, "inputs"), dtype=torch.float64).to(dtype)


pytestmark = pytest.mark.sampled(6, across="name")


@pytest.fixture(params=CORES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_shapes_and_orders_are_those_of_torch(name: str) -> None:
    core, swapped, x = make(name), make(name, batch_first=False), inputs()
    output, last = core(x)
    assert output.shape == (BATCH, TIME, core.output_size)
    assert last.shape == (1, BATCH, core.state_size)
    other, other_last = swapped(x.transpose(0, 1))
    assert torch.equal(other.transpose(0, 1), output)
    assert torch.equal(other_last, last)
    single, single_last = core(x[1])
    assert single_last.shape == (1, core.state_size)
    assert torch.allclose(single, output[1], atol=1e-12)
    assert torch.allclose(core.read(last[0]), output[:, -1], atol=1e-12)


def test_a_sequence_may_be_cut_and_continued(name: str) -> None:
    core, x = make(name), inputs()
    whole, last = core(x)
    first, middle = core(x[:, :2])
    second, end = core(x[:, 2:], middle)
    assert torch.allclose(torch.cat([first, second], 1), whole, atol=1e-12)
    assert torch.allclose(end, last, atol=1e-12)
    alone, _ = core(x[1, 2:], middle[:, 1])
    assert torch.allclose(alone, whole[1, 2:], atol=1e-12)


def test_lengths_and_packed_sequences_agree_with_single_sequences(name: str) -> None:
    core, x = make(name), inputs()
    output, last = core(x, lengths=LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        alone, end = core(x[row, :length])
        assert torch.allclose(output[row, :length], alone, atol=1e-12)
        assert torch.allclose(last[:, row], end, atol=1e-12)
        assert not output[row, length:].any()
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    start = torch.randn(1, BATCH, core.state_size, dtype=last.dtype, generator=spawn(1, "h"))
    packed_output, packed_last = core(packed, start)
    padded, found = pad_packed_sequence(packed_output, batch_first=True)
    expected, expected_last = core(x, start, LENGTHS)
    assert torch.equal(found, LENGTHS)
    assert torch.allclose(padded, expected, atol=1e-12)
    assert torch.allclose(packed_last, expected_last, atol=1e-12)


def test_gradients_are_those_of_a_plain_loop(name: str) -> None:
    core, x = make(name), inputs().requires_grad_()
    start = torch.randn(1, BATCH, core.state_size, dtype=core(x)[1].dtype, generator=spawn(1, "h")).requires_grad_()
    given = [x, start, *core.parameters()]
    output, last = core(x, start)
    g = torch.randn(output.shape, dtype=output.dtype, generator=spawn(2, "g"))
    ours = torch.autograd.grad((output * g).sum() + last.abs().square().sum(), given, allow_unused=True)
    core.zero_grad()
    states = plain_scan(core.step, core.drives(x.transpose(0, 1)), start[0], core.weights())
    value = (core.read(states).transpose(0, 1) * g).sum() + states[-1].abs().square().sum()
    theirs = torch.autograd.grad(value, given, allow_unused=True)
    for first, second in zip(ours, theirs, strict=True):
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            assert torch.allclose(first, second, rtol=1e-9, atol=1e-10)


def test_eigenvalues_are_those_of_the_dense_matrix(name: str) -> None:
    core = make(name)
    dense = torch.linalg.eigvals(core.recurrent().detach())
    assert float(spectral_distance(core.eigenvalues(), dense)) < 1e-7


def test_the_trace_holds_all_states(name: str) -> None:
    core, x = make(name), inputs()
    trace = core.trace(x)
    output, last = core(x)
    assert trace.states.shape == (BATCH, TIME + 1, core.state_size)
    assert not trace.states[:, 0].any()
    assert torch.allclose(trace.states[:, -1], last[0], atol=1e-12)
    assert torch.allclose(core.read(trace.states[:, 1:]), output, atol=1e-12)
    assert trace.to_dict()["indices"] is None


def test_pre_activations_lead_to_the_states(name: str) -> None:
    core = make(name)
    trace = core.trace(inputs())
    if trace.pre_activations is None or not hasattr(core, "nonlinearity"):
        return
    phi = core.step.phi  # type: ignore[attr-defined]
    value = phi.value(trace.pre_activations, core.bias)  # type: ignore[attr-defined]
    assert torch.allclose(value, trace.states[:, 1:], atol=1e-12)


def test_state_dict_copy_pickle_and_dtype(name: str) -> None:
    core, other, x = make(name), make(name, seed=1), inputs()
    other.load_state_dict(core.state_dict())
    expected = core.eval()(x)[0]
    for twin in (other.eval(), copy.deepcopy(core), pickle.loads(pickle.dumps(core))):
        assert torch.equal(twin(x)[0], expected)
    narrow = core.to(torch.float32)
    output, last = narrow(x.float())
    assert output.dtype == torch.float32
    assert torch.allclose(output.double(), expected, atol=1e-3)
    assert last.abs().dtype == torch.float32


def test_same_seed_same_network_and_the_global_generator_is_untouched(name: str) -> None:
    state = torch.get_rng_state()
    x = inputs()
    assert torch.equal(make(name)(x)[0], make(name)(x)[0])
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.sampled(3)
def test_a_plain_loop_learns(name: str) -> None:
    core = make(name, dtype=torch.float32)
    model = layers.SequenceModel(core, 2, "last")
    x = inputs(torch.float32)
    target = x.sum((1, 2)).unsqueeze(1) * torch.tensor([0.1, -0.1])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = (model(x) - target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_gradients_per_sample_by_torch_func(name: str) -> None:
    core, x = make(name), inputs()
    core(x)  # absorbs what moved, so that both ways differentiate at the same point of the same chart
    parameters = {key: value.detach().clone() for key, value in core.named_parameters()}

    def loss(given: dict[str, Tensor], sequence: Tensor) -> Tensor:
        output, _ = torch.func.functional_call(core, given, (sequence.unsqueeze(0),))
        return output.square().sum()

    mapped = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    total = {key: value.sum(0) for key, value in mapped.items()}
    core.zero_grad()
    core(x)[0].square().sum().backward()
    for key, parameter in core.named_parameters():
        if parameter.numel() and parameter.grad is not None:
            assert torch.allclose(total[key], parameter.grad, rtol=1e-8, atol=1e-9), key


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda core, x: core(x[..., :2]), "with 3 features; got"),
        (lambda core, x: core(x[0, 0]), "with 3 features; got"),
        (lambda core, x: core(x[:, :0]), "at least one time step"),
        (lambda core, x: core(x, torch.zeros(2, BATCH, core.state_size)), "h_0 must have shape"),
        (lambda core, x: core(x, None, torch.tensor([1, 2, 3, 7])), "lengths must lie between 0 and the 6 steps"),
        (lambda core, x: core(x, None, torch.tensor([1, 2, 3, -1])), "lengths must lie between 0"),
    ],
)
def test_bad_input_is_one_sentence(name: str, call: Callable[[Any, Tensor], Any], message: str) -> None:
    core = make(name)

    def unchecked(*arguments: Any) -> Any:
        return inspect.unwrap(AbstractRecurrent.forward)(core, *arguments)

    unchecked.state_size = core.state_size  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match=message):
        call(unchecked, inputs())


def test_lengths_beside_a_packed_sequence_are_refused() -> None:
    core = make("exp")
    packed = pack_padded_sequence(inputs(), LENGTHS, batch_first=True, enforce_sorted=False)
    with pytest.raises(InvalidInput, match="has its own"):
        core(packed, None, LENGTHS)
    with pytest.raises(ShapeError, match="one integer for each of 4 sequences"):
        inspect.unwrap(AbstractRecurrent.forward)(core, inputs(), None, torch.ones(4))


def test_autocast_and_half_precision_run() -> None:
    core = make("strict", dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = core(inputs(torch.float32))
    output.float().sum().backward()
    assert output.dtype == torch.float32
    half = make("exp", dtype=torch.float32).to(torch.bfloat16)
    assert half(inputs(torch.float32).bfloat16())[0].dtype == torch.bfloat16


@pytest.mark.parametrize("kind", ["MinGRU", "RelRNN", "HDetachLSTM"])
def test_inputs_without_numbers_are_named(kind: str) -> None:
    with pytest.raises(InvalidInput, match="x must hold numbers; got a tensor on the meta device"):
        getattr(layers, kind)(3, 4)(torch.zeros(2, 5, 3, device="meta"))
