"""What every data set, loader, generator and order of batches promises.

Data sets of the registry are entered by themselves; the loader of one is a line in ``LOADERS``, data made in code a
line in ``GENERATORS``, an order of batches a line in ``BATCHES``. The strangers are written from the notes to
implementers in ``Dataset`` and ``AbstractBatches`` alone.
"""

from __future__ import annotations

import copy
import dataclasses
import gzip
import hashlib
import inspect
import pickle
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from separatrix import core, tasks, training
from separatrix.core import CorruptData, DatasetUnavailable, InvalidInput
from separatrix.tasks import AbstractBatches, ContiguousBatches, DataFile, Dataset, Mirror, ShuffledBatches
from separatrix.tasks.store import catalogue, location

# ---------------- data sets and loaders


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


VERSES = b"what is the use of a book\nwithout pictures or conversations\n" * 4
STRANGER = Dataset(
    name="verses",
    title="a stranger's text",
    version="1",
    licence="public domain",
    citation="Anonymous.",
    files=(DataFile("text/verses.txt.gz", "all", len(VERSES), digest(VERSES), (Mirror("https://example.org/v", 90),)),),
)
DATASETS = {**tasks.datasets(), STRANGER.name: STRANGER}


def idx(*shape: int) -> bytes:
    """A made-up idx file of bytes 0, 1, ..., 9, 0, ..."""
    n_bytes = torch.Size(shape).numel()
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(k % 10 for k in range(n_bytes))


MNIST = {
    "train-images": idx(6, 28, 28),
    "train-labels": idx(6),
    "test-images": idx(2, 28, 28),
    "test-labels": idx(2),
}
ONE_TEXT = {"all": VERSES}
THREE_TEXTS = {"train": VERSES, "valid": VERSES[:50], "test": VERSES[50:90]}


@dataclasses.dataclass(frozen=True)
class Loader:
    """How a data set is loaded, made-up content of its parts, and the number of items then expected by field."""

    load: Callable[[Path], Any]
    content: Mapping[str, bytes]
    sizes: Mapping[str, int]


def text(name: str | Dataset, content: Mapping[str, bytes], sizes: tuple[int, int, int]) -> Loader:
    fields = dict(zip(("train", "valid", "test"), sizes, strict=True))
    return Loader(lambda folder: tasks.load_text(name, path=folder), content, fields)


IN_ONE, IN_THREE = (216, 12, 12), (240, 50, 40)  # 90, 5 and 5 per cent of the 240 characters; as they are
LOADERS: dict[str, Loader] = {
    "mnist": Loader(tasks.load_mnist, MNIST, {"train_images": 6, "train_labels": 6, "test_images": 2}),
    "tiny-shakespeare": text("tiny-shakespeare", ONE_TEXT, IN_ONE),
    "text8": text("text8", ONE_TEXT, IN_ONE),
    "wikitext2-reordered": text("wikitext2-reordered", THREE_TEXTS, IN_THREE),
    "ptb": text("ptb", THREE_TEXTS, IN_THREE),
    "ptb-char": text("ptb-char", THREE_TEXTS, IN_THREE),
    "verses": text(STRANGER, ONE_TEXT, IN_ONE),
}
WITHOUT_LOADER = {
    "wikitext2",
    "glyphs",
    "relations-game",
    "char-lstm",
    "speaker-lstm",
    "vad-lstm",
    "minilm-l6-attention",
}
"""Read by their parts with ``locate(name).read(part)``; glyphs and boards by loaders of ``tasks.relational``."""


@pytest.fixture(autouse=True)
def quiet_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing registered from outside, no data folder, an empty cache."""
    monkeypatch.setattr(catalogue, "_OTHERS", {})
    monkeypatch.setattr(location, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("SEPARATRIX_DATA", raising=False)


@pytest.fixture(params=LOADERS)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Loader:
    """A loader whose data set has the digests of the made-up content."""
    entry = LOADERS[request.param]
    made_up = {
        file.split: dataclasses.replace(
            file, n_bytes=len(entry.content[file.split]), sha256=digest(entry.content[file.split])
        )
        for file in DATASETS[request.param].files
    }
    changed = dataclasses.replace(DATASETS[request.param], files=tuple(made_up.values()))
    if request.param in tasks.datasets():
        monkeypatch.setattr(catalogue, "_registry", lambda: {request.param: changed})
    else:
        assert changed == DATASETS[request.param]  # a stranger's own facts are those of its content
    return entry


def put(folder: Path, name: str, content: Mapping[str, bytes]) -> Path:
    for file in DATASETS[name].files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content[file.split]) if path.suffix == ".gz" else content[file.split])
    return folder


def fields(data: Any) -> dict[str, Any]:
    return {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}


def equal(first: Any, second: Any) -> bool:
    """Whether two results are the same, tensors compared bit by bit."""
    if isinstance(first, Tensor):
        return torch.equal(first, second)
    if dataclasses.is_dataclass(first):
        return equal(fields(first), fields(second))
    if isinstance(first, Mapping):
        return first.keys() == second.keys() and all(equal(first[key], second[key]) for key in first)
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(equal, first, second))
    return bool(first == second)


@pytest.mark.parametrize("name", DATASETS)
def test_an_entry_has_all_that_is_needed_to_supply_the_files_by_hand(name: str) -> None:
    dataset = DATASETS[name]
    assert dataset.name == name
    assert dataclasses.replace(dataset) == dataset  # its facts pass their own checks
    assert len(set(dataset.splits)) == len(dataset.files) > 0
    for file in dataset.files:
        assert file.sha256 in dataset.summary()
        assert dataset.file(file.split) is file
    assert dataset.n_bytes == sum(file.n_bytes for file in dataset.files)
    assert len(dataset.sha256) == 64


@pytest.mark.parametrize("name", DATASETS)
def test_missing_files_are_told_with_the_place_to_put_them(name: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable) as caught:
        tasks.locate(DATASETS[name])
    message = str(caught.value)
    assert message.startswith(f"{name} was not found. Looked in")
    assert all(file.sha256 in message for file in DATASETS[name].files)


def test_every_data_set_has_a_loader_or_is_known_to_have_none() -> None:
    assert set(DATASETS) == set(LOADERS) | WITHOUT_LOADER
    assert not set(LOADERS) & WITHOUT_LOADER


def test_a_loader_reads_every_part_and_carries_the_digest(loader: Loader, tmp_path: Path) -> None:
    name = next(name for name, entry in LOADERS.items() if entry is loader)
    put(tmp_path, name, loader.content)
    state = torch.get_rng_state()
    data = loader.load(tmp_path)
    assert {field: len(getattr(data, field)) for field in loader.sizes} == loader.sizes
    assert data.sha256 == tasks.locate(name if name in tasks.datasets() else DATASETS[name], path=tmp_path).digest
    assert equal(data, loader.load(tmp_path))
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.sha256 = ""


def test_a_loader_refuses_a_changed_file(loader: Loader, tmp_path: Path) -> None:
    name = next(name for name, entry in LOADERS.items() if entry is loader)
    changed = {split: bytes([part[0] ^ 1]) + part[1:] for split, part in loader.content.items()}
    put(tmp_path, name, changed)
    with pytest.raises(CorruptData, match="has the wrong content"):
        loader.load(tmp_path)


def test_a_loader_says_what_is_missing(loader: Loader, tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match="was not found"):
        loader.load(tmp_path)


def test_a_stranger_s_data_set_is_known_by_name_after_one_call(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="unknown data set 'verses'"):
        tasks.find_dataset("verses")
    assert tasks.register_dataset(STRANGER) is STRANGER
    assert tasks.register_dataset(copy.copy(STRANGER)) is STRANGER  # a cell of a notebook, run again
    assert tasks.datasets()["verses"] is tasks.find_dataset("verses") is STRANGER
    put(tmp_path, "verses", ONE_TEXT)
    loaded = tasks.load_text("verses", "words", path=tmp_path)
    assert (loaded.name, loaded.sha256) == ("verses", STRANGER.sha256)
    with pytest.raises(InvalidInput, match=r"unknown data set 'verse'\. Did you mean 'verses'"):
        tasks.locate("verse")


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the name 'mnist' is taken by another data set, 'handwritten digits"):
        tasks.register_dataset(dataclasses.replace(STRANGER, name="mnist"))
    assert tasks.find_dataset("mnist").version == "1998"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dataclasses.replace(STRANGER, name="My Verses"), "small letters, digits and hyphens; got 'My Verses'"),
        (lambda: dataclasses.replace(STRANGER, licence=""), "licence of data set 'verses' must be given"),
        (lambda: dataclasses.replace(STRANGER, files=()), "one file for each part"),
        (lambda: dataclasses.replace(STRANGER, files=2 * STRANGER.files), "one file for each part"),
        (lambda: DataFile("../verses.txt", "all", 3, "a" * 64), "a path below a data folder"),
        (lambda: DataFile("/verses.txt", "all", 3, "a" * 64), "a path below a data folder"),
        (lambda: DataFile("verses.txt", "", 3, "a" * 64), "split must name the part"),
        (lambda: DataFile("verses.txt", "all", 3, "A" * 64), "64 hexadecimal digits in small"),
        (lambda: DataFile("verses.txt", "all", 0, "a" * 64), "n_bytes of verses.txt must be an integer of at least 1"),
        (lambda: Mirror("ftp://example.org/v", 3), "over HTTPS only"),
        (lambda: STRANGER.file("train"), "unknown part of verses 'train'. Known: all"),
    ],
)
def test_wrong_facts_are_refused_when_they_are_written(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


# ---------------- data made in code


def semantic(variant: str) -> Callable[[torch.Generator], Any]:
    return lambda generator: tasks.semantic_task(variant)


GENERATORS: dict[str, tuple[Callable[[torch.Generator], Any], bool]] = {  # and whether it is random
    "semantic": (semantic("standard"), False),
    "semantic, distinct": (semantic("distinct"), False),
    "semantic, reversal": (semantic("reversal"), False),
    "white regression": (lambda generator: tasks.white_regression(3, 2, generator=generator), True),
    "digits": (lambda generator: tasks.load_digits(1000, generator=generator), True),
    "made-up text": (lambda generator: tasks.made_up_text(300, generator=generator), True),
    "stranger: noisy line": (lambda generator: (torch.arange(9.0), torch.randn(9, generator=generator)), True),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_made_data_depend_on_the_generator_alone(name: str) -> None:
    make, is_random = GENERATORS[name]
    state = torch.get_rng_state()
    first, again, other = (make(core.spawn(seed, "contract")) for seed in (0, 0, 1))
    assert equal(first, again)
    assert equal(first, other) is not is_random
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", GENERATORS)
def test_made_data_are_finite(name: str) -> None:
    made = GENERATORS[name][0](core.spawn(0, "contract"))
    tensors = fields(made).values() if dataclasses.is_dataclass(made) else made
    assert all(bool(torch.isfinite(value).all()) for value in tensors if isinstance(value, Tensor))


# ---------------- orders of batches


class NoisyLines(AbstractBatches[tuple[Tensor, Tensor]]):
    """A stranger's batches, made anew at every step."""

    def __init__(self, batch_size: int, seed: int) -> None:
        self.batch_size, self.seed = batch_size, seed

    @property
    def per_epoch(self) -> int:
        return 1

    def batch_at(self, step: int) -> tuple[Tensor, Tensor]:
        generator = core.spawn(self.seed, "noisy lines", step)
        x = torch.randn(self.batch_size, 3, generator=generator)
        return x, x.sum(-1, keepdim=True) + 0.1 * torch.randn(self.batch_size, 1, generator=generator)


SYMBOLS = torch.arange(100)
BATCHES: dict[str, Callable[[], AbstractBatches[Any]]] = {
    "shuffled": lambda: ShuffledBatches(23, 4, 0, "contract"),
    "shuffled, one batch": lambda: ShuffledBatches(5, 5, 0),
    "contiguous": lambda: ContiguousBatches(SYMBOLS.clone(), 3, 5),
    "contiguous, shifted": lambda: ContiguousBatches(SYMBOLS.clone(), 3, 5, shift=2),
    "streamed": lambda: tasks.StreamedBatches(tasks.Copy(3), 4, 0),
    "stranger: noisy lines": lambda: NoisyLines(4, 7),
}


def parts_of(batch: Any) -> tuple[Tensor, ...]:
    """The tensors of a batch."""
    if dataclasses.is_dataclass(batch):
        return tuple(fields(batch).values())
    return batch if isinstance(batch, tuple) else (batch,)


@pytest.fixture(params=BATCHES)
def make(request: pytest.FixtureRequest) -> Callable[[], AbstractBatches[Any]]:
    return BATCHES[request.param]


def test_the_batch_of_a_step_is_the_same_in_any_order(make: Callable[[], AbstractBatches[Any]]) -> None:
    walked, jumped = make(), make()
    n_steps = 2 * walked.per_epoch + 2
    forwards = [walked(step) for step in range(n_steps)]
    backwards = [jumped(step) for step in reversed(range(n_steps))]
    assert equal(tuple(forwards), tuple(reversed(backwards)))
    assert equal(walked.batch_at(1), forwards[1])


def test_a_batch_may_be_changed_by_its_user(make: Callable[[], AbstractBatches[Any]]) -> None:
    batches = make()
    batch = batches(0)
    for part in parts_of(batch):
        part.zero_()
    assert equal(batches(0), make()(0))
    assert equal(batches(1), make()(1))


def test_an_epoch_is_a_positive_number_of_steps(make: Callable[[], AbstractBatches[Any]]) -> None:
    assert make().per_epoch >= 1


def test_batches_draw_nothing_from_the_global_generator(make: Callable[[], AbstractBatches[Any]]) -> None:
    state = torch.get_rng_state()
    make()(3)
    assert torch.equal(torch.get_rng_state(), state)


def test_batches_survive_copy_and_pickle(make: Callable[[], AbstractBatches[Any]]) -> None:
    batches = make()
    batches(2)
    for twin in (copy.deepcopy(batches), pickle.loads(pickle.dumps(batches))):
        assert equal(twin(4), batches(4))


@pytest.mark.parametrize("step", [-1, 1.5, True, None])
def test_a_step_that_is_no_natural_number_is_refused(make: Callable[[], AbstractBatches[Any]], step: Any) -> None:
    batches = make()
    with pytest.raises(InvalidInput, match="step must be an integer of at least 0"):
        inspect.unwrap(type(batches).__call__)(batches, step)  # as users call it, unchecked


def test_the_training_loop_takes_them_as_they_are(make: Callable[[], AbstractBatches[Any]]) -> None:
    model = nn.Linear(1, 1)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    seen: list[Any] = []

    def loss(model: Any, batch: Any) -> Tensor:
        seen.append(batch)
        return model(torch.ones(1, 1)).square().sum()

    settings = training.TrainingSettings(n_steps=5, lr=0.1)
    training.train(model, make(), loss, settings)
    assert equal(tuple(seen), tuple(make()(step) for step in range(5)))
