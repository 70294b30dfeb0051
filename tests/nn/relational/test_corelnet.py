from __future__ import annotations

import pytest
import torch

from helpers import seeded
from separatrix.nn import CoRelNet


def test_relations_are_causal_rows_that_sum_to_one_and_the_first_entry_is_one() -> None:
    network = CoRelNet(5, 2, image_size=8, temperature="sqrt_d", generator=seeded(0))
    relation = network.relation_matrix(torch.rand(6, 3, 8, 8, generator=seeded(1)), torch.arange(5).repeat(2, 1))
    assert torch.allclose(relation.sum(-1), torch.ones(2, 5))
    assert torch.equal(relation, relation.tril())
    assert relation[:, 0, 0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("relation", "n_read"), [("causal_softmax", 15), ("softmax", 25), ("raw", 25), ("cosine", 25)])
def test_the_decoder_reads_as_many_entries_as_the_relation_has(relation: str, n_read: int) -> None:
    network = CoRelNet(5, 2, image_size=8, relation=relation, generator=seeded(0))  # type: ignore[arg-type]
    assert network.hidden.in_features == n_read
    assert network(torch.rand(6, 3, 8, 8), torch.arange(5).repeat(2, 1)).shape == (2, 2)


def test_at_temperature_one_the_softmax_is_one_hot_and_the_encoder_gets_no_gradient_worth_the_name() -> None:
    from separatrix.tasks import make_task

    task = make_task("identity_rules")
    index, label = task.train_batch(96)
    ratios = []
    for temperature in (1.0, "sqrt_d"):
        network = CoRelNet(9, 4, temperature=temperature, generator=seeded(0))
        loss = torch.nn.functional.cross_entropy(network(task.images, index), label)
        loss.backward()
        norm = lambda layers: sum(float(p.grad.square().sum()) for p in layers) ** 0.5  # noqa: E731
        ratios.append(
            norm(network.encoder.parameters()) / norm([*network.hidden.parameters(), *network.out.parameters()])
        )
    assert ratios[0] < 1e-4
    assert ratios[1] > 1e-3
