from __future__ import annotations

from separatrix.core.wording import readable


def test_a_value_stands_with_its_interval_and_theory_has_its_digits() -> None:
    rows = [
        {"family": "goe", "measured": 1.0555930, "error": 0.000236696, "theory": 1.0557280900008412},
        {"family": "haar", "measured": 20.266, "error": 0.0283, "theory": 20.26099},
    ]
    table = readable(rows)
    assert table.columns == ("family", "measured ± standard error", "theory")
    assert table.cells == (("goe", "1.05559 ± 0.00024", "1.05573"), ("haar", "20.266 ± 0.028", "20.261"))
    assert table.numeric == (False, True, True)


def test_theory_beside_a_tiny_error_has_six_digits_at_most() -> None:
    table = readable([{"radius": 0.29165849, "radius_se": 2.7e-6, "theory_radius": 0.29151547}])
    assert table.cells == (("0.2916585 ± 0.0000027", "0.291515"),)


def test_ends_that_do_not_hold_the_value_are_columns_of_their_own() -> None:
    table = readable([{"instances": 48, "instances low": 0.86, "instances high": 0.99}])
    assert table.columns == ("instances", "instances low", "instances high")


def test_an_interval_may_stand_before_its_value() -> None:
    table = readable([{"time_low": 7.0, "time": 10.0, "time_high": 12.9}])
    assert table.columns == ("time [low, high]",)
    assert table.cells == (("10.0 [7.0, 12.9]",),)


def test_accuracies_end_at_one() -> None:
    rows = [{"model": "a", "n": 3, "mean": 0.99975, "low": 0.99913, "high": 1.00037, "std": 0.00025}]
    table = readable(rows, title="Accuracy on unseen pictures")
    assert table.columns == ("model", "runs", "mean [low, high]", "standard deviation")
    assert table.cells == (("a", "3", "0.9998 [0.9991, 1]", "0.00025"),)


def test_rows_may_lack_columns_and_hold_anything() -> None:
    table = readable([{"a": None, "b": [1, 2.5]}, {"c": True, "b": "nan"}, {"a": complex(1, -2), "b": {"x_y": 1.0}}])
    assert table.columns == ("a", "b", "c")
    assert table.cells == (("–", "1, 2.5", "–"), ("–", "–", "yes"), ("1 - 2i", "x y 1", "–"))
    assert readable([]).columns == ()


def test_counts_are_whole_and_numbers_of_one_size_are_aligned() -> None:
    table = readable([{"steps": 3018.0, "loss": 0.5}, {"steps": 124.0, "loss": 0.123456}])
    assert table.cells == (("3018", "0.5000"), ("124", "0.1235"))
