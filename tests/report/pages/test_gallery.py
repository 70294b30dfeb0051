from __future__ import annotations

import base64

import pytest

from separatrix import experiments
from separatrix.lab.ledger import shipped_publications
from separatrix.lab.results import published_report
from separatrix.report.pages.gallery import drawn_figures, gallery_of, ledger_sentence


def published(name: str):  # type: ignore[no-untyped-def]
    experiment = experiments.find(name)
    return published_report(shipped_publications({name: experiment})[name], experiment)


@pytest.mark.slow
def test_a_figure_that_is_wider_than_a_narrow_page_is_drawn_for_it_too() -> None:
    run = published("anguita-fig3-3")
    (panels,) = drawn_figures(run).figures
    assert panels.narrow is not None
    assert panels.narrow != panels.wide
    (single,) = drawn_figures(published("anguita-fig4-4")).figures
    assert single.narrow is not None  # one panel of six inches: its letters would be half as large
    assert single.narrow != single.wide


def test_a_picture_of_the_front_page_says_what_it_shows_and_what_the_ledger_says() -> None:
    run = published("anguita-fig4-4")
    (view,) = gallery_of(run, "experiments/page.html", drawn_figures(run))
    assert view.page == "experiments/page.html#figure-fig4-4"
    assert view.figure.caption.startswith("Steps to convergence")
    assert view.figure.ledger == ledger_sentence(run)
    assert all(claim.id in view.figure.ledger for claim in run.experiment.claims)
    assert "steps to convergence" in view.words
    head, _, body = view.figure.thumbnail.partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(body).startswith(b"\x89PNG")
    assert len(body) < 20_000


def test_a_drawing_that_fails_is_told_and_not_raised() -> None:
    import dataclasses

    run = published("anguita-fig4-4")

    def broken(summary: object) -> dict[str, object]:
        raise KeyError("column")

    failing = dataclasses.replace(run, experiment=dataclasses.replace(run.experiment, draw=broken))
    assert drawn_figures(failing).error == "KeyError: 'column'"
