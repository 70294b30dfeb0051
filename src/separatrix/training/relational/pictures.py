"""Which pictures a batch needs: each distinct one once, encoded once, or never again where the encoder is frozen."""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Int
from torch import Tensor, nn

from separatrix.nn.relational.network import AbstractRelationalNetwork
from separatrix.tasks.relational.task import RelationalTask

CHUNK = 500
"""Images encoded at once where no gradient is needed."""


def distinct_pictures(task: RelationalTask, index: Int[Tensor, "batch t"]) -> tuple[Tensor, Tensor]:
    """The distinct pictures of some problems, and the index into them."""
    used, local = index.unique(return_inverse=True)
    return task.pictures(used), local


@final
class PictureSource:
    """What a network is called with: distinct images of a batch, or kept features of a frozen encoder."""

    def __init__(self, task: RelationalTask, network: nn.Module) -> None:
        self.task = task
        self._frozen = isinstance(network, AbstractRelationalNetwork) and network.encoder_mode == "frozen"
        self._features: dict[str, tuple[Tensor, Tensor]] = {}

    def given(self, network: Any, part: str, index: Tensor) -> tuple[Tensor, Tensor]:
        """Images or features, and the index into them; of a frozen encoder computed once per part."""
        if not self._frozen:
            return distinct_pictures(self.task, index)
        if part not in self._features:
            self._features[part] = encode_part(self.task, network, part)
        place, features = self._features[part]
        return features, place[index]


def encode_part(task: RelationalTask, network: AbstractRelationalNetwork, part: Any) -> tuple[Tensor, Tensor]:
    """For every picture its row among the features of a part, and these features, without gradients."""
    ids = task.ids(part)
    place = torch.full((task.n_pictures,), -1)
    place[ids] = torch.arange(len(ids))
    with torch.no_grad():
        features = torch.cat([network.features(task.pictures(some)) for some in ids.split(CHUNK)])
    return place, features
