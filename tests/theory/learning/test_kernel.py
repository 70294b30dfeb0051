from __future__ import annotations

import pytest
import torch

from helpers import checks
from separatrix.core import OutsideTheory
from separatrix.matrices import balanced_pair
from separatrix.tasks import semantic_task
from separatrix.theory import (
    BalancedFlow,
    equal_size_gram,
    equal_size_parts,
    kernel_change,
    lazy_ntk_change,
    ntk_distance,
    ntk_inner,
    representation_spectra,
    representational_similarity,
    square_representations,
    task_specific_score,
    two_layer_ntk,
)

F64 = torch.float64


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=F64, generator=generator)


@checks(two_layer_ntk, by="autograd Jacobians")
def test_kernel_is_the_gram_matrix_of_jacobians(generator: torch.Generator) -> None:
    w1, w2, x = normal(generator, 3, 4), normal(generator, 2, 3), normal(generator, 5, 4)
    jacobians = torch.autograd.functional.jacobian(lambda a, b: (x @ a.mT @ b.mT).mT.reshape(-1), (w1, w2))
    expected = sum(j.reshape(10, -1) @ j.reshape(10, -1).mT for j in jacobians)
    torch.testing.assert_close(two_layer_ntk(w1.mT @ w1, w2 @ w2.mT, x), expected, atol=1e-12, rtol=1e-12)


@checks(ntk_inner, ntk_distance, kernel_change, by="kernels formed in full")
def test_inner_products_need_no_kernels(generator: torch.Generator) -> None:
    x = normal(generator, 7, 3)
    corr_xx = x.mT @ x / 7
    pairs = []
    for _ in range(2):
        w1, w2 = normal(generator, 4, 3), normal(generator, 2, 4)
        pairs.append((w1.mT @ w1, w2 @ w2.mT))
    kernels = [two_layer_ntk(*pair, x) for pair in pairs]
    torch.testing.assert_close(ntk_inner(*pairs[0], *pairs[1], corr_xx), (kernels[0] * kernels[1]).sum() / 49)
    cosine = torch.nn.functional.cosine_similarity(kernels[0].flatten(), kernels[1].flatten(), dim=0)
    torch.testing.assert_close(ntk_distance(*pairs[0], *pairs[1], corr_xx), 1 - cosine)
    change = torch.linalg.matrix_norm(kernels[1] - kernels[0]) / torch.linalg.matrix_norm(kernels[0])
    torch.testing.assert_close(kernel_change(*pairs[0], *pairs[1], corr_xx), change)


@checks(representational_similarity, by="hidden activity of every sample")
def test_similarities_are_inner_products_of_hidden_activity(generator: torch.Generator) -> None:
    w1, w2 = normal(generator, 3, 4), normal(generator, 2, 3)
    x, y = normal(generator, 5, 4), normal(generator, 5, 2)
    from_inputs, from_targets = representational_similarity(w1.mT @ w1, w2 @ w2.mT, x, y)
    hidden, backward = x @ w1.mT, y @ torch.linalg.pinv(w2).mT
    torch.testing.assert_close(from_inputs, hidden @ hidden.mT)
    torch.testing.assert_close(from_targets, backward @ backward.mT)


@checks(representation_spectra, by="eigenvalues of drawn weights")
@pytest.mark.parametrize(
    ("balance", "shape"), [(2.0, (2, 3, 5)), (-2.0, (5, 3, 2)), (0.0, (2, 6, 3)), (1.0, (4, 2, 4)), (-1e3, (3, 3, 3))]
)
def test_spectra_follow_from_the_product(
    balance: float, shape: tuple[int, int, int], generator: torch.Generator
) -> None:
    n_in, n_hidden, n_out = shape
    w1, w2 = balanced_pair(balance, n_in, n_hidden, n_out, generator=generator)
    lam = torch.tensor(balance, dtype=F64)
    first, second = representation_spectra(torch.linalg.svdvals(w2 @ w1), lam, n_in, n_hidden, n_out)
    size = max(1.0, abs(balance), float(second.max()), float(first.max()))
    torch.testing.assert_close(torch.linalg.eigvalsh(w1.mT @ w1).flip(0), first, atol=1e-12 * size, rtol=0)
    torch.testing.assert_close(torch.linalg.eigvalsh(w2 @ w2.mT).flip(0), second, atol=1e-12 * size, rtol=0)


def test_known_spectrum() -> None:
    lam, s = torch.tensor(3.0, dtype=F64), torch.tensor([2.0, 1.0], dtype=F64)
    first, second = representation_spectra(s, lam, 2, 2, 2)
    assert second.tolist() == pytest.approx([4.0, 3.3027756377], abs=1e-10)
    assert first.tolist() == pytest.approx([1.0, 0.3027756377], abs=1e-10)


@checks(square_representations, by="drawn weights")
@pytest.mark.parametrize("balance", [0.0, 4.0, -4.0, 1e3])
def test_square_networks_are_closed_in_their_product(balance: float, generator: torch.Generator) -> None:
    w1, w2 = balanced_pair(balance, 4, 4, 4, generator=generator)
    first, second = square_representations(w2 @ w1, torch.tensor(balance, dtype=F64))
    size = max(10.0, abs(balance))
    torch.testing.assert_close(first, w1.mT @ w1, atol=1e-13 * size, rtol=0)
    torch.testing.assert_close(second, w2 @ w2.mT, atol=1e-13 * size, rtol=0)
    with pytest.raises(OutsideTheory, match="product must be square"):
        square_representations(torch.ones(2, 2, dtype=F64)[:1], torch.tensor(0.0, dtype=F64))


@checks(lazy_ntk_change, by="exact kernels at balance 1000")
def test_lazy_kernels_move_by_two_terms_of_the_same_order(generator: torch.Generator) -> None:
    corr, product, x = normal(generator, 4, 4), normal(generator, 4, 4), normal(generator, 6, 4)
    for sign in (1, -1):
        lam = torch.tensor(1000.0 * sign, dtype=F64)
        flow = BalancedFlow(*balanced_pair(lam, 4, 4, 4, product=product, generator=generator), corr)
        change = flow.ntk(1.0, x) - flow.ntk(0.0, x)
        predicted = lazy_ntk_change(product, flow.product(1.0), lam, x)
        assert (change - predicted).abs().max() < 1e-3 * change.abs().max()  # next order is 1 / balance^2 relative


@checks(task_specific_score, by="cosines entry by entry")
def test_scores_are_cosines_of_flattened_matrices(generator: torch.Generator) -> None:
    corr = normal(generator, 3, 4)
    a, b = normal(generator, 4, 4), normal(generator, 3, 3)
    u, s, vh = torch.linalg.svd(corr, full_matrices=False)
    cosine = torch.nn.functional.cosine_similarity

    def best(matrix: torch.Tensor, basis: torch.Tensor) -> float:
        return max(
            float(cosine(matrix.flatten(), (basis @ torch.diag(s**p) @ basis.mT).flatten(), dim=0)) for p in (1, 2)
        )

    found = task_specific_score(a, b, corr)
    assert float(found[0]) == pytest.approx(best(a, vh.mT))
    assert float(found[1]) == pytest.approx(best(b, u))


@pytest.mark.parametrize(
    ("balance", "score_in", "score_out"),
    [
        (0.0, 1.0, 1.0),
        (1.0, 0.997673, 0.997452),
        (2.0, 0.992567, 0.991297),
        (5.0, 0.998469, 0.973838),
        (20.0, 0.999987, 0.958799),
    ],
)
def test_known_scores_of_the_semantic_task(balance: float, score_in: float, score_out: float) -> None:
    target = 8 * semantic_task().corr_yx
    for sign in (1, -1):
        scores = task_specific_score(*square_representations(target, torch.tensor(sign * balance, dtype=F64)), target)
        assert [float(score) for score in scores] == pytest.approx([score_in, score_out][::sign], abs=1e-6)


@checks(equal_size_gram, equal_size_parts, by="the solution for all sizes and integration")
def test_the_documents_formula_agrees_once_mended(generator: torch.Generator) -> None:
    for balance in (2.0, -3.0):
        w1, w2 = balanced_pair(balance, 4, 4, 4, scale=0.5, generator=generator)
        corr = normal(generator, 4, 4)
        for t in (0.3, 2.0):
            assert (equal_size_gram(w1, w2, corr, t, balance) - BalancedFlow(w1, w2, corr).gram(t)).abs().max() < 1e-11
