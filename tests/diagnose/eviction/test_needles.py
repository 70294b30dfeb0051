"""Needle tables: a model that can only find what is held, and its table by place and budget."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.core import InvalidInput
from separatrix.diagnose import needle_table


class Finder:
    """Foretells symbol 9 where the needle, a 7, is among the last ``size`` tokens."""

    def __call__(self, input_ids: Tensor, past_key_values: Any = None, **_: Any) -> SimpleNamespace:
        logits = torch.zeros(*input_ids.shape, 10)
        if past_key_values is None:
            past_key_values = SimpleNamespace(size=10**6, tokens=[])
        for step, token in enumerate(input_ids.unbind(1)):
            past_key_values.tokens.append(token)
            seen = torch.stack(past_key_values.tokens[-past_key_values.size :], 1)
            logits[:, step, 9] = torch.where((seen == 7).any(1), 5.0, -5.0)
        return SimpleNamespace(logits=logits)


def problems(place: int, paraphrased: bool) -> tuple[Tensor, Tensor]:
    tokens = torch.ones(2, 20, dtype=torch.int64)
    tokens[:, place], tokens[:, -1] = 7, 9
    return tokens, torch.arange(20).eq(18).expand(2, 20)


def test_what_is_out_of_reach_is_not_found() -> None:
    caches = {"window": lambda size: SimpleNamespace(size=size, tokens=[])}
    table = needle_table(Finder(), problems, caches, places=(2, 12), budgets=(5, 10, 20), paraphrased=(False,))
    assert table.accuracy("window", 5) == {2: 0.0, 12: 0.0}
    assert table.accuracy("window", 10) == {2: 0.0, 12: 1.0}
    assert table.accuracy("window", 20) == {2: 1.0, 12: 1.0}
    assert all(row["unbounded"] == 1.0 for row in table.rows)
    assert table.to_frame().shape[0] == 6
    assert "budget" in repr(table)


def test_empty_questions_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        needle_table(Finder(), problems, {}, places=(1,), budgets=(5,))
    with pytest.raises(InvalidInput, match="budgets"):
        needle_table(Finder(), problems, {"x": lambda size: None}, places=(1,), budgets=(0,))
