"""What the attentive networks promise, against a reference that keeps lists and lets autograd do the rest."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from helpers import seeded
from separatrix.core import InvalidInput, ShapeError
from separatrix.nn import GrowthWarning, MemLSTM, MemRNN, RelLSTM, RelRNN, modrelu

FEATURES, HIDDEN, BATCH, TIME = 3, 5, 3, 14


def make(kind: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrowthWarning)
        network = kind(FEATURES, HIDDEN, dtype=torch.float64, generator=seeded(1), **options)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=seeded(2), dtype=torch.float64))
    return network


def inputs(batch: int = BATCH, time: int = TIME) -> Tensor:
    return torch.randn(batch, time, FEATURES, generator=seeded(0), dtype=torch.float64)


def reference(network: Any, x: Tensor, nu: int, rho: int, **options: Any) -> tuple[Tensor, Tensor, list[list[int]]]:
    """Hidden and macro-states of each sample by itself, with lists, and the steps kept at the end."""
    runs = [_one(network, sample, nu, rho, **options) for sample in x]
    return torch.stack([run[0] for run in runs]), torch.stack([run[1] for run in runs]), [run[2] for run in runs]


def _one(
    network: Any, x: Tensor, nu: int, rho: int, alignment: str = "additive", detach: bool = False, share: bool = False
) -> tuple[Tensor, Tensor, list[int]]:
    s = torch.zeros(network.state_size, dtype=x.dtype)
    cell = torch.zeros(HIDDEN, dtype=x.dtype)
    hidden: list[Tensor] = []
    states: list[Tensor] = []
    buffer: list[int] = []
    kept: list[int] = []
    score: dict[int, float] = {}
    for t, entering in enumerate(x):
        pre = network.matrix @ s + network.input_weight @ entering
        if isinstance(network, RelLSTM | MemLSTM):
            i, f, g, o = (pre + network.bias).chunk(4)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            h = o.sigmoid() * cell.tanh()
        elif network.nonlinearity == "modrelu":
            h = modrelu(pre, network.bias)
        else:
            h = (pre + network.bias).tanh()
        hidden.append(h)
        buffer.append(t)
        score[t] = 0.0
        if len(buffer) > nu:
            leaving = buffer.pop(0)
            if len(kept) < rho:
                kept.append(leaving)
            elif rho:
                worst = min(kept, key=lambda j: (score[j], -j))
                if score[leaving] > score[worst]:
                    kept[kept.index(worst)] = leaving
        memory = kept + buffer
        seen = [hidden[j].detach() if detach and j in kept else hidden[j] for j in memory]
        query = network.query_weight @ s
        if alignment == "additive":
            logits = [network.alignment_vector @ torch.tanh(query + network.key_weight @ one) for one in seen]
        else:
            logits = [query @ (network.key_weight @ one) / HIDDEN**0.5 for one in seen]
        weights = torch.stack(logits).softmax(0)
        for j, weight in zip(memory, weights.tolist(), strict=True):
            if j in buffer:
                score[j] += weight * (len(memory) if share else 1)
        context = sum(weight * one for weight, one in zip(weights, seen, strict=True))
        s = torch.cat([h, context]) if network.mix is None else network.mix[0] * h + network.mix[1] * context
        states.append(s)
    return torch.stack(hidden), torch.stack(states), sorted(kept)


def gradients(value: Tensor, network: Any, x: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(value, [x, *network.parameters()]))


def assert_equals_reference(network: Any, nu: int, rho: int, **options: Any) -> None:
    x = inputs().requires_grad_()
    output, state = network(x)
    hidden, states, kept = reference(network, x, nu, rho, **options)
    weight = torch.randn(TIME, HIDDEN, generator=seeded(3), dtype=torch.float64)
    end = state[0] if isinstance(state, tuple) else state
    torch.testing.assert_close(output, hidden, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(end[0], states[:, -1], rtol=1e-12, atol=1e-12)
    found = gradients((output * weight).sum() + end.square().sum(), network, x)
    expected = gradients((hidden * weight).sum() + states[:, -1].square().sum(), network, x)
    for one, other in zip(found, expected, strict=True):
        assert float((one - other).abs().max()) <= 1e-12 * max(1.0, float(other.abs().max()))
    if isinstance(network, RelRNN | RelLSTM):
        assert [[step for step in row if step >= 0] for row in network.last.relevant_index.tolist()] == kept


@pytest.mark.sampled(1, each="kind, nu, rho")
@pytest.mark.parametrize(("nu", "rho"), [(1, 0), (1, 3), (4, 0), (4, 3)])
@pytest.mark.parametrize("mix", [(0.5, 0.5), "paper"])
@pytest.mark.parametrize("kind", ["tanh", "modrelu", "lstm"])
def test_outputs_kept_states_and_gradients_are_those_of_the_reference(kind: str, mix: Any, nu: int, rho: int) -> None:
    options: dict[str, Any] = {"n_buffer": nu, "n_relevant": rho, "mix": mix}
    assert_equals_reference(
        make(RelLSTM, **options) if kind == "lstm" else make(RelRNN, nonlinearity=kind, **options), nu, rho
    )


def test_all_other_forms_agree_with_the_reference_too() -> None:
    places: dict[str, Any] = {"n_buffer": 3, "n_relevant": 2}
    assert_equals_reference(make(RelRNN, alignment="dot", **places), 3, 2, alignment="dot")
    assert_equals_reference(make(RelLSTM, combine="concat", **places), 3, 2)
    assert_equals_reference(make(RelRNN, combine="concat", detach_memory=True, **places), 3, 2, detach=True)
    assert_equals_reference(
        make(RelRNN, memory="store", detach_memory=True, alignment="dot", **places), 3, 2, alignment="dot", detach=True
    )
    assert_equals_reference(make(RelLSTM, memory="store", **places), 3, 2)
    assert_equals_reference(make(RelRNN, normalise="share", **places), 3, 2, share=True)
    for memory in ("recompute", "store"):
        assert_equals_reference(make(MemRNN, memory=memory), TIME, 0)
        assert_equals_reference(
            make(MemLSTM, memory=memory, alignment="dot", combine="concat"), TIME, 0, alignment="dot"
        )


@pytest.mark.parametrize(("bounded", "full"), [(RelRNN, MemRNN), (RelLSTM, MemLSTM)])
def test_a_buffer_as_long_as_the_sequence_remembers_everything(bounded: Any, full: Any) -> None:
    x = inputs()
    narrow, wide = make(bounded, n_buffer=TIME + 2, n_relevant=3), make(full, log_attention=True)
    torch.testing.assert_close(narrow(x)[0], wide(x)[0], rtol=1e-13, atol=1e-13)
    assert bool((narrow.last.relevant_index == -1).all())
    torch.testing.assert_close(narrow.last.trace.weights[..., :TIME], wide.last.trace.weights)
    assert wide.last.relevant_index is None
    make(full)(x)


@pytest.mark.parametrize("memory", ["recompute", "store"])
@pytest.mark.parametrize("kind", [RelRNN, RelLSTM])
def test_a_buffer_takes_no_more_room_than_there_are_steps(kind: Any, memory: str) -> None:
    x = inputs()
    vast, just = (make(kind, n_buffer=n, n_relevant=3, memory=memory) for n in (10**9, TIME))
    assert torch.equal(vast(x)[0], just(x)[0])
    assert vast.last.trace.indices.shape == (BATCH, TIME, TIME + 3)
    assert torch.equal(vast.last.scores, just.last.scores)


@pytest.mark.parametrize("kind", [RelRNN, RelLSTM, MemRNN, MemLSTM])
def test_a_sample_does_not_depend_on_its_batch_nor_on_what_follows_its_end(kind: Any) -> None:
    options = {"n_buffer": 2, "n_relevant": 3} if kind in (RelRNN, RelLSTM) else {}
    network, x = make(kind, carry_memory=True, **options), inputs()
    lengths = torch.tensor([5, TIME, 0])
    x[0, 5:] = torch.nan
    x[2] = torch.inf
    output, state = network(x, lengths=lengths)
    last, sums = network.last, [output[:, :, 0].sum()]
    for row, length in enumerate(lengths.tolist()):
        alone, alone_state = network(x[row, :length])
        torch.testing.assert_close(output[row, :length], alone, rtol=1e-13, atol=1e-13)
        assert not output[row, length:].any()
        torch.testing.assert_close(state[0][:, row], alone_state[0], rtol=1e-13, atol=1e-13)
        if length and last.relevant_index is not None:
            assert torch.equal(last.relevant_index[row], network.last.relevant_index[0])
            torch.testing.assert_close(last.scores[row, :length], network.last.scores[0])
    for found in torch.autograd.grad(sums, network.parameters()):
        assert bool(found.isfinite().all())
    packed = pack_padded_sequence(x[:2], lengths[:2], batch_first=True, enforce_sorted=False)
    padded, _ = pad_packed_sequence(network(packed)[0], batch_first=True)
    torch.testing.assert_close(padded, output[:2])


@pytest.mark.parametrize("memory", ["recompute", "store"])
@pytest.mark.parametrize("kind", [RelRNN, RelLSTM, MemRNN, MemLSTM])
def test_a_carried_memory_continues_as_if_nothing_had_been_cut(kind: Any, memory: str) -> None:
    options = {"n_buffer": 3, "n_relevant": 2} if kind in (RelRNN, RelLSTM) else {}
    network, x = make(kind, carry_memory=True, memory=memory, **options), inputs()
    whole, end = network(x)
    kept = network.last.relevant_index
    lengths = torch.tensor([4, 7, 2])
    first, state = network(x[:, :7], lengths=lengths)  # cut at a place of its own in each sample
    rest = torch.stack([torch.roll(x[row], -n, 0) for row, n in enumerate(lengths.tolist())])
    second, last = network(rest, state, TIME - lengths)
    for row, n in enumerate(lengths.tolist()):
        joined = torch.cat([first[row, :n], second[row, : TIME - n]])
        torch.testing.assert_close(joined, whole[row], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(last[0], end[0], rtol=1e-12, atol=1e-12)
    if kept is not None:
        assert torch.equal(network.last.relevant_index, kept)


def test_gradients_of_a_window_with_a_carried_memory_are_those_of_the_plain_loop() -> None:
    x = inputs()
    fast, plain = (make(RelLSTM, n_buffer=3, n_relevant=2, carry_memory=True, memory=m) for m in ("recompute", "store"))
    with torch.no_grad():
        _, state = fast(x)
    for found, expected in zip(
        torch.autograd.grad(fast(x[:, :9], state)[0].square().sum(), fast.parameters()),
        torch.autograd.grad(plain(x[:, :9], state)[0].square().sum(), plain.parameters()),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_without_carrying_a_window_starts_with_an_empty_memory() -> None:
    network, x = make(RelLSTM, n_buffer=3, n_relevant=2), inputs()
    _, (state, cell) = network(x)
    assert state.shape == cell.shape == (1, BATCH, HIDDEN)
    network(x[:, :2], (state, cell))
    assert bool((network.last.relevant_index == -1).all())
    assert not torch.equal(network(x)[0], network(x, (state, cell))[0])


def test_second_derivatives_and_transforms_work() -> None:
    network, x = make(RelRNN, n_buffer=2, n_relevant=2), inputs(1, 5).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda given: network(given)[0].square().sum(), (x,))
    jacobian = torch.func.jacrev(lambda given: network(given)[0].sum((0, 1)))(x.detach())
    assert jacobian.shape == (HIDDEN, 1, 5, FEATURES)
    output, _ = network(x)
    once = torch.autograd.grad(output.sum(), x, retain_graph=True)[0]
    assert torch.equal(once, torch.autograd.grad(output.sum(), x)[0])


def test_the_trace_says_what_was_attended_to() -> None:
    network, x = make(RelRNN, n_buffer=2, n_relevant=3), inputs()
    network(x)
    trace = network.last.trace
    torch.testing.assert_close(trace.weights.sum(-1), torch.ones(BATCH, TIME).double())
    assert bool(((trace.indices == -1) == (trace.weights == 0)).all())
    gathered = torch.stack([trace.hidden[row][trace.indices[row].long().clamp_min(0)] for row in range(BATCH)])
    mixed = 0.5 * trace.hidden + 0.5 * (trace.weights.unsqueeze(-1) * gathered).sum(2)
    torch.testing.assert_close(trace.states[:, 1:], mixed)
    assert network.last.scores.shape == (BATCH, TIME)
    copy.deepcopy(network)


def test_the_readout_may_be_the_macro_state() -> None:
    x = inputs()
    plain = make(RelRNN, combine="concat", readout="s")
    output, state = plain(x)
    assert output.shape == (BATCH, TIME, 2 * HIDDEN) == (BATCH, TIME, plain.output_size)
    assert torch.equal(output[:, -1], state[0])


def test_numbers_of_parameters_are_those_of_the_document() -> None:
    def count(network: Any) -> int:
        return sum(parameter.numel() for parameter in network.parameters()) + 9 * 129

    assert count(RelRNN(10, 128)) == 51_849
    assert count(RelLSTM(10, 128)) == 105_225


def test_no_steps_give_no_outputs() -> None:
    output, state = make(RelRNN)(torch.zeros(2, 0, FEATURES))
    assert output.shape == (2, 0, HIDDEN)
    assert not state.any()


def test_bad_input_is_named() -> None:
    network = make(RelRNN)
    with pytest.raises(InvalidInput, match="x must be finite"):
        network(torch.full((1, 2, FEATURES), torch.nan))
    assert bool(make(RelRNN, check=False)(torch.full((1, 2, FEATURES), torch.nan))[0].isnan().all())
    with pytest.raises(ShapeError, match="state must have shape"):
        network(torch.zeros(2, 3, FEATURES), torch.zeros(1, 3, HIDDEN))
    with pytest.raises(InvalidInput, match="n_buffer must be an integer of at least 1; got 0"):
        RelRNN(3, 4, 0)
    with pytest.raises(InvalidInput, match="n_relevant must be an integer of at least 0; got -1"):
        RelRNN(3, 4, 1, -1)
    with pytest.raises(InvalidInput, match="mix must be left out"):
        RelRNN(3, 4, mix=(1.0, 1.0), combine="concat")
    with pytest.raises(InvalidInput, match="normalise='share' is for the usual policy"):
        RelRNN(3, 4, normalise="share", screening="fifo")
    with pytest.warns(GrowthWarning, match="without bound"):
        RelRNN(3, 4, mix="paper", nonlinearity="modrelu")


@pytest.mark.parametrize("kind", [RelRNN, RelLSTM, MemRNN, MemLSTM])
@pytest.mark.parametrize("inside", [lambda f: f, torch.func.jacrev])
def test_a_mapped_axis_is_refused_in_one_sentence(kind: Any, inside: Any) -> None:
    network = make(kind, check=False)
    with pytest.raises(InvalidInput, match=r"cannot run inside torch\.func\.vmap; give sequences as a batch"):
        torch.func.vmap(inside(lambda x: network(x)[0]))(inputs().unsqueeze(1))
