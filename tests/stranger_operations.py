"""Operations of strangers whose backward torch cannot differentiate again."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class OnceTanh(torch.autograd.Function):
    """A stranger's operation whose backward may not be differentiated, and says so."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        out: Tensor = gradients[0] * (1 - y**2)
        return out


class DetachedTanh(torch.autograd.Function):
    """One whose backward cannot be differentiated either, and does not say so."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return gradients[0].detach() * (1 - y**2)
