"""``separatrix diagnose``: look inside a model's file of weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..options import AsJson
from ..printing import print_json, print_table, tell

if TYPE_CHECKING:
    from separatrix.diagnose import AttentionDiagnosis

app = typer.Typer(help="Look inside a model; nothing in its file is executed.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Look inside a model; nothing in its file is executed."""


@app.command()
def attention(
    file: Annotated[Path, typer.Argument(help="Weights: .safetensors, or a checkpoint of plain tensors.")],
    n_heads: Annotated[
        int | None, typer.Option(help="Number of heads; default: from a config.json beside the file.")
    ] = None,
    n_starts: Annotated[int, typer.Option(help="Random starts of each frozen layer; 0 leaves them out.")] = 1,
    n_tokens: Annotated[int, typer.Option(help="Tokens of a start.")] = 48,
    t_max: Annotated[float, typer.Option(help="Time limit, in units of one over the principal real part.")] = 200.0,
    biases: Annotated[bool, typer.Option("--biases", help="Keep the biases of the projections.")] = False,
    control: Annotated[bool, typer.Option("--control", help="Measure weights drawn anew as well.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of starts and control.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Say what each attention layer does to tokens if it is iterated: collapse, rotate, or keep groups."""
    from separatrix.core.random import spawn
    from separatrix.diagnose import attention_dynamics

    found = attention_dynamics(
        file,
        n_heads=n_heads,
        biases=biases,
        n_starts=n_starts,
        n_tokens=n_tokens,
        t_max=t_max,
        control=control,
        generator=spawn(seed, "diagnose", "attention"),
    )
    if as_json:
        print_json(_as_dict(found))
        return
    for title, rows in found.tables().items():
        if rows:
            shown = [name for name in rows[0] if control or name != "control"]
            print_table(shown, [tuple(row[name] for name in shown) for row in rows], title=title)
    for name, reason in found.skipped.items():
        tell(f"skipped {name}: {reason}")
    for sentence in (*found.verdicts, *found.not_measured):
        tell(sentence)


def _as_dict(found: AttentionDiagnosis) -> dict[str, Any]:
    from separatrix.core.result import plain

    return {
        "verdicts": found.verdicts,
        "tables": plain(found.tables()),
        "skipped": dict(found.skipped),
        "not_measured": list(found.not_measured),
    }
