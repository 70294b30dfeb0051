"""Self-attention flows: time per trajectory against other integrators; spectra and counts as n grows.

Every method follows the same starts to the same stop (speed of the fastest token below 1e-2 |V|) and is finished by
the same call (`integrate`, which polishes by Newton's method and certifies, or goes on if that fails). Methods take
turns within one process. Libraries that cannot stop at a speed are given the stopping time of the reference run.
Partitions of the tokens are compared with a reference integrated by DOP853 at 1e-9.

    python benchmarks/attention.py [--quick]

torchdiffeq and torchode are used if they are installed. Results go to benchmarks/results/attention.json.
diffrax runs in an environment of its own, see attention_diffrax.py: `--export FILE` writes the problems for it, and
`--diffrax FILE` finishes and checks its end states and adds its rows to the recorded results.
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
RECORD = Path(__file__).parent / "results" / "attention.json"
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


def problems(n_instances: int, n_starts: int) -> tuple[list[Any], torch.Tensor]:
    """The weight instances and the starts (instances, starts, tokens, dimension) that every method is given."""
    flows, starts = [], []
    for i in range(n_instances):
        drawn = matrices.attention_instance(DIM, generator=spawn(0, "benchmark", "weights", i))
        flows.append(dynamics.AttentionFlow.from_coupling(drawn.coupling, drawn.value))
        starts.append(dynamics.random_tokens(N_TOKENS, DIM, n_starts, generator=spawn(0, "benchmark", "starts", i)))
    return flows, torch.stack(starts)


def problem_arrays(flows: list[Any], x: torch.Tensor) -> dict[str, numpy.ndarray]:
    return {
        "starts": x.numpy(),
        "coupling": numpy.stack([flow.coupling.numpy() for flow in flows]),
        "value": numpy.stack([flow.value.numpy() for flow in flows]),
        "stop": numpy.array([STOP * float(flow.rate) for flow in flows]),
    }


def trajectories(n_instances: int, n_starts: int, rounds: int) -> dict[str, Any]:
    flows, x = problems(n_instances, n_starts)
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


def timed(call: Callable[[], Any], repeats: int) -> tuple[Any, list[float]]:
    """The value of a call, and process seconds of each repetition after the first, which warms up."""
    seconds = []
    for _ in range(repeats + 1):
        begun = time.process_time()
        value = call()
        seconds.append(time.process_time() - begun)
    return value, seconds[1:]


def read_diffrax(path: str, flows: list[Any], x: torch.Tensor) -> tuple[dict[str, Any], dict[str, Ends]]:
    """The report and the end states that attention_diffrax.py wrote, if they belong to these problems."""
    with numpy.load(path) as archive:
        if not all(numpy.array_equal(archive[name], array) for name, array in problem_arrays(flows, x).items()):
            raise SystemExit(f"{path} was made from other problems; export them again.")
        report = json.loads(str(archive["report"]))
        return report, {name: dynamics.normalise(torch.as_tensor(archive[name])) for name in report["methods"]}


def diffrax_rows(path: str, quick: bool, repeats: int = 3) -> dict[str, Any]:
    """Rows and ratios of diffrax; ours is measured again, close in time."""
    flows, x = problems(*size(quick))
    report, ends = read_diffrax(path, flows, x)
    count = x.shape[0] * x.shape[1]
    own = {p: timed(lambda p=p: finish(flows, ours(flows, x, p)[0]), repeats)[1] for p in ("fast", "default")}
    finished = {name: timed(lambda end=end: finish(flows, end), repeats) for name, end in ends.items()}
    truth = finish(flows, scipy_method(flows, x, 1e-9, "DOP853")[0])
    rows, ratios = {}, {}
    for name, row in report["methods"].items():
        labels, finishing = finished[name]
        total = [seconds + statistics.median(finishing) / count for seconds in row["seconds"]]
        preset = "fast" if row["rtol"] == "1e-3" else "default"
        beside = [seconds / count for seconds in own[preset]]
        rows[name] = {
            "ms per trajectory": [round(1e3 * value, 2) for value in sorted(total)],
            "median ms": round(1e3 * statistics.median(total), 2),
            "of which finish ms": round(1e3 * statistics.median(finishing) / count, 2),
            "right partitions": int((labels == truth).all(dim=-1).sum()),
            "compile seconds": row["compile seconds"],
            f"separatrix {preset} beside it, median ms": round(1e3 * statistics.median(beside), 2),
        }
        ratios[f"{name} / separatrix {preset}"] = {
            "median": round(statistics.median(total) / statistics.median(beside), 2),
            "spread": [round(min(total) / max(beside), 2), round(max(total) / min(beside), 2)],
        }
    return {"report": report, "methods": rows, "ratios": ratios}


def add_diffrax(path: str, quick: bool) -> None:
    """Print the rows and, unless quick, put them into the recorded results in place of older ones."""
    new = diffrax_rows(path, quick)
    environment = {
        "note": "diffrax rows: another process and environment, compiled ahead; integration is timed there, the finish "
        "here; ratios are of medians, against separatrix run right afterwards in this environment, not in turns",
        **{key: new["report"][key] for key in ("versions", "python", "xla flags")},
    }
    print(json.dumps({"environment": environment, "methods": new["methods"], "ratios": new["ratios"]}, indent=1))
    if quick:
        return
    result = json.loads(RECORD.read_text())
    table = result["time per trajectory"]
    for part in ("methods", "ratios"):
        table[part] = {name: row for name, row in table[part].items() if not name.startswith("diffrax")} | new[part]
    table["diffrax environment"] = environment
    RECORD.write_text(json.dumps(result, indent=1) + "\n")


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
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--export", metavar="FILE", help="only write the problems to this .npz")
    other.add_argument("--diffrax", metavar="FILE", help="only add the rows of this .npz of attention_diffrax.py")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.export:
        numpy.savez(given.export, **problem_arrays(*problems(*size(given.quick))))
    elif given.diffrax:
        add_diffrax(given.diffrax, given.quick)
    else:
        run_all(given.quick)


def size(quick: bool) -> tuple[int, int]:
    """Weight instances, and starts of each."""
    return (2, 4) if quick else (3, 10)


def run_all(quick: bool) -> None:
    names = ("torch", "numpy", "scipy", "torchdiffeq", "torchode")
    result = {
        "versions": {name: importlib.metadata.version(name) for name in names if installed(name)},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "protocol": f"d = {DIM}, n = {N_TOKENS}, stop at speed {STOP} |V|, same finish, process time",
        "time per trajectory": trajectories(*size(quick), rounds=1 if quick else 3),
        "cluster spectrum": spectra((12, 30, 60, 1000, 100_000)),
        "counting": counting((10, 1000, 10**4, 10**6, 10**9)),
    }
    print(json.dumps(result, indent=1))
    if not quick:
        RECORD.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
