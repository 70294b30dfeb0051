"""Self-attention flows by diffrax, in an environment of its own: jax, diffrax and numpy, nothing else.

JAX must not share an environment with the package, so the problems come from a file and the end states go to one;
the finish, the check of the partitions and the ratios are made where the package is:

    python benchmarks/attention.py --export problems.npz
    JAX_ENVIRONMENT/bin/python benchmarks/attention_diffrax.py problems.npz ends.npz
    python benchmarks/attention.py --diffrax ends.npz

Run the three close in time. float64 on one thread of the CPU, compiled ahead (compile time is kept apart), each
trajectory stopped by an event once its fastest token is slower than the threshold. `ends.npz` holds the problems, the
end states of every method and, as JSON under `report`, process seconds per trajectory and the versions.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import os
import platform
import time
from collections.abc import Callable
from typing import Any

# Read by XLA when it is first imported.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"

import diffrax
import jax
import jax.numpy as jnp
import numpy

HORIZON = 400.0
SOLVERS = {"Dopri5": diffrax.Dopri5, "Tsit5": diffrax.Tsit5}
Method = Callable[[], tuple[numpy.ndarray, ...]]


def velocity(_: Any, x: jax.Array, weights: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
    """The same field in JAX."""
    coupling, value, _ = weights
    pull = jax.nn.softmax(x @ coupling @ x.T, axis=-1) @ x @ value.T
    return pull - x * (x * pull).sum(axis=-1, keepdims=True)


def at_rest(t: Any, x: jax.Array, weights: tuple[jax.Array, jax.Array, jax.Array], **_: Any) -> jax.Array:
    return jnp.linalg.norm(velocity(t, x, weights), axis=-1).max() < weights[2]


def follow(solver: str, rtol: float) -> Callable[..., tuple[jax.Array, ...]]:
    """One trajectory: end state, number of steps (rejected ones too), and whether the event stopped it."""

    def run(x: jax.Array, coupling: jax.Array, value: jax.Array, stop: jax.Array) -> tuple[jax.Array, ...]:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(velocity),
            SOLVERS[solver](),
            t0=0.0,
            t1=HORIZON,
            dt0=None,
            y0=x,
            args=(coupling, value, stop),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol * 1e-3),
            event=diffrax.Event(at_rest),
            adjoint=diffrax.ForwardMode(),  # nothing is differentiated, so keep no checkpoints
            throw=False,
        )
        stopped = solution.result == diffrax.RESULTS.event_occurred
        return solution.ys[-1], solution.stats["num_steps"], stopped

    return run


def compiled(function: Callable[..., Any], *arguments: Any) -> tuple[Callable[..., Any], float]:
    begun = time.process_time()
    ready = jax.jit(function).lower(*arguments).compile()
    return ready, time.process_time() - begun


def prepare(problems: dict[str, numpy.ndarray], solver: str, rtol: float, together: bool) -> tuple[Method, float]:
    """A compiled method over all instances, and the seconds its compilation took."""
    starts, *weights = (jnp.asarray(problems[name]) for name in ("starts", "coupling", "value", "stop"))
    one = follow(solver, rtol)
    function = jax.vmap(one, in_axes=(0, None, None, None)) if together else one
    first = starts[0] if together else starts[0, 0]
    ready, seconds = compiled(function, first, *(weight[0] for weight in weights))

    def run_all() -> tuple[numpy.ndarray, ...]:
        runs = []
        for i, block in enumerate(starts):
            own = [weight[i] for weight in weights]
            each = ready(block, *own) if together else jax.tree.map(_stack, *[ready(x, *own) for x in block])
            runs.append(jax.block_until_ready(each))
        return jax.tree.map(_stack, *runs)

    return run_all, seconds


def _stack(*arrays: jax.Array) -> numpy.ndarray:
    return numpy.stack([numpy.asarray(array) for array in arrays])


def measure(
    problems: dict[str, numpy.ndarray], solver: str, rounds: int
) -> tuple[dict[str, numpy.ndarray], dict[str, Any]]:
    """Methods take turns; the first round warms up."""
    count = problems["starts"].shape[0] * problems["starts"].shape[1]
    methods, rows, ends = {}, {}, {}
    for rtol, together in itertools.product(("1e-3", "1e-4"), (True, False)):
        name = f"diffrax {solver} {rtol} {'vmapped' if together else 'one at a time'}"
        methods[name], seconds = prepare(problems, solver, float(rtol), together)
        rows[name] = {"compile seconds": round(seconds, 2), "rtol": rtol, "seconds": [], "wall": []}
    for turn in range(rounds + 1):
        for name, method in methods.items():
            begun, wall = time.process_time(), time.perf_counter()
            ends[name], steps, stopped = method()
            if turn:
                rows[name]["seconds"].append((time.process_time() - begun) / count)
                rows[name]["wall"].append((time.perf_counter() - wall) / count)
            rows[name] |= {"mean steps": round(float(steps.mean()), 1), "stopped by the event": int(stopped.sum())}
    return ends, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", help="written by attention.py --export")
    parser.add_argument("target", help="the .npz to write")
    parser.add_argument("--solver", choices=SOLVERS, default="Dopri5", help="Dopri5 is what the other libraries use")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with numpy.load(given.problems) as archive:
        problems = dict(archive)
    ends, rows = measure(problems, given.solver, given.rounds)
    names = ("jax", "jaxlib", "diffrax", "equinox", "numpy")
    report = {
        "versions": {name: importlib.metadata.version(name) for name in names},
        "python": platform.python_version(),
        "xla flags": os.environ["XLA_FLAGS"],
        "methods": rows,
    }
    numpy.savez(given.target, report=json.dumps(report), **problems, **ends)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
