"""Self-attention flows: time per trajectory against other integrators; spectra and counts as n grows.

Every method follows the same starts to the same stop (speed of the fastest token below 1e-2 |V|) and is finished by
the same call (`integrate`, which polishes by Newton's method and certifies, or goes on if that fails). Methods take
turns within one process. Libraries that cannot stop at a speed are given the stopping time of the reference run.
Partitions of the tokens are compared with a reference integrated by DOP853 at 1e-9.

    python benchmarks/attention.py [--quick]

torchdiffeq and torchode are used if they are installed. Results go to benchmarks/results/attention.json.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch
from scipy.integrate import solve_ivp

from separatrix import dynamics, matrices, theory
from separatrix.core import spawn

STOP = 1e-2
Ends = torch.Tensor
DIM, N_TOKENS = 20, 100


def numpy_velocity(coupling: numpy.ndarray, value: numpy.ndarray) -> Callable[[numpy.ndarray], numpy.ndarray]:
    """The same field in NumPy, for SciPy."""

    def velocity(x: numpy.ndarray) -> numpy.ndarray:
        logits = x @ coupling @ x.T
        logits -= logits.max(axis=1, keepdims=True)
        numpy.exp(logits, out=logits)
        pull = (logits @ x) / logits.sum(axis=1, keepdims=True) @ value.T
        return pull - x * (x * pull).sum(axis=1, keepdims=True)

    return velocity


def scipy_method(flows: list[Any], x: torch.Tensor, rtol: float, method: str = "RK45") -> tuple[Ends, torch.Tensor]:
    ends, times = torch.empty_like(x), torch.empty(x.shape[:2], dtype=torch.float64)
    for i, flow in enumerate(flows):
        velocity = numpy_velocity(flow.coupling.numpy(), flow.value.numpy())
        stop = STOP * float(flow.rate)

        def field(_: float, y: numpy.ndarray, velocity: Any = velocity) -> numpy.ndarray:
            return velocity(y.reshape(N_TOKENS, DIM)).ravel()

        def at_rest(_: float, y: numpy.ndarray, velocity: Any = velocity, stop: float = stop) -> float:
            return float(numpy.linalg.norm(velocity(y.reshape(N_TOKENS, DIM)), axis=1).max()) - stop

        at_rest.terminal = True  # type: ignore[attr-defined]
        for j, start in enumerate(x[i]):
            run = solve_ivp(field, (0, 400), start.ravel().numpy(), method, rtol=rtol, atol=rtol * 1e-3, events=at_rest)
            ends[i, j] = torch.as_tensor(run.y[:, -1]).reshape(N_TOKENS, DIM)
            times[i, j] = run.t[-1]
    return dynamics.normalise(ends), times


def ours(flows: list[Any], x: torch.Tensor, preset: str) -> tuple[Ends, torch.Tensor]:
    flow = dynamics.AttentionFlow.from_coupling(
        torch.stack([flow.coupling for flow in flows])[:, None], torch.stack([flow.value for flow in flows])[:, None]
    )
    run = dynamics.integrate(flow, x, preset, tol=STOP, finishing=False)
    return run.final, run.time


def torchdiffeq_method(
    flows: list[Any], x: torch.Tensor, rtol: float, times: torch.Tensor
) -> tuple[Ends, torch.Tensor]:
    from torchdiffeq import odeint

    ends = torch.empty_like(x)
    for i, flow in enumerate(flows):
        for j, start in enumerate(x[i]):
            span = torch.tensor([0.0, float(times[i, j])], dtype=torch.float64)
            ends[i, j] = odeint(lambda _, y, flow=flow: flow.velocity(y), start, span, rtol=rtol, atol=rtol * 1e-3)[-1]
    return dynamics.normalise(ends), times


def torchode_method(flows: list[Any], x: torch.Tensor, rtol: float, times: torch.Tensor) -> tuple[Ends, torch.Tensor]:
    import torchode

    ends = torch.empty_like(x)
    for i, flow in enumerate(flows):
        count = x.shape[1]
        term = torchode.ODETerm(lambda _, y, flow=flow: flow.velocity(y.view(-1, N_TOKENS, DIM)).flatten(1))
        controller = torchode.IntegralController(rtol * 1e-3, rtol, term=term)
        solver = torchode.AutoDiffAdjoint(torchode.Dopri5(term=term), controller)
        problem = torchode.InitialValueProblem(
            y0=x[i].flatten(1), t_start=torch.zeros(count, dtype=torch.float64), t_end=times[i]
        )
        ends[i] = solver.solve(problem).ys[:, -1].view(count, N_TOKENS, DIM)
    return dynamics.normalise(ends), times


def finish(flows: list[Any], ends: Ends) -> torch.Tensor:
    """The same finish for every method: certified ends and the partition of the tokens."""
    flow = dynamics.AttentionFlow.from_coupling(
        torch.stack([flow.coupling for flow in flows])[:, None], torch.stack([flow.value for flow in flows])[:, None]
    )
    return dynamics.find_clusters(dynamics.integrate(flow, ends, "default").final).labels


def installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def trajectories(n_instances: int, n_starts: int, rounds: int) -> dict[str, Any]:
    flows, starts = [], []
    for i in range(n_instances):
        drawn = matrices.attention_instance(DIM, generator=spawn(0, "benchmark", "weights", i))
        flows.append(dynamics.AttentionFlow.from_coupling(drawn.coupling, drawn.value))
        starts.append(dynamics.random_tokens(N_TOKENS, DIM, n_starts, generator=spawn(0, "benchmark", "starts", i)))
    x = torch.stack(starts)
    reference, times = scipy_method(flows, x, 1e-9, "DOP853")
    truth = finish(flows, reference)
    methods: dict[str, Callable[[], tuple[Ends, torch.Tensor]]] = {
        "separatrix fast": lambda: ours(flows, x, "fast"),
        "separatrix default": lambda: ours(flows, x, "default"),
        "scipy RK45 1e-3": lambda: scipy_method(flows, x, 1e-3),
        "scipy RK45 1e-4": lambda: scipy_method(flows, x, 1e-4),
    }
    if installed("torchdiffeq"):
        methods["torchdiffeq dopri5 1e-3"] = lambda: torchdiffeq_method(flows, x, 1e-3, times)
    if installed("torchode"):
        methods["torchode dopri5 1e-3"] = lambda: torchode_method(flows, x, 1e-3, times)
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    right: dict[str, int] = {}
    for turn in range(rounds + 1):  # the first round warms up
        for name, method in methods.items():
            begun = time.process_time()
            labels = finish(flows, method()[0])
            if turn:
                seconds[name].append((time.process_time() - begun) / (n_instances * n_starts))
            right[name] = int((labels == truth).all(dim=-1).sum())
    table = {
        name: {
            "ms per trajectory": [round(1e3 * value, 2) for value in sorted(values)],
            "median ms": round(1e3 * statistics.median(values), 2),
            "right partitions": right[name],
        }
        for name, values in seconds.items()
    }
    ratios = {}
    for a, b in (("separatrix fast", "scipy RK45 1e-3"), ("separatrix default", "scipy RK45 1e-4")):
        each = [other / own for own, other in zip(seconds[a], seconds[b], strict=True)]
        ratios[f"{b} / {a}"] = {
            "median": round(statistics.median(each), 2),
            "spread": [round(min(each), 2), round(max(each), 2)],
        }
    return {"trajectories": n_instances * n_starts, "methods": table, "ratios": ratios}


def spectra(token_counts: tuple[int, ...]) -> list[dict[str, Any]]:
    """Cluster spectrum against the dense one at a random state of three clusters."""
    drawn = matrices.attention_instance(DIM, generator=spawn(0, "benchmark", "spectra"))
    flow = dynamics.AttentionFlow.from_coupling(drawn.coupling, drawn.value)
    w = dynamics.random_tokens(3, DIM, generator=spawn(0, "benchmark", "clusters"))
    rows = []
    for n in token_counts:
        sizes = [n - 2 * (n // 3), n // 3, n // 3]
        begun = time.perf_counter()
        exact = theory.cluster_spectrum(drawn.coupling, drawn.value, w, sizes)
        clusters = time.perf_counter() - begun
        row: dict[str, Any] = {"tokens": n, "clusters ms": round(1e3 * clusters, 2)}
        if n <= 60:
            begun = time.perf_counter()
            dense = torch.linalg.eigvals(flow.jacobian(w.repeat_interleave(torch.tensor(sizes), dim=0)))
            row["dense ms"] = round(1e3 * (time.perf_counter() - begun), 1)
            row["difference"] = abs(float(dense.real.max()) - float(exact.abscissa))
        rows.append(row)
    return rows


def counting(token_counts: tuple[int, ...]) -> list[dict[str, Any]]:
    value, coupling = torch.diag(torch.tensor([3.0, 1.0, -4.0])), torch.diag(torch.tensor([0.9, 0.2, -1.1]))
    rows = []
    for n in token_counts:
        begun = time.perf_counter()
        theory.count_stable(coupling, value, n)
        rows.append({"tokens": n, "ms": round(1e3 * (time.perf_counter() - begun), 2)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few trajectories and one round")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    names = ("torch", "numpy", "scipy", "torchdiffeq", "torchode")
    result = {
        "versions": {name: importlib.metadata.version(name) for name in names if installed(name)},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "protocol": f"d = {DIM}, n = {N_TOKENS}, stop at speed {STOP} |V|, same finish, process time",
        "time per trajectory": trajectories(2, 4, 1) if quick else trajectories(3, 10, 3),
        "cluster spectrum": spectra((12, 30, 60, 1000, 100_000)),
        "counting": counting((10, 1000, 10**4, 10**6, 10**9)),
    }
    print(json.dumps(result, indent=1))
    if not quick:
        target = Path(__file__).parent / "results" / "attention.json"
        target.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
