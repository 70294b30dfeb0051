from __future__ import annotations

import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.experiments.kerg2022.trained.models import build_core, find_row, training_settings
from separatrix.nn import SequenceModel, parameter_count
from separatrix.sources.kerg2022.models import TABLES, model_row
from separatrix.training import make_optimiser

SIZES = {"copy": (10, 9), "psmnist": (1, 10), "ptb-150": (200, 50), "ptb-300": (200, 50)}


def test_tables_have_every_model_once_at_every_size() -> None:
    for rows in TABLES.values():
        assert len({row.name for row in rows}) == len(rows)
        assert {row.model for row in rows} == {"nnRNN", "expRNN", "LSTM", "RNN-orth", "EURNN", "RNN"}


@pytest.mark.parametrize(
    ("table", "model", "n_hidden"),
    [("copy", "expRNN", 176), ("copy", "LSTM", 63), ("psmnist", "expRNN", 722), ("psmnist", "LSTM", 257),
     ("ptb-150", "expRNN", 1386), ("ptb-300", "LSTM", 475), ("copy", "nnRNN", 128)],
)  # fmt: skip
def test_equal_numbers_of_parameters_are_the_rows_that_the_document_prints(
    table: str, model: str, n_hidden: int
) -> None:
    assert find_row(table, model, SIZES[table], 0, "parameters", 1.0).n_hidden == n_hidden


def test_a_network_of_rotations_has_as_many_parameters_as_it_is_matched_with() -> None:
    row = find_row("copy", "EURNN", (10, 9), 64, "parameters", 1.0)
    built = SequenceModel(build_core(row, 10, torch.Generator().manual_seed(0)), 9)
    wanted = parameter_count("nnrnn-printed", 10, 64, 9)
    assert row.n_hidden % 2 == 0
    assert abs(sum(p.numel() for p in built.parameters()) / wanted - 1) < 0.03


@pytest.mark.parametrize("table", SIZES)
def test_equal_numbers_of_units_are_the_first_rows(table: str) -> None:
    sizes = {find_row(table, model, SIZES[table], 0, "units", 1.0).n_hidden for model in ("nnRNN", "expRNN", "RNN")}
    assert len(sizes) == 1


def test_a_factor_multiplies_both_rates() -> None:
    row = find_row("copy", "nnRNN", (10, 9), 16, "units", 4.0)
    assert (row.lr, row.lr_orth, row.n_hidden) == (pytest.approx(2e-3), pytest.approx(4e-6), 16)


@pytest.mark.parametrize("model", ["nnRNN", "expRNN", "RNN-orth", "LSTM", "RNN", "EURNN"])
def test_every_row_builds_and_its_groups_fit(model: str) -> None:
    row = find_row("copy", model, (10, 9), 8, "units", 1.0)
    built = SequenceModel(build_core(row, 10, torch.Generator().manual_seed(0)), 9)
    optimiser = make_optimiser(built, training_settings(row, 1))
    rates = {group["lr"] for group in optimiser.param_groups}
    assert rates == ({row.lr} if row.lr_orth is None else {row.lr, row.lr_orth})
    assert built(torch.zeros(2, 5, 10)).shape == (2, 5, 9)


def test_only_the_feedforward_part_decays() -> None:
    row = model_row("copy", "nnRNN")
    built = SequenceModel(build_core(row, 10, torch.Generator().manual_seed(0)), 9)
    optimiser = make_optimiser(built, training_settings(row, 1))
    decayed = [group for group in optimiser.param_groups if group["weight_decay"]]
    assert [len(group["params"]) for group in decayed] == [1]
    assert decayed[0]["params"][0] is built.core.matrix.feedforward


def test_an_unknown_row_gets_the_near_ones() -> None:
    with pytest.raises(InvalidInput, match="expRNN-176"):
        model_row("copy", "expRNN-177")
    with pytest.raises(InvalidInput, match="psmnist"):
        model_row("mnist", "nnRNN")
