"""One name for each network: other spellings of documents and code become it."""

from __future__ import annotations

import re

_OTHER_NAMES = {"RNN-orth": "orth-RNN", "urnn": "uRNN", "lstm": "LSTM", "rnn": "RNN", "gru": "GRU"}


def model_name(name: str) -> str:
    """The one name of a network: other spellings of the documents and of the code become it.

    Example:
        >>> model_name("RNN-orth"), model_name("lstm, step by step")
        ('orth-RNN', 'LSTM, step by step')
    """
    for other, ours in _OTHER_NAMES.items():
        name = re.sub(rf"(?<![\w-]){re.escape(other)}(?![\w-])", ours, name)
    return name
