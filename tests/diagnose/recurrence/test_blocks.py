from __future__ import annotations

import pytest
import torch
from torch import nn

from separatrix.diagnose import recurrent
from separatrix.matrices import henrici, kreiss_constant


def test_measures_are_those_of_the_matrices_room(generator: torch.Generator) -> None:
    rnn = nn.RNN(2, 8)
    matrix = rnn.weight_hh_l0.detach().double()
    (block,) = recurrent(rnn).layers[0].blocks
    assert block.henrici == pytest.approx(float(henrici(matrix)))
    assert block.relative_henrici == pytest.approx(float(henrici(matrix, relative=True)))
    assert block.kreiss == pytest.approx(float(kreiss_constant(matrix)), rel=1e-3)
    values, vectors = torch.linalg.eig(matrix)
    assert block.spectral_radius == pytest.approx(float(values.abs().max()))
    assert block.eigenbasis_condition == pytest.approx(float(torch.linalg.cond(vectors)))


def test_the_schur_picture_counts_every_mode_and_tells_a_delay_line(generator: torch.Generator) -> None:
    rnn = nn.RNN(2, 6)
    with torch.no_grad():
        rnn.weight_hh_l0.copy_(torch.diag(torch.full((5,), 0.7), -1))
    picture = recurrent(rnn).layers[0].blocks[0].schur
    assert picture is not None
    assert int(picture.angle_histogram.sum()) == 6
    assert int(picture.modulus_histogram.sum()) == 6
    assert picture.diagonal_means.tolist() == pytest.approx([0.7, 0, 0, 0, 0], abs=1e-7)
    mixed = recurrent(nn.RNN(2, 7)).layers[0].blocks[0].schur
    assert mixed is not None
    assert bool((mixed.feedforward_means >= 0).all())
    assert len(mixed.feedforward_means) == 6
