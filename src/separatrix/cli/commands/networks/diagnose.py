"""``separatrix diagnose``: look inside a model's file of weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ...options import AsJson
from ...outputs import require_picture
from ...printing import print_json, print_records, say, tell

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
            print_records([{k: v for k, v in row.items() if control or k != "control"} for row in rows], title)
    for name, reason in found.skipped.items():
        tell(f"skipped {name}: {reason}")
    for sentence in (*found.verdicts, *found.not_measured):
        tell(sentence)


@app.command("recurrent")
def report_recurrent(
    file: Annotated[Path, typer.Argument(help="Weights: .safetensors, .npz, or a checkpoint of plain tensors.")],
    inputs: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="zeros, gaussian, uniform (300 made-up steps), or sequences (batch, time, in) in FILE.npy.",
        ),
    ] = None,
    n_exponents: Annotated[int | None, typer.Option(help="Lyapunov exponents; default: all up to 256 numbers.")] = None,
    nonlinearity: Annotated[str, typer.Option(help="Of plain networks: tanh or relu.")] = "tanh",
    seed: Annotated[int, typer.Option(help="Seed of made-up inputs and resampling.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Say what recurrent networks do: matrices of the gates, exponents and gradients along a run, memory."""
    from separatrix.diagnose import recurrent

    given = inputs if inputs is None or inputs in ("zeros", "gaussian", "uniform") else _sequences(inputs)
    found = recurrent(file, given, n_exponents=n_exponents, nonlinearity=nonlinearity, seed=seed)
    if as_json:
        print_json(found.to_dict())
        return
    for title, rows in found.tables().items():
        if rows:
            print_records(rows, title)
    for sentence in (*found.verdicts, *found.not_measured):
        tell(sentence)


@app.command("fixed-points")
def search_fixed_points(
    file: Annotated[Path, typer.Argument(help="Weights: .safetensors, .npz, or a checkpoint of plain tensors.")],
    inputs: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Constant inputs, FILE.npy of (features,) or (k, features); default: zero."),
    ] = None,
    states: Annotated[
        str | None, typer.Option(metavar="FILE", help="Visited states, FILE.npy of (..., n); default: its own.")
    ] = None,
    n_starts: Annotated[int, typer.Option(help="Most states to start from.")] = 256,
    seed: Annotated[int, typer.Option(help="Seed of the starts.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Draw them: FILE.png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find the fixed points of a recurrent network at constant inputs, with certificates and eigenvalues."""
    from separatrix.diagnose import fixed_points, recurrent_networks

    from ...matrix_files import load_array

    require_picture(output, "--output")
    width = recurrent_networks(file)[0].input_size
    held = [0.0] * width if inputs is None else load_array(inputs, "--inputs")
    starts = None if states is None else load_array(states, "--states")
    found = fixed_points(file, held, starts, n_starts=n_starts, seed=seed)
    if output is not None:
        from separatrix.report import plot, save

        save(cast(Any, plot(found).figure), output)
        say(f"drew {output}")
    if as_json:
        print_json(found.to_dict())
        return
    rows = found.rows()
    if rows:
        print_records(rows, "fixed points")
    tell(f"{found.sentence}.")


def _sequences(name: str) -> Any:
    from separatrix.core.errors import InvalidInput

    from ...matrix_files import load_array

    if "." not in name:
        raise InvalidInput(f"--inputs must be zeros, gaussian, uniform or a file of sequences; got {name!r}.")
    return load_array(name, "--inputs")


def _as_dict(found: AttentionDiagnosis) -> dict[str, Any]:
    from separatrix.core.result import plain

    return {
        "verdicts": found.verdicts,
        "tables": plain(found.tables()),
        "skipped": dict(found.skipped),
        "not_measured": list(found.not_measured),
    }
