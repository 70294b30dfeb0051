"""Calls with one option wrong; ``refusals.py`` tries them all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from separatrix import advise, diagnose, dynamics, lab, matrices, nn as layers, report, sources, tasks, theory, training
from separatrix.core import InvalidInput, find_activation, spawn

MODEL = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
INPUTS = torch.ones(5, 3)
SOLVERS = {"solver": "picard", "backward_solver": "picard"}
DATA = (INPUTS, torch.ones(5, 2))
INTERVAL = lab.Summary(tables={"t": [{"x": 1, "low": 2, "high": 3}]})
EYE = torch.eye(3, dtype=torch.float64)
X0 = torch.nn.functional.normalize(torch.randn(4, 3, dtype=torch.float64, generator=spawn(0, "options")), dim=-1)
RNN_STATE = nn.RNN(2, 3).state_dict()
FLOW = dynamics.OjaFlow(EYE)
NETWORK = dynamics.LinearNetworkFlow(EYE)
EXPERIMENT: Any = lab.Experiment(
    name="none",
    title="of no interest",
    document="separatrix",
    place="",
    version=1,
    scales=dict.fromkeys(lab.SCALES, lab.Params()),
    expand=lambda params: [],
    run=lambda cell: {},
    summarise=lambda results: lab.Summary(),
)


def settings(**options: Any) -> Any:
    return training.TrainingSettings(n_steps=1, lr=0.1, **options)


def penalty(kind: Any) -> Any:
    return layers.jacobian_penalty(lambda z, x: z, torch.zeros(2, 3), INPUTS, generator=spawn(0, "options"), kind=kind)


def dense_layers(**options: Any) -> Any:
    usual = {"hidden": None, "ensemble": "haar", "weight_var": 0.5, "generator": spawn(0, "options")}
    return layers.DenseLayers(3, **{**usual, **options})


def classifier(**options: Any) -> Any:
    return layers.EquilibriumClassifier(MODEL, MODEL, **{**SOLVERS, **options})


def language_model(**options: Any) -> Any:
    sizes = {"n_symbols": 4, "width": 3, "context": 2, "generator": spawn(0, "options")}
    return layers.EquilibriumLanguageModel(MODEL, **{**sizes, **SOLVERS, **options})


def theme(name: Any) -> None:
    with report.theme(name):
        pass


ATTENTIVE = ("mix", "alignment", "combine", "memory", "readout")
ATTENTIVE_OPTIONS = {"Rel": (*ATTENTIVE, "normalise", "screening"), "Mem": ATTENTIVE}
ELMAN_OPTIONS = {"RNN": ("nonlinearity", "start"), "LSTM": ()}

OPTIONS: dict[tuple[str, str], Callable[[Any], Any]] = {
    **{
        (name, option): lambda bad, option=option: diagnose.check(MODEL, INPUTS, target=DATA[1], **{option: bad})
        for name in ("check", "diagnose")
        for option in ("chunk_size", "loss")
    },
    ("DualAttention", "relations"): lambda bad: layers.DualAttention(2, 2, relations=bad),
    ("CoRelNet", "temperature"): lambda bad: layers.CoRelNet(2, 2, temperature=bad),
    ("CoRelNet", "relation"): lambda bad: layers.CoRelNet(2, 2, relation=bad),
    ("CoRelNet", "normalise"): lambda bad: layers.CoRelNet(2, 2, normalise=bad),
    ("CoRelNet", "encoder"): lambda bad: layers.CoRelNet(2, 2, encoder=bad),
    ("CoRelNetT", "temperature"): lambda bad: layers.CoRelNetT(2, 2, temperature=bad),
    ("CoRelNetMix", "temperature"): lambda bad: layers.CoRelNetMix(2, 2, temperature=bad),
    ("PatternTask", "design"): lambda bad: tasks.PatternTask(bad),
    ("public_game", "part"): lambda bad: tasks.public_game(bad),
    ("GameTask", "train"): lambda bad: tasks.GameTask("same", train=bad),
    ("GameTask", "test"): lambda bad: tasks.GameTask("same", bad),
    ("GameTask", "rule"): lambda bad: tasks.GameTask(bad),
    ("make_task", "name"): lambda bad: tasks.make_task(bad),
    ("make_network", "name"): lambda bad: layers.make_network(bad, 2, 2),
    ("legend_outside", "at"): lambda bad: report.legend_outside(report.new_figure()[0], at=bad),
    ("train", "device"): lambda bad: training.train(
        MODEL, lambda step: DATA, nn.functional.mse_loss, training.TrainingSettings(n_steps=1, lr=0.1), device=bad
    ),
    ("deq", "phi"): lambda bad: advise.deq(bad, 64),
    ("deq", "ensemble"): lambda bad: advise.deq("tanh", 64, ensemble=bad),
    ("deq", "weight_scale"): lambda bad: advise.deq("tanh", 64, ensemble="gaussian", weight_scale=bad),
    ("deq", "cell"): lambda bad: advise.deq("tanh", 64, cell=bad),
    ("learning_dynamics", "method"): lambda bad: advise.learning_dynamics(EYE, EYE, EYE, [1.0], method=bad),
    ("attention_dynamics", "norm"): lambda bad: diagnose.attention_dynamics(
        nn.MultiheadAttention(4, 2), norm=bad, generator=spawn(0, "options")
    ),
    ("attention_dynamics", "token_norm"): lambda bad: diagnose.attention_dynamics(
        nn.MultiheadAttention(4, 2), token_norm=bad, generator=spawn(0, "options")
    ),
    ("attention_layers", "norm"): lambda bad: diagnose.attention_layers(nn.MultiheadAttention(4, 2), norm=bad),
    ("conservation_check", "loss"): lambda bad: diagnose.conservation_check(MODEL, bad, DATA),
    ("conservation_check", "pairs"): lambda bad: diagnose.conservation_check(MODEL, "mse", DATA, bad),
    ("conservation_check", "optimiser"): lambda bad: diagnose.conservation_check(MODEL, "mse", DATA, optimiser=bad),
    ("conservation_check", "rotary"): lambda bad: diagnose.conservation_check(MODEL, "mse", DATA, rotary=bad),
    ("optimiser_law", "optimiser"): diagnose.optimiser_law,
    ("find_pairs", "pairs"): lambda bad: diagnose.find_pairs(MODEL, bad),
    ("find_pairs", "rotary"): lambda bad: diagnose.find_pairs(MODEL, rotary=bad),
    ("balance_profile", "pairs"): lambda bad: diagnose.balance_profile(MODEL, bad),
    ("balance_profile", "rotary"): lambda bad: diagnose.balance_profile(MODEL, rotary=bad),
    ("balance_profile", "optimiser"): lambda bad: diagnose.balance_profile(MODEL, optimiser=bad),
    ("set_balance", "pairs"): lambda bad: diagnose.set_balance(MODEL, 0.0, bad),
    ("set_balance", "rotary"): lambda bad: diagnose.set_balance(MODEL, 0.0, rotary=bad),
    ("set_balance", "on_refusal"): lambda bad: diagnose.set_balance(MODEL, 0.0, on_refusal=bad),
    ("recommend_init", "regime"): lambda bad: diagnose.recommend_init(MODEL, bad),
    ("recommend_init", "pairs"): lambda bad: diagnose.recommend_init(MODEL, "rich", pairs=bad),
    ("recommend_init", "rotary"): lambda bad: diagnose.recommend_init(MODEL, "rich", rotary=bad),
    ("pick_at_loss", "loss"): lambda bad: diagnose.pick_at_loss(MODEL, [MODEL.state_dict()], DATA, 0.1, loss=bad),
    ("train_to_loss", "loss"): lambda bad: diagnose.train_to_loss(MODEL, DATA, 0.1, loss=bad),
    ("train_to_loss", "lr"): lambda bad: diagnose.train_to_loss(MODEL, DATA, 0.1, lr=bad),
    ("train_to_loss", "optimiser"): lambda bad: diagnose.train_to_loss(MODEL, DATA, 0.1, optimiser=bad),
    ("rich_lazy", "optimiser"): lambda bad: diagnose.rich_lazy(MODEL, DATA, optimiser=bad, target_loss=0.1),
    ("regime_curve", "loss"): lambda bad: diagnose.regime_curve([MODEL, MODEL], DATA, loss=bad),
    ("regime_curve", "lr"): lambda bad: diagnose.regime_curve([MODEL, MODEL], DATA, lr=bad),
    ("regime_curve", "optimiser"): lambda bad: diagnose.regime_curve([MODEL, MODEL], DATA, optimiser=bad),
    ("tangent_kernel", "chunk_size"): lambda bad: diagnose.tangent_kernel(MODEL, INPUTS, chunk_size=bad),
    ("rich_lazy", "loss"): lambda bad: diagnose.rich_lazy(MODEL, DATA, loss=bad, target_loss=0.1),
    ("rich_lazy", "lr"): lambda bad: diagnose.rich_lazy(MODEL, DATA, lr=bad, target_loss=0.1),
    ("rich_lazy", "chunk_size"): lambda bad: diagnose.rich_lazy(MODEL, DATA, chunk_size=bad, target_loss=0.1),
    ("census", "preset"): lambda bad: dynamics.census([FLOW], n_tokens=4, n_starts=1, seed=0, preset=bad),
    ("metastability_record", "preset"): lambda bad: dynamics.metastability_record(FLOW, X0, t_max=1.0, preset=bad),
    ("integrate", "preset"): lambda bad: dynamics.integrate(FLOW, X0, bad),
    ("integrate", "method"): lambda bad: dynamics.integrate(FLOW, X0, method=bad),
    ("integrate_layers", "method"): lambda bad: dynamics.integrate_layers(NETWORK, (EYE,), [1.0], method=bad),
    ("Accuracy", "method"): lambda bad: dynamics.Accuracy(bad, 1e-3),
    ("find_equilibrium", "method"): lambda bad: dynamics.find_equilibrium(torch.cos, bad, EYE),
    ("count_equilibria", "method"): lambda bad: dynamics.count_equilibria(torch.cos, bad, EYE),
    ("AttentionFlow", "normalisation"): lambda bad: dynamics.AttentionFlow(
        query=EYE, key=EYE, value=EYE, normalisation=bad
    ),
    ("AttentionMap", "update"): lambda bad: dynamics.AttentionMap(FLOW, 0.1, update=bad),
    ("Descent", "kind"): lambda bad: dynamics.Descent(0.1, kind=bad),
    ("LinearNetworkFlow", "activation"): lambda bad: dynamics.LinearNetworkFlow(EYE, activation=bad),
    **{(kind.__name__, "stop"): lambda bad, kind=kind: kind(stop=bad) for kind in dynamics.solvers().values()},
    ("best_report", "scale"): lambda bad: lab.best_report(EXPERIMENT, None, bad),
    ("report_from_store", "scale"): lambda bad: lab.report_from_store(EXPERIMENT, lab.Params(), bad, None),
    ("judgements_of", "scale"): lambda bad: lab.judgements_of(EXPERIMENT, bad, lab.Summary()),
    ("with_column", "column"): lambda bad: lab.with_column("t", bad, 1)(lab.Summary(tables={"t": [{"x": 0}]})),
    ("with_column", "rows"): lambda bad: lab.with_column(bad, "x", 1)(lab.Summary(tables={"t": [{"x": 0}]})),
    ("with_interval", "rows"): lambda bad: lab.with_interval(bad, 0, 1)(lab.Summary(tables={"t": [{"low": 2}]})),
    ("with_interval", "middle"): lambda bad: lab.with_interval("t", 0, 1, middle=bad)(INTERVAL),
    ("with_interval_at", "middle"): lambda bad: lab.with_interval_at("t", bad, 1)(INTERVAL),
    ("with_interval_at", "rows"): lambda bad: lab.with_interval_at(bad, "x", 1)(lab.Summary(tables={"t": [{"x": 0}]})),
    ("with_entry", "entry"): lambda bad: lab.with_entry("tables", bad)(lab.Summary(tables={"t": []})),
    ("with_entry", "field"): lambda bad: lab.with_entry(bad, "t")(lab.Summary(tables={"t": []})),
    ("usual_limits", "scale"): lambda bad: lab.usual_limits(bad),
    ("plan_run", "scale"): lambda bad: lab.plan_run(EXPERIMENT, lab.Params(), bad, None),
    ("sweep_requests", "scale"): lambda bad: lab.sweep_requests(EXPERIMENT, bad, [{}]),
    ("swept", "scale"): lambda bad: lab.swept(EXPERIMENT, bad, [{}], []),
    ("best_run", "scale"): lambda bad: lab.best_run(EXPERIMENT, None, bad),
    ("publish", "scale"): lambda bad: lab.publish([], None, Path("nowhere"), bad),
    ("Claim", "scale"): lambda bad: lab.Claim(
        id="c", statement="s", measures="m", test="t", judge=len, counterfeit=len, scale=bad
    ),
    ("load", "entry"): lab.load,
    ("attention_instance", "ensemble"): lambda bad: matrices.attention_instance(
        3, generator=spawn(0, "options"), ensemble=bad
    ),
    ("find_ensemble", "ensemble"): matrices.find_ensemble,
    ("DenseBlock", "ensemble"): matrices.DenseBlock,
    ("initialise_", "ensemble"): lambda bad: matrices.initialise_(
        torch.zeros(3, 3), bad, generator=spawn(0, "options")
    ),
    ("RectangularOrthogonal", "scale"): lambda bad: matrices.RectangularOrthogonal(scale=bad),
    ("fisher_memory_matrix", "precision"): lambda bad: matrices.fisher_memory_matrix(
        matrices.delay_line(3), EYE[0], 3, precision=bad
    ),
    ("fisher_memory_curve", "precision"): lambda bad: matrices.fisher_memory_curve(
        matrices.delay_line(3), EYE[0], 3, precision=bad
    ),
    ("ResidualCell", "ensemble"): lambda bad: layers.ResidualCell(3, ensemble=bad, generator=spawn(0, "options")),
    ("ResidualCell", "phi"): lambda bad: layers.ResidualCell(3, phi=bad, generator=spawn(0, "options")),
    ("TanhCell", "ensemble"): lambda bad: layers.TanhCell(3, ensemble=bad, generator=spawn(0, "options")),
    ("TanhCell", "phi"): lambda bad: layers.TanhCell(3, phi=bad, generator=spawn(0, "options")),
    ("TransformerCell", "ensemble"): lambda bad: layers.TransformerCell(
        4, n_heads=2, ensemble=bad, generator=spawn(0, "options")
    ),
    ("DenseLayers", "ensemble"): lambda bad: dense_layers(ensemble=bad),
    ("DenseLayers", "phi"): lambda bad: dense_layers(phi=bad),
    ("Implicit", "solver"): lambda bad: layers.Implicit(solver=bad),
    ("EquilibriumClassifier", "solver"): lambda bad: classifier(solver=bad),
    ("EquilibriumClassifier", "backward_solver"): lambda bad: classifier(backward_solver=bad),
    ("EquilibriumLanguageModel", "solver"): lambda bad: language_model(solver=bad),
    ("EquilibriumLanguageModel", "backward_solver"): lambda bad: language_model(backward_solver=bad),
    ("DEQ", "solver"): lambda bad: layers.DEQ(lambda z, x: z, solver=bad),
    ("DEQ", "eval_solver"): lambda bad: layers.DEQ(lambda z, x: z, eval_solver=bad),
    ("DEQ", "backward"): lambda bad: layers.DEQ(lambda z, x: z, backward=bad),
    ("DEQ", "on_fail"): lambda bad: layers.DEQ(lambda z, x: z, on_fail=bad),
    ("jacobian_penalty", "kind"): penalty,
    ("MonotoneDEQ", "splitting"): lambda bad: layers.MonotoneDEQ(3, 3, splitting=bad, generator=spawn(0, "options")),
    ("MonotoneDEQ", "solver"): lambda bad: layers.MonotoneDEQ(3, 3, solver=bad, generator=spawn(0, "options")),
    ("MonotoneDEQ", "backward"): lambda bad: layers.MonotoneDEQ(3, 3, backward=bad, generator=spawn(0, "options")),
    ("MonotoneDEQ", "on_fail"): lambda bad: layers.MonotoneDEQ(3, 3, on_fail=bad, generator=spawn(0, "options")),
    ("theme", "name"): theme,
    ("find_document", "key"): sources.find_document,
    ("find_erratum", "key"): sources.find_erratum,
    ("semantic_task", "variant"): tasks.semantic_task,
    ("find_dataset", "name"): tasks.find_dataset,
    ("locate", "name"): tasks.locate,
    ("load_text", "name"): tasks.load_text,
    ("load_text", "level"): lambda bad: tasks.load_text("tiny-shakespeare", bad),
    ("make_text", "level"): lambda bad: tasks.make_text("own", ("a", "b", "c"), bad),
    ("find_activation", "phi"): find_activation,
    ("kernels", "ensemble"): lambda bad: theory.kernels(bad, weight_var=0.5),
    ("critical_weight_var", "ensemble"): theory.critical_weight_var,
    ("mean_field", "ensemble"): lambda bad: theory.mean_field(bad, weight_var=0.5),
    ("divergence_exponent", "ensemble"): theory.divergence_exponent,
    ("existence_weight_var", "ensemble"): theory.existence_weight_var,
    ("length_variance", "ensemble"): lambda bad: theory.length_variance(bad, 0.5, 8),
    ("linear_critical_weight_var", "ensemble"): theory.linear_critical_weight_var,
    ("mean_response", "ensemble"): lambda bad: theory.mean_response(bad, 0.5),
    ("output_variance", "ensemble"): lambda bad: theory.output_variance(bad, 0.5),
    ("resolvent_moment", "ensemble"): lambda bad: theory.resolvent_moment(bad, 0.5),
    ("kernels", "phi"): lambda bad: theory.kernels(matrices.Gaussian(), bad, weight_var=0.5),
    ("critical_weight_var", "phi"): lambda bad: theory.critical_weight_var(matrices.Gaussian(), bad),
    ("critical_weight_var", "cell"): lambda bad: theory.critical_weight_var(matrices.Gaussian(), cell=bad),
    ("mean_field", "phi"): lambda bad: theory.mean_field(matrices.Gaussian(), bad, weight_var=0.5),
    ("mean_field", "cell"): lambda bad: theory.mean_field(matrices.Gaussian(), weight_var=0.5, cell=bad),
    ("layer_variances", "scheme"): lambda bad: theory.layer_variances(bad, 2, 2, 2),
    ("random_balance", "scheme"): lambda bad: theory.random_balance(bad, 2, 2, 2),
    ("wide_balance", "scheme"): lambda bad: theory.wide_balance(bad, 1.0, 1.0),
    ("TrainingSettings", "optimiser"): lambda bad: settings(optimiser=bad),
    ("RelationalSettings", "optimiser"): lambda bad: training.RelationalSettings(optimiser=bad),
    ("Copy", "encoding"): lambda bad: tasks.Copy(encoding=bad),
    ("copy_solution", "layout"): lambda bad: layers.copy_solution(5, bad),
    ("Copy", "layout"): lambda bad: tasks.Copy(layout=bad),
    ("Denoise", "variant"): lambda bad: tasks.Denoise(variant=bad),
    ("find_orthogonal_map", "map"): lambda bad: layers.find_orthogonal_map(bad, 4),
    ("make_orthogonal_", "map"): lambda bad: layers.make_orthogonal_(nn.Linear(4, 4), bad),
    ("make_orthogonal_", "start"): lambda bad: layers.make_orthogonal_(nn.Linear(4, 4), start=bad),
    ("orthogonality_penalty", "norm"): lambda bad: layers.orthogonality_penalty(torch.eye(3), bad),
    ("OrthogonalMatrix", "start"): lambda bad: layers.OrthogonalMatrix(
        layers.Exp(4), bad, generator=spawn(0, "options")
    ),
    ("NonNormalMatrix", "block"): lambda bad: layers.NonNormalMatrix(4, bad, generator=spawn(0, "options")),
    ("NonNormalMatrix", "gamma"): lambda bad: layers.NonNormalMatrix(4, gamma=bad, generator=spawn(0, "options")),
    ("NonNormalMatrix", "basis"): lambda bad: layers.NonNormalMatrix(4, basis=bad, generator=spawn(0, "options")),
    ("NonNormalMatrix", "start"): lambda bad: layers.NonNormalMatrix(4, start=bad, generator=spawn(0, "options")),
    ("NonNormalRNN", "block"): lambda bad: layers.NonNormalRNN(3, 4, bad),
    ("NonNormalRNN", "gamma"): lambda bad: layers.NonNormalRNN(3, 4, gamma=bad),
    ("NonNormalRNN", "basis"): lambda bad: layers.NonNormalRNN(3, 4, basis=bad),
    ("NonNormalRNN", "start"): lambda bad: layers.NonNormalRNN(3, 4, start=bad),
    ("NonNormalRNN", "nonlinearity"): lambda bad: layers.NonNormalRNN(3, 4, nonlinearity=bad),
    ("OrthogonalRNN", "map"): lambda bad: layers.OrthogonalRNN(3, 4, bad),
    ("OrthogonalRNN", "start"): lambda bad: layers.OrthogonalRNN(3, 4, start=bad),
    ("OrthogonalRNN", "nonlinearity"): lambda bad: layers.OrthogonalRNN(3, 4, nonlinearity=bad),
    ("FreeRNN", "start"): lambda bad: layers.FreeRNN(3, 4, start=bad),
    ("FreeRNN", "nonlinearity"): lambda bad: layers.FreeRNN(3, 4, nonlinearity=bad),
    ("GORU", "map"): lambda bad: layers.GORU(3, 4, bad),
    **{
        (kind, option): lambda bad, kind=kind, option=option: getattr(layers, kind)(3, 4, **{option: bad})
        for kind in ("RelRNN", "RelLSTM", "MemRNN", "MemLSTM")
        for option in ATTENTIVE_OPTIONS[kind[:3]] + ELMAN_OPTIONS[kind[3:]]
    },
    ("AttentionSum", "normalise"): lambda bad: layers.AttentionSum(bad),
    ("BoundedKeys", "normalise"): lambda bad: layers.BoundedKeys(2, 2, normalise=bad),
    ("BoundedCache", "normalise"): lambda bad: layers.BoundedCache(2, 2, normalise=bad),
    ("RelevanceCache", "normalise"): lambda bad: layers.RelevanceCache(2, 2, normalise=bad),
    ("play_eviction", "normalise"): lambda bad: layers.play_eviction(torch.zeros(1, 1, 3, 3), 1, 1, normalise=bad),
    ("ScreenedKeys", "normalise"): lambda bad: layers.ScreenedKeys(bad),
    ("HeavyHitterKeys", "normalise"): lambda bad: layers.HeavyHitterKeys(bad),
    ("replay", "normalise"): lambda bad: layers.replay([1.0, 2.0], 1, 1, bad),
    ("replay", "screening"): lambda bad: layers.replay([1.0, 2.0], 1, 1, screening=bad),
    ("SequenceModel", "readout"): lambda bad: layers.SequenceModel(layers.ExpRNN(3, 4), 2, bad),
    ("parameter_count", "kind"): lambda bad: layers.parameter_count(bad, 3, 4, 2),
    ("recurrent", "nonlinearity"): lambda bad: diagnose.recurrent(RNN_STATE, nonlinearity=bad),
    ("recurrent_networks", "nonlinearity"): lambda bad: diagnose.recurrent_networks(RNN_STATE, nonlinearity=bad),
    ("load_characters", "text"): tasks.load_characters,
    ("TrainingSettings", "best"): lambda bad: settings(best=bad),
    ("TrainingSettings", "schedule"): lambda bad: settings(schedule=bad),
}
"""By function and argument, a call with everything right but that argument."""

BAD: dict[str, Any] = {"word": "xyzzy", "none": None, "number": 3.5j, "list": [3], "bytes": b"auto"}


def answer(call: Callable[[Any], Any], bad: Any) -> str:
    """The sentence of the refusal, or what happened instead."""
    try:
        call(bad)
    except InvalidInput as refusal:
        return str(refusal)
    except Exception as other:
        return f"not refused but {type(other).__name__}: {other}"
    return "not refused"


def answers(left_out: set[str]) -> dict[str, str]:
    """The answer to every wrong option, by function, argument and kind."""
    tried = {"/".join((*option, kind)): (call, bad) for option, call in OPTIONS.items() for kind, bad in BAD.items()}
    return {words: answer(call, bad) for words, (call, bad) in tried.items() if words not in left_out}
