"""Learning curves of linear networks against SciPy's DOP853 at the same tolerance: CPU time, errors beside it.

Every case of a grid: sizes (input, hidden, output), balance, horizon, number of times and tolerance. Ours is
``learning_dynamics`` as it stands, with everything that it checks; DOP853 gets the plain equations of both layers in
NumPy and its own dense output. "Long and stiff" are the cases of balance 100 and horizon 100. Errors are relative to
the largest entry, against the reference closed form (``BalancedFlow``, one QR per time) at twenty of the times. Peers
that take longer than 0.3 s run once.

Usage: python benchmarks/linear.py [--quick]; writes benchmarks/results/linear.json. About three minutes.
"""

from __future__ import annotations

import itertools
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is loaded: whose threads count as processor time

import numpy
import torch
from rows import Row, compared, cpu_seconds, interleaved, main, mean_row, worst_row
from scipy.integrate import solve_ivp

from separatrix.advise import learning_dynamics
from separatrix.core import spawn
from separatrix.matrices import balanced_pair
from separatrix.theory import BalancedFlow

SIZES = ((5, 5, 5), (30, 30, 30), (100, 100, 100), (10, 12, 20), (40, 10, 20), (20, 30, 10))
BALANCES, HORIZONS, COUNTS, TOLERANCES = (0.0, 1.0, 100.0), (0.1, 1.0, 10.0, 100.0), (1, 50, 1000), (1e-6, 1e-10)
GOAL, GOAL_SHORT, GOAL_MEAN, GOAL_STIFF = 0.7, 1.0, 0.25, 1 / 300
LONG, ROUNDS = 0.3, 3

Network = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def network(sizes: tuple[int, int, int], balance: float) -> Network:
    generator = spawn(0, "benchmark", *sizes)
    w1, w2 = balanced_pair(balance, *sizes, scale=0.3, generator=generator)
    return w1, w2, torch.randn(sizes[2], sizes[0], dtype=torch.float64, generator=generator)


def by_scipy(given: Network, times: torch.Tensor, tol: float) -> numpy.ndarray:
    """w2 w1 along gradient flow, (times, out, in)."""
    a0, b0, target = (part.numpy() for part in given)
    (h, i), o = a0.shape, b0.shape[0]

    def rate(_t: float, y: numpy.ndarray) -> numpy.ndarray:
        a, b = y[: h * i].reshape(h, i), y[h * i :].reshape(o, h)
        error = target - b @ a
        return numpy.concatenate([(b.T @ error).ravel(), (error @ a.T).ravel()])

    start = numpy.concatenate([a0.ravel(), b0.ravel()])
    found = solve_ivp(rate, (0, float(times[-1])), start, "DOP853", times.numpy(), rtol=tol, atol=tol * 1e-2).y
    return found[h * i :].T.reshape(-1, o, h) @ found[: h * i].T.reshape(-1, h, i)


def case_row(sizes: tuple[int, int, int], balance: float, horizon: float, count: int, tol: float) -> Row:
    given = network(sizes, balance)
    times = torch.linspace(0 if count > 1 else horizon, horizon, count, dtype=torch.float64)
    chosen = torch.linspace(0, count - 1, min(count, 20)).long()
    exact = BalancedFlow(*given).product(times[chosen]).numpy()
    products = {}

    def ours() -> None:
        products["ours"] = learning_dynamics(*given, times, tol=tol)

    def theirs() -> None:
        products["theirs"] = by_scipy(given, times, tol)

    first = cpu_seconds(theirs)
    if first > LONG:
        own = interleaved({"ours": ours}, ROUNDS)["ours"]
        pairs = own, [first] * len(own)
    else:
        seconds = interleaved({"ours": ours, "theirs": theirs}, ROUNDS, least=0.01)
        pairs = seconds["ours"], seconds["theirs"]
    found = products["ours"]
    values = found.product.numpy()[chosen.numpy()], products["theirs"][chosen.numpy()]
    errors = [float(abs(value - exact).max() / abs(exact).max()) for value in values]
    stiff = balance == 100 and horizon == 100
    return compared(
        f"linear network {'-'.join(map(str, sizes))}, balance {balance:g}, {count} times to {horizon:g}, tol {tol:g}",
        "SciPy DOP853",
        *pairs,
        goal=GOAL_STIFF if stiff else GOAL_SHORT if horizon == 0.1 else GOAL,
        note=f"{found.method}; error {errors[0]:.0e}, theirs {errors[1]:.0e}",
        facts={"errors": errors, "horizon": horizon, "stiff": stiff, "method": found.method},
    )


def rows(quick: bool) -> list[Row]:
    torch.set_num_threads(1)
    grid = itertools.product(SIZES, BALANCES, HORIZONS, COUNTS, TOLERANCES)
    cases = [case for case in grid if not (case[1] > 0 and case[0][1] > case[0][2])]  # no such balanced network
    if quick:
        cases = [case for case in cases if case[0] == SIZES[0] and case[2] < 100 and case[3] == 50]
    found = [case_row(*case) for case in cases]
    peer, job = "SciPy DOP853", "learning curve of a linear network"
    short = [row for row in found if row.facts["horizon"] == 0.1]
    stiff = [row for row in found if row.facts["stiff"]]
    others = [row for row in found if row not in short and row not in stiff]
    largest = max(row.facts["errors"][0] for row in found)
    note = f"{len(found)} cases; largest error {largest:.0e}, theirs {max(row.facts['errors'][1] for row in found):.0e}"
    summary = [
        mean_row(f"{job}, all of the grid", peer, found, goal=GOAL_MEAN, note=note, readme=True),
        worst_row(f"{job}, horizon 0.1, worst", peer, short, goal=GOAL_SHORT, readme=True),
        worst_row(f"{job}, horizons 1 to 100, worst", peer, others, goal=GOAL, readme=True),
    ]
    if stiff:
        summary.append(worst_row(f"{job}, long and stiff, worst", peer, stiff, goal=GOAL_STIFF, readme=True))
    return summary + found


if __name__ == "__main__":
    main(rows, __file__, __doc__)
