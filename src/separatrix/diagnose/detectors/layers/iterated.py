"""Maps that are iterated until they rest: do they?"""

from __future__ import annotations

from ...findings.finding import Certainty, Finding, Place
from ...findings.thresholds import threshold
from ...recording.feedback import Use
from ...recording.observed import Observed
from ..reporting import beyond, fine, judged, module_of
from .families import family_row

_THEORY = "agarwala2022, Eq. (29): stable if W phi' has eigenvalues inside the unit circle; critical scale, Sec. 2.1.2"


def no_equilibrium(facts: Observed) -> list[Finding]:
    """Of a weight used >= 8 times without a graph (or >= 30 times, not the length of the sequence or batch): the last
    relative change of what enters it, or the residual of a plain step where that is known and larger."""
    length, n = facts.subject.sample.time_length, facts.subject.sample.n
    found, settled, contracting = [], [], []
    for name, use in facts.forward.operations.uses.items():
        solver = use.without_graph >= threshold("no_equilibrium", "solver_uses")
        many = use.count >= threshold("no_equilibrium", "uses")
        if not (solver or many) or use.change is None or not use.moved:
            continue
        if _is_sequence(use.count, length, multiples=not solver) or _is_sequence(use.count, n, multiples=False):
            continue
        change = max(use.change, use.residual) if use.residual is not None and solver else use.change
        settled.append(change)
        contracting += _contraction(facts, name, use)
        # With a graph through every use the gradient is right at rest or not: the steps of an integrator move a little
        # each time and are no solver that failed. Only a change of order 1 says that nothing settles.
        limit = threshold("no_equilibrium", "fault" if solver else "graph")
        if change > limit:
            found.append(
                judged(
                    "no_equilibrium",
                    "fault" if solver else "warning",
                    change,
                    limit,
                    f"{name} is applied {use.count} times and its input still changes by {change:.2g} of its size "
                    "in the last step: the map does not settle.",
                    where=Place(module_of(name), name),
                    certainty=beyond("no_equilibrium"),
                    theory=_THEORY,
                    advice="Scale this weight below its critical size, or iterate longer.",
                    code="layer.weight.data.mul_(0.7)",
                )
            )
    if settled:
        facts.measures["no_equilibrium"] = max(settled)
        if not found:
            return [fine("no_equilibrium", max(settled), f"iterated map settles to {max(settled):.1g}"), *contracting]
    else:
        facts.skip("equilibrium", "no iterated map")
    return found[:1]


def _contraction(facts: Observed, name: str, use: Use) -> list[Finding]:
    """A note: how fast changes shrink, and where the weight stands against the critical scale of its family."""
    rate, weight = use.contraction, facts.subject.parameters.get(name)
    if rate is None or weight is None or weight.ndim != 2:
        return []
    row = family_row(name, weight)
    said = f"changes of the iterated map at {name} shrink x {rate:.3g} per use"
    if row["to_critical"] is not None:
        said += f"; the {row['family']} weight is at {row['to_critical']:.3g} of the scale at which a linear map fails"
    return [
        Finding("contraction", "note", Place(module_of(name), name), rate, said + ".", theory=_THEORY, unit="per use",
                certainty=Certainty("exact"))
    ]  # fmt: skip


def _is_sequence(count: int, length: int | None, *, multiples: bool) -> bool:
    """Whether a weight is used once for every step (or a few times for each, if it is used with a graph)."""
    if length is None or length < 2:
        return False
    return abs(count - length) <= 1 or (multiples and length > 4 and count % length == 0)
