from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Answer

Cli = Callable[..., Answer]


@pytest.mark.parametrize(
    "words",
    [
        ("advise", "deq", "--figure"),
        ("attention", "sweep", "--value", "none.npy", "--output"),
        ("attention", "phase", "--value", "none.npy", "--output"),
        ("diagnose", "fixed-points", "none.safetensors", "--output"),
    ],
)
def test_a_picture_that_cannot_be_written_is_known_before_the_work(
    words: tuple[str, ...], cli: Cli, tmp_path: Path
) -> None:
    for place, sentence in (("x.doc", "must end with .png, .svg or .pdf"), ("/proc/x.png", "cannot be written")):
        answer = cli(*words, place)
        assert (answer.code, answer.out) == (2, "")
        assert sentence in answer.err
        assert answer.err.count("\n") == 1
