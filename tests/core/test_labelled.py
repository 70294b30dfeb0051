from __future__ import annotations

from separatrix.core.labelled import Labelled
from separatrix.core.result import plain


class Answer(Labelled):
    YES = "yes, always"
    NO = "no"


def test_the_label_is_the_value_for_people_and_files_alike() -> None:
    assert [answer.label for answer in Answer] == ["yes, always", "no"]
    assert plain(Answer.YES) == "yes, always"
