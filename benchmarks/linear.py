"""Exact learning dynamics against integration and gradient descent, interleaved, with ratios and their spread.

    python benchmarks/linear.py [--repeats 5] [--quick]

Rivals: SciPy's DOP853 on the weights (with its own dense output), and plain gradient descent. Accuracy: ours and the
source's formula for equal sizes, its misprints mended, against arithmetic with 60 and more digits.
Writes benchmarks/results/linear.json. One thread.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import scipy
import torch
from scipy.integrate import solve_ivp

from separatrix.advise import learning_dynamics
from separatrix.core import spawn
from separatrix.matrices import balanced_pair
from separatrix.theory import BalancedFlow, equal_size_gram

RESULTS = Path(__file__).parent / "results" / "linear.json"


def scipy_product(w1, w2, corr, times, rtol: float) -> numpy.ndarray:
    """w2 w1 along gradient flow by scipy's DOP853 with dense output."""
    h, i, o = w1.shape[0], w1.shape[1], w2.shape[0]
    a0, b0, target = w1.numpy(), w2.numpy(), corr.numpy()

    def rate(_t: float, y: numpy.ndarray) -> numpy.ndarray:
        a, b = y[: h * i].reshape(h, i), y[h * i :].reshape(o, h)
        error = target - b @ a
        return numpy.concatenate([(b.T @ error).ravel(), (error @ a.T).ravel()])

    start = numpy.concatenate([a0.ravel(), b0.ravel()])
    found = solve_ivp(rate, (0, float(times[-1])), start, "DOP853", times.numpy(), rtol=rtol, atol=rtol * 1e-2)
    first = found.y[: h * i].T.reshape(-1, h, i)
    return found.y[h * i :].T.reshape(-1, o, h) @ first


def descent_product(w1, w2, corr, horizon: float, lr: float) -> numpy.ndarray:
    """w2 w1 after plain gradient descent to the horizon."""
    a, b, target = w1.numpy().copy(), w2.numpy().copy(), corr.numpy()
    for _ in range(round(horizon / lr)):
        error = target - b @ a
        a, b = a + lr * (b.T @ error), b + lr * (error @ a.T)
    return b @ a


def interleaved(repeats: int, *tasks: Callable[[], object]) -> list[list[float]]:
    """Seconds of each task, run in turn so that a busy machine slows all of them alike."""
    seconds: list[list[float]] = [[] for _ in tasks]
    for _ in range(repeats):
        for index, task in enumerate(tasks):
            begin = time.perf_counter()
            task()
            seconds[index].append(time.perf_counter() - begin)
    return seconds


def network(sizes: tuple[int, int, int], balance: float):
    generator = spawn(0, "benchmark", *sizes)
    w1, w2 = balanced_pair(balance, *sizes, scale=0.3, generator=generator)
    return w1, w2, torch.randn(sizes[2], sizes[0], dtype=torch.float64, generator=generator)


def compare(name: str, sizes, balance: float, times, rtol: float, repeats: int, method: str = "exact") -> dict:
    """Time of the exact route and of DOP853 at a tolerance, and the error of the latter."""
    w1, w2, corr = network(sizes, balance)
    exact = learning_dynamics(w1, w2, corr, times, method).product.numpy()
    ours, theirs = interleaved(
        repeats,
        lambda: learning_dynamics(w1, w2, corr, times, method),
        lambda: scipy_product(w1, w2, corr, times, rtol),
    )
    error = float(abs(scipy_product(w1, w2, corr, times, rtol) - exact).max() / abs(exact).max())
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    return {
        "case": name, "sizes": list(sizes), "balance": balance, "n_times": len(times), "horizon": float(times[-1]),
        "method": method, "rtol": rtol, "seconds": statistics.median(ours), "dop853_seconds": statistics.median(theirs),
        "speedup": statistics.median(ratios), "speedup_range": [min(ratios), max(ratios)], "dop853_error": error,
    }  # fmt: skip


def accuracy(balance: float, t: float) -> dict:
    """Error of ours and of the source's mended formula against multi-precision arithmetic, worst of 20 draws."""
    import mpmath

    ours, source = 0.0, 0.0
    for seed in range(20):
        generator = spawn(seed, "accuracy")
        w1, w2 = balanced_pair(balance, 3, 3, 3, scale=0.5, generator=generator)
        corr = torch.randn(3, 3, dtype=torch.float64, generator=generator)
        flow = BalancedFlow(w1, w2, corr)
        mpmath.mp.dps = int(60 + 2 * (abs(balance) + 4) * t)
        field = mpmath.zeros(6)
        for i in range(6):
            field[i, i] = mpmath.mpf(float(flow.balance)) / 2 * (-1 if i < 3 else 1)
        for i in range(3):
            for j in range(3):
                field[3 + i, j] = field[j, 3 + i] = mpmath.mpf(float(corr[i, j]))
        values, vectors = mpmath.eigsy(field)
        start = vectors.T * mpmath.matrix(torch.cat([w1.mT, w2]).tolist())
        memory = mpmath.diag([mpmath.expm1(2 * v * t) / (2 * v) for v in values])
        factor = vectors * mpmath.diag([mpmath.exp(v * t) for v in values]) * start
        precise = factor * mpmath.inverse(mpmath.eye(3) + start.T * memory * start) * factor.T
        reference = torch.tensor(numpy.array(precise.tolist(), dtype=float))
        size = reference.abs().max()
        ours = max(ours, float((flow.gram(t) - reference).abs().max() / size))
        source = max(
            source, float((equal_size_gram(w1, w2, corr, t, float(flow.balance)) - reference).abs().max() / size)
        )
    return {"balance": balance, "t": t, "ours": ours, "source_formula_mended": source, "n_draws": 20}


def descent_case(repeats: int) -> dict:
    """Gradient descent to one final time against one exact evaluation."""
    w1, w2, corr = network((20, 20, 20), 1.0)
    flow_product = BalancedFlow(w1, w2, corr).product(10.0).numpy()
    ours, theirs = interleaved(
        repeats, lambda: BalancedFlow(w1, w2, corr).product(10.0), lambda: descent_product(w1, w2, corr, 10.0, 1e-3)
    )
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    middle = BalancedFlow(w1, w2, corr).product(1.0).numpy()
    error = abs(descent_product(w1, w2, corr, 1.0, 1e-3) - middle).max() / abs(flow_product).max()
    return {
        "case": "final time 10, descent with lr 1e-3", "sizes": [20, 20, 20], "seconds": statistics.median(ours),
        "descent_seconds": statistics.median(theirs), "speedup": statistics.median(ratios),
        "speedup_range": [min(ratios), max(ratios)], "descent_error_at_1": float(error),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small cases only")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dense = torch.linspace(0, 10, 1000, dtype=torch.float64)
    stiff = torch.logspace(-2, 2 if options.quick else 2.5, 50, dtype=torch.float64)
    cases = [
        compare("stiff and long: balance 1000, 50 times", (10, 12, 20), 1000.0, stiff, 1e-8, 1),
        compare("stiff and long: balance 100, 50 times", (10, 12, 20), 100.0, stiff, 1e-8, options.repeats),
        compare(
            "long: balance 1, 20 times to 1000",
            (10, 10, 10),
            1.0,
            torch.logspace(-1, 3, 20, dtype=torch.float64),
            1e-8,
            options.repeats,
        ),
        compare("short and dense: 1000 times to 10", (10, 10, 10), 1.0, dense, 1e-10, options.repeats),
        compare("short and dense, interpolated", (10, 10, 10), 1.0, dense, 1e-10, options.repeats, "chebyshev"),
        compare(
            "short and dense, interpolated, 30 units", (30, 30, 30), 1.0, dense, 1e-10, options.repeats, "chebyshev"
        ),
        compare(
            "one final time, 100 units",
            (100, 100, 100),
            1.0,
            torch.tensor([10.0], dtype=torch.float64),
            1e-10,
            options.repeats,
        ),
    ]
    precise = [accuracy(balance, t) for balance, t in ((1e-6, 0.3), (1e-3, 0.3), (1.0, 0.3), (1.0, 3.0), (30.0, 0.3))]
    report = {
        "python": platform.python_version(), "torch": torch.__version__, "scipy": scipy.__version__,
        "numpy": numpy.__version__, "threads": torch.get_num_threads(), "speed": cases,
        "descent": descent_case(options.repeats),
        "accuracy": precise,
    }  # fmt: skip
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")
    for case in cases:
        rival, ratio = case["dop853_seconds"], case["speedup"]
        print(f"{case['case']:45s} {case['seconds']:9.4f} s, DOP853 {rival:9.4f} s, x{ratio:.3g}")
    print(report["descent"])
    for row in precise:
        print(row)


if __name__ == "__main__":
    main()
