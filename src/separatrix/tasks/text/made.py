"""Texts that need no download: any text in the 27 symbols of text8, and a made-up one with structure to learn."""

from __future__ import annotations

import re

import torch

from separatrix.core.arrays import require_integer

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_WORDS = (
    "the a every no this one some that",
    "small round quiet distant bright heavy old patient",
    "wheel river stone lamp engine garden signal moon",
    "turns follows holds meets leaves finds moves answers",
    "slowly again twice below first early apart alone",
)


def normalise_text8(text: str) -> str:
    """Any text in the symbols a to z and blank: digits spelt out, everything else a blank, no two blanks in a row.

    Example:
        >>> normalise_text8("Room 42,  <unk> : café!")
        'room four two unk caf'
    """
    spelt = re.sub(r"[0-9]", lambda found: f" {_DIGITS[int(found[0])]} ", text.lower())
    return re.sub(r"[^a-z]+", " ", spelt).strip()


def made_up_text(n_characters: int, *, generator: torch.Generator) -> str:
    """Sentences of five words, each drawn from the eight that may stand at its place; for trials without data.

    A model of single letters needs about four bits a character, the true source 15 bits a sentence.
    """
    require_integer(n_characters, "n_characters", at_least=1)
    places = [place.split() for place in _WORDS]
    shortest = sum(min(len(word) for word in place) + 1 for place in places)
    draws = torch.randint(8, (n_characters // shortest + 1, len(places)), generator=generator).tolist()
    sentences = (" ".join(place[k] for place, k in zip(places, row, strict=True)) + ".\n" for row in draws)
    return "".join(sentences)[:n_characters]
