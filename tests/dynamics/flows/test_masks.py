"""What every mask with a name promises; a new one is found by its line in MASKS."""

from __future__ import annotations

import pytest
import torch

from separatrix.dynamics import AttentionFlow, random_tokens
from separatrix.dynamics.flows.masks import MASKS


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("n_tokens", [1, 2, 5, 9])
def test_a_named_mask_is_the_matrix_that_it_names(name: str, n_tokens: int, generator: torch.Generator) -> None:
    mask = MASKS[name].matrix(n_tokens)
    assert (mask.dtype, tuple(mask.shape)) == (torch.bool, (n_tokens, n_tokens))
    coupling, value = torch.randn(2, 3, 3, generator=generator, dtype=torch.float64)
    x = random_tokens(n_tokens, 3, generator=generator)
    named, given = (AttentionFlow.from_coupling(coupling, value, mask=kind) for kind in (name, mask))
    assert torch.equal(named.velocity(x), given.velocity(x))
    assert torch.equal(named.attention(x) > 0, mask)
    assert (named.reducible, named.is_plain, name in repr(named)) == (False, False, True)
