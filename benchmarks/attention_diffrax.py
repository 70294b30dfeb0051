"""Self-attention flows by diffrax, in a process of its own, started and asked by attention.py.

JAX need not share an environment with the package: this file needs jax, diffrax and numpy, nothing else. It reads one
request per line of its input, as JSON, and answers each with one line:

    {"do": "prepare", "name": ..., "problem": FILE.npz, "dtype": "float32", "together": true}
    {"do": "run", "name": ..., "rtol": 1e-4, "repeats": 3, "ends": FILE.npz}

A problem has starts, coupling, value and the speed at which a trajectory stops. Methods are compiled ahead (compile
time is answered to `prepare`; the tolerance is an argument of what is compiled), use one thread of the CPU, and stop
each trajectory by an event once its fastest token is slower than the threshold. `run` answers the mean CPU seconds of
the repeats.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
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
Weights = tuple[jax.Array, jax.Array, jax.Array]


def velocity(_: Any, x: jax.Array, weights: Weights) -> jax.Array:
    """The same field in JAX."""
    coupling, value, _ = weights
    pull = jax.nn.softmax(x @ coupling @ x.T, axis=-1) @ x @ value.T
    return pull - x * (x * pull).sum(axis=-1, keepdims=True)


def at_rest(t: Any, x: jax.Array, weights: Weights, **_: Any) -> jax.Array:
    return jnp.linalg.norm(velocity(t, x, weights), axis=-1).max() < weights[2]


def follow(
    x: jax.Array, coupling: jax.Array, value: jax.Array, stop: jax.Array, rtol: jax.Array
) -> tuple[jax.Array, ...]:
    """One trajectory by Dopri5: end state and time, number of steps (rejected too), whether the event stopped it."""
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        diffrax.Dopri5(),
        t0=jnp.zeros((), x.dtype),
        t1=jnp.asarray(HORIZON, x.dtype),
        dt0=None,
        y0=x,
        args=(coupling, value, stop),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol * 1e-3),
        event=diffrax.Event(at_rest),
        adjoint=diffrax.ForwardMode(),  # nothing is differentiated, so keep no checkpoints
        throw=False,
    )
    stopped = solution.result == diffrax.RESULTS.event_occurred
    return solution.ys[-1], solution.ts[-1], solution.stats["num_steps"], stopped


def prepare(problem: str, dtype: str, together: bool) -> tuple[Callable[[float], Any], float]:
    """A compiled method over all starts, one at a time or vmapped, and the seconds its compilation took."""
    with numpy.load(problem) as archive:
        starts, *weights = (jnp.asarray(archive[name], dtype) for name in ("starts", "coupling", "value", "stop"))
    function = jax.vmap(follow, in_axes=(0, None, None, None, None)) if together else follow
    begun = time.process_time()
    some = jnp.asarray(1e-4, dtype)
    ready = jax.jit(function).lower(starts if together else starts[0], *weights, some).compile()
    seconds = time.process_time() - begun
    each = list(starts)

    def run(rtol: float) -> Any:
        tolerance = jnp.asarray(rtol, dtype)
        if together:
            return jax.block_until_ready(ready(starts, *weights, tolerance))
        return [jax.block_until_ready(ready(x, *weights, tolerance)) for x in each]

    return run, seconds


def timed(run: Callable[[float], Any], rtol: float, repeats: int, target: str) -> dict[str, Any]:
    begun = time.process_time()
    for _ in range(repeats):
        found = run(rtol)
    seconds = (time.process_time() - begun) / repeats
    ends, times, steps, stopped = found if isinstance(found, tuple) else map(numpy.stack, zip(*found, strict=True))
    numpy.savez(target, ends=numpy.asarray(ends, numpy.float64), times=numpy.asarray(times, numpy.float64))
    return {"seconds": seconds, "steps": float(numpy.mean(steps)), "stopped": int(numpy.sum(stopped))}


def main() -> None:
    methods: dict[str, Callable[[float], Any]] = {}
    names = ("jax", "jaxlib", "diffrax", "equinox", "numpy")
    print(json.dumps({name: importlib.metadata.version(name) for name in names}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "prepare":
            given = {name: request[name] for name in ("problem", "dtype", "together")}
            methods[request["name"]], seconds = prepare(**given)
            answer = {"seconds": seconds}
        else:
            answer = timed(methods[request["name"]], request["rtol"], request["repeats"], request["ends"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
