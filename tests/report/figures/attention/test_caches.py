"""Figures of caches: one line a cache, labelled axes, a sentence above."""

from __future__ import annotations

import torch

from separatrix import diagnose, nn, plot
from separatrix.report.figures.attention.caches import draw_cache_quality, draw_needle_rows

TOKENS = torch.randint(7, (1, 12), generator=torch.Generator().manual_seed(1))


def test_an_audit_is_drawn_by_where_the_keys_come_from() -> None:
    model = nn.CausalTransformer(7, 8, n_layers=1, n_heads=2)
    caches = {name: (lambda name=name: nn.BoundedCache(2, 2, name)) for name in ("window", "sinks")}
    ax = plot(diagnose.cache_audit(model, TOKENS, caches))
    assert [line.get_label() for line in ax.lines] == ["window", "sinks"]
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert ax.get_title()


def test_needles_are_drawn_exact_and_paraphrased() -> None:
    keys = ("cache", "budget", "place", "wording", "accuracy", "unbounded")
    rows = [(c, 8, p, w, 0.5, 1.0) for c in ("window", "mine") for p in (1, 5) for w in ("exact", "paraphrased")]
    table = diagnose.NeedleTable(tuple(dict(zip(keys, row, strict=True)) for row in rows))
    ax = plot(table)
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--"] * 2


def test_tables_of_the_experiment_are_drawn_and_may_be_empty() -> None:
    rows = [{"policy": p, "budget": b, "accuracy": 0.3, "loss": 2.0} for p in ("window", "oracle") for b in (4, 8)]
    figure = draw_cache_quality(rows, rows, {"accuracy": 1.0, "loss": 1.9})
    assert [len(ax.lines) for ax in figure.axes] == [3, 3]
    assert len(draw_cache_quality([], [], {}).axes) == 2
    needle = {"policy": "window", "budget": 4, "wording": "exact", "place": 1, "accuracy": 0.4}
    assert len(draw_needle_rows([needle, {**needle, "budget": 8}]).axes) == 2
    assert len(draw_needle_rows([]).axes) == 1
