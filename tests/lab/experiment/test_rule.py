from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

import pytest

from separatrix.lab import Claim, Judgement, Row, at_least, crossed, groups, judge, rule_digest, spans

LIMIT = 0.1


def rule(source: str, **given: Any) -> Claim:
    """A claim whose rule is compiled from text, with globals of its own."""
    names: dict[str, Any] = {"judge": judge, "Row": Row, "__name__": "somewhere", **given}
    exec(compile(source, "somewhere", "exec"), names)
    return claim(names["decide"])


def claim(decide: Any, **changes: Any) -> Claim:
    given: dict[str, Any] = {"id": "a", "statement": "s", "measures": "m", "test": "t", "counterfeit": len, **changes}
    return Claim(judge=decide, **given)


def limited(summary: Any) -> Judgement:
    """Decide by a constant of the module."""
    return judge("x", [Row("x", 0.0, 0.0, LIMIT) for _ in range(1)])


def calls(summary: Any) -> Judgement:
    return _helper(summary)


def _helper(summary: Any) -> Judgement:
    return judge("x", [Row("x", 0.0, 0.0, LIMIT)])


def within(tolerance: float) -> Any:
    def decide(summary: Any) -> Judgement:
        return judge("x", [Row("x", 0.0, 0.0, tolerance)])

    return decide


def by_share(summary: Any, share: float) -> Judgement:
    return judge("x", [Row("x", 0.0, 0.0, share)])


def test_the_same_rule_has_the_same_digest() -> None:
    assert rule_digest(claim(limited)) == rule_digest(claim(limited, measures="other words"))
    assert rule_digest(claim(within(0.1))) == rule_digest(claim(within(0.1)))


@pytest.mark.parametrize("decide", [limited, calls])
def test_a_changed_constant_changes_the_digest(decide: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rule_digest(claim(decide))
    monkeypatch.setitem(globals(), "LIMIT", 0.2)
    assert rule_digest(claim(decide)) != before


def test_a_changed_helper_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = rule_digest(claim(calls))
    monkeypatch.setitem(globals(), "_helper", limited)
    assert rule_digest(claim(calls)) != before


def test_closures_and_partial_functions_count_with_their_values() -> None:
    assert rule_digest(claim(within(0.1))) != rule_digest(claim(within(0.2)))
    one, two = (claim(functools.partial(by_share, share=share)) for share in (0.1, 0.2))
    assert rule_digest(one) != rule_digest(two)


def test_statement_test_and_scale_belong_to_the_rule() -> None:
    plain = rule_digest(claim(limited))
    assert plain != rule_digest(claim(limited, statement="another"))
    assert plain != rule_digest(claim(limited, test="another"))
    assert plain != rule_digest(claim(limited, scale="paper"))


def test_groups_that_a_statement_needs_belong_to_the_rule() -> None:
    both = groups("scales", "family", "gaussian", "haar")
    one = groups("scales", "family", "gaussian")
    found = [rule_digest(claim(limited, needs=needs)) for needs in ((), (one,), (both,), (one, both))]
    assert len(set(found)) == 4
    assert rule_digest(claim(limited, needs=(both, one))) == found[3]


def test_ranges_and_combinations_that_a_statement_needs_belong_to_the_rule() -> None:
    needed = (
        crossed("scales", "family", "scale"),
        crossed("scales", ("family", "scale")),
        crossed("scales", "family", "scale", tied=True),
        spans("scales", "scale", 0.2, 0.9),
        spans("scales", "scale", 0.2, 0.8),
        at_least("scales", 2),
        at_least("scales", 3),
        at_least("scales", 3, "family"),
    )
    digests = {
        rule_digest(claim(limited, needs=(one,), as_a_whole=whole)) for one in needed for whole in ((), ("scales",))
    }
    assert len(digests) == 2 * len(needed)


def test_code_without_a_file_is_told_apart_too() -> None:
    first = rule("def decide(summary): return judge('x', [Row('x', 0.0, 0.0, 0.1)])")
    second = rule("def decide(summary): return judge('x', [Row('x', 0.0, 0.0, 0.2)])")
    assert rule_digest(first) != rule_digest(second)


def test_a_rule_is_read_once_however_many_records_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first = rule_digest(claim(limited))
    monkeypatch.setattr(inspect, "getsource", lambda function: pytest.fail(f"{function} is read again"))
    assert rule_digest(claim(limited)) == first


def test_equal_code_of_two_files_is_two_rules(tmp_path: Path) -> None:
    """Of an ``if`` that can never be, the code keeps nothing."""
    found = []
    for number in (1, 2):
        path = tmp_path / f"rules_{number}.py"
        path.write_text(f"def decide(summary):\n    if 0: return {number}\n    return summary\n")
        names: dict[str, Any] = {"__name__": path.stem}
        exec(compile(path.read_text(), str(path), "exec"), names)
        found.append(names["decide"])
    assert found[0].__code__ == found[1].__code__
    assert rule_digest(claim(found[0])) != rule_digest(claim(found[1]))
