"""What every relational network promises, and that it is what its description says. Yours is one line in NETWORKS."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from helpers import seeded
from relational_references import REFERENCES
from separatrix.core import InvalidInput, ShapeError
from separatrix.nn import RELATIONAL_NETWORKS, AbstractRelationalNetwork, make_network

T, Y = 4, 3


class Counter(AbstractRelationalNetwork):
    """A stranger's network: how often objects repeat."""

    def __init__(self, seq_len: int, n_answers: int, **front: Any) -> None:
        super().__init__(seq_len, n_answers, **front)
        self.out = nn.Linear(1, n_answers)

    def answer(self, encoded: Tensor) -> Tensor:
        normal = self.norm(encoded)
        return self.out((normal @ normal.mT).mean((1, 2)).unsqueeze(1))


NETWORKS: dict[str, Any] = {**RELATIONAL_NETWORKS, "stranger: counter": Counter}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in RELATIONAL_NETWORKS},
    "CoRelNet, asymmetric": ("CoRelNet", {"symmetric": False}),
    "CoRelNet, sensory": ("CoRelNet", {"sensory": True}),
    "CoRelNet, cooler": ("CoRelNet", {"temperature": "sqrt_d"}),
    "CoRelNet-T, asymmetric and sensory": ("CoRelNet-T", {"symmetric": False, "sensory": True}),
    "ESBN, asymmetric": ("ESBN", {"symmetric": False}),
    "ESBN, sensory": ("ESBN", {"sensory": True}),
    "Transformer, tied": ("Transformer", {"tied": True}),
    "RelConvNet, asymmetric": ("RelConvNet", {"symmetric": False}),
}


def made(name: str, seq_len: int = T, **options: Any) -> Any:
    network = NETWORKS[name](seq_len, Y, image_size=8, generator=seeded(1), **options)
    with torch.no_grad():  # away from gain 1 and shift 0
        network.norm.gain.uniform_(0.5, 1.5, generator=seeded(2))
        network.norm.shift.uniform_(-0.2, 0.2, generator=seeded(3))
    return network.eval()


pytestmark = pytest.mark.sampled(4, across="name")


@pytest.fixture(params=NETWORKS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.sampled(1, each="variant")
@pytest.mark.parametrize("variant", [v for v in VARIANTS if VARIANTS[v][0] in REFERENCES])
@pytest.mark.parametrize("seq_len", [2, 4])
def test_a_network_is_what_its_description_says(variant: str, seq_len: int) -> None:
    kind, options = VARIANTS[variant]
    network = made(kind, seq_len, **options)
    encoded = 0.1 * torch.randn(3, seq_len, 128, generator=seeded(4))
    encoded[0, 1] = encoded[0, 0]  # a repeated object
    with torch.no_grad():
        logits = network.answer(encoded)
        plain = torch.stack([REFERENCES[kind](network, rows) for rows in encoded])
    assert float((logits - plain).abs().max()) < 2e-4 * max(1.0, float(plain.abs().max()))  # single precision


@pytest.mark.sampled(6)
def test_encoding_distinct_images_equals_encoding_every_occurrence(name: str) -> None:
    """In double precision: a slope of the encoder's bias is 1/100 of the terms it is the sum of, and single precision
    leaves 3e-4 of it to the order in which a processor adds them.
    """
    network = made(name).double()
    images = torch.rand(5, 3, 8, 8, generator=seeded(5), dtype=torch.float64)
    index = torch.randint(5, (6, T), generator=seeded(6))
    gradients, logits = [], []
    for given in ((images, index), (images[index], None)):
        network.zero_grad()
        out = network(*given)
        (out.square().sum() + network.penalty()).backward()
        logits.append(out.detach())
        gradients.append(torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None]))
    assert float((logits[0] - logits[1]).abs().max()) < 1e-12 * max(1, float(logits[0].abs().max()))
    assert float((gradients[0] - gradients[1]).abs().max()) < 1e-12 * max(1, float(gradients[0].abs().max()))


def test_a_problem_does_not_feel_its_batch_and_one_alone_works(name: str) -> None:
    network = made(name)
    images, index = torch.rand(5, 3, 8, 8, generator=seeded(5)), torch.randint(5, (6, T), generator=seeded(6))
    with torch.no_grad():
        together, alone = network(images, index), network(images, index[2:3])
    assert alone.shape == (1, Y)
    assert float((together[2:3] - alone).abs().max()) < 1e-5 * max(1, float(together.abs().max()))


def test_every_parameter_is_used(name: str) -> None:
    network = made(name, l1=0.1, temperature=20.0) if name.startswith("CoRelNet") and "diff" not in name else made(name)
    network.train()
    images, index = torch.rand(5, 3, 8, 8, generator=seeded(5)), torch.randint(5, (8, T), generator=seeded(6))
    (network(images, index).square().sum() + network.penalty()).backward()
    unused = [n for n, p in network.named_parameters() if p.grad is None or float(p.grad.abs().sum()) == 0]
    assert unused == []


def test_a_frozen_encoder_gets_no_gradient_and_its_features_can_be_kept(name: str) -> None:
    network = made(name, encoder="frozen")
    images, index = torch.rand(5, 3, 8, 8, generator=seeded(5)), torch.randint(5, (6, T), generator=seeded(6))
    kept = network.features(images)
    network(kept, index).sum().backward()
    assert all(p.grad is None for p in network.encoder.parameters())
    with torch.no_grad():
        assert float((network(kept, index) - network(images, index)).abs().max()) < 1e-5


def test_weights_come_from_the_generator_alone(name: str) -> None:
    if name.startswith("stranger"):
        return
    state = torch.get_rng_state()
    first, again, other = (NETWORKS[name](T, Y, image_size=8, generator=seeded(k)) for k in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    weights = [torch.cat([p.detach().flatten() for p in n.parameters()]) for n in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_saved_weights_give_the_same_answers(name: str) -> None:
    first, second = made(name), NETWORKS[name](T, Y, image_size=8, generator=seeded(9)).eval()
    second.load_state_dict(first.state_dict())
    images, index = torch.rand(5, 3, 8, 8, generator=seeded(5)), torch.randint(5, (6, T), generator=seeded(6))
    with torch.no_grad():
        assert torch.equal(first(images, index), second(images, index))


def test_relation_matrices_have_a_row_for_each_position(name: str) -> None:
    network = made(name)
    images, index = torch.rand(5, 3, 8, 8, generator=seeded(5)), torch.randint(5, (6, T), generator=seeded(6))
    if type(network).relations is AbstractRelationalNetwork.relations:
        with pytest.raises(InvalidInput, match="has no relation matrix"):
            network.relation_matrix(images, index)
    else:
        assert network.relation_matrix(images, index).shape == (6, T, T)


def test_inputs_of_another_form_are_refused(name: str) -> None:
    network = made(name)
    images = torch.rand(5, 3, 8, 8)
    for given, words in (
        ((images, torch.zeros(2, T + 1, dtype=torch.int64)), "index must be"),
        ((images[0], torch.zeros(2, T, dtype=torch.int64)), "images must be"),
        ((torch.rand(5, 3, 9, 9), torch.zeros(2, T, dtype=torch.int64)), "images must be"),
        ((images, None), "without an index"),
    ):
        with pytest.raises(ShapeError, match=words):
            network(*given)
    for wrong in (7, -1):  # a negative index would silently count from the end
        with pytest.raises(InvalidInput, match=r"index must lie in 0 to 4, of 5 images"):
            network(images, torch.full((2, T), wrong))


def test_numbers_of_a_wrong_kind_are_named(name: str) -> None:
    network = NETWORKS[name](T, Y, image_size=8, generator=seeded(1)).eval()
    images, index = torch.rand(5, 3, 8, 8, generator=seeded(5)), torch.zeros(2, T, dtype=torch.int64)
    objects, encode = inspect.unwrap(type(network).objects), inspect.unwrap(type(network.encoder).forward)
    whole = "index must be a tensor of whole numbers"
    for wrong in (
        index.float(),
        index.bool(),
        index.tolist(),
    ):  # past the checks of types that tests have and users not
        with pytest.raises(InvalidInput, match=whole):
            objects(network, images, wrong)
    with pytest.raises(InvalidInput, match="images must be a tensor; got ndarray"):
        objects(network, images.numpy(), index)
    with pytest.raises(InvalidInput, match="images must hold at least one"):
        objects(network, images[:0], index)
    for kind in (torch.uint8, torch.float64):
        with pytest.raises(InvalidInput, match=r"images must be torch.float32 .* got torch"):
            encode(network.encoder, images.to(kind))


def test_no_problems_have_no_answers_and_a_copy_may_be_taken_after_a_call(name: str) -> None:
    network = NETWORKS[name](T, Y, image_size=8, generator=seeded(1)).eval()
    images, index = torch.rand(5, 3, 8, 8, generator=seeded(5)), torch.randint(5, (3, T), generator=seeded(6))
    assert network(images, index[:0]).shape == (0, Y)
    there = network(images, index)
    for other in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert torch.equal(other(images, index), there)


@pytest.mark.parametrize("normalise", ["l2", "none"])
def test_every_network_runs_with_other_normalisations(name: str, normalise: Any) -> None:
    network = NETWORKS[name](T, Y, image_size=8, normalise=normalise, generator=seeded(1)).eval()
    out = network(torch.rand(5, 3, 8, 8, generator=seeded(5)), torch.randint(5, (6, T), generator=seeded(6)))
    assert bool(torch.isfinite(out).all())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"normalize": "tcn"}, "Did you mean 'normalise'"),
        ({"l1": -1.0}, "l1 must be"),
        ({"image_size": 4}, "image_size must be at least 8"),
        ({"segments": [[0, 1], [2]]}, "segments must hold each of the 4 positions once"),
        ({"segments": [[0, 1, 2], [3]]}, "one position has no variance"),
        ({"temperature": "hot"}, "sqrt_d"),
        ({"temperature": 0.0}, "temperature must be"),
        ({"hidden": 0}, "hidden must be"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make_network("CoRelNet", T, Y, **options)


@pytest.mark.parametrize(("seq_len", "n_answers"), [(0, 2), (1, 2), (2, 1)])
def test_sizes_that_make_no_sense_are_refused(seq_len: int, n_answers: int) -> None:
    with pytest.raises(InvalidInput, match=r"seq_len must be|n_answers must be"):
        make_network("CoRelNet", seq_len, n_answers)


def test_one_position_is_refused_with_a_causal_softmax_and_asymmetry_without_similarity() -> None:
    with pytest.raises(InvalidInput, match="relation='causal_softmax'"):
        make_network("CoRelNet", 1, 2, normalise="none")
    with pytest.raises(InvalidInput, match="RelationalLSTM has none"):
        make_network("LSTM", 3, 2, symmetric=False)
