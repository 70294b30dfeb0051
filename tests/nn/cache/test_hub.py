"""The cache as an object: settings, what it says, what it refuses without any model."""

from __future__ import annotations

import pytest
import torch

from separatrix import nn
from separatrix.core import InvalidInput

transformers = pytest.importorskip("transformers", reason="transformers is not installed: separatrix[hub]")


def test_settings_are_checked_at_once() -> None:
    with pytest.raises(InvalidInput, match="n_buffer"):
        nn.RelevanceCache(0, 3)
    with pytest.raises(InvalidInput, match="Did you mean 'sinks'"):
        nn.RelevanceCache(4, 3, "sink")
    with pytest.raises(InvalidInput, match="unknown option of RelevanceCache 'offloading'"):
        nn.RelevanceCache(4, 3, offloading=True)  # type: ignore[call-arg]


def test_an_empty_cache_is_a_cache() -> None:
    cache = nn.RelevanceCache(4, 3, nn.HeavyHitterKeys())
    assert isinstance(cache, transformers.Cache)
    assert (cache.budget, cache.get_seq_length(), cache.kept_positions) == (7, 0, ())
    assert "heavy_hitter, 0 of at most 7 keys, 0 seen" in repr(cache)
    assert cache.get_mask_sizes(5, 0) == (5, 0)
    assert not cache.is_compileable


def test_layers_are_not_offloaded_nor_cropped() -> None:
    cache = nn.RelevanceCache(4, 3)
    model = torch.nn.Identity()
    cache.bind(model, 2)
    for refused in (cache.layers[0].offload, cache.layers[0].prefetch, lambda: cache.layers[1].crop(-1)):
        with pytest.raises(InvalidInput, match="RelevanceCache"):
            refused()
    with pytest.raises(InvalidInput, match="2 layers and the model 3"):
        cache.bind(model, 3)
