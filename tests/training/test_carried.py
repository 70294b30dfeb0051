from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, spawn
from separatrix.tasks import ContiguousBatches
from separatrix.training import TrainingSettings, train
from separatrix.training.carried import detached

SYMBOLS = torch.randint(5, (120,), generator=spawn(0, "carried"))


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(5, 4, batch_first=True)
        self.head = nn.utils.skip_init(nn.Linear, 4, 5)
        for index, parameter in enumerate(self.parameters()):
            nn.init.normal_(parameter, std=0.4, generator=spawn(index, "reader"))


def loss(model: Any, batch: tuple[Tensor, Tensor], state: Any) -> tuple[Tensor, Any]:
    inputs, targets = batch
    output, state = model.rnn(nn.functional.one_hot(inputs, 5).float(), state)
    return nn.functional.cross_entropy(model.head(output).flatten(0, 1), targets.flatten()), state


def test_the_state_is_carried_without_gradients_and_reset_at_epochs() -> None:
    batches = ContiguousBatches(SYMBOLS, 3, 6)
    seen: list[tuple[bool, bool]] = []

    def watching(model: Any, batch: Any, state: Any) -> tuple[Tensor, Any]:
        seen.append((state is None, state is not None and any(part.requires_grad for part in state)))
        return loss(model, batch, state)

    page = TrainingSettings(n_steps=2 * batches.per_epoch, lr=0.01, reset_every=batches.per_epoch)
    train(Reader(), batches, watching, page, carries=True)
    assert [step for step, (fresh, _) in enumerate(seen) if fresh] == [0, batches.per_epoch]
    assert not any(graph for _, graph in seen)


def test_carrying_equals_a_loop_written_by_hand() -> None:
    batches = ContiguousBatches(SYMBOLS, 3, 6)
    model, twin = Reader(), Reader()
    run = train(model, batches, loss, TrainingSettings(n_steps=5, lr=0.1, optimiser="sgd", beta1=0.0), carries=True)
    state, by_hand = None, []
    for step in range(5):
        twin.zero_grad()
        value, state = loss(twin, batches(step), state)
        value.backward()
        state = tuple(part.detach() for part in state)
        with torch.no_grad():
            for parameter in twin.parameters():
                parameter -= 0.1 * parameter.grad
        by_hand.append(value.item())
    assert run.history.column("loss")[1] == pytest.approx(by_hand, rel=1e-6)


def test_a_killed_run_goes_on_with_the_state_it_carried(tmp_path: object) -> None:
    batches = ContiguousBatches(SYMBOLS, 3, 6)

    def stopping(model: Any, batch: Any, state: Any) -> tuple[Tensor, Any]:
        if stop and torch.equal(batch[0], batches(3)[0]):
            raise KeyboardInterrupt
        return loss(model, batch, state)

    page, path = TrainingSettings(n_steps=6, lr=0.1, save_every=1), f"{tmp_path}/run.pt"
    stop = False
    whole = train(Reader(), batches, stopping, page, carries=True)
    stop = True
    with pytest.raises(KeyboardInterrupt):
        train(Reader(), batches, stopping, page, carries=True, checkpoint=path)
    stop = False
    rest = train(Reader(), batches, stopping, page, carries=True, checkpoint=path)
    assert rest.resumed_at == 3
    assert rest.history.records == whole.history.records


def test_after_every_update_the_hook_may_change_the_model() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    grad_enabled: list[bool] = []

    def keep_positive(changed: Any) -> None:
        grad_enabled.append(torch.is_grad_enabled())
        changed.weight.fill_(2.0)

    page = TrainingSettings(n_steps=3, lr=0.1)
    run = train(model, int, lambda m, step: m.weight.square().sum(), page, after_update=keep_positive)
    assert run.history.column("loss")[1] == [1.0, 4.0, 4.0]
    assert grad_enabled == [False] * 3


def test_a_state_that_no_checkpoint_could_hold_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a carried state must be made of tensors"):
        detached({"h": object()})
    state = {"h": (torch.ones(1, requires_grad=True), None), "n": [1, 2.0]}
    assert detached(state)["h"][0].requires_grad is False
    assert detached(state)["n"] == [1, 2.0]
