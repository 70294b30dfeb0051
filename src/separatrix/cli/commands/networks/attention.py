"""``separatrix attention``: equilibria of a self-attention head from its matrices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from separatrix.core.errors import InvalidInput

from ...options import AsJson
from ...outputs import require_picture
from ...printing import print_json, print_records, print_table, say, tell

if TYPE_CHECKING:
    from torch import Tensor

    from separatrix.dynamics import AttentionFlow

app = typer.Typer(help="Equilibria of a self-attention head: count them, their spectra, where tokens end.")

Matrix = ".npy, or .safetensors:NAME"
Value = Annotated[str, typer.Option(metavar="FILE", help=f"Value matrix (d, d): {Matrix}.")]
Coupling = Annotated[str | None, typer.Option(metavar="FILE", help=f"query' key (d, d): {Matrix}.")]
Query = Annotated[str | None, typer.Option(metavar="FILE", help=f"Query projection (m, d), with --key: {Matrix}.")]
Key = Annotated[str | None, typer.Option(metavar="FILE", help=f"Key projection (m, d), with --query: {Matrix}.")]
Beta = Annotated[float, typer.Option(help="Inverse temperature.")]
Tokens = Annotated[int, typer.Option(help="Number of tokens.")]
Betas = Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="Least and largest beta.")]
NBetas = Annotated[int, typer.Option(help="How many of them, evenly spaced.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Draw to this PDF, SVG or PNG.")]


@app.command()
def count(
    value: Value,
    coupling: Coupling = None,
    query: Query = None,
    key: Key = None,
    n_tokens: Tokens = 100,
    beta: Beta = 1.0,
    causal: Annotated[bool, typer.Option("--causal", help="Token i sees tokens 1 to i only.")] = False,
    as_json: AsJson = False,
) -> None:
    """Count the stable consensus and bipartite consensus points among all d 2^n of them, exactly."""
    from separatrix import theory

    logits, matrix = _matrices(coupling, query, key, value)
    if causal:
        ordered = theory.count_stable_causal(logits, matrix, n_tokens, beta)
        found = {**ordered.to_dict(), "total": ordered.total, "log2_count": ordered.log2_count}
        _print(found, as_json, _counted(ordered.per_eigenvector, ordered.log2_count, ordered.warning))
        return
    result = theory.count_stable(logits, matrix, n_tokens, beta)
    found = {
        **result.to_dict(),
        "total": result.total,
        "log2_count": _finite(result.log2_count),
        "log2_unstable": _finite(result.log2_unstable),
    }
    lines = _counted(result.per_eigenvector, result.log2_count, result.warning)
    lines += [f"  stable n_1 on v_{k + 1}: {_spans(parts)}" for k, parts in enumerate(result.windows) if parts]
    _print(found, as_json, lines)


@app.command()
def spectrum(
    value: Value,
    n1: Annotated[int, typer.Option(help="Tokens at +v_k.")],
    n2: Annotated[int, typer.Option(help="Tokens at -v_k; 0 for consensus.")] = 0,
    eigenvector: Annotated[int, typer.Option(help="Which eigenvector of value, from 1 in descending order.")] = 1,
    coupling: Coupling = None,
    query: Query = None,
    key: Key = None,
    beta: Beta = 1.0,
    as_json: AsJson = False,
) -> None:
    """Tangent eigenvalues, with multiplicities, where n1 tokens sit at +v_k and n2 at -v_k."""
    from separatrix import theory

    logits, matrix = _matrices(coupling, query, key, value)
    if not 1 <= eigenvector <= matrix.shape[-1]:
        raise InvalidInput(f"--eigenvector must lie from 1 to {matrix.shape[-1]}; got {eigenvector}.")
    result = theory.bipartite_spectrum(logits, matrix, eigenvector - 1, n1, n2, beta)
    blocks = [
        {"eigenvalues": [_pair(number) for number in values.tolist()], "multiplicity": times}
        for values, times in result.blocks
        if times > 0
    ]
    found = {
        "kind": result.kind,
        "stable": result.stable,
        "marginal": result.marginal,
        "abscissa": result.abscissa,
        "blocks": blocks,
    }
    state = "stable" if result.stable else "marginal" if result.marginal else "unstable"
    lines = [f"{result.kind} on v_{eigenvector}, sizes {n1} and {n2}: {state}, abscissa {result.abscissa:.6g}"]
    lines += [f"  x{times}: {_listing(values.tolist())}" for values, times in result.blocks if times > 0]
    _print(found, as_json, lines)


@app.command()
def classify(
    value: Value,
    tokens: Annotated[str, typer.Option(metavar="FILE", help=f"Unit tokens (n, d) or (runs, n, d): {Matrix}.")],
    coupling: Coupling = None,
    query: Query = None,
    key: Key = None,
    beta: Beta = 1.0,
    settle: Annotated[
        bool, typer.Option(help="Follow the flow to rest first; the default.", show_default=False)
    ] = True,
    normalise: Annotated[bool, typer.Option("--normalise", help="Divide tokens by their lengths.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what states are, or what they flow to: consensus, bipartite, clustering, cycle, and whether it is stable."""
    from separatrix import dynamics

    from ...matrix_files import load_array

    flow = _flow(*_matrices(coupling, query, key, value), beta)
    states = load_array(tokens, "--tokens")
    if settle:
        states = dynamics.integrate(flow, states, normalise=normalise).final
    ends = dynamics.classify(flow, states, normalise=normalise and not settle)
    lines = [f"{index}: {end.coarse_label}, {_standing(end)}" for index, end in enumerate(ends)]
    _print({"states": [end.to_dict() for end in ends]}, as_json, lines)


@app.command()
def census(
    value: Value,
    coupling: Coupling = None,
    query: Query = None,
    key: Key = None,
    n_tokens: Tokens = 100,
    n_starts: Annotated[int, typer.Option(help="Uniform starts.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the starts.")] = 0,
    beta: Beta = 1.0,
    as_json: AsJson = False,
) -> None:
    """Follow many uniform starts and count where they end, with 95% intervals; say whether the head is multistable.

    Every stable bipartite end point is confronted with its closed-form spectrum; a contradiction is an error. Whether
    there are several stable states is decided by the closed form, by the ends, and by a search for clusterings.
    """
    from separatrix import theory
    from separatrix.core.random import spawn
    from separatrix.diagnose import multistability
    from separatrix.dynamics.attractors.censuses import census as take_census

    logits, matrix = _matrices(coupling, query, key, value)

    def predicted(_instance: int, k: int, n1: int, n2: int) -> bool:
        return bool(theory.bipartite_spectrum(logits, matrix, k, n1, n2, beta).stable)

    flow = _flow(logits, matrix, beta)
    taken = take_census([flow], n_tokens=n_tokens, n_starts=n_starts, seed=seed, check=predicted)
    result = taken.instances[0]
    search = spawn(seed, "census", "search")
    decided = multistability(logits, matrix, n_tokens, beta, generator=search, n_starts=0)
    multistable = decided.multistable or result.reached_several
    reason = decided.reason if decided.multistable or not multistable else "the starts reached several stable states"
    shares = {family: result.fraction(family) for family in result.families}
    found = {
        "families": {
            family: {"count": result.families[family], "share": share, "low": low, "high": high}
            for family, (share, low, high) in shares.items()
        },
        "coarse": result.coarse,
        "multistable": multistable,
        "multistable_reason": reason,
        "reached_several": result.reached_several,
        "unseen": result.unseen,
        "not_converged": result.n_not_converged,
    }
    lines = [
        f"{family}: {result.families[family]} of {n_starts} ({share:.1%}, 95% interval {low:.1%} to {high:.1%})"
        for family, (share, low, high) in shares.items()
    ]
    lines.append(f"estimated share of labels not yet seen: {result.unseen:.1%}")
    lines.append(f"{'multistable' if multistable else 'not known to be multistable'}: {reason}")
    _print(found, as_json, lines)


@app.command()
def sweep(
    value: Value,
    coupling: Coupling = None,
    query: Query = None,
    key: Key = None,
    n_tokens: Tokens = 100,
    betas: Betas = (0.1, 3.0),
    n_betas: NBetas = 30,
    clusterings: Annotated[
        bool, typer.Option(help="Look for them at the largest beta; the default.", show_default=False)
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of that search.")] = 0,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Follow states through the inverse temperature: how many are stable, and where each gains or loses it."""
    from separatrix.diagnose import beta_sweep

    require_picture(output, "--output")
    found = beta_sweep(
        *_matrices(coupling, query, key, value), _grid(betas, n_betas), n_tokens, clusterings=clusterings, seed=seed
    )
    _draw(found, output)
    if as_json:
        _print({"table": found.table(), "events": found.events()}, as_json, [])
        return
    counted = [(f"{row['beta']:.4g}", _power(row["log2 stable"])) for row in found.table()]
    print_table(("beta", "stable points"), counted, title=f"Consensus and bipartite consensus, {n_tokens} tokens")
    columns = ("state", "beta", "what", "stable beyond", "closed form")
    if events := found.events():
        print_records([{name: row[name] for name in columns} for row in events], "Events")
    print(f"followed: {', '.join(state.name for state in found.states) or 'nothing'}")


@app.command()
def phase(
    value: Value,
    coupling: Coupling = None,
    query: Query = None,
    key: Key = None,
    n_tokens: Tokens = 100,
    betas: Betas = (0.1, 3.0),
    n_betas: NBetas = 30,
    n_starts: Annotated[int, typer.Option(help="Uniform starts of a census at nine of the betas; 0: none.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the census.")] = 0,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Which splits of the tokens are stable at which inverse temperature, in closed form, with a census on top."""
    from separatrix.diagnose import phase_diagram

    require_picture(output, "--output")
    found = phase_diagram(
        *_matrices(coupling, query, key, value), _grid(betas, n_betas), n_tokens, n_starts=n_starts, seed=seed
    )
    _draw(found, output)
    thresholds = {f"v_{k + 1}": beta for k, beta in zip(found.eigenvectors, found.critical, strict=True)}
    if as_json:
        _print({"critical": thresholds, "table": found.table(), "ends": [*found.ends]}, as_json, [])
        return
    rows = found.table()
    shown = [name for name in rows[0] if any(row[name] not in ("", "none", False) for row in rows)]
    print_records([{name: row[name] for name in shown} for row in rows])
    for name, beta in thresholds.items():
        print(f"pairs on {name}: " + (f"stable from beta = {beta:.6g} on" if beta < float("inf") else "never stable"))


def _grid(betas: tuple[float, float], n_betas: int) -> Tensor:
    import torch

    low, high = betas
    if not (0 <= low < high < float("inf")) or n_betas < 2:
        raise InvalidInput(f"--betas must be two increasing numbers of at least 0, --n-betas at least 2; got {betas}.")
    return torch.linspace(low, high, n_betas, dtype=torch.float64)


def _draw(found: Any, output: Path | None) -> None:
    if output is not None:
        from separatrix.report import plot, save

        save(cast(Any, plot(found).figure), output)
        say(f"drew {output}")


def _power(log2: float) -> str:
    if log2 == -float("inf"):
        return "0"
    return str(round(2**log2)) if log2 < 40 else f"2^{log2:.6g}"


def _matrices(coupling: str | None, query: str | None, key: str | None, value: str) -> tuple[Tensor, Tensor]:
    from ...matrix_files import load_array

    if (coupling is None) == (query is None and key is None) or (query is None) != (key is None):
        raise InvalidInput("give either --coupling, or both --query and --key.")
    matrix = load_array(value, "--value")
    if coupling is not None:
        return load_array(coupling, "--coupling"), matrix
    first, second = load_array(str(query), "--query"), load_array(str(key), "--key")
    if first.ndim != 2 or first.shape != second.shape:
        raise InvalidInput(
            f"--query and --key must have one shape (m, d); got {tuple(first.shape)} and {tuple(second.shape)}."
        )
    return first.mT @ second, matrix


def _flow(logits: Tensor, matrix: Tensor, beta: float) -> AttentionFlow:
    from separatrix import dynamics

    return dynamics.AttentionFlow.from_coupling(logits, matrix, beta)


def _print(found: dict[str, Any], as_json: bool, lines: list[str]) -> None:
    from separatrix.core.result import plain

    if as_json:
        print_json(plain(found))
    else:
        tell("\n".join(lines))


def _counted(per_eigenvector: list[int] | None, log2_count: float, warning: str | None) -> list[str]:
    lines = [f"note: {warning}"] if warning else []
    if per_eigenvector is None:
        return [*lines, f"stable points: 2^{log2_count:.12g}"]
    lines.append(f"stable points: {sum(per_eigenvector)}")
    return lines + [f"  on v_{k + 1}: {number}" for k, number in enumerate(per_eigenvector) if number]


def _spans(parts: list[tuple[int, int]]) -> str:
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in parts)


def _finite(number: float) -> float | None:
    return number if abs(number) < float("inf") else None


def _pair(number: Any) -> list[float]:
    return [number.real, number.imag]


def _listing(numbers: list[Any], most: int = 12) -> str:
    shown = ", ".join(f"{number:.6g}" for number in numbers[:most])
    return shown + (f", and {len(numbers) - most} more" if len(numbers) > most else "")


def _standing(end: Any) -> str:
    if not end.is_equilibrium:
        return f"speed {end.residual:.2g}"
    return "stable" if end.stable else "marginal" if end.marginal else f"unstable in {end.index} directions"
