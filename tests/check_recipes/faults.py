"""Networks with one planted fault each."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .cases import Case, adam, classified, images, labels, language, pick, recipe, sequences, sgd, tokens, vectors
from .networks import (
    CellLoop,
    ConvNet,
    Equilibrium,
    Former,
    Functional,
    Lora,
    Recurrent,
    ResidualMLP,
    StateSpace,
    TorchFormer,
    he,
    mlp,
    train,
)  # fmt: skip


def planted(model: nn.Module, case: Case) -> Case:
    case.model = model
    case.optimizer = None
    return case


def plain_mlp(classes: int = 5, depth: int = 2) -> nn.Sequential:
    return mlp([20, *[pick(24, 48)] * depth, classes])


# ---------------------------------------------------------------- numbers
@recipe("mlp", "nonfinite_weights")
def nan_mlp() -> Case:
    case = classified(plain_mlp(), vectors(), 5)
    case.model[2].weight.data[3, 1] = math.nan
    return case


@recipe("cnn", "nonfinite_weights")
def nan_buffer() -> Case:
    case = classified(ConvNet("bn", 12, 2, 5), images(), 5)
    case.model.body[1].running_var[0] = math.inf
    return case


@recipe("transformer", "nonfinite_weights")
def nan_former() -> Case:
    case = language(Former(32, 2), tokens())
    case.model.blocks[1].attention.k.weight.data[0, 0] = math.inf
    return case


class LogOf(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(20, 24), nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.log(self.a(x)))


@recipe("mlp", "nonfinite_output")
def log_of_negative() -> Case:
    return classified(LogOf(), vectors(), 5)


class RootOf(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(20, 24), nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.sqrt((self.a(x) * (x[:, :1] > 0)) ** 2))


@recipe("mlp", "nonfinite_gradient")
def root_at_zero() -> Case:
    return classified(RootOf(), vectors(), 5)


# ---------------------------------------------------------------- input
@recipe("mlp", "unscaled_input")
def bytes_into_mlp() -> Case:
    return classified(plain_mlp(), torch.randint(0, 256, (48, 20)).float(), 5)


@recipe("mlp", "unscaled_input")
def bytes_into_tanh() -> Case:
    return classified(mlp([20, 32, 32, 5], nn.Tanh), torch.randint(0, 256, (48, 20)).float(), 5)


@recipe("cnn", "unscaled_input")
def bytes_into_cnn() -> Case:
    return classified(ConvNet("plain", 12, 2, 5), torch.randint(0, 256, (24, 3, 12, 12)).float(), 5)


class NormOverOne(nn.Module):
    """Normalises over an axis of length 1: everything becomes the bias."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(20, 32), nn.LayerNorm(1), nn.Linear(32, 5)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.tanh(self.norm(self.a(x).unsqueeze(-1)).squeeze(-1)))


@recipe("mlp", "input_lost")
def norm_over_one() -> Case:
    return classified(NormOverOne(), vectors(), 5)


@recipe("mlp", "input_lost")
def default_depth_30() -> Case:
    return classified(mlp([20, *[pick(32, 64)] * pick(28, 34), 6]), vectors(), 6)


# ---------------------------------------------------------------- depth
@recipe("mlp", "vanishing")
def small_mlp() -> Case:
    return classified(he(mlp([20, *[pick(32, 64)] * pick(8, 10), 6]), 0.2), vectors(), 6)


@recipe("mlp", "vanishing")
def small_tanh() -> Case:
    model = mlp([20, *[pick(24, 48)] * pick(8, 10), 6], nn.Tanh)
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight, 0.25)
    return classified(model, vectors(), 6)


@recipe("cnn", "vanishing")
def small_cnn() -> Case:
    return classified(he(ConvNet("plain", 16, pick(8, 10), 5), 0.2), images(), 5)


@recipe("functional", "vanishing")
def small_functional() -> Case:
    model = Functional([20, *[pick(32, 48)] * 9, 5])
    for w in model.weights:
        w.data.mul_(0.2)
    return classified(model, vectors(), 5)


@recipe("mlp", "exploding")
def large_mlp() -> Case:
    return classified(he(mlp([20, *[pick(32, 64)] * pick(8, 10), 6]), 4.0), vectors(), 6)


@recipe("cnn", "exploding")
def large_cnn() -> Case:
    return classified(he(ConvNet("plain", 16, pick(6, 8), 5), 5.0), images(), 5)


@recipe("functional", "exploding")
def large_functional() -> Case:
    model = Functional([20, *[pick(32, 48)] * 9, 5])
    for w in model.weights:
        w.data.mul_(4.0)
    return classified(model, vectors(), 5)


# ---------------------------------------------------------------- units
@recipe("mlp", "dead_units")
def dead_mlp() -> Case:
    case = classified(plain_mlp(), vectors(), 5)
    case.model[2].bias.data.fill_(-30.0)
    return case


@recipe("cnn", "dead_units")
def dead_cnn() -> Case:
    case = classified(ConvNet("plain", 16, 3, 5), images(), 5)
    case.model.body[2].bias.data.fill_(-30.0)
    return case


@recipe("functional", "dead_units")
def dead_functional() -> Case:
    case = classified(Functional([20, 40, 32, 5]), vectors(), 5)
    case.model.biases[1].data.fill_(-60.0)
    return case


@recipe("residual mlp", "dead_units")
def dead_residual() -> Case:
    case = classified(ResidualMLP(32, 3, 5), vectors(), 5)
    case.model.up[1].bias.data.fill_(-30.0)
    return case


@recipe("mlp", "saturated")
def saturated_mlp() -> Case:
    case = classified(mlp([20, 40, 32, 5], nn.Tanh), vectors(), 5)
    case.model[0].weight.data.mul_(40)
    return case


@recipe("mlp", "saturated")
def saturated_sigmoid() -> Case:
    case = classified(mlp([20, 40, 32, 5], nn.Sigmoid), vectors(), 5)
    case.model[0].weight.data.mul_(80)
    return case


@recipe("functional", "saturated")
def saturated_method() -> Case:
    class Method(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.v = nn.Parameter(20 * torch.randn(20, 30)), nn.Parameter(torch.randn(30, 5) / 5)

        def forward(self, x: Tensor) -> Tensor:
            return (x @ self.w).tanh() @ self.v

    return classified(Method(), vectors(), 5)


@recipe("mlp", "symmetric_units")
def constant_mlp() -> Case:
    case = classified(plain_mlp(), vectors(), 5)
    nn.init.constant_(case.model[2].weight, 0.1)
    nn.init.constant_(case.model[4].weight, 0.1)
    return case


@recipe("mlp", "symmetric_units")
def constant_all() -> Case:
    case = classified(plain_mlp(), vectors(), 5)
    for layer in case.model:
        if isinstance(layer, nn.Linear):
            nn.init.constant_(layer.weight, 0.05)
            nn.init.zeros_(layer.bias)
    return case


@recipe("cnn", "symmetric_units")
def constant_cnn() -> Case:
    case = classified(ConvNet("plain", 12, 2, 5), images(), 5)
    for module in case.model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.constant_(module.weight, 0.03)
            nn.init.zeros_(module.bias)
    return case


@recipe("recurrent", "symmetric_units")
def constant_rnn() -> Case:
    case = classified(Recurrent("RNN", 24, 1, 4), sequences(), 4)
    for name, value in case.model.named_parameters():
        nn.init.constant_(value, 0.03 if "weight" in name else 0.0)
    return case


@recipe("transformer", "symmetric_units")
def constant_ffn() -> Case:
    case = language(Former(32, 2), tokens())
    nn.init.constant_(case.model.blocks[0].ffn[0].weight, 0.03)
    nn.init.constant_(case.model.blocks[0].ffn[2].weight, 0.03)
    nn.init.zeros_(case.model.blocks[0].ffn[0].bias)
    return case


@recipe("residual mlp", "stuck_weights")
def rezero_and_zero_last() -> Case:
    return classified(ResidualMLP(32, 3, 6, "rezero zero_last"), vectors(), 6)


@recipe("lora", "stuck_weights")
def lora_both_zero() -> Case:
    model = nn.Sequential(Lora(20, 32, 2), nn.ReLU(), Lora(32, 32, 2, both_zero=True), nn.ReLU(), Lora(32, 5, 2))
    return classified(model, vectors(), 5)


# ---------------------------------------------------------------- structure
class Cut(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.a, self.b, self.c, self.how = nn.Linear(20, 32), nn.Linear(32, 32), nn.Linear(32, 5), how

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.a(x))
        if self.how == "detach":
            h = h.detach()
        elif self.how == "data":
            h = h.data
        elif self.how == "numpy":
            h = torch.from_numpy(h.detach().numpy())
        if self.how == "no_grad":
            with torch.no_grad():
                h = F.relu(self.b(h))
        else:
            h = F.relu(self.b(h))
        return self.c(h)


for how in ("detach", "data", "numpy", "no_grad"):

    @recipe("mlp", "detached", name=f"cut_{how}")
    def _(how: str = how) -> Case:
        return classified(Cut(how), vectors(), 5)


class CutFormer(Former):
    def forward(self, x: Tensor) -> Tensor:
        h = self.blocks[0](self.table(x) + self.places[: x.shape[1]], None)
        return self.head(self.last(self.blocks[1](h.detach(), None)))


@recipe("transformer", "detached")
def cut_former() -> Case:
    return language(CutFormer(32, 2), tokens())


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.spare, self.c = nn.Linear(20, 32), nn.Linear(32, 16), nn.Linear(32, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.c(F.relu(self.a(x)))


@recipe("mlp", "unused_parameters")
def unused_layer() -> Case:
    return classified(Unused(), vectors(), 5)


@recipe("recurrent", "unused_parameters")
def unused_projection() -> Case:
    case = classified(Recurrent("GRU", 24, 1, 4), sequences(), 4)
    case.model.projection = nn.Linear(24, 10)
    return case


@recipe("mlp", "frozen_layer")
def frozen_middle() -> Case:
    case = classified(mlp([20, 32, 32, 32, 5]), vectors(), 5)
    case.model[2].weight.requires_grad_(False)
    return case


@recipe("cnn", "frozen_layer")
def frozen_cnn() -> Case:
    case = classified(ConvNet("plain", 12, 4, 5), images(), 5)
    case.model.body[4].requires_grad_(False)
    return case


@recipe("transformer", "frozen_layer")
def frozen_ffn() -> Case:
    case = language(Former(32, 2), tokens())
    case.model.blocks[1].ffn[0].requires_grad_(False)
    return case


@recipe("mlp", "missing_activation")
def linear_pair() -> Case:
    model = nn.Sequential(nn.Linear(20, 40), nn.Linear(40, 32), nn.ReLU(), nn.Linear(32, 5))
    return classified(model, vectors(), 5)


@recipe("mlp", "missing_activation")
def linear_pair_norm() -> Case:
    model = nn.Sequential(
        nn.Linear(20, 40), nn.BatchNorm1d(40), nn.Dropout(0.1), nn.Linear(40, 32), nn.ReLU(), nn.Linear(32, 5)
    )
    return classified(model, vectors(), 5)


@recipe("cnn", "missing_activation")
def linear_convolutions() -> Case:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip
    return classified(model, images(), 5)


@recipe("functional", "missing_activation")
def linear_functional() -> Case:
    return classified(Functional([20, 40, 32, 5], linear_at=0), vectors(), 5)


@recipe("transformer", "missing_activation")
def linear_ffn() -> Case:
    case = language(Former(32, 2), tokens())
    case.model.blocks[0].ffn[1] = nn.Identity()
    return case


@recipe("transformer", "broken_tie")
def broken_tie() -> Case:
    case = language(Former(32, 2, causal=True), tokens())
    case.model.head.weight = nn.Parameter(case.model.table.weight.detach().clone())
    case.model.head.weight.data.add_(0.002 * torch.randn(40, 32))
    return planted(case.model, case)


# ---------------------------------------------------------------- loss
@recipe("mlp", "output_loss_mismatch")
def double_softmax() -> Case:
    return classified(nn.Sequential(plain_mlp(6), nn.Softmax(-1)), vectors(), 6)


@recipe("cnn", "output_loss_mismatch")
def double_softmax_cnn() -> Case:
    return classified(nn.Sequential(ConvNet("bn", 12, 2, 6), nn.Softmax(1)), images(), 6)


@recipe("transformer", "output_loss_mismatch")
def double_softmax_former() -> Case:
    return language(nn.Sequential(Former(32, 2, causal=True), nn.Softmax(-1)), tokens())


@recipe("mlp", "output_loss_mismatch")
def raw_into_nll() -> Case:
    x = vectors()
    return Case(plain_mlp(6), x, nn.NLLLoss(), labels(len(x), 6))


@recipe("mlp", "output_loss_mismatch")
def probabilities_into_nll() -> Case:
    x = vectors()
    return Case(nn.Sequential(plain_mlp(6), nn.Softmax(-1)), x, nn.NLLLoss(), labels(len(x), 6))


@recipe("mlp", "output_loss_mismatch")
def double_sigmoid() -> Case:
    x = vectors()
    target = (torch.rand(len(x), 4) > 0.5).float()
    return Case(nn.Sequential(plain_mlp(4), nn.Sigmoid()), x, nn.BCEWithLogitsLoss(), target)


@recipe("mlp", "output_loss_mismatch")
def sigmoid_into_softmax() -> Case:
    return classified(nn.Sequential(plain_mlp(6), nn.Sigmoid()), vectors(), 6)


@recipe("mlp", "initial_loss")
def large_head() -> Case:
    case = classified(plain_mlp(6), vectors(), 6)
    case.model[-1].weight.data.mul_(pick(60, 120))
    return case


@recipe("cnn", "initial_loss")
def large_head_cnn() -> Case:
    case = classified(ConvNet("bn", 16, 2, 6), images(), 6)
    case.model.head.weight.data.mul_(pick(60, 120))
    return case


@recipe("recurrent", "initial_loss")
def large_head_gru() -> Case:
    case = classified(Recurrent("GRU", 40, 1, 6), sequences(), 6)
    case.model.head.weight.data.mul_(pick(80, 160))
    return case


@recipe("transformer", "initial_loss")
def large_head_former() -> Case:
    case = language(Former(32, 2, causal=True), tokens())
    case.model.head.weight.data.mul_(pick(80, 160))
    return case


@recipe("mlp", "learning_rate")
def sgd_100() -> Case:
    case = classified(plain_mlp(6), vectors(), 6)
    case.optimizer = sgd(case.model, 100.0)
    return case


@recipe("cnn", "learning_rate")
def adam_10() -> Case:
    case = classified(ConvNet("bn", 12, 2, 5), images(), 5)
    case.optimizer = adam(case.model, 10.0)
    return case


@recipe("transformer", "learning_rate")
def adam_1_former() -> Case:
    case = language(Former(32, 2, causal=True), tokens())
    case.optimizer = adam(case.model, 1.0)
    return case


@recipe("recurrent", "learning_rate")
def sgd_300_gru() -> Case:
    case = classified(Recurrent("GRU", 24, 1, 4), sequences(), 4)
    case.optimizer = sgd(case.model, 300.0)
    return case


# ---------------------------------------------------------------- batch
for kind in ("RNN", "GRU", "LSTM"):

    @recipe("recurrent", "batch_mixing", name=f"{kind.lower()}_along_batch")
    def _(kind: str = kind) -> Case:
        return classified(Recurrent(kind, pick(16, 40), 1, 4, batch_first=False), sequences(), 4)


class Viewed(nn.Module):
    """view() where permute() was meant: samples are cut into pieces and joined wrongly."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 32), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        h = F.relu(self.a(x.reshape(length, n, width)))  # (time, batch) was wanted
        return self.b(h.mean(0))


@recipe("mlp", "batch_mixing")
def view_for_permute() -> Case:
    return classified(Viewed(), sequences(), 4)


class BatchSoftmax(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.gate, self.b = nn.Linear(20, 32), nn.Linear(20, 32), nn.Linear(32, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(F.relu(self.a(x)) * self.gate(x).softmax(0) * len(x))


@recipe("mlp", "batch_mixing")
def softmax_over_batch() -> Case:
    return classified(BatchSoftmax(), vectors(), 5)


class BatchAttention(nn.Module):
    """nn.MultiheadAttention without batch_first on (batch, tokens, width)."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.attention, self.head = nn.Embedding(40, 32), nn.MultiheadAttention(32, 4), nn.Linear(32, 40)

    def forward(self, x: Tensor) -> Tensor:
        h = self.table(x)
        return self.head(h + self.attention(h, h, h, need_weights=False)[0])


@recipe("transformer", "batch_mixing")
def attention_over_batch() -> Case:
    return language(BatchAttention(), tokens())


@recipe("mlp", "stale_statistics")
def stale_mlp() -> Case:
    x = vectors(64)
    y = (x[:, 0] > 0).long()
    model = train(mlp([20, 32, 2], nn.ReLU, nn.BatchNorm1d), x, y, 60).eval()
    return Case(model, 4 * x + 2, "cross_entropy", y)


@recipe("cnn", "stale_statistics")
def stale_cnn() -> Case:
    x = images(32)
    y = (x.mean((1, 2, 3)) > 0).long()
    model = train(ConvNet("bn", 12, 2, 2), x, y, 60).eval()
    return Case(model, 0.2 * x - 1, "cross_entropy", y)


@recipe("mlp", "tiny_norm_batch")
def tiny_batch_mlp() -> Case:
    return classified(mlp([20, 32, 32, 5], nn.ReLU, nn.BatchNorm1d), vectors(4), 5, optimizer=False)


@recipe("mlp", "tiny_norm_batch")
def tiny_batch_tanh() -> Case:
    return classified(mlp([20, 32, 32, 5], nn.Tanh, nn.BatchNorm1d), vectors(3), 5, optimizer=False)


# ---------------------------------------------------------------- time
@recipe("recurrent", "short_memory")
def forget_minus_six() -> Case:
    case = classified(Recurrent("LSTM", 24, 1, 4), sequences(), 4)
    case.model.rnn.bias_hh_l0.data[24:48] = -6.0
    case.model.rnn.weight_hh_l0.data.mul_(0.3)
    return case


@recipe("recurrent", "short_memory")
def small_recurrence() -> Case:
    case = classified(Recurrent("RNN", pick(20, 40), 1, 4), sequences(), 4)
    case.model.rnn.weight_hh_l0.data.mul_(0.2)
    return case


@recipe("state space", "short_memory")
def fast_decay() -> Case:
    return classified(StateSpace(24, 4, 0.05, 0.15), sequences(), 4)


@recipe("recurrent", "time_growth")
def large_relu_rnn() -> Case:
    case = classified(Recurrent("RNN", 32, 1, 4), sequences(), 4)
    case.model.rnn = nn.RNN(8, 32, nonlinearity="relu", batch_first=True)
    nn.init.orthogonal_(case.model.rnn.weight_hh_l0, 2.5)
    case.optimizer = None
    return case


@recipe("recurrent", "time_growth")
def chaotic_rnn() -> Case:
    case = classified(Recurrent("RNN", 48, 1, 4), 0.3 * sequences(), 4)
    nn.init.normal_(case.model.rnn.weight_hh_l0, std=3.0 / math.sqrt(48))
    return case


@recipe("state space", "time_growth")
def growing_state_space() -> Case:
    return classified(StateSpace(24, 4, 1.1, 1.25), sequences(), 4)


@recipe("recurrent", "time_cut")
def cut_every_few() -> Case:
    return classified(CellLoop(24, 4, cut=pick(3, 6)), sequences(), 4)


@recipe("recurrent", "time_cut")
def cut_once() -> Case:
    return classified(CellLoop(24, 4, cut=20), sequences(24, 30), 4)


# ---------------------------------------------------------------- attention
def sharpened(model: Former, factor: float) -> Former:
    for block in model.blocks:
        block.attention.q.weight.data.mul_(factor)
        block.attention.k.weight.data.mul_(factor)
    return model


@recipe("transformer", "attention_collapse")
def sharp_attention() -> Case:
    return language(sharpened(Former(32, 2, std=None), 12), tokens())


@recipe("transformer", "attention_collapse")
def sharp_causal() -> Case:
    return language(sharpened(Former(32, 3, std=None, causal=True), 12), tokens())


@recipe("transformer", "attention_collapse")
def sharp_fused() -> Case:
    return language(sharpened(Former(32, 2, std=None, causal=True, kind="fused"), 12), tokens())


@recipe("transformer", "attention_collapse")
def sharp_torch() -> Case:
    model = TorchFormer(32, 2, norm_first=True)
    for layer in model.body.layers:
        layer.self_attn.in_proj_weight.data[:64].mul_(15)
    return language(model, tokens())


@recipe("transformer", "rank_collapse")
def no_residual() -> Case:
    return language(Former(32, pick(6, 8), order="bare", std=None), tokens())


@recipe("transformer", "rank_collapse")
def no_residual_pooled() -> Case:
    return classified(Former(32, pick(6, 8), order="bare", std=None, classes=5), tokens(), 5)


@recipe("transformer", "softmax_axis")
def over_queries() -> Case:
    return language(Former(32, 2, axis=-2), tokens())


@recipe("transformer", "softmax_axis")
def over_queries_causal() -> Case:
    return language(Former(32, 2, axis=-2, causal=True), tokens())


@recipe("mlp", "softmax_axis")
def output_over_batch() -> Case:
    x = vectors()
    model = nn.Sequential(plain_mlp(6), nn.Softmax(0))
    return Case(model, x, "mse", torch.rand(len(x), 6))


@recipe("transformer", "causal_leak")
def one_open_layer() -> Case:
    case = language(Former(32, 3, causal=True), tokens())
    case.model.masks[pick(0, 2)] = False
    return case


class Backwards(Former):
    def mask(self, length: int, layer: int) -> Tensor | None:
        return torch.ones(length, length, dtype=torch.bool).tril(-1)


@recipe("transformer", "causal_leak")
def future_only() -> Case:
    return language(Backwards(32, 2), tokens())


# ---------------------------------------------------------------- iterated maps
@recipe("equilibrium", "no_equilibrium")
def gain_three() -> Case:
    return classified(Equilibrium(pick(24, 48), 3.0, 5), vectors(), 5)


@recipe("equilibrium", "no_equilibrium")
def too_few_steps() -> Case:
    return classified(Equilibrium(32, 2.5, 5, steps=12), 0.2 * vectors(), 5)
