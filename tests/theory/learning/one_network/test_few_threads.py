"""Both libraries give the same, and what torch cannot take as it is comes through."""

from __future__ import annotations

import warnings

import numpy
import pytest

from separatrix.matrices import balanced_pair
from separatrix.theory.learning.one_network import few_threads
from separatrix.theory.learning.one_network.few_threads import (
    cholesky_factor,
    inner,
    inverse,
    matrix_product,
    orthonormal,
    singular_parts,
    upper_factor,
    write_product,
)
from separatrix.theory.learning.one_network.network_product import NetworkProduct
from separatrix.theory.learning.one_network.plain_arrays import plain_network


@pytest.fixture(params=["numpy", "torch"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    limit = 10**9 if request.param == "numpy" else 0
    monkeypatch.setattr(few_threads, "_ALONE", limit)
    monkeypatch.setattr(few_threads, "_ALONE_IN_A_SUM", limit)
    return str(request.param)


def test_every_call_is_right_by_either_library(library: str) -> None:
    draws = numpy.random.default_rng(0)
    tall, square, batch = draws.normal(size=(7, 4)), draws.normal(size=(4, 4)), draws.normal(size=(3, 4, 5))
    numpy.testing.assert_allclose(matrix_product(tall, batch), tall @ batch, rtol=1e-13, atol=1e-13)
    out = numpy.empty((7, 4))
    write_product(tall, square, out)
    numpy.testing.assert_allclose(out, tall @ square, rtol=1e-13, atol=1e-13)
    assert inner(tall, tall) == pytest.approx((tall**2).sum(), rel=1e-14)
    for whole in (False, True):
        u, s, vh = singular_parts(tall, whole)
        assert u.shape == ((7, 7) if whole else (7, 4))
        numpy.testing.assert_allclose((u[:, :4] * s) @ vh, tall, atol=1e-13)
    directions, upper = orthonormal(tall)
    numpy.testing.assert_allclose(directions @ upper, tall, atol=1e-13)
    numpy.testing.assert_allclose(abs(upper_factor(tall)), abs(upper), atol=1e-13)
    found = inverse(square)
    assert found is not None
    numpy.testing.assert_allclose(found @ square, numpy.eye(4), atol=1e-12)
    assert inverse(numpy.ones((3, 3))) is None
    systems = batch @ batch.transpose(0, 2, 1)
    factors = cholesky_factor(systems)
    assert factors is not None
    numpy.testing.assert_allclose(factors @ factors.transpose(0, 2, 1), systems, atol=1e-13)
    assert cholesky_factor(-systems) is None


def test_weights_that_torch_would_not_take_are_taken(library: str, generator) -> None:
    w1, w2 = (part.numpy() for part in balanced_pair(1.0, 6, 4, 5, scale=0.4, generator=generator))
    corr, times = numpy.random.default_rng(1).normal(size=(5, 6)), numpy.linspace(0, 3, 7)
    expected = NetworkProduct(plain_network(w1, w2, corr), 3.0).product(times)
    backwards = [part[::-1, ::-1].copy()[::-1, ::-1] for part in (w1, w2, corr)]
    for part in (locked := [part.copy() for part in (w1, w2, corr)]):
        part.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in (backwards, locked):
            found = NetworkProduct(plain_network(*given), 3.0).product(times)
            numpy.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.parametrize(
    ("openblas", "openmp", "one"), [("1", None, True), (None, "1", True), ("4", "1", False), (None, None, False)]
)
def test_one_thread_is_what_the_environment_says(monkeypatch, openblas, openmp, one: bool) -> None:
    for name, value in (("OPENBLAS_NUM_THREADS", openblas), ("OMP_NUM_THREADS", openmp)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert few_threads._one_thread() is one
