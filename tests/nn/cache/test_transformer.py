"""The small causal transformer: with a large cache as without one, bad input, the same weights for the same seed."""

from __future__ import annotations

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.nn import BoundedCache, CausalTransformer

SYMBOLS = torch.randint(12, (2, 15), generator=torch.Generator().manual_seed(1))


def test_a_large_cache_changes_nothing() -> None:
    model = CausalTransformer(12, 16, n_heads=4, n_key_heads=2, generator=seeded(1)).double()
    plain, logged = model(SYMBOLS), model(SYMBOLS, output_attentions=True)
    torch.testing.assert_close(plain.logits, logged.logits, rtol=1e-10, atol=1e-12)
    cache = BoundedCache(20, 0)
    parts = [model(part, past_key_values=cache).logits for part in SYMBOLS.split(4, 1)]
    torch.testing.assert_close(torch.cat(parts, 1), plain.logits, rtol=1e-10, atol=1e-12)
    assert logged.attentions is not None
    torch.testing.assert_close(logged.attentions[1].sum(-1), torch.ones(2, 4, 15, dtype=torch.float64))


def test_the_future_is_not_seen() -> None:
    model = CausalTransformer(12, 16, n_heads=2)
    changed = SYMBOLS.clone()
    changed[:, 9:] = 0
    torch.testing.assert_close(model(SYMBOLS).logits[:, :9], model(changed).logits[:, :9])


def test_weights_come_from_the_generator_alone() -> None:
    first, second = (CausalTransformer(12, 16, n_heads=2, generator=seeded(2)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    cache = BoundedCache(3, 2)
    first(SYMBOLS, past_key_values=cache)
    cache.reset()
    assert cache.get_seq_length() == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"hidden_size": 15}, "even multiple of n_heads"),
        ({"n_key_heads": 3}, "multiple of n_key_heads"),
        ({"n_layers": 0}, "n_layers"),
    ],
)
def test_bad_sizes_are_named(options: dict, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        CausalTransformer(**{"n_symbols": 12, "hidden_size": 16, **options})


def test_weights_are_not_returned_with_a_cache() -> None:
    with pytest.raises(InvalidInput, match="without a cache"):
        CausalTransformer(12, 16)(SYMBOLS, past_key_values=BoundedCache(2, 2), output_attentions=True)
