"""All experiments of the package are written in one way, so that who has read one can read the next."""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path

import pytest

from separatrix import experiments
from separatrix.core import InvalidInput
from separatrix.lab import Experiment, Params

FOLDER = Path(experiments.__file__).parent
FILES = {
    file.stem: ".".join(("separatrix.experiments", *file.relative_to(FOLDER).with_suffix("").parts))
    for file in FOLDER.rglob("[a-z]*.py")
    if file.parent != FOLDER
}


def test_a_file_bears_the_name_of_its_experiment() -> None:
    for name, dotted in experiments.modules().items():
        module = importlib.import_module(dotted)
        assert module.EXPERIMENT.name == name
        assert module.EXPERIMENT.module == module.__name__
        assert Path(module.__file__ or "").stem == name.replace("-", "_")


def test_no_experiment_stands_in_a_file_that_is_not_found_by_name() -> None:
    for dotted in FILES.values():
        module = importlib.import_module(dotted)
        found = {name: value for name, value in vars(module).items() if isinstance(value, Experiment)}
        assert set(found) <= {"EXPERIMENT"}
        assert bool(found) is (dotted in experiments.modules().values())


@pytest.mark.parametrize("name", experiments.modules())
def test_parts_bear_the_names_of_the_dialect(name: str) -> None:
    module = importlib.import_module(experiments.modules()[name])
    experiment = module.EXPERIMENT
    kinds = {type(params) for params in experiment.scales.values()}
    (kind,) = {kind for kind in kinds if all(issubclass(other, kind) for other in kinds)}  # a scale may add settings
    assert issubclass(kind, Params)
    assert getattr(module, "Settings", kind) is kind
    # what several experiments of a document share stands beside them
    for part in ("expand", "run", "summarise", "draw"):
        own = getattr(module, part, None)
        assert own is None or getattr(experiment, part) is own
    for claim in experiment.claims:
        assert claim.judge.__name__.startswith("judge_"), claim.id


def test_what_experiments_share_is_no_experiment() -> None:
    for name in ("nonlinear", "statements", "accuracy", "altafini_fig2", "../ours/deq_cavity", ""):
        with pytest.raises(InvalidInput, match="unknown experiment"):
            experiments.find(name)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'altafini-fig2'"):
        experiments.find("altafini-fig22")


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", experiments.modules())
def test_settings_that_leave_nothing_to_do_are_refused_by_name(name: str) -> None:
    experiment = experiments.find(name)
    usual = experiment.params("smoke")
    for field, value in usual:
        if any(getattr(scale, field) == () for scale in experiment.scales.values()):
            continue  # there no value has a meaning
        if isinstance(value, tuple) and value:
            with pytest.raises(InvalidInput, match=rf"\b{field}\b"):
                experiment.cells(experiment.params("smoke", **{field: ()}))
        elif isinstance(value, int) and not isinstance(value, bool):
            with contextlib.suppress(InvalidInput):
                assert experiment.cells(experiment.params("smoke", **{field: 0}))
