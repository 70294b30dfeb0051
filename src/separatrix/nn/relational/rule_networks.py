"""Relations that are not symmetric: differences of a scalar, and a choice between differences and similarities."""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.arrays import require_integer, require_positive

from .corelnet import HIDDEN
from .encoder import WIDTH
from .network import AbstractRelationalNetwork, front_stream, in_numbers
from .relations import relation_matrix
from .starts import linear

SIGNATURE = 8
"""Numbers by which a rule is called; the source names none, this is ours."""


def differences(scalar: Float[Tensor, "batch t"]) -> Float[Tensor, "batch t t"]:
    """D_ij = u_i - u_j."""
    return scalar.unsqueeze(2) - scalar.unsqueeze(1)


@final
class CoRelNetDiff(AbstractRelationalNetwork):
    r"""Each object becomes one number, and the decoder sees all differences :math:`D_{ij} = w \cdot (z_i - z_j)`.

    Args:
        seq_len: T.
        n_answers: y.
        hidden: units of the decoder.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, generator.

    Source: kerg2022, section 7.2.

    Example:
        >>> CoRelNetDiff(2, 2)(torch.rand(2, 3, 32, 32), torch.tensor([[0, 1]])).shape
        torch.Size([1, 2])
    """

    def __init__(self, seq_len: int, n_answers: int, *, hidden: int = HIDDEN, **front: Any) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        require_integer(hidden, "hidden", at_least=1)
        self.project = linear(WIDTH, 1, stream)
        self.hidden = linear(seq_len * seq_len, hidden, stream)
        self.out = linear(hidden, n_answers, stream)

    def relations(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch t t"]:
        """D."""
        return differences(self.project(self.norm(encoded)).squeeze(-1))

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        return self.out(torch.relu(self.hidden(self.relations(encoded).flatten(1))))


@final
class CoRelNetMix(AbstractRelationalNetwork):
    """Chooses, problem by problem, between differences and similarities, and decodes what it chose.

    The choice is hard: a Gumbel softmax over two rules in training, whose gradient is that of the soft one, and the
    larger score in evaluation. Rules are called by learned signatures; a problem asks with a linear map of the mean of
    its encoded objects, before normalisation (after it the mean is the same for all problems). The source gives only
    the idea; signatures of 8 numbers and the mean are ours.

    Args:
        seq_len: T.
        n_answers: y.
        temperature: of the similarities, as in ``CoRelNet``.
        hidden: units of the decoder.
        anneal_steps: calls in training over which the temperature of the choice falls from 1 to 0.5.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, symmetric, generator.

    Source: kerg2022, section 7.3.

    Example:
        >>> CoRelNetMix(2, 2).eval()(torch.rand(2, 3, 32, 32), torch.tensor([[0, 1]])).shape
        torch.Size([1, 2])
    """

    has_similarity = True

    def __init__(
        self,
        seq_len: int,
        n_answers: int,
        *,
        temperature: float | str | None = None,
        hidden: int = HIDDEN,
        anneal_steps: int = 5000,
        **front: Any,
    ) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        require_integer(hidden, "hidden", at_least=1)
        require_positive(anneal_steps, "anneal_steps")
        self.temperature, self.anneal_steps = in_numbers(temperature, self.norm.kind), anneal_steps
        self.project = linear(WIDTH, 1, stream)
        self.ask = linear(WIDTH, SIGNATURE, stream)
        self.signatures = nn.Parameter(torch.randn(2, SIGNATURE, generator=stream))
        self.hidden = linear(seq_len * seq_len, hidden, stream)
        self.out = linear(hidden, n_answers, stream)
        self._noise = torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=stream)))
        self._n_calls = 0

    def relations(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch t t"]:
        """The matrix of the chosen rule."""
        return self._chosen(encoded, self._choice(encoded, noisy=False))

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        chosen = self._chosen(encoded, self._choice(encoded, noisy=self.training))
        return self.out(torch.relu(self.hidden(chosen.flatten(1))))

    def _chosen(self, encoded: Tensor, weights: Tensor) -> Tensor:
        first, second = self.sides(encoded)
        rules = (
            differences(self.project(first).squeeze(-1)),
            relation_matrix(first, second, "softmax", self.temperature),
        )
        return torch.einsum("rbij,br->bij", torch.stack(rules), weights)

    def _choice(self, encoded: Tensor, *, noisy: bool) -> Tensor:
        """One-hot (batch, 2); with noise its gradient is that of the soft choice."""
        scores = self.ask(encoded.mean(1)) @ self.signatures.mT
        if not noisy:
            return nn.functional.one_hot(scores.argmax(-1), 2).to(scores.dtype)
        tau = max(0.5, 1 - 0.5 * self._n_calls / self.anneal_steps)
        self._n_calls += 1
        uniform = torch.rand(scores.shape, generator=self._noise).clamp_min(1e-20).to(scores)
        soft = torch.softmax((scores - torch.log(-torch.log(uniform))) / tau, -1)
        hard = nn.functional.one_hot(soft.argmax(-1), 2).to(soft.dtype)
        return hard + soft - soft.detach()

    def get_extra_state(self) -> dict[str, Any]:
        """Noise and annealing, for ``state_dict``."""
        return {"noise": self._noise.get_state(), "n_calls": self._n_calls}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self._noise.set_state(state["noise"].cpu())
        self._n_calls = int(state["n_calls"])
