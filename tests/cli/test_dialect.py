"""Options of commands are called as the arguments of the functions they pass on to."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from separatrix import advise, diagnose, dynamics, theory
from separatrix.cli.commands.networks import advise as advise_command, attention, diagnose as diagnose_command

COMMANDS: dict[str, tuple[Callable[..., None], tuple[Callable[..., Any], ...], set[str]]] = {
    "attention count": (attention.count, (theory.count_stable, theory.count_stable_causal), {"causal"}),
    "attention spectrum": (attention.spectrum, (theory.bipartite_spectrum,), {"eigenvector"}),
    "attention classify": (attention.classify, (dynamics.classify, theory.bipartite_spectrum), {"settle", "tokens"}),
    "attention census": (attention.census, (dynamics.census, theory.count_stable), set()),
    "advise deq": (advise_command.deq_command, (advise.deq,), {"figure"}),
    "diagnose attention": (diagnose_command.attention, (diagnose.attention_dynamics,), {"file", "seed"}),
}
"""By command: its function, the functions it calls, and options that only a terminal needs."""

EVERYWHERE = {"as_json", "query", "key"}


@pytest.mark.parametrize("name", COMMANDS)
def test_options_bear_the_names_of_arguments(name: str) -> None:
    command, functions, own = COMMANDS[name]
    arguments = {argument for function in functions for argument in inspect.signature(function).parameters}
    options = set(inspect.signature(command).parameters)
    assert not options - arguments - own - EVERYWHERE
    assert own <= options, "an exception that is no longer needed"
