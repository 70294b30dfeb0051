from __future__ import annotations

import itertools

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.diagnose import phase_diagram
from separatrix.diagnose.attention import phases
from separatrix.dynamics import AttentionFlow, Contradiction
from separatrix.matrices import attention_instance
from separatrix.theory import BlockSpectrum, bipartite_spectrum

M, V = torch.diag(torch.tensor([0.9, 0.2, -1.1])), torch.diag(torch.tensor([3.0, 1.0, -4.0]))
M, V = M.double(), V.double()
BETAS = torch.linspace(0.1, 2.0, 20, dtype=torch.float64)


def dense_stable(flow: AttentionFlow, v: torch.Tensor, n1: int, n: int) -> bool:
    x = torch.cat([v.expand(n1, len(v)), -v.expand(n - n1, len(v))])
    return float(torch.linalg.eigvals(flow.jacobian(x)).real.max()) < 0


@pytest.mark.parametrize("n", [6, 7])
def test_windows_are_those_of_the_dense_jacobian(n: int) -> None:
    cases = [
        (M, V),
        *((item.coupling, item.value) for item in (attention_instance(3, generator=seeded(i)) for i in (1, 2))),
    ]
    for coupling, value in cases:
        diagram = phase_diagram(coupling, value, [0.15, 0.6, 1.1, 2.3], n)
        vectors = torch.linalg.eigh(value).eigenvectors
        for (i, beta), (j, column) in itertools.product(enumerate(diagram.betas.tolist()), ((0, -1), (1, 0))):
            flow = AttentionFlow.from_coupling(coupling, value, beta)
            stable = [n1 for n1 in range(1, n) if dense_stable(flow, vectors[:, column], n1, n)]
            window = set(range(int(diagram.lowest[j, i]), int(diagram.highest[j, i]) + 1))
            window |= {1, n - 1} if bool(diagram.single[j, i]) else set()
            assert sorted(window) == stable
            assert bool(diagram.bipartite[j, i]) == bool(stable)


@pytest.mark.parametrize("n", [10, 11])
def test_windows_open_where_the_jacobian_of_the_most_even_split_changes(n: int) -> None:
    diagram = phase_diagram(M, V, BETAS, n)
    for j, vector in enumerate((torch.eye(3).double()[0], torch.eye(3).double()[2])):
        beta = diagram.opening[j]
        assert beta == pytest.approx(diagram.critical[j], rel=1e-12) if n % 2 == 0 else beta > diagram.critical[j]
        below, above = (AttentionFlow.from_coupling(M, V, beta * factor) for factor in (1 - 1e-6, 1 + 1e-6))
        assert not dense_stable(below, vector, n // 2, n)
        assert dense_stable(above, vector, n // 2, n)
    assert diagram.multistable.tolist() == (min(diagram.opening) < BETAS).tolist()


def test_the_census_stands_on_the_closed_form() -> None:
    diagram = phase_diagram(M, V, BETAS, 10, n_starts=12, n_census=4)
    assert sum(end.count for end in diagram.ends) == 4 * 12
    assert {end.beta for end in diagram.ends} == set(diagram.census_betas.tolist())
    pairs = [end for end in diagram.ends if end.family.startswith("bipartite")]
    assert pairs
    for end in pairs:
        j = 0 if end.family == "bipartite v1" else 1
        i = BETAS.tolist().index(end.beta)
        assert int(diagram.lowest[j, i]) <= round(10 * end.share) <= int(diagram.highest[j, i])
    rows = diagram.table()
    assert len(rows) == len(BETAS)
    assert "consensus v1" in rows[0]["census"]
    assert len(diagram.to_frame()) == len(BETAS)


def test_an_end_outside_its_window_is_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(coupling: object, value: object, k: int, n1: int, n2: int, beta: float) -> BlockSpectrum:
        return bipartite_spectrum(M, V, k, 99, 1, beta)

    monkeypatch.setattr(phases, "bipartite_spectrum", moved)
    with pytest.raises(Contradiction, match="certified stable bipartite end point"):
        phase_diagram(M, V, [0.5, 1.9], 10, n_starts=12)


def test_bad_input_is_refused_by_name() -> None:
    for betas in ([], [1.0, 0.5], [-1.0, 1.0], [1.0, 1.0]):
        with pytest.raises(InvalidInput, match="betas must be increasing"):
            phase_diagram(M, V, betas, 10)
    with pytest.raises(InvalidInput, match="n_starts must be an integer"):
        phase_diagram(M, V, BETAS, 10, n_starts=-1)
    with pytest.raises(OutsideTheory, match="value must be symmetric"):
        phase_diagram(M, V + torch.eye(3).roll(1, 0), BETAS, 10)
    with pytest.raises(InvalidInput, match="one pair of matrices"):
        phase_diagram(M.expand(2, 1, 3, 3), V, BETAS, 10)
