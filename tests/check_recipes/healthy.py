"""Healthy networks, many of them unusual on purpose: none may be accused."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .cases import (
    Case,
    adam,
    classified,
    images,
    labels,
    language,
    pick,
    recipe,
    sequences,
    sgd,
    tokens,
    vectors,
)  # fmt: skip
from .networks import (
    Autoencoder,
    CellLoop,
    ConvNet,
    Equilibrium,
    Experts,
    Former,
    Functional,
    Lora,
    Recurrent,
    ResidualConv,
    ResidualMLP,
    SharedDepth,
    StateSpace,
    TorchFormer,
    TwoHeads,
    he,
    mlp,
    train,
)  # fmt: skip

NORMS = {"none": None, "bn": nn.BatchNorm1d, "ln": nn.LayerNorm}

for act_name, act in (("relu", nn.ReLU), ("tanh", nn.Tanh)):
    for norm_name, norm in NORMS.items():

        @recipe("mlp", name=f"mlp_{act_name}_{norm_name}")
        def _(act: type = act, norm: type | None = norm) -> Case:
            width, classes = pick(24, 64), pick(3, 10)
            return classified(mlp([20, *[width] * pick(1, 4), classes], act, norm), vectors(), classes)


@recipe("mlp")
def mlp_he_deep() -> Case:
    width = pick(32, 64)
    return classified(he(mlp([20, *[width] * pick(6, 10), 6])), vectors(), 6, optimizer=False)


@recipe("mlp")
def mlp_orthogonal_tanh() -> Case:
    model = mlp([20, *[pick(24, 48)] * pick(3, 8), 5], nn.Tanh)
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight)
    return classified(model, vectors(), 5)


@recipe("mlp")
def mlp_gelu_dropout() -> Case:
    width = pick(24, 48)
    model = nn.Sequential(
        nn.Linear(20, width), nn.GELU(), nn.Dropout(0.2), nn.Linear(width, width), nn.GELU(), nn.Dropout(0.2),
        nn.Linear(width, 7),
    )  # fmt: skip
    return classified(model, vectors(), 7)


@recipe("mlp")
def mlp_evaluation_mode() -> Case:
    case = classified(mlp([20, 32, 32, 5], nn.ReLU, nn.BatchNorm1d), vectors(), 5)
    case.model.eval()
    return case


for kind in ("norm", "rezero", "zero_last", "zero_last zero_head"):

    @recipe("residual mlp", name=f"residual_{kind.replace(' ', '_')}")
    def _(kind: str = kind) -> Case:
        return classified(ResidualMLP(pick(24, 48), pick(2, 8), 6, kind), vectors(), 6)


for kind in ("plain", "bn", "standard", "bottleneck", "separable"):

    @recipe("cnn", name=f"cnn_{kind}")
    def _(kind: str = kind) -> Case:
        return classified(ConvNet(kind, 4 * pick(3, 6), pick(2, 4 if kind != "plain" else 3), 5), images(), 5)


@recipe("cnn")
def resnet_zero_gamma() -> Case:
    return classified(ResidualConv(4 * pick(2, 5), pick(2, 4), 5), images(), 5)


for kind in ("RNN", "GRU", "LSTM"):
    for layers in (1, 2):

        @recipe("recurrent", name=f"{kind.lower()}_{layers}")
        def _(kind: str = kind, layers: int = layers) -> Case:
            x = sequences(24, pick(16, 32))
            return classified(Recurrent(kind, pick(16, 48), layers, 4), x, 4)


@recipe("recurrent")
def rnn_orthogonal() -> Case:
    case = classified(Recurrent("RNN", pick(16, 48), 1, 4), sequences(), 4)
    nn.init.orthogonal_(case.model.rnn.weight_hh_l0)
    return case


@recipe("recurrent")
def lstm_forget_one() -> Case:
    case = classified(Recurrent("LSTM", 4 * pick(5, 10), 1, 4), sequences(), 4)
    width = case.model.rnn.hidden_size
    case.model.rnn.bias_hh_l0.data[width : 2 * width] = 1.0
    return case


@recipe("recurrent")
def lstm_large_recurrence() -> Case:
    case = classified(Recurrent("LSTM", pick(20, 40), 1, 4), sequences(), 4)
    case.model.rnn.weight_hh_l0.data.mul_(2.5)
    return case


@recipe("recurrent")
def rnn_cell_loop() -> Case:
    return classified(CellLoop(pick(16, 40), 4), sequences(), 4)


@recipe("state space")
def state_space() -> Case:
    return classified(StateSpace(pick(16, 40), 4, 0.8, 0.99), sequences(), 4)


for name, options in {
    "former_pre": {},
    "former_post": {"order": "post", "std": None},
    "former_causal": {"causal": True},
    "former_tied": {"causal": True, "tied": True},
    "former_fused": {"causal": True, "kind": "fused"},
    "former_torch_init": {"std": None},
}.items():

    @recipe("transformer", name=name)
    def _(options: dict = options) -> Case:
        return language(Former(8 * pick(3, 6), pick(2, 4), **options), tokens())


@recipe("transformer")
def former_pooled() -> Case:
    return classified(Former(8 * pick(3, 6), pick(2, 3), classes=5), tokens(), 5)


for first in (True, False):

    @recipe("transformer", name=f"torch_encoder_{'pre' if first else 'post'}")
    def _(first: bool = first) -> Case:
        return language(TorchFormer(8 * pick(3, 6), pick(2, 3), norm_first=first), tokens())


@recipe("shared depth")
def shared_depth() -> Case:
    return classified(SharedDepth(pick(24, 48), pick(4, 12), 5), vectors(), 5)


@recipe("equilibrium")
def equilibrium() -> Case:
    return classified(Equilibrium(pick(24, 48), 0.1 * pick(5, 8), 5, steps=60), vectors(), 5)


@recipe("experts")
def experts() -> Case:
    return classified(Experts(pick(16, 32), pick(3, 5), 5), vectors(64), 5)


@recipe("lora")
def lora() -> Case:
    width = pick(24, 40)
    return classified(nn.Sequential(Lora(20, width, 2), nn.ReLU(), Lora(width, width, 2), nn.ReLU(), Lora(width, 5, 2)),
                      vectors(), 5)  # fmt: skip


@recipe("mlp")
def frozen_prefix() -> Case:
    model = mlp([20, 40, 40, 40, 5])
    for layer in list(model)[: pick(1, 3)]:
        layer.requires_grad_(False)
    return classified(model, vectors(), 5)


@recipe("mlp")
def trained_mlp() -> Case:
    x = vectors(64)
    y = (x[:, :4].sum(1) > 0).long() + (x[:, 4] > 0).long()
    model = train(mlp([20, pick(32, 64), 32, 3]), x, y, 80)
    return Case(model, x, "cross_entropy", y, adam(model))


@recipe("cnn")
def trained_cnn() -> Case:
    x = images(32)
    y = (x.mean((1, 2, 3)) > 0).long()
    model = train(ConvNet("bn", 12, 2, 2), x, y, 40, 1e-2)
    return Case(model, x, "cross_entropy", y, adam(model))


@recipe("cnn")
def trained_cnn_evaluated() -> Case:
    x = images(48)
    y = (x.mean((1, 2, 3)) > 0).long()
    model = train(ConvNet("bn", 12, 2, 2), x, y, 60, 3e-3).eval()
    return Case(model, x, "cross_entropy", y, adam(model))


@recipe("transformer")
def trained_gpt() -> Case:
    x = tokens(12, 18)
    y = (x + 3) % 40
    model = train(Former(32, 2, causal=True), x, y, 60)
    return Case(model, x, "cross_entropy", y, adam(model))


@recipe("mlp")
def regression() -> Case:
    x = vectors()
    model = mlp([20, pick(24, 48), 32, 2], nn.SiLU)
    return Case(model, x, "mse", torch.randn(len(x), 2), adam(model))


@recipe("mlp")
def several_labels() -> Case:
    x = vectors()
    model = mlp([20, pick(24, 48), 6])
    return Case(model, x, nn.BCEWithLogitsLoss(), (torch.rand(len(x), 6) > 0.5).float(), sgd(model))


@recipe("mlp")
def log_probabilities() -> Case:
    x = vectors()
    model = nn.Sequential(mlp([20, pick(24, 48), 6]), nn.LogSoftmax(-1))
    return Case(model, x, nn.NLLLoss(), labels(len(x), 6), sgd(model))


@recipe("functional")
def functional() -> Case:
    return classified(Functional([20, pick(24, 48), 32, 5]), vectors(), 5)


@recipe("nested")
def two_heads() -> Case:
    x = {"a": vectors(40), "b": torch.randn(40, 6)}
    return Case(TwoHeads(pick(24, 40), 5), x, "cross_entropy", labels(40, 5))


@recipe("mlp")
def autoencoder() -> Case:
    x = vectors()
    model = Autoencoder(pick(24, 40))
    return Case(model, x, "mse", x, adam(model))


@recipe("mlp")
def shuffled_labels() -> Case:
    """A fault that nobody can see in one batch: it must stay silent."""
    case = trained_mlp()
    target: Tensor = case.target
    case.target = target[torch.randperm(len(target))]
    case.model = mlp([20, 48, 32, 3])
    case.optimizer = adam(case.model)
    return case
