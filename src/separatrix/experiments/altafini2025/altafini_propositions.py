"""altafini2025, Lemmas 5 and 7 and Propositions 1 and 2: Lyapunov function, ranks of attention, limits."""

from __future__ import annotations

from typing import Any

from separatrix.core.random import spawn
from separatrix.core.wording import small
from separatrix.lab import Cell, Judgement, Payload, Row, condition, instead, judge, misprint, with_entry

from ..worst_case import Measured, highest, judge_limits, lowest
from .statements import draw_instances, statement, statements_experiment, two_groups


def run(cell: Cell) -> Payload:
    """The measured numbers of one statement."""
    drawn = draw_instances(cell, "altafini-propositions")
    return _MEASURES[cell.args["part"]](drawn.coupling, drawn.value, cell.seed)


def _lemma5(coupling: Any, value: Any, seed: int) -> Payload:
    import torch

    from separatrix import dynamics, theory

    x = dynamics.random_tokens(
        5, value.shape[-1], value.shape[0], generator=spawn(seed, "altafini-propositions", "starts")
    )
    largest, printed, slope_error = float("-inf"), 0.0, 0.0
    for tokens, matrix in zip(x, value, strict=True):
        velocity = dynamics.OjaFlow(matrix).velocity(tokens)
        rate = float(theory.oja_lyapunov_rate(matrix, tokens))
        ahead = torch.nn.functional.normalize(tokens + 1e-6 * velocity, dim=-1)
        behind = torch.nn.functional.normalize(tokens - 1e-6 * velocity, dim=-1)
        slope = float(theory.oja_lyapunov(matrix, ahead) - theory.oja_lyapunov(matrix, behind)) / 2e-6
        slope_error = highest(slope_error, abs(slope - rate) / (1e-3 + abs(rate)))
        largest = highest(largest, rate)
        top, vector = (part[..., -1] for part in torch.linalg.eigh(matrix))
        printed = lowest(printed, float((top - 5 * vector @ matrix @ vector) / 2))
    return {"largest rate": largest, "slope error": slope_error, "printed W at consensus": printed}


def _lemma7(coupling: Any, value: Any, seed: int) -> Payload:
    import torch

    from separatrix import dynamics

    flow = dynamics.AttentionFlow.from_coupling(coupling, value)
    uniform = max(
        float((flow.attention(two_groups(value, k, 6, 0)) - 1 / 6).abs().max()) for k in range(value.shape[-1])
    )
    counts = {"bipartite": 0, "bipartite of another rank": 0, "clusterings": 0, "clusterings of another rank": 0}
    for index, (logits, matrix) in enumerate(zip(coupling, value, strict=True)):
        single = dynamics.AttentionFlow.from_coupling(logits, matrix)
        generator = spawn(seed, "altafini-propositions", "clusterings", index)
        for found in dynamics.find_equilibria(
            single, 6, generator=generator, sizes=[(4, 2), (3, 2, 1)], n_random=8, rounds=1
        ):
            name, n_groups = {"bipartite": ("bipartite", 2), "clustering": ("clusterings", len(found.sizes))}.get(
                str(found.kind), ("", 0)
            )
            state = found.clusters.repeat_interleave(torch.tensor(found.sizes), dim=0)
            # States without pull are polygonal, of which the lemma is silent; they form curves, where Newton's method
            # leaves an error of about 1e-7.
            if not name or float(found.residual) > 1e-9 or float(single.pull(state).abs().max()) < 1e-5:
                continue
            counts[name] += 1
            counts[f"{name} of another rank"] += _rank(single.attention(state)) != n_groups
    skew = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    silent = dynamics.AttentionFlow.from_coupling(skew, torch.diag(torch.tensor([2.0, 1.0], dtype=torch.float64)))
    flat = silent.attention(torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64))
    return {"distance from 1/n": uniform, **counts, "rank without self-coupling": _rank(flat)}


def _rank(matrix: Any) -> int:
    import torch

    return int(torch.linalg.matrix_rank(matrix, rtol=1e-10))


def _proposition1(coupling: Any, value: Any, seed: int) -> Payload:
    import torch

    from separatrix import dynamics

    x = dynamics.random_tokens(4, value.shape[-1], len(value), generator=spawn(seed, "altafini-propositions", "states"))
    flow = dynamics.AttentionFlow.from_coupling(coupling, value)
    singular, speed = 0.0, float("inf")
    for weights, matrix, moving in zip(flow.attention(x), value, flow.residual(x), strict=True):
        largest = torch.linalg.eigvalsh(matrix)[-1]
        whole = torch.eye(4 * len(matrix), dtype=torch.float64) - torch.kron(weights, matrix) / largest
        singular, speed = max(singular, float(torch.linalg.svdvals(whole)[-1])), min(speed, float(moving))
    return {"largest singular value of the last": singular, "slowest state": speed}


def _proposition2(coupling: Any, value: Any, seed: int) -> Payload:
    from separatrix import dynamics

    x = dynamics.random_tokens(6, value.shape[-1], len(value), generator=spawn(seed, "altafini-propositions", "beta"))
    plain = dynamics.OjaFlow(value).velocity(x)
    gaps = []
    for beta in (1e-2, 1e-4, 1e-6):
        flow = dynamics.AttentionFlow.from_coupling(coupling, value, beta)
        gaps.append(float((flow.velocity(x) - plain).abs().max()))
    return {"gap at beta 1e-6": gaps[2], "ratio of gaps at 1e-4 and 1e-2, less 0.01": abs(gaps[1] / gaps[0] - 0.01)}


_MEASURES = {
    "lemma 5": _lemma5,
    "lemma 7": _lemma7,
    "proposition 1": _proposition1,
    "proposition 2": _proposition2,
}


def judge_lemma5(summary: Measured) -> Judgement:
    """Decide ``altafini2025-lemma5``."""
    found = summary.parts["lemma 5"]
    rows = [
        Row(
            "largest rate of W at random states",
            found["largest rate"],
            "not positive",
            agrees=found["largest rate"] <= 0,
        ),
        Row("relative error of the rate against differences along the flow", found["slope error"], 0.0, 1e-4),
    ]
    printed = [
        Row(
            "printed W at consensus",
            found["printed W at consensus"],
            "not negative",
            agrees=found["printed W at consensus"] >= 0,
        )
    ]
    evidence = (
        f"the printed W is {found['printed W at consensus']:.2f} at consensus; the largest rate of the right one at "
        f"random states is {small(found['largest rate'])}"
    )
    return judge(evidence, printed, misprint("W = (lambda_1 - m'Vm)/2 with m the mean of the tokens", rows))


def judge_lemma7(summary: Measured) -> Judgement:
    """Decide ``altafini2025-lemma7``."""
    found = summary.parts["lemma 7"]
    rows = [Row("distance of attention from 1/n at consensus", found["distance from 1/n"], 0.0, 1e-12)]
    for name, wanted in (("bipartite", "2"), ("clusterings", "m")):
        if not found[name]:
            rows.append(Row(f"{name} equilibria found", 0, "some", agrees=None))
        rows.append(Row(f"{name} equilibria of another rank than {wanted}", found[f"{name} of another rank"], 0))
    flat = found["rank without self-coupling"]
    exceptions = [Row("rank where v' M v = 0", flat, 2)]
    evidence = (
        f"{found['bipartite']} bipartite equilibria, {found['bipartite of another rank']} of another rank than 2; "
        f"{found['clusterings']} clusterings, {found['clusterings of another rank']} of another rank than m; rank "
        f"{flat} where v' M v = 0"
    )
    return judge(evidence, rows + exceptions, condition("unless v' M v = 0", rows))


def judge_proposition1(summary: Measured) -> Judgement:
    """Decide ``altafini2025-proposition1``."""
    found = summary.parts["proposition 1"]
    regular = found["largest singular value of the last"] > 1e-9
    rows = [
        Row("smallest speed of the states", found["slowest state"], "positive", agrees=found["slowest state"] > 1e-3),
    ]
    exceptions = [
        Row(
            "smallest singular value with gamma = 1/lambda_1",
            found["largest singular value of the last"],
            "positive at states that move",
            agrees=regular,
        )
    ]
    evidence = f"smallest singular value {small(found['largest singular value of the last'])} at states that move"
    return judge(evidence, exceptions, instead("the matrix is singular at every state, equilibrium or not", rows))


EXPERIMENT = statements_experiment(
    name="altafini-propositions",
    title="Lyapunov function of the Oja flow, ranks of attention, and the limit of small beta",
    place="Lemmas 5 and 7; Propositions 1 and 2",
    version=3,
    parts=_MEASURES,
    run=run,
    least=("printed W at consensus", "slowest state", "rank without self-coupling"),
    totals=("bipartite", "bipartite of another rank", "clusterings", "clusterings of another rank"),
    claims=(
        statement(
            id="altafini2025-lemma5",
            place="Lemma 5",
            statement="W is a Lyapunov function of the multiagent Oja flow.",
            test="rate never positive",
            judge=judge_lemma5,
            counterfeit=with_entry("parts", "lemma 5", largest_rate=0.1),
            erratum="altafini2025-E7",
        ),
        statement(
            id="altafini2025-lemma7",
            place="Lemma 7",
            statement="Attention has rank 1, 2 and m at consensus, bipartite and m-clustering states.",
            measures="rank of attention at equilibria that relaxation and Newton's method find, six tokens",
            test="numerical rank to 1e-10, at every equilibrium",
            judge=judge_lemma7,
            counterfeit=with_entry("parts", "lemma 7", clusterings_of_another_rank=1),
            erratum="altafini2025-E11",
        ),
        statement(
            id="altafini2025-proposition1",
            place="Proposition 1",
            statement="Clustering equilibria exist iff a scaled matrix is singular.",
            test="singular only at equilibria",
            judge=judge_proposition1,
            counterfeit=with_entry("parts", "proposition 1", slowest_state=0.0),
            genuine=with_entry("parts", "proposition 1", largest_singular_value_of_the_last=0.1),
            erratum="altafini2025-E9",
        ),
        statement(
            id="altafini2025-proposition2",
            place="Proposition 2",
            statement="For beta to zero the flow becomes the multiagent Oja flow.",
            test="gap proportional to beta",
            judge=judge_limits(
                "proposition 2", **{"gap at beta 1e-6": 1e-4, "ratio of gaps at 1e-4 and 1e-2, less 0.01": 0.002}
            ),
            counterfeit=with_entry("parts", "proposition 2", **{"gap at beta 1e-6": 0.02}),
        ),
    ),
)
