"""altafini2025, Lemmas 1, 2, 3, 6, 8 and Remarks 2, 5, 6: equilibria, Jacobians and symmetries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.core.wording import small
from separatrix.lab import Cell, Claim, Judgement, Payload, Row, judge, misprint, with_entry

from ..worst_case import Measured, highest, judge_limits
from .statements import ambient_jacobian, draw_instances, oja_velocity, statements_experiment, two_groups

if TYPE_CHECKING:
    from torch import Tensor

N_TOKENS = 5


def run(cell: Cell) -> Payload:
    """Measure one statement at random instances."""
    drawn = draw_instances(cell, "altafini-foundations")
    return _MEASURES[cell.args["part"]](drawn.coupling, drawn.value, cell.seed)


def _starts(seed: int, name: str, n_tokens: int, like: Tensor) -> Tensor:
    from separatrix import dynamics

    generator = spawn(seed, "altafini-foundations", name, "starts")
    return dynamics.random_tokens(n_tokens, like.shape[-1], len(like), generator=generator)


def _lemma1(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """One token: eigenvectors rest, W falls along the flow, and the end is the principal eigenvector."""
    import torch

    from separatrix import dynamics

    flow = dynamics.OjaFlow(value)
    speed = max(float(flow.velocity(two_groups(value, k, 1, 0)).abs().max()) for k in range(value.shape[-1]))
    states = _starts(seed, "lemma 1", 1, value)
    token, velocity = states[:, 0], flow.velocity(states)[:, 0]
    rate = -torch.einsum("ba,bac,bc->b", velocity, value, token)  # of W = (lambda_1 - x'Vx)/2
    principal = torch.linalg.eigh(value)[1][..., -1]
    end = dynamics.integrate(dynamics.OjaFlow(value), states).final[:, 0]
    missed = ((end * principal).sum(-1).abs() < 1 - 1e-9).sum()
    return {"speed at eigenvectors": speed, "largest rate of W": float(rate.max()), "other ends": int(missed)}


def _lemma2(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """Newton's method from random states finds no equilibrium outside the three classes."""
    from separatrix import dynamics

    known = [two_groups(value, k, n1, N_TOKENS - n1) for k in range(value.shape[-1]) for n1 in range(N_TOKENS + 1)]
    speed = max(float(dynamics.OjaFlow(value).velocity(states).abs().max()) for states in known)
    others = found = 0
    for index, matrix in enumerate(value):
        flow = dynamics.OjaFlow(matrix)
        generator = spawn(seed, "altafini-foundations", "lemma 2", index)
        for state in _newton(flow, dynamics.random_tokens(N_TOKENS, len(matrix), 20, generator=generator)):
            pull = matrix @ state.sum(0)
            polygonal = float(pull.norm()) < 1e-8
            line = state @ state[0]
            vector = matrix @ state[0]
            on_eigenvector = float((vector - (vector @ state[0]) * state[0]).norm()) < 1e-7
            collinear = float((line.abs() - 1).abs().max()) < 1e-8 and on_eigenvector
            found, others = found + 1, others + (not polygonal and not collinear)
    return {"speed at the classes": speed, "found": found, "outside the classes": others}


def _newton(flow: Any, states: Tensor) -> list[Tensor]:
    """States at rest to 1e-12 that plain Newton steps in the ambient space, by pseudo-inverse, lead to."""
    import torch

    ends = []
    for start in states:
        state = start
        for _ in range(60):
            velocity = flow.velocity(state)
            if float(velocity.norm()) < 1e-12:
                ends.append(state)
                break
            jacobian = torch.func.jacrev(flow.velocity)(state).reshape(state.numel(), state.numel())
            step = torch.linalg.pinv(jacobian, rtol=1e-9) @ velocity.reshape(-1)
            state = torch.nn.functional.normalize(state - step.reshape(state.shape), dim=-1)
    return ends


def _lemma3(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    import torch

    worst = 0.0
    for state, matrix in zip(_starts(seed, "lemma 3", N_TOKENS, value), value, strict=True):
        printed = torch.zeros(N_TOKENS, 3, N_TOKENS, 3, dtype=torch.float64)
        total, eye = state.sum(0), torch.eye(3, dtype=torch.float64)
        for i, x in enumerate(state):
            off = (eye - torch.outer(x, x)) @ matrix / N_TOKENS
            printed[i] = off[:, None, :].expand(3, N_TOKENS, 3)
            printed[i, :, i] = off - ((x @ matrix @ total) * eye + torch.outer(x, total @ matrix)) / N_TOKENS
        worst = highest(
            worst, float((printed.reshape(15, 15) - ambient_jacobian(oja_velocity(matrix), state)).abs().max())
        )
    return {"error of the blocks": worst}


def _lemma8(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """Off-diagonal blocks with x_h (corrected) and with x_k for every fixed k (printed); diagonal blocks."""
    import torch

    errors = {"corrected": 0.0, "printed": 0.0, "diagonal": 0.0}
    eye = torch.eye(value.shape[-1], dtype=torch.float64)
    states = _starts(seed, "lemma 8", N_TOKENS, value)
    for x, logits, matrix in zip(states, coupling, value, strict=True):

        def velocity(tokens: Tensor, logits: Tensor = logits, matrix: Tensor = matrix) -> Tensor:
            weights = torch.softmax(tokens @ logits @ tokens.mT, -1)
            pull = weights @ tokens @ matrix.mT
            return pull - (tokens * pull).sum(-1, keepdim=True) * tokens

        truth = ambient_jacobian(velocity, x).reshape(N_TOKENS, 3, N_TOKENS, 3)
        weights = torch.softmax(x @ logits @ x.mT, -1)
        for i in range(N_TOKENS):
            tangent, mean = (eye - torch.outer(x[i], x[i])) @ matrix, weights[i] @ x
            reach = x[i] @ logits  # x_i' Q'K
            for h in range(N_TOKENS):
                if h == i:
                    errors["diagonal"] = highest(
                        errors["diagonal"], _diagonal_error(x, i, logits, matrix, weights, truth)
                    )
                    continue
                for name, token in (("corrected", x[h]), ("printed", x[0])):
                    block = tangent @ (eye + torch.outer(token, reach) - torch.outer(mean, reach)) * weights[i, h]
                    errors[name] = highest(errors[name], float((block - truth[i, :, h]).abs().max()))
    return errors


def _diagonal_error(x: Tensor, i: int, logits: Tensor, matrix: Tensor, weights: Tensor, truth: Tensor) -> float:
    """Distance of the diagonal block as the lemma lists it from automatic differentiation."""
    import torch

    eye = torch.eye(x.shape[-1], dtype=torch.float64)
    own, reach, seen = weights[i, i], x[i] @ logits, x @ logits.mT  # rows x_j' K'Q
    mean = weights[i] @ x
    inner = (eye + torch.outer(x[i], reach)) * own
    spread = seen - own * reach - weights[i] @ seen
    inner = inner + torch.einsum("j,ja,jb->ab", weights[i], x, spread)
    pull = matrix @ mean
    block = (eye - torch.outer(x[i], x[i])) @ matrix @ inner - (x[i] @ pull) * eye - torch.outer(x[i], pull)
    return float((block - truth[i, :, i]).abs().max())


def _lemma6(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """The first three classes rest under attention; every other resting state is aligned token by token."""
    import torch

    from separatrix import dynamics

    flow = dynamics.AttentionFlow.from_coupling(coupling, value)
    known = [two_groups(value, k, n1, N_TOKENS - n1) for k in range(value.shape[-1]) for n1 in range(N_TOKENS + 1)]
    speed = max(float(flow.velocity(states).abs().max()) for states in known)
    found, worst, clusterings = 0, 0.0, 0
    for index, (logits, matrix) in enumerate(zip(coupling, value, strict=True)):
        single = dynamics.AttentionFlow.from_coupling(logits, matrix)
        generator = spawn(seed, "altafini-foundations", "lemma 6", index)
        for state in _newton(single, dynamics.random_tokens(N_TOKENS, len(matrix), 20, generator=generator)):
            pull = single.attention(state) @ state @ matrix.mT
            slack = pull - (pull * state).sum(-1, keepdim=True) * state
            found, worst = found + 1, max(worst, float(slack.abs().max()))
            lines = torch.linalg.matrix_rank(state, rtol=1e-8)
            clusterings += int(lines > 1)
    return {"speed at the classes": speed, "found": found, "misaligned": worst, "clusterings": clusterings}


def _remark2(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """Unstable collinear equilibria mostly have directions that return to them, and no uniform start ends there."""
    import torch

    from separatrix import dynamics

    flow = dynamics.OjaFlow(value)
    returning = []
    for k in range(value.shape[-1]):
        for n1 in range((N_TOKENS + 1) // 2, N_TOKENS + 1):  # the antipodes are alike
            real = torch.linalg.eigvals(flow.jacobian(two_groups(value, k, n1, N_TOKENS - n1))).real
            unstable = real.amax(-1) > 1e-9
            returning.append((real.amin(-1) < -1e-9)[unstable].double())
    ends = dynamics.integrate(flow, _starts(seed, "remark 2", N_TOKENS, value)).final
    vectors = torch.linalg.eigh(value)[1][..., :-1]  # all but the principal one
    there = (ends.mean(-2, keepdim=True) @ vectors).abs().amax((-2, -1)) > 1 - 1e-6
    share = torch.cat(returning).mean()
    return {
        "share with returning directions": float(share),
        "starts that end at an unstable consensus": int(there.sum()),
    }


def _clusterings(coupling: Tensor, value: Tensor, seed: int, name: str) -> list[tuple[Any, Tensor]]:
    """Resting states off every common line, with their flows."""
    import torch

    from separatrix import dynamics

    found = []
    for index, (logits, matrix) in enumerate(zip(coupling, value, strict=True)):
        flow = dynamics.AttentionFlow.from_coupling(logits, matrix)
        generator = spawn(seed, "altafini-foundations", name, index)
        for state in _newton(flow, dynamics.random_tokens(N_TOKENS, len(matrix), 20, generator=generator)):
            if torch.linalg.matrix_rank(state, rtol=1e-6) > 1:
                found.append((flow, state))
    return found


def _remark5(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """The antipode of a clustering rests; a clustering with one token turned over does not."""
    import torch

    found = _clusterings(coupling, value, seed, "remark 5")
    antipodes = max((float(flow.velocity(-state).abs().max()) for flow, state in found), default=0.0)
    still = 0
    for flow, state in found:
        turned = state * torch.tensor([-1.0] + [1.0] * (N_TOKENS - 1), dtype=state.dtype)[:, None]
        still += float(flow.velocity(turned).abs().max()) < 1e-6
    return {"clusterings": len(found), "speed at antipodes": antipodes, "flipped ones that rest": still}


def _remark6(coupling: Tensor, value: Tensor, seed: int) -> Payload:
    """An equilibrium and its antipode have one spectrum."""
    import torch

    from separatrix.matrices import spectral_distance

    found, worst = _clusterings(coupling, value, seed, "remark 6"), 0.0
    for flow, state in found:
        here, there = (torch.linalg.eigvals(flow.jacobian(x)) for x in (state, -state))
        worst = highest(worst, float(spectral_distance(here, there)))
    return {"clusterings": len(found), "difference of spectra": worst}


_MEASURES: dict[str, Callable[[Any, Any, int], Payload]] = {
    "lemma 1": _lemma1,
    "lemma 2": _lemma2,
    "lemma 3": _lemma3,
    "lemma 6": _lemma6,
    "lemma 8": _lemma8,
    "remark 2": _remark2,
    "remark 5": _remark5,
    "remark 6": _remark6,
}


def judge_lemma8(summary: Measured) -> Judgement:
    """Decide ``altafini2025-lemma8``."""
    found = summary.parts["lemma 8"]
    diagonal = Row("error of the diagonal blocks", found["diagonal"], 0.0, 1e-10)
    stated = [diagonal, Row("error of the off-diagonal blocks as printed", found["printed"], 0.0, 1e-10)]
    right = [diagonal, Row("error of the off-diagonal blocks with x_h", found["corrected"], 0.0, 1e-10)]
    errors = {name: small(found[name]) for name in ("diagonal", "printed", "corrected")}
    evidence = (
        f"errors {errors['diagonal']} (diagonal), {errors['printed']} (printed), {errors['corrected']} (corrected)"
    )
    return judge(evidence, stated, misprint("the token differentiated by, x_h, stands for x_k", right))


EXPERIMENT = statements_experiment(
    name="altafini-foundations",
    title="Equilibria, Jacobians and symmetries of both flows as the first lemmas and remarks state them",
    place="Lemmas 1, 2, 3, 6 and 8, Remarks 2, 5 and 6",
    version=2,
    parts=_MEASURES,
    run=run,
    least=("found", "clusterings", "share with returning directions"),
    claims=(
        Claim(
            id="altafini2025-lemma1",
            place="Lemma 1",
            statement="The Oja flow of one token rests at eigenvectors, W falls, and almost all ends are principal.",
            measures="speed at eigenvectors, rate of W and ends of uniform starts",
            test="1e-12; not positive; no other end",
            judge=judge_limits("lemma 1", speed_at_eigenvectors=1e-12, largest_rate_of_W=0.0, other_ends=0.0),
            counterfeit=with_entry("parts", "lemma 1", other_ends=1),
        ),
        Claim(
            id="altafini2025-lemma2",
            place="Lemma 2",
            statement="Equilibria of the multiagent Oja flow are consensus, bipartite consensus and polygonal states.",
            measures="equilibria that Newton's method finds from uniform states",
            test="none outside the classes; those of the classes rest to 1e-12",
            judge=judge_limits("lemma 2", speed_at_the_classes=1e-12, outside_the_classes=0.0, found="some"),
            counterfeit=with_entry("parts", "lemma 2", outside_the_classes=1),
        ),
        Claim(
            id="altafini2025-lemma3",
            place="Lemma 3",
            statement="Blocks of the Jacobian of the multiagent Oja flow.",
            measures="blocks as printed against automatic differentiation",
            test="1e-10",
            judge=judge_limits("lemma 3", error_of_the_blocks=1e-10),
            counterfeit=with_entry("parts", "lemma 3", error_of_the_blocks=0.1),
        ),
        Claim(
            id="altafini2025-lemma6",
            place="Lemma 6",
            statement="Equilibria of attention are consensus, bipartite, polygonal and clustering states.",
            measures="speed at the first classes; alignment of each token with its pull at equilibria found by Newton",
            test="1e-12; 1e-10; clusterings occur",
            judge=judge_limits(
                "lemma 6", speed_at_the_classes=1e-12, misaligned=1e-10, found="some", clusterings="some"
            ),
            counterfeit=with_entry("parts", "lemma 6", speed_at_the_classes=0.1),
        ),
        Claim(
            id="altafini2025-lemma8",
            place="Lemma 8",
            statement="Blocks of the Jacobian of the attention flow.",
            measures="blocks as printed and corrected against automatic differentiation",
            test="1e-10",
            judge=judge_lemma8,
            counterfeit=with_entry("parts", "lemma 8", corrected=0.1),
            erratum="altafini2025-E1",
        ),
        Claim(
            id="altafini2025-remark2",
            place="Remark 2",
            statement="Unstable equilibria typically attract along submanifolds, whose measure is zero.",
            measures="unstable collinear points with a negative eigenvalue; uniform starts that end at consensus there",
            test="at most of them; no start",
            judge=judge_limits(
                "remark 2", share_with_returning_directions="most", starts_that_end_at_an_unstable_consensus=0.0
            ),
            counterfeit=with_entry("parts", "remark 2", starts_that_end_at_an_unstable_consensus=3),
        ),
        Claim(
            id="altafini2025-remark5",
            place="Remark 5",
            statement="Antipodes of clustering equilibria are equilibria; with one token turned over they are not.",
            measures="speed at antipodes; clusterings that still rest with one token turned over",
            test="1e-11; none",
            judge=judge_limits("remark 5", clusterings="some", speed_at_antipodes=1e-11, flipped_ones_that_rest=0.0),
            counterfeit=with_entry("parts", "remark 5", speed_at_antipodes=0.1),
        ),
        Claim(
            id="altafini2025-remark6",
            place="Remark 6",
            statement="An equilibrium and its antipode are equally stable.",
            measures="distance of the tangent spectra at clusterings and their antipodes",
            test="1e-9",
            judge=judge_limits("remark 6", clusterings="some", difference_of_spectra=1e-9),
            counterfeit=with_entry("parts", "remark 6", difference_of_spectra=0.1),
        ),
    ),
)
