from __future__ import annotations

import dataclasses
import functools
import gc
import inspect
import weakref
from collections.abc import Callable

import beartype
import jaxtyping
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

import shape_checks
from separatrix.matrices import henrici


@pytest.fixture
def trace() -> object:
    @shape_checks._jaxtyped(typechecker=beartype.beartype)
    def trace_of(matrix: Float[Tensor, "n n"]) -> float:
        return float(matrix.diagonal().sum())

    return trace_of


def test_the_first_calls_of_every_file_are_checked(trace) -> None:  # type: ignore[no-untyped-def]
    wrong = torch.ones(2, 3)
    for _ in range(shape_checks.CALLS_PER_FILE):
        with pytest.raises(jaxtyping.TypeCheckError):
            trace(wrong)
    assert trace(wrong) == 2.0  # later calls are not
    shape_checks.begin_file("another file")
    with pytest.raises(jaxtyping.TypeCheckError):
        trace(wrong)


@pytest.mark.parametrize("case", ["first", "second"])
def test_the_tests_of_one_file_share_their_checks(case: str) -> None:
    """Whichever case runs first is checked, here and with the cases on two processes."""
    global _calls_left
    caught = 0
    for _ in range(shape_checks.CALLS_PER_FILE):
        try:
            shared(torch.ones(2, 3))
        except jaxtyping.TypeCheckError:
            caught += 1
    assert caught == _calls_left
    _calls_left = 0


@shape_checks._jaxtyped(typechecker=beartype.beartype)
def shared(matrix: Float[Tensor, "n n"]) -> float:
    return float(matrix.diagonal().sum())


_calls_left = shape_checks.CALLS_PER_FILE


def test_a_function_has_its_own_lines_once_its_checks_are_spent() -> None:
    """Nothing stands between it and its caller then, and in the next file it is checked again."""
    own = inspect.unwrap(shared).__code__
    shape_checks.begin_file("a file")
    assert shared.__code__ is not own
    for _ in range(shape_checks.CALLS_PER_FILE):
        shared(torch.eye(2))
    assert shared.__code__ is own
    shape_checks.begin_file("another file")
    with pytest.raises(jaxtyping.TypeCheckError):
        shared(torch.ones(2, 3))
    assert list(inspect.signature(shared).parameters) == ["matrix"]


class Scaled:
    def times(self, x: float) -> float:
        return x


class Doubled(Scaled):
    @shape_checks._jaxtyped(typechecker=beartype.beartype)
    def times(self, x: float) -> float:
        return super().times(2 * x)


def test_methods_with_free_names_are_checked_and_computed() -> None:
    shape_checks.begin_file("a file of methods")
    with pytest.raises(jaxtyping.TypeCheckError):
        Doubled().times("3")  # type: ignore[arg-type]
    assert [Doubled().times(3.0) for _ in range(shape_checks.CALLS_PER_FILE)] == [6.0] * shape_checks.CALLS_PER_FILE


def test_a_constructor_inside_another_function_is_not_taken_for_what_it_wraps() -> None:
    """Its annotations are those of the constructor, its parameters are not; with its checks spent it is left alone."""

    def around(build: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(build)
        @shape_checks._jaxtyped(typechecker=beartype.beartype)
        def outer(self: object, *args: object, **options: object) -> None:
            build(self, *args, **options)

        return outer

    def made() -> type:
        @dataclasses.dataclass
        class Called:
            name: str
            args: dict[str, int]

        Called.__init__ = around(Called.__init__)  # type: ignore[method-assign]
        Called.__qualname__ = Called.__init__.__qualname__ = "Called"  # as in a module
        return shape_checks._jaxtyped(typechecker=beartype.beartype)(Called)  # type: ignore[no-any-return]

    for _ in range(shape_checks.CALLS_PER_FILE):
        assert made()("name", {"a": 1}).args == {"a": 1}
    assert made().__init__.__code__.co_name == "outer"  # type: ignore[misc]


def test_functions_inside_functions_are_freed() -> None:
    def make() -> Callable[[int], int]:
        @shape_checks._jaxtyped(typechecker=beartype.beartype)
        def inner(x: int) -> int:
            return x

        return inner

    made = make()
    assert made(1) == 1
    seen = weakref.ref(inspect.unwrap(made))
    del made
    gc.collect()
    assert seen() is None


def test_functions_of_the_package_are_checked() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        henrici("no matrix")  # type: ignore[arg-type]


def test_first_objects_of_a_data_class_are_checked() -> None:
    @shape_checks._jaxtyped(typechecker=beartype.beartype)
    @dataclasses.dataclass(frozen=True)
    class Pair:
        left: Float[Tensor, " n"]
        right: Float[Tensor, " n"]

    assert len(Pair(torch.ones(2), torch.ones(2)).left) == 2
    for _ in range(shape_checks.CALLS_PER_FILE - 1):
        with pytest.raises(jaxtyping.TypeCheckError, match="right"):
            Pair(torch.ones(2), torch.ones(3))
    assert len(Pair(torch.ones(2), torch.ones(3)).right) == 3


def test_what_is_returned_agrees_with_what_was_given() -> None:
    @shape_checks._jaxtyped(typechecker=beartype.beartype)
    def doubled(x: Float[Tensor, " n"], *, n: int) -> Float[Tensor, "n {n}"]:
        return torch.ones(len(x), n + (n == 3))

    assert doubled(torch.ones(2), n=4).shape == (2, 4)
    with pytest.raises(jaxtyping.TypeCheckError, match="return"):
        doubled(torch.ones(2), n=3)


def test_functions_made_by_the_same_lines_share_what_is_checked() -> None:
    def make() -> Callable[[object], int]:
        @shape_checks._jaxtyped(typechecker=beartype.beartype)
        def inner(x: int) -> int:
            return x

        return inner

    for _ in range(shape_checks.CALLS_PER_FILE):
        with pytest.raises(jaxtyping.TypeCheckError):
            make()("no number")
    assert make()("no number") == "no number"  # type: ignore[comparison-overlap]


def test_annotations_stay_as_they_were_written() -> None:
    @shape_checks._jaxtyped(typechecker=beartype.beartype)
    def half(x: float) -> float:
        return x / 2

    assert half(3.0) == 1.5
    assert inspect.signature(half).parameters["x"].annotation == "float"
