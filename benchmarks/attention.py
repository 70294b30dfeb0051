"""Self-attention trajectories against diffrax, SciPy and our own loop by torch: CPU time at equal accuracy.

Every method follows the same starts until the fastest token is slower than 1e-2 |V|. "One start" is five starts, each
by a call of its own; "100 starts" is one call (vmapped in diffrax). Equal accuracy pairs the preset `fast` with a
tolerance of 1e-4 and `default` with 1e-5; the errors that are printed are the medians, over the five starts, of the
largest distance of a token from DOP853 at 1e-9 at the time at which the method stopped. Each precision is compared
with its like (SciPy computes in float64 only). Compilation is done before and not counted; contestants take turns, each
in one thread.

diffrax may live in an environment of its own, which the variable SEPARATRIX_JAX names by its Python; without it the
present one is tried. See attention_diffrax.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
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
from rows import Row, compared, main, missing, worst_row
from scipy.integrate import solve_ivp

from separatrix import dynamics, matrices
from separatrix.core import spawn, use_backend

STOP, ALONE, HORIZON = 1e-2, 5, 400.0
SIZES = ((3, 10), (20, 100), (64, 256))
PAIRS = {"fast": 1e-4, "default": 1e-5}
PRECISIONS = ("float32", "float64")
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


def truth(given: Problem, latest: float) -> list[Callable[[float], numpy.ndarray]]:
    """States of the first starts at any time up to the latest, by DOP853 at 1e-9."""
    velocity, shape = numpy_velocity(given), (given.n, given.d)

    def field(_: float, y: numpy.ndarray) -> numpy.ndarray:
        return velocity(y.reshape(shape)).ravel()

    found = []
    for start in given.starts[:ALONE]:
        run = solve_ivp(field, (0, latest), start.numpy().ravel(), "DOP853", rtol=1e-9, atol=1e-12, dense_output=True)
        found.append(lambda t, dense=run.sol: dense(t).reshape(shape))
    return found


class Diffrax:
    """The process that runs diffrax, asked line by line."""

    def __init__(self, python: str, folder: str) -> None:
        script = Path(__file__).with_name("attention_diffrax.py")
        self.folder = Path(folder)
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

    def prepare(self, given: Problem, count: int, precision: str, rtol: float, *, together: bool) -> str:
        target = self.folder / "problem.npz"
        given.save(target, count)
        name = f"{given.d} {count} {precision} {rtol} {together}"
        self.ask(do="prepare", name=name, problem=str(target), dtype=precision, rtol=rtol, together=together)
        return name

    def run(self, name: str, repeats: int) -> dict[str, Any]:
        ends = self.folder / "ends.npz"
        answer = self.ask(do="run", name=name, repeats=repeats, ends=str(ends))
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


def errors(known: list[Callable[[float], numpy.ndarray]], ends: torch.Tensor, times: torch.Tensor) -> float:
    """Median over the first starts of the largest distance of a token from where it should be."""
    ends = dynamics.normalise(ends.double())
    gaps = [
        float(numpy.linalg.norm(ends[i].numpy() - state(float(times[i])), axis=-1).max())
        for i, state in enumerate(known)
    ]
    return statistics.median(gaps)


def seconds_of(task: Callable[[], Any], repeats: int) -> float:
    begun = time.process_time()
    for _ in range(repeats):
        task()
    return (time.process_time() - begun) / repeats


def repeats_of(d: int, count: int) -> int:
    """So many calls that a measurement takes some tens of milliseconds."""
    return {3: 20, 20: 2, 64: 1}[d] if count < 100 else {3: 2, 20: 1, 64: 1}[d]


def case_rows(given: Problem, count: int, rounds: int, peer: Diffrax | None) -> list[Row]:
    """All comparisons of one size and one number of starts."""
    alone, words = count <= ALONE, "one start" if count <= ALONE else f"{count} starts"
    repeats, scipy_count, found = repeats_of(given.d, count), min(count, ALONE if given.d < 64 else 2), []
    known = truth(given, 1.5 * float(ours(given, ALONE, "default", "float64", "torch", alone=False)[1].max()))
    for preset, rtol in PAIRS.items():
        rival = [by_scipy(given, scipy_count, rtol)]
        for precision in PRECISIONS:
            job = f"attention, d = {given.d}, n = {given.n}, {words}, {precision}, {preset}"

            def own(backend: str = "numba", precision: str = precision, preset: str = preset) -> Any:
                return ours(given, count, preset, precision, backend, alone=alone)

            own()
            name = None if peer is None else peer.prepare(given, count, precision, rtol, together=not alone)
            mine, theirs, scipys, torchs, answer = [], [], [], [], {}
            for turn in range(rounds):
                mine.append(seconds_of(own, repeats) / count)
                if peer is not None and name is not None:
                    answer = peer.run(name, repeats)
                    theirs.append(answer["seconds"] / count)
                if turn < 2:
                    scipys.append(seconds_of(lambda: by_scipy(given, scipy_count, rtol), 1) / scipy_count)  # noqa: B023
                    torchs.append(seconds_of(lambda: own("torch"), 1) / count)
            ends = own()
            note = f"error {errors(known, *ends):.1e}"
            few = f"{min(rounds, 2)}"
            if theirs:
                beside = f"{note}, theirs {errors(known, answer['ends'], answer['times']):.1e}"
                found.append(compared(job, f"diffrax Dopri5 {rtol:.0e}", mine, theirs, goal=GOAL_DIFFRAX, note=beside))
            else:
                found.append(missing(job, "diffrax", GOAL_DIFFRAX))
            beside = f"{note}, theirs {errors(known[:scipy_count], *rival[0]):.1e}"
            goal = GOAL_SCIPY[precision]
            found.append(compared(job, f"SciPy RK45 {rtol:.0e}", mine[: int(few)], scipys, goal=goal, note=beside))
            found.append(compared(job, "our loop by torch", mine[: int(few)], torchs))
    return found


def rows(quick: bool) -> list[Row]:
    """Every size, one start and many."""
    torch.set_num_threads(1)
    found: list[Row] = []
    with diffrax_process() as peer:
        for d, n in SIZES[: 2 if quick else 3]:
            many = 20 if quick else 100
            given = problem(d, n, many)
            for count in (ALONE, many):
                rounds = 1 if quick else 5 if d < 64 else 3 if count == ALONE else 1
                found += case_rows(given, count, rounds, peer)
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
