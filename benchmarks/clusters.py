"""Spectra of states of clusters and counts of stable equilibria, as the number of tokens grows.

    python benchmarks/clusters.py

Prints one line per number of tokens: what the closed forms take, and the dense spectrum beside them where it is small.
"""

from __future__ import annotations

import json
import time
from typing import Any

import torch

from separatrix import dynamics, matrices, theory
from separatrix.core import spawn

DIM = 20


def spectra(token_counts: tuple[int, ...]) -> list[dict[str, Any]]:
    """Cluster spectrum against the dense one at a random state of three clusters."""
    drawn = matrices.attention_instance(DIM, generator=spawn(0, "benchmark", "spectra"))
    flow = dynamics.AttentionFlow.from_coupling(drawn.coupling, drawn.value)
    w = dynamics.random_tokens(3, DIM, generator=spawn(0, "benchmark", "clusters"))
    rows = []
    for n in token_counts:
        sizes = [n - 2 * (n // 3), n // 3, n // 3]
        begun = time.process_time()
        exact = theory.cluster_spectrum(drawn.coupling, drawn.value, w, sizes)
        row: dict[str, Any] = {"tokens": n, "clusters ms": round(1e3 * (time.process_time() - begun), 2)}
        if n <= 60:
            begun = time.process_time()
            dense = torch.linalg.eigvals(flow.jacobian(w.repeat_interleave(torch.tensor(sizes), dim=0)))
            row["dense ms"] = round(1e3 * (time.process_time() - begun), 1)
            row["difference"] = abs(float(dense.real.max()) - float(exact.abscissa))
        rows.append(row)
    return rows


def counting(token_counts: tuple[int, ...]) -> list[dict[str, Any]]:
    """Counts of stable equilibria in closed form."""
    value, coupling = torch.diag(torch.tensor([3.0, 1.0, -4.0])), torch.diag(torch.tensor([0.9, 0.2, -1.1]))
    rows = []
    for n in token_counts:
        begun = time.process_time()
        theory.count_stable(coupling, value, n)
        rows.append({"tokens": n, "ms": round(1e3 * (time.process_time() - begun), 2)})
    return rows


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in (*spectra((12, 30, 60, 1000, 100_000)), *counting((10, 1000, 10**4, 10**6, 10**9))):
        print(json.dumps(line))
