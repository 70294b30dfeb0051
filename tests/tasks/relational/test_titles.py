from __future__ import annotations

from separatrix.core.wording.lint import faults_of
from separatrix.tasks.relational.catalogue import TASK_NAMES
from separatrix.tasks.relational.titles import task_title


def test_every_task_has_a_title_of_its_own_in_words() -> None:
    titles = [task_title(name) for name in TASK_NAMES]
    assert len(set(titles)) == len(titles)
    assert not [title for title in titles if faults_of(title) or "_" in title]
