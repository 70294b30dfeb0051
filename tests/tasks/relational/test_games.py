from __future__ import annotations

from collections import Counter

import pytest
import torch

from relational_solver import game
from separatrix.core import spawn
from separatrix.tasks import GameTask, make_task, public_game, shortcut_accuracy
from separatrix.tasks.relational.game_rules import LINES
from separatrix.tasks.relational.polyominoes import LUMINANCE, all_cells, as_pictures, to_cells


def luminance(cell: torch.Tensor) -> float:
    """Of the first pixel that is not black, from the picture alone."""
    lit = cell.reshape(-1, 3)[cell.reshape(-1, 3).sum(1) > 0][0].double()
    return float((lit * torch.tensor(LUMINANCE, dtype=torch.float64)).sum())


def test_left_of_is_told_by_the_pictures() -> None:
    task = GameTask("left_of")
    drawn = task.problems("test", 300, generator=spawn(0, "left"))
    for board, label in zip(to_cells(task.canvas(drawn.index).numpy()), drawn.label.tolist(), strict=True):
        places = [place for place in range(9) if int(board[place].sum())]
        dim, light = sorted(places, key=lambda place: luminance(board[place]))
        assert luminance(board[dim]) < luminance(board[light])
        before = dim % 3 < light % 3 or (dim % 3 == light % 3 and dim // 3 > light // 3)
        assert label == int(before)


def test_colour_and_shape_are_told_by_the_pictures() -> None:
    task = GameTask("colour_shape")
    drawn = task.problems("train", 200, generator=spawn(0, "cs"))
    cells = all_cells()[drawn.index]
    for board, label in zip(cells, drawn.label.tolist(), strict=True):
        first, second = (cell for cell in board if int(cell.sum()))
        shapes = [(cell.sum(-1) > 0) for cell in (first, second)]
        colours = [cell.reshape(-1, 3).amax(0).tolist() for cell in (first, second)]
        same_shape, same_colour = torch.equal(*shapes), colours[0] == colours[1]
        assert label == 2 * (not same_colour) + (not same_shape)


def test_a_board_is_its_cells() -> None:
    task = GameTask("row_matching", "stripes")
    index, _ = task.test_batch(20)
    assert torch.equal(to_cells(task.canvas(index).numpy()), all_cells()[index])


def test_between_draws_the_middle_row_twice_as_often() -> None:
    drawn = GameTask("between").problems("train", 36_000, generator=spawn(0, "lines"))
    positive = drawn.index[drawn.label == 1] > 0
    counts = Counter(tuple(row.nonzero().flatten().tolist()) for row in positive)
    mean = 18_000 / 9
    for line in LINES:
        expected = mean * (2 if line == (3, 4, 5) else 1)
        assert abs(counts[tuple(sorted(line))] - expected) < 5 * expected**0.5


@pytest.mark.slow
def test_some_two_equal_answers_between_but_not_its_strict_form() -> None:
    assert shortcut_accuracy(make_task("game_between")).accuracy["some two equal"] >= 0.995
    strict = shortcut_accuracy(make_task("game_between_strict"))
    assert strict.accuracy["some two equal"] <= 0.70
    assert abs(strict.best[1] - 5 / 6) < 0.02  # first equals last: wrong on scattered ones of which two are equal


@pytest.mark.needs_data
@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", ["3task_col_patts_hexos", "3task_col_patts_stripes"])
def test_public_columns_follow_our_rules(part: str) -> None:
    file = public_game(part)
    for number, name in enumerate(("column_aba", "column_aab", "column_abb")):
        problems = file.problems(number)
        blank = int((problems.images.flatten(1).sum(1) == 0).nonzero())
        boards = torch.where(problems.index == blank, 0, problems.index + 1)
        answers = [game(name, tuple(row))[0] for row in boards.tolist()]
        assert answers == problems.label.tolist()


@pytest.mark.needs_data
@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", ["between_hexos", "between_stripes"])
def test_every_public_cell_is_one_of_ours_and_public_answers_follow_our_rule(part: str) -> None:
    file = public_game(part)
    problems = file.problems()
    ours = {row.numpy().tobytes(): place for place, row in enumerate(as_pictures(all_cells()))}
    places = torch.tensor([ours[row.numpy().tobytes()] for row in problems.images])
    boards = places[problems.index]
    differ = [
        row for row, y in zip(boards.tolist(), problems.label.tolist(), strict=True) if [y] != game("between", row)
    ]
    assert len(differ) <= 2
    assert all(len(set(row)) == 2 for row in differ)  # three equal objects on a line, which count as between there
    equal = boards.sort(1).values
    some_two = ((equal[:, 1:] == equal[:, :-1]) & (equal[:, 1:] > 0)).any(1).long()
    assert float((some_two == problems.label).double().mean()) > 0.998
