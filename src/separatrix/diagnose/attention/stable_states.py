"""Is a head multistable? What the closed form counts, united with the stable states that a search finds.

Neither route is enough alone. The closed form knows every consensus and every pair of opposite groups, but no other
clustering; a simulation knows what it happens to reach. Source: altafini2025, Example 2; ours.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Result, require_integer
from separatrix.core.arithmetic.eigenvalues import eig
from separatrix.core.random import default_generator
from separatrix.dynamics import AttentionFlow, Contradiction, Equilibrium, classify, integrate, random_tokens
from separatrix.theory import StableCount, bipartite_spectrum, count_stable

NUDGE = 0.1
"""Length by which the two groups of a start are moved off their eigenvector."""

MOST_TOKENS = 5000
"""Beyond this many tokens a search holds too many numbers; states depend on the shares of groups only."""

APART = 1e-3
"""Groups closer than this have become one."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Multistability(Result):
    """Which stable states a head has, by two routes.

    Attributes:
        n_tokens: number of tokens.
        count: the stable consensus and bipartite consensus points, exactly.
        pairs: stable clusterings found by following two groups that start beside an eigenvector, one per start.
        ends: stable clusterings found by following tokens from uniform starts, one per start.
        n_pairs, n_starts: how many starts of either kind were followed.
        n_unsettled: starts that came to rest nowhere.
        seed: of the generator that drew the starts.
    """

    n_tokens: int
    count: StableCount
    pairs: tuple[Equilibrium, ...] = dataclasses.field(repr=False)
    ends: tuple[Equilibrium, ...] = dataclasses.field(repr=False)
    n_pairs: int
    n_starts: int
    n_unsettled: int
    seed: int | None = None

    @property
    def counted(self) -> bool:
        """Whether the closed form alone gives more than one stable state modulo antipode."""
        return self.count.log2_count > 1.0  # points come in antipodal pairs

    @property
    def clusterings(self) -> tuple[Equilibrium, ...]:
        """Stable clusterings, which the closed form does not know."""
        return self.pairs + self.ends

    @property
    def multistable(self) -> bool:
        """Whether there is more than one stable equilibrium modulo antipode.

        A clustering off the eigenvectors is never alone: tokens of two clusters can change places.
        """
        return self.counted or bool(self.clusterings)

    @property
    def reason(self) -> str:
        """One sentence: what decided."""
        looked = f"{self.n_pairs} pairs of groups and {self.n_starts} uniform starts"
        if self.counted:
            total = self.count.total
            many = f"2^{self.count.log2_count:.6g}" if total is None or total > 10**9 else str(total)
            return f"the closed form counts {many} stable consensus and bipartite consensus points"
        if self.clusterings:
            names = sorted({item.coarse_label for item in self.clusterings})
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            return f"stable clusterings were found from {looked}: {shown}"
        return f"one stable state in closed form at most, and no stable clustering found from {looked}"


def multistability(
    coupling: object,
    value: object,
    n_tokens: int,
    beta: int | float = 1.0,
    *,
    generator: torch.Generator | None = None,
    n_pairs: int = 99,
    n_starts: int = 8,
) -> Multistability:
    """Whether a head has more than one stable equilibrium modulo antipode.

    The closed form counts consensus and bipartite consensus. Two searches look for other clusterings: pairs of groups,
    of sizes spread from 1 : n - 1 to n - 1 : 1, that start close to plus and minus the first and the last eigenvector
    and follow the flow of the groups; and uniform starts of all tokens. ``multistable`` is therefore certain when it
    is true, and means "none found" when it is false.

    Args:
        coupling: query' key, (d, d).
        value: (d, d), symmetric or not.
        n_tokens: number of tokens.
        beta: inverse temperature.
        generator: of the starts.
        n_pairs: starts of two groups on each of the two eigenvectors (fewer if there are fewer sizes).
        n_starts: uniform starts.

    Raises:
        Contradiction: a stable pair of opposite groups was found that the closed form calls unstable.

    Cost: pairs: O(d^2) per step and start, whatever the number of tokens; uniform starts: O(n^2 d).
    """
    generator = default_generator(generator)
    seed = generator.initial_seed()
    n = require_integer(n_tokens, "n_tokens", at_least=1)
    pairs = require_integer(n_pairs, "n_pairs", at_least=0)
    uniform = require_integer(n_starts, "n_starts", at_least=0)
    if n > MOST_TOKENS and pairs + uniform:
        raise InvalidInput(
            f"n_tokens must be at most {MOST_TOKENS} for a search of clusterings; got {n}. Stable groups depend on "
            "their shares: search with fewer tokens, or count without a search (n_pairs=0, n_starts=0)."
        )
    count = count_stable(coupling, value, n, beta)  # type: ignore[arg-type]  # checked there, by name
    flow = AttentionFlow.from_coupling(coupling, value, beta).to(torch.float64)
    if flow.instances:
        raise InvalidInput(f"multistability takes one pair of matrices; got a batch {flow.instances}.")
    sizes, groups = _pair_starts(flow, n, pairs, generator)
    found, lost = _follow_groups(flow, sizes, groups)
    ends, unsettled = _follow_tokens(flow, random_tokens(n, flow.dim, uniform, generator=generator))
    for end in (*found, *ends):
        _confront(flow, end)
    return Multistability(
        n, count, _clusterings(found), _clusterings(ends), len(sizes), uniform, lost + unsettled, seed
    )


def _pair_starts(
    flow: AttentionFlow, n: int, n_pairs: int, generator: torch.Generator
) -> tuple[Float[Tensor, "starts 2"], Float[Tensor, "starts 2 d"]]:
    """Sizes and places of two groups beside plus and minus the first and the last real eigenvector."""
    first = torch.linspace(1, n - 1, min(n_pairs, n - 1)).round() if n > 1 else torch.empty(0)
    sizes = torch.stack([first, n - first], dim=-1).to(torch.float64)
    vectors = _outer_eigenvectors(flow.value)
    centre = torch.stack([vectors, -vectors], dim=-2).repeat_interleave(len(sizes), dim=0)
    nudge = NUDGE * random_tokens(2, flow.dim, len(centre), generator=generator)
    return sizes.repeat(len(vectors), 1), flow.project(centre + nudge)


def _outer_eigenvectors(value: Float[Tensor, "d d"]) -> Float[Tensor, "k d"]:
    """The eigenvectors of the largest and of the least real part, where they are real."""
    eigenvalues, vectors = eig(value)
    chosen = {int(eigenvalues.real.argmax()), int(eigenvalues.real.argmin())}
    real = [vectors[:, k].real for k in sorted(chosen) if float(eigenvalues[k].imag) == 0.0]
    return torch.stack(real) if real else value[:0]


def _follow_groups(flow: AttentionFlow, sizes: Tensor, groups: Tensor) -> tuple[list[Equilibrium], int]:
    """The ends of two groups that stay two, as states of all tokens; and how many rest nowhere."""
    if not len(groups):
        return [], 0
    run = integrate(flow.with_sizes(sizes), groups, "fast", merging=False)
    apart = torch.linalg.vector_norm(run.final[:, 0] - run.final[:, 1], dim=-1) > APART
    kept = (run.converged & apart).nonzero().squeeze(-1).tolist()
    if not kept:
        return [], int((~run.converged).sum())
    tokens = [run.final[i].repeat_interleave(sizes[i].long(), dim=0) for i in kept]
    return classify(flow, torch.stack(tokens), cycles=False, normalise=True), int((~run.converged).sum())


def _follow_tokens(flow: AttentionFlow, starts: Tensor) -> tuple[list[Equilibrium], int]:
    if not len(starts):
        return [], 0
    run = integrate(flow, starts, "fast")
    final = run.final[run.converged]
    ends = classify(flow, final, cycles=False, normalise=True) if len(final) else []
    return ends, len(starts) - len(final)


def _clusterings(ends: list[Equilibrium]) -> tuple[Equilibrium, ...]:
    return tuple(end for end in ends if end.stable and end.kind == "clustering")


def _confront(flow: AttentionFlow, end: Equilibrium) -> None:
    """A stable pair of opposite groups must be stable in closed form too, or one of the two routes is wrong."""
    if not (end.kind == "bipartite" and end.stable and end.eigenvector is not None):
        return
    n1, n2 = (int(size) for size in end.sizes)
    predicted = bipartite_spectrum(flow.coupling, flow.value, end.eigenvector, n1, n2, float(flow.weights.beta))
    if not (predicted.stable or predicted.marginal):
        raise Contradiction(
            f"a certified stable bipartite end point on eigenvector {end.eigenvector} with sizes {end.sizes} "
            f"(abscissa {end.abscissa:.3g}) has abscissa {predicted.abscissa:.3g} in closed form."
        )
