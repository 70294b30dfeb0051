"""``separatrix advise``: recommend a matrix family and scale before training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from separatrix.advise import DeqAdvice

_TABLE_WIDTH = 108

app = typer.Typer(help="Recommend a method, a matrix family or a scale, and say why.", no_args_is_help=True)


@app.callback()
def advise() -> None:
    """Recommend a method, a matrix family or a scale, and say why."""


@app.command("deq")
def deq_command(
    phi: Annotated[
        str, typer.Option(help="Activation, such as tanh, hardtanh or relu; an unknown name lists all.")
    ] = "tanh",
    width: Annotated[int, typer.Option(help="Width of the state.")] = 512,
    input_std: Annotated[float, typer.Option(help="Standard deviation of the injected input, per coordinate.")] = 1.0,
    input_mean: Annotated[float, typer.Option(help="Mean of the injected input.")] = 0.0,
    ensemble: Annotated[str, typer.Option(help="A family (gaussian, haar, goe, ..., elliptic:TAU), or any.")] = "any",
    weight_scale: Annotated[float | None, typer.Option(help="Scale of the weights, sqrt(V); default: advised.")] = None,
    tol: Annotated[float, typer.Option(help="Relative accuracy asked of the iteration.")] = 1e-5,
    budget: Annotated[int | None, typer.Option(help="Most iterations the solver may take.")] = None,
    cell: Annotated[str, typer.Option(help="outside: phi(W z) + x; inside: phi(W z + x).")] = "outside",
    figure: Annotated[Path | None, typer.Option(help="Write the picture to this file (.pdf, .svg, .png).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the advice as JSON.")] = False,
) -> None:
    """Advise on the initial matrix of a deep equilibrium network."""
    from separatrix import advise as room

    advice = room.deq(
        phi,
        width,
        input_std=input_std,
        input_mean=input_mean,
        ensemble=ensemble,
        weight_scale="recommend" if weight_scale is None else weight_scale,
        tol=tol,
        budget=budget,
        cell=cell,  # type: ignore[arg-type]
    )
    if figure is not None:
        from separatrix.report import save
        from separatrix.report.figures.deq import advice as picture

        save(picture(advice), figure)
    if as_json:
        typer.echo(advice.to_json())
    else:
        _show(advice)


def _show(advice: DeqAdvice) -> None:
    from rich.console import Console

    console = Console(soft_wrap=True, width=max(Console().width, _TABLE_WIDTH))  # wrapped, not cut, when narrower
    form = "phi(W z) + x" if advice.cell == "outside" else "phi(W z + x)"
    console.print(
        f"z = {form}, phi = {advice.phi}, width {advice.width}, input std {advice.input_std:g}", highlight=False
    )
    console.print(_table(advice))
    console.print(
        f"Recommended: {advice.ensemble} at sqrt(V) = {advice.weight_scale:.3g}: radius {advice.radius:.3f}, "
        f"about {advice.iterations:.0f} iterations to {advice.tol:g}.",
        highlight=False,
    )
    weak = ", ".join(f"{item['input_std']:.3g}: {_radius(item['radius'])}" for item in advice.injection)
    console.print(f"Radius there for other input scales (std: radius): {weak}.", highlight=False)
    for title, lines in (("Why", advice.reasons), ("Warning", advice.warnings), ("Limit", advice.limits)):
        for line in lines:
            console.print(f"{title}: {line}", highlight=False)


def _radius(number: float) -> str:
    return f"{number:.2f}" if number == number else "no stable equilibrium"


def _table(advice: DeqAdvice) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, padding=(0, 1))
    columns = ("family", "critical", "safe", "scale", "radius", "steps", "slowest", "E h²", "E z²", "gain")
    for name in columns:
        table.add_column(name, justify="left" if name == "family" else "right", no_wrap=True)
    for item in advice.forecasts:
        table.add_row(
            item.ensemble,
            *(f"{value:.3g}" for value in (item.critical_scale, item.safe_scale, item.weight_scale, item.radius)),
            *(f"{value:.0f}" for value in (item.iterations, item.iterations_largest)),
            *(f"{value:.3g}" for value in (item.h_var, item.q, item.gradient_gain)),
        )
    return table
