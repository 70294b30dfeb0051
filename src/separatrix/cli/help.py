"""How ``--help`` speaks: of what a person would write, not of types; one rule for all commands."""

from __future__ import annotations

import copy
from typing import Any

NUMBER, FILE = "NUMBER", "FILE"


def speak_plainly(command: Any) -> None:
    """Let the help of a command, and of those below it, name what is to be written, and keep its words whole.

    A number is ``NUMBER``, a path ``FILE``, any other word the option's own name in capitals (``--scale SCALE``); an
    option that says it better has a ``metavar`` of its own. A flag is given or not and names nothing. All names of an
    option stand in one column (``--output, -o``), those of a switch below one another, which leaves room for the words.
    """
    for parameter in command.params:
        name_value(parameter)
    made_option, made_help = command.get_help_option, command.format_help

    def help_option(ctx: Any) -> Any:
        option = made_option(ctx)
        if option is not None:
            option.metavar = ""
        return option

    def format_help(ctx: Any, formatter: Any) -> None:
        shown = [_names_in_one_column(parameter) for parameter in command.get_params(ctx)]
        command.get_params = lambda _ctx: shown
        try:
            made_help(ctx, formatter)
        finally:
            del command.get_params  # the parser must know both names again

    command.get_help_option, command.format_help = help_option, format_help
    for below in getattr(command, "commands", {}).values():
        if below is not None:
            speak_plainly(below)


def name_value(parameter: Any) -> None:
    """Give an option or argument the word that stands for its value in the help and the line of usage."""
    if getattr(parameter, "is_flag", False):
        parameter.metavar = ""
        return
    argument = parameter.param_type_name == "argument"
    if parameter.metavar is None:
        parameter.metavar = _own_name(parameter) if argument else _word(parameter)
    if argument:
        parameter.display_type_rich = lambda ctx: ""  # its name stands there already
        usage = f"{parameter.metavar}..." if parameter.nargs != 1 else parameter.metavar
        if parameter.required:
            parameter.get_usage_pieces = lambda ctx: [usage]  # without braces, as it is written


def _word(parameter: Any) -> str:
    kind = _kind(parameter)
    if kind in ("int", "float", "integer"):
        return NUMBER
    return FILE if kind in ("Path", "path") else _own_name(parameter)


def _kind(parameter: Any) -> str:
    """The name of the type of a value, whichever release of typer holds it."""
    described = getattr(parameter, "type_descriptor", None)
    if described is not None:
        return str(getattr(described.annotation, "__name__", described.annotation))
    return str(parameter.type.name)


def _own_name(parameter: Any) -> str:
    longest = max(parameter.opts, key=len)
    return str(longest).lstrip("-").replace("-", "_").upper()


def _names_in_one_column(parameter: Any) -> Any:
    if parameter.param_type_name == "argument":
        return parameter
    shown = copy.copy(parameter)
    shown.opts = ["\n".join(", ".join(names) for names in (parameter.opts, parameter.secondary_opts) if names)]
    shown.secondary_opts = []
    return shown
