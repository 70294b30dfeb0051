"""``separatrix advise``: recommend a matrix family and scale before training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...outputs import require_picture
from ...printing import print_table, tell

if TYPE_CHECKING:
    from separatrix.advise import DeqAdvice

_COLUMNS = ("family", "critical", "safe", "scale", "radius", "steps", "slowest", "E h²", "E z²", "gain")

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

    require_picture(figure, "--figure")
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
    form = "phi(W z) + x" if advice.cell == "outside" else "phi(W z + x)"
    tell(f"z = {form}, phi = {advice.phi}, width {advice.width}, input std {advice.input_std:g}")
    print_table(_COLUMNS, _rows(advice))
    tell(
        f"Recommended: {advice.ensemble} at sqrt(V) = {advice.weight_scale:.3g}: radius {advice.radius:.3f}, "
        f"about {advice.iterations:.0f} iterations to {advice.tol:g}."
    )
    weak = ", ".join(f"{item['input_std']:.3g}: {_radius(item['radius'])}" for item in advice.injection)
    tell(f"Radius there for other input scales (std: radius): {weak}.")
    for title, lines in (("Why", advice.reasons), ("Warning", advice.warnings), ("Limit", advice.limits)):
        for line in lines:
            tell(f"{title}: {line}")


def _radius(number: float) -> str:
    return f"{number:.2f}" if number == number else "no stable equilibrium"


def _rows(advice: DeqAdvice) -> list[tuple[str, ...]]:
    return [
        (
            item.ensemble,
            *(f"{value:.3g}" for value in (item.critical_scale, item.safe_scale, item.weight_scale, item.radius)),
            *(f"{value:.0f}" for value in (item.iterations, item.iterations_largest)),
            *(f"{value:.3g}" for value in (item.h_var, item.q, item.gradient_gain)),
        )
        for item in advice.forecasts
    ]
