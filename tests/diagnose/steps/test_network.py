from __future__ import annotations

import math
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput
from separatrix.diagnose import recurrent_networks
from separatrix.diagnose.steps.network import run


@pytest.mark.slow
def test_a_language_model_read_from_its_file_predicts_as_well_as_it_did(data_dir: Path) -> None:
    """Two LSTMs, attention over time, read-out: 2.7687 bits a character, measured on the model itself."""
    path = data_dir / "weights" / "char_lstm_lm_textgenrnn.npz"
    with numpy.load(path, allow_pickle=False) as arrays:
        part = {name: torch.from_numpy(arrays[name]).double() for name in arrays.files if name != "vocab_codepoints"}
        number = {chr(point): k for k, point in enumerate(arrays["vocab_codepoints"].tolist()) if k and point}
    text = (data_dir / "text" / "tinyshakespeare.txt").read_text(encoding="utf-8")[:4000].replace("\n", " ")
    symbols = torch.tensor([number[letter] for letter in text if letter in number][:2040])
    first, second = (network.levels[0][0] for network in recurrent_networks(path))
    nats = 0.0
    for begin in range(40, 2040, 500):
        contexts = torch.stack([symbols[k - 40 : k] for k in range(begin, begin + 500)])
        e = part["embedding"][contexts]
        h1 = run(first, e)[:, 1:, :128]
        h2 = run(second, h1)[:, 1:, :128]
        seen = torch.cat([e, h1, h2], dim=-1)
        weights = torch.softmax(seen @ part["attention"], dim=1)
        logits = (weights.unsqueeze(-1) * seen).sum(1) @ part["out_weight"].mT + part["out_bias"]
        nats += float(nn.functional.cross_entropy(logits, symbols[begin : begin + 500], reduction="sum"))
    assert nats / 2000 / math.log(2) == pytest.approx(2.7687, abs=5e-4)


@pytest.mark.parametrize("both", [False, True])
def test_levels_are_fed_as_torch_feeds_them(both: bool, generator: torch.Generator) -> None:
    lstm = nn.LSTM(3, 4, 3, bidirectional=both, batch_first=True, dtype=torch.float64)
    x = torch.randn(2, 7, 3, generator=generator, dtype=torch.float64)
    (network,) = recurrent_networks(lstm)
    top = network.fed(x)[-1]
    below = nn.LSTM(3, 4, 2, bidirectional=both, batch_first=True, dtype=torch.float64)
    below.load_state_dict({name: value for name, value in lstm.state_dict().items() if "_l2" not in name})
    torch.testing.assert_close(top, below(x)[0].detach(), rtol=0, atol=1e-12)


def test_sequences_are_refused_by_name() -> None:
    (network,) = recurrent_networks(nn.GRU(3, 4))
    with pytest.raises(InvalidInput, match=r"inputs must be \(time, batch, features\)"):
        network.sequences(torch.ones(2, 5, 4))
    with pytest.raises(InvalidInput, match="inputs must be real"):
        network.sequences(torch.ones(2, 5, 3, dtype=torch.complex64))
