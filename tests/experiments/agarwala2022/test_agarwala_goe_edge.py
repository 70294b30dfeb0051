from __future__ import annotations

from fractions import Fraction

from separatrix.experiments.agarwala2022.agarwala_goe_edge import limit_of_means


def test_the_limit_is_that_of_exact_arithmetic() -> None:
    """Cubes have rational powers of -2/3. A verdict that rounds on the way differs from processor to processor."""
    sizes = (8, 10, 12)  # cube roots of the widths
    means = {root: Fraction(7 * root + 3, 1 << 6) for root in sizes}
    points = [(root**3, float(means[root] + step)) for root in sizes for step in (Fraction(-1, 64), 0, Fraction(1, 64))]
    rows = [(Fraction(1), Fraction(1, root**2), Fraction(1, root**3)) for root in sizes]
    exact = _determinant([(means[root], *row[1:]) for root, row in zip(sizes, rows, strict=True)]) / _determinant(rows)
    assert limit_of_means(points)[0] == float(exact)


def _determinant(rows: list[tuple[Fraction, Fraction, Fraction]]) -> Fraction:
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * e * i + b * f * g + c * d * h - c * e * g - b * d * i - a * f * h
