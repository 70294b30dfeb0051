from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, spawn
from separatrix.dynamics import Anderson
from separatrix.nn import EquilibriumClassifier, SideBySide, TanhCell
from separatrix.training import Members, TrainingSettings, train

SEEDS = (0, 1, 2)
X = torch.rand(24, 4, generator=spawn(0, "x"), dtype=torch.float64)
Y = (X.sum(1) > 2).long()


def parts(seed: int) -> tuple[TanhCell, nn.Linear]:
    cell = TanhCell(4, ensemble="haar", weight_var=0.5, generator=spawn(seed, "w"), dtype=torch.float64)
    head = nn.utils.skip_init(nn.Linear, 4, 2, dtype=torch.float64)
    for parameter in head.parameters():
        nn.init.normal_(parameter, std=0.5, generator=spawn(seed, "head"))
    return cell, head


def classifier(cell: nn.Module, head: nn.Module) -> EquilibriumClassifier:
    solver = Anderson(tol=1e-10, max_steps=60)
    return EquilibriumClassifier(cell, head, solver=solver, backward_solver=solver)


def together(seeds: tuple[int, ...] = SEEDS) -> EquilibriumClassifier:
    cells, heads = zip(*(parts(seed) for seed in seeds), strict=True)
    return classifier(SideBySide(cells, merged=True), SideBySide(heads))


def losses(model: nn.Module, batch: int) -> Tensor:
    logits = model(X.expand(len(SEEDS), *X.shape))
    return nn.functional.cross_entropy(logits.mT, Y.expand(len(SEEDS), -1), reduction="none").mean(1)


def test_seeds_side_by_side_train_as_each_would_alone() -> None:
    settings = TrainingSettings(n_steps=8, lr=0.05, clip_norm=0.05)
    joint = train(together(), int, losses, settings).history.column("loss")[1]
    for member, seed in enumerate(SEEDS):
        model = classifier(*parts(seed))
        alone = train(model, int, lambda m, _: nn.functional.cross_entropy(m(X), Y), settings).history.column("loss")[1]
        assert [values[member] for values in joint] == pytest.approx(alone, rel=1e-7)  # both solve to 1e-10


@pytest.mark.slow
def test_a_member_that_diverges_rests_and_leaves_the_others_alone() -> None:
    def one_breaks(model: nn.Module, step: int) -> Tensor:
        values = losses(model, step)
        return torch.stack([values[0], values[1] * (float("nan") if step == 3 else 1.0), values[2]])

    settings = TrainingSettings(n_steps=8, lr=0.05)
    healthy, model = together(), together()
    expected = train(healthy, int, losses, settings)
    stop_early = together()
    train(stop_early, int, losses, TrainingSettings(n_steps=2, lr=0.05))
    result = train(model, int, one_breaks, settings)
    assert (result.ending, result.diverged_at, result.ok) == ("finished", (None, 3, None), False)
    for broken, whole in zip(result.history.column("loss")[1], expected.history.column("loss")[1], strict=True):
        assert [broken[0], broken[2]] == [whole[0], whole[2]]  # the same numbers, bit for bit
    for name, value in model.deq.cell.member(1).items():  # type: ignore[union-attr, operator]
        assert torch.equal(value, stop_early.deq.cell.member(1)[name])  # type: ignore[union-attr, operator]


def test_when_every_member_has_diverged_the_run_is_over() -> None:
    settings = TrainingSettings(n_steps=8, lr=0.05)
    result = train(together(), int, lambda m, step: losses(m, step) * (float("inf") if step >= 2 else 1.0), settings)
    assert (result.ending, result.diverged_at, result.n_done) == ("diverged", (2, 2, 2), 2)


def test_a_killed_group_of_members_resumes_with_its_resting_ones(tmp_path: object) -> None:
    def one_breaks(model: nn.Module, step: int) -> Tensor:
        values = losses(model, step)
        if step == stop_at:
            raise KeyboardInterrupt
        return torch.stack([values[0], values[1] * (float("nan") if step == 2 else 1.0), values[2]])

    settings = TrainingSettings(n_steps=7, lr=0.05, save_every=1)
    stop_at = -1
    whole = train(together(), int, one_breaks, settings)
    stop_at = 5
    with pytest.raises(KeyboardInterrupt):
        train(together(), int, one_breaks, settings, checkpoint=f"{tmp_path}/run.pt")
    stop_at = -1
    rest = train(together(), int, one_breaks, settings, checkpoint=f"{tmp_path}/run.pt")
    assert (rest.resumed_at, rest.diverged_at) == (5, whole.diverged_at)
    assert repr(rest.history.records) == repr(whole.history.records)  # as text, where NaN equals NaN


def test_a_parameter_outside_the_members_is_refused() -> None:
    cells = [parts(seed)[0] for seed in SEEDS]
    with pytest.raises(InvalidInput, match=r"got members \[3\] and 2 parameters outside"):
        Members(classifier(SideBySide(cells, merged=True), parts(0)[1]))


class Walker(nn.Module):
    """Keeps its point in a buffer; the parameter is a step from there, absorbed by the next forward pass."""

    base: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("base", torch.ones(1))
        self.step = nn.Parameter(torch.zeros(1))

    def forward(self) -> Tensor:
        with torch.no_grad():
            self.base = self.base + self.step  # another tensor in its place, as some modules do
            self.step.zero_()
        return (self.base + self.step).square().sum()


def test_a_point_that_is_partly_in_a_buffer_is_restored_as_a_whole() -> None:
    def explode(model: nn.Module, step: int) -> Tensor:
        return model() * (float("nan") if step == 3 else 1.0)

    settings = TrainingSettings(n_steps=9, lr=0.1, optimiser="sgd", beta1=0.0)
    model = Walker()
    result = train(model, int, explode, settings)
    assert result.diverged_at == (3,)
    # the last point whose loss was finite: after two updates by 0.1 * 2 w
    assert (model.base + model.step).item() == pytest.approx(0.8**2)


def test_the_buffers_of_a_good_point_survive_a_resume(tmp_path: object) -> None:
    def explode(model: nn.Module, step: int) -> Tensor:
        return model() * (float("nan") if step >= fail_at else 1.0)

    settings = TrainingSettings(n_steps=9, lr=0.1, optimiser="sgd", beta1=0.0)
    fail_at = 3
    first = Walker()
    train(first, int, explode, settings, checkpoint=f"{tmp_path}/run.pt")
    again = Walker()
    result = train(again, int, explode, settings, checkpoint=f"{tmp_path}/run.pt")
    assert result.ending == "diverged"
    assert (again.base + again.step).item() == pytest.approx(0.8**2)
