"""Self-attention trajectories against diffrax, SciPy and our own loop by torch: CPU time at equal error.

Every method follows the same starts until the fastest token is slower than 1e-2 |V|. "One start" is five starts, each
by a call of its own; "100 starts" is one call (vmapped in diffrax). Errors are medians, over the five starts, of the
largest distance of a token from DOP853 at 1e-12 at the time at which the method stopped. Each of our presets is
compared with the tolerance of the peer that gives it the same error (pairing.py has the rule), each precision with its
like (SciPy computes in float64 only). Compilation is done before and not counted; contestants take turns, each in one
thread, and we are measured thrice in a round.

diffrax may live in an environment of its own, which the variable SEPARATRIX_JAX names by its Python; without it the
present one is tried. See attention_diffrax.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import torch
from pairing import Pair, ladder, paired
from rows import Row, compared, main, missing, worst_row
from scipy.integrate import solve_ivp

from separatrix import dynamics, matrices
from separatrix.core import spawn, use_backend

STOP, ALONE, HORIZON = 1e-2, 5, 400.0
SIZES = ((3, 10), (20, 100), (64, 256))
PRESETS, PRECISIONS = ("fast", "default"), ("float32", "float64")
LADDER = {"float32": ladder(1e-2, 1e-7), "float64": ladder(1e-2, 1e-9)}
FEW_ROUNDS = 2
"""Rounds in which SciPy and torch take part, which need long."""

GOAL_DIFFRAX, GOAL_SCIPY = 0.3, {"float32": 0.1, "float64": 0.2}


@dataclasses.dataclass(frozen=True)
class Problem:
    """One weight instance with its starts."""

    d: int
    n: int
    flow: Any
    starts: torch.Tensor

    @property
    def stop(self) -> float:
        """The speed at which a trajectory is stopped."""
        return STOP * float(self.flow.rate)

    def save(self, target: Path, count: int) -> None:
        """For the process that runs diffrax."""
        weights = {"coupling": self.flow.coupling.numpy(), "value": self.flow.value.numpy()}
        numpy.savez(target, starts=self.starts[:count].numpy(), stop=self.stop, **weights)


def problem(d: int, n: int, count: int) -> Problem:
    drawn = matrices.attention_instance(d, generator=spawn(0, "benchmark", "weights", d))
    flow = dynamics.AttentionFlow.from_coupling(drawn.coupling, drawn.value)
    return Problem(d, n, flow, dynamics.random_tokens(n, d, count, generator=spawn(0, "benchmark", "starts", d)))


# The contestants. Each returns end states and stopping times.


def ours(given: Problem, count: int, preset: str, precision: str, backend: str, *, alone: bool) -> Any:
    """One call for all starts, or one for each."""
    options: dict[str, Any] = {"tol": STOP, "finishing": False}
    if precision == "float64":
        options["atol"] = 1e-10  # that of the preset in float64; a tolerance of one's own is not left to float32
    with use_backend(backend):  # type: ignore[arg-type]
        parts = list(given.starts[:count].unsqueeze(1)) if alone else [given.starts[:count]]
        runs = [dynamics.integrate(given.flow, part, preset, **options) for part in parts]
    return torch.cat([run.final for run in runs]), torch.cat([run.time for run in runs])


def numpy_velocity(given: Problem) -> Callable[[numpy.ndarray], numpy.ndarray]:
    """The same field in NumPy, for SciPy."""
    coupling, transposed = given.flow.coupling.numpy(), given.flow.value.numpy().T

    def velocity(x: numpy.ndarray) -> numpy.ndarray:
        logits = x @ coupling @ x.T
        logits -= logits.max(axis=1, keepdims=True)
        numpy.exp(logits, out=logits)
        pull = (logits @ x) / logits.sum(axis=1, keepdims=True) @ transposed
        return pull - x * (x * pull).sum(axis=1, keepdims=True)

    return velocity


def by_scipy(given: Problem, count: int, rtol: float) -> Any:
    """RK45, stopped by an event."""
    velocity, shape, stop = numpy_velocity(given), (given.n, given.d), given.stop

    def field(_: float, y: numpy.ndarray) -> numpy.ndarray:
        return velocity(y.reshape(shape)).ravel()

    def at_rest(_: float, y: numpy.ndarray) -> float:
        return float(numpy.linalg.norm(velocity(y.reshape(shape)), axis=1).max()) - stop

    at_rest.terminal = True  # type: ignore[attr-defined]
    ends, times = [], []
    for start in given.starts[:count]:
        run = solve_ivp(field, (0, HORIZON), start.numpy().ravel(), "RK45", rtol=rtol, atol=rtol * 1e-3, events=at_rest)
        ends.append(torch.as_tensor(run.y[:, -1]).reshape(shape))
        times.append(run.t[-1])
    return torch.stack(ends), torch.tensor(times)


class Truth:
    """States of the first starts at any time up to the latest, by DOP853 at 1e-12."""

    def __init__(self, given: Problem) -> None:
        velocity, self.shape = numpy_velocity(given), (given.n, given.d)
        self.latest = 1.5 * float(ours(given, ALONE, "default", "float64", "torch", alone=False)[1].max())

        def field(_: float, y: numpy.ndarray) -> numpy.ndarray:
            return velocity(y.reshape(self.shape)).ravel()

        span, options = (0, self.latest), {"rtol": 1e-12, "atol": 1e-14, "dense_output": True}
        self.runs = [solve_ivp(field, span, x.numpy().ravel(), "DOP853", **options) for x in given.starts[:ALONE]]

    def error(self, ends: torch.Tensor, times: torch.Tensor) -> float:
        """Median over the first starts of the largest distance of a token from where it should be."""
        ends, gaps = dynamics.normalise(ends.double()), []
        for end, time_, run in zip(ends, times.tolist(), self.runs, strict=False):
            late = not time_ <= self.latest  # not stopped, which is no small error
            away = end.numpy() - run.sol(min(time_, self.latest)).reshape(self.shape)
            gaps.append(math.inf if late else float(numpy.linalg.norm(away, axis=-1).max()))
        return statistics.median(gaps)


class Diffrax:
    """The process that runs diffrax, asked line by line."""

    def __init__(self, python: str, folder: str) -> None:
        script = Path(__file__).with_name("attention_diffrax.py")
        self.folder, self.known = Path(folder), set[str]()
        self.process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.versions = json.loads(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process of diffrax ended with code {self.process.wait()}.")
        return answer

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._line())
        return answer

    def prepare(self, given: Problem, count: int, precision: str, *, together: bool) -> str:
        target, name = self.folder / "problem.npz", f"{given.d} {count} {precision} {together}"
        if name not in self.known:
            given.save(target, count)
            self.ask(do="prepare", name=name, problem=str(target), dtype=precision, together=together)
            self.known.add(name)
        return name

    def run(self, name: str, rtol: float, repeats: int = 1) -> dict[str, Any]:
        ends = self.folder / "ends.npz"
        answer = self.ask(do="run", name=name, rtol=rtol, repeats=repeats, ends=str(ends))
        with numpy.load(ends) as archive:
            return {**answer, "ends": torch.as_tensor(archive["ends"]), "times": torch.as_tensor(archive["times"])}


@contextlib.contextmanager
def diffrax_process() -> Iterator[Diffrax | None]:
    """The process, or None where diffrax is not installed."""
    python = os.environ.get("SEPARATRIX_JAX") or (sys.executable if importlib.util.find_spec("diffrax") else None)
    if python is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        peer = Diffrax(python, folder)
        try:
            yield peer
        finally:
            peer.process.terminate()
            peer.process.wait()


# Rows.


def seconds_of(task: Callable[[], Any], repeats: int) -> float:
    begun = time.process_time()
    for _ in range(repeats):
        task()
    return (time.process_time() - begun) / repeats


def repeats_of(d: int, count: int) -> int:
    """So many calls that a measurement takes some tens of milliseconds."""
    return {3: 60, 20: 8, 64: 1}[d] if count < 100 else {3: 4, 20: 1, 64: 1}[d]


class Pairs:
    """For one size: our errors, and the tolerances at which the peers have the same. Errors are those of single runs,
    whose steps are also those of many at once."""

    def __init__(self, given: Problem, peer: Diffrax | None) -> None:
        self.given, self.peer, self.truth = given, peer, Truth(given)
        self.diffrax_error, self.scipy_error = functools.cache(self._diffrax), functools.cache(self._scipy)
        self.own_error = functools.cache(self._own)

    def _own(self, preset: str, precision: str) -> float:
        return self.truth.error(*ours(self.given, ALONE, preset, precision, "numba", alone=False))

    def _diffrax(self, precision: str, rtol: float) -> float:
        assert self.peer is not None
        name = self.peer.prepare(self.given, ALONE, precision, together=False)
        found = self.peer.run(name, rtol)
        return self.truth.error(found["ends"], found["times"])

    def _scipy(self, rtol: float) -> float:
        return self.truth.error(*by_scipy(self.given, ALONE, rtol))

    def with_diffrax(self, preset: str, precision: str) -> Pair:
        error_at = functools.partial(self.diffrax_error, precision)
        return paired(error_at, self.own_error(preset, precision), LADDER[precision])

    def with_scipy(self, preset: str, precision: str) -> Pair:
        return paired(self.scipy_error, self.own_error(preset, precision), LADDER["float64"])


def case_rows(pairs: Pairs, count: int, rounds: int, preset: str, precision: str) -> list[Row]:
    """All comparisons of one size, number of starts, preset and precision."""
    given, peer = pairs.given, pairs.peer
    alone, words = count <= ALONE, "one start" if count <= ALONE else f"{count} starts"
    job = f"attention, d = {given.d}, n = {given.n}, {words}, {precision}, {preset}"
    repeats, few = repeats_of(given.d, count), min(count, ALONE if given.d < 64 else 2)
    error, scipy = pairs.own_error(preset, precision), pairs.with_scipy(preset, precision)
    diffrax = None if peer is None else pairs.with_diffrax(preset, precision)
    name = None if peer is None else peer.prepare(given, count, precision, together=not alone)

    def own(backend: str = "numba") -> Any:
        return ours(given, count, preset, precision, backend, alone=alone)

    own()
    seconds: dict[str, list[float]] = {"ours": [], "diffrax": [], "scipy": [], "torch": []}
    for turn in range(rounds):
        mine = [seconds_of(own, repeats) / count]
        if peer is not None and name is not None and diffrax is not None:
            seconds["diffrax"].append(peer.run(name, diffrax.tolerance, repeats)["seconds"] / count)
        mine.append(seconds_of(own, repeats) / count)
        if turn < FEW_ROUNDS:
            seconds["scipy"].append(seconds_of(lambda: by_scipy(given, few, scipy.tolerance), 1) / few)
            seconds["torch"].append(seconds_of(lambda: own("torch"), 1) / count)
        mine.append(seconds_of(own, repeats) / count)
        seconds["ours"].append(statistics.median(mine))
    return [
        _against(job, "diffrax Dopri5", seconds, "diffrax", diffrax, error, GOAL_DIFFRAX),
        _against(job, "SciPy RK45", seconds, "scipy", scipy, error, GOAL_SCIPY[precision]),
        compared(job, "our loop by torch", seconds["ours"][:FEW_ROUNDS], seconds["torch"]),
    ]


def _against(
    job: str, peer: str, seconds: dict[str, list[float]], key: str, pair: Pair | None, error: float, goal: float
) -> Row:
    """The row of one peer."""
    if pair is None:
        return missing(job, peer.split()[0], goal)
    mine, theirs = seconds["ours"][: len(seconds[key])], seconds[key]
    facts = {"error": error, "peer_error": pair.error, "pairing": pair.how}
    name = f"{peer} {pair.tolerance:.1e}"
    return compared(job, name, mine, theirs, goal=goal, note=pair.beside(error), facts=facts)


def rows(quick: bool) -> list[Row]:
    """Every size, one start and many."""
    torch.set_num_threads(1)
    found: list[Row] = []
    with diffrax_process() as peer:
        for d, n in SIZES[: 2 if quick else 3]:
            many = 20 if quick else 100
            pairs = Pairs(problem(d, n, many), peer)
            for count in (ALONE, many):
                rounds = 1 if quick else 5 if d < 64 else 3 if count == ALONE else 1
                for preset in PRESETS:
                    for precision in PRECISIONS:
                        found += case_rows(pairs, count, rounds, preset, precision)
    return found + summary(found)


def summary(found: list[Row]) -> list[Row]:
    """The worst ratio of each size, one start and many, over both presets and precisions."""
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in found:
        if row.goal is not None:
            job = ", ".join(row.job.split(", ")[:4])
            groups.setdefault((job, row.peer.rsplit(" ", 1)[0], row.goal), []).append(row)
    words = {0.1: ", float32", 0.2: ", float64"}
    return [
        worst_row(f"{job}{words.get(goal, '')}, worst", peer, rows, goal=goal, readme=True)
        for (job, peer, goal), rows in groups.items()
    ]


if __name__ == "__main__":
    main(rows, __file__, __doc__)
