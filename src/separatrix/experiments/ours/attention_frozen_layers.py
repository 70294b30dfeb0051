"""Attention layers of a trained model, each iterated for ever: the limit that altafini2025 studies, on real weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from separatrix.core.random import spawn
from separatrix.core.wording import small
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    condition,
    groups,
    judge,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from separatrix.diagnose import AttentionLayer

DATA = "minilm-l6-attention"
REAL, COMPLEX = (0, 2, 3, 4), (1, 5)
LAYERS = tuple(sorted(REAL + COMPLEX))
PRINCIPAL = (1.238, 1.071, 1.655, 1.510, 1.115, 1.532)
"""Principal real parts of the six layers, as reported with the weights."""


class Settings(Params):
    """Layers of a trained sentence encoder, or generated ones of the same make."""

    source: Literal["generated", "minilm-l6-attention"] = "minilm-l6-attention"
    n_layers: int = 6
    n_starts: int = 3
    n_control_starts: int = 1
    n_tokens: int = 48
    t_max: float = 200.0
    dim: int = 384  # of generated layers
    n_heads: int = 12


class Measured(Summary):
    """Rows by layer and by end, for the layers and their controls."""

    source: str
    spectra: list[dict[str, Any]]
    heads: list[dict[str, int]]
    ends: list[dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per seed and layer."""
    for seed in settings.seeds:
        for layer in range(settings.n_layers):
            yield {"seed": seed, "layer": layer, **settings.model_dump(exclude={"seeds", "n_layers"})}


def run(cell: Cell) -> Payload:
    """Spectra, predictions per head and the ends of one frozen layer and of its redrawn control."""
    from separatrix import diagnose, dynamics

    layer = _layer(cell)
    path = ("attention-frozen-layers", cell.args["layer"])
    n_tokens, t_max = cell.args["n_tokens"], cell.args["t_max"]

    def ends(which: AttentionLayer, count: int, name: str) -> list[dict[str, Any]]:
        if not count:
            return []
        generator = spawn(cell.seed, *path, name)
        x = dynamics.random_tokens(n_tokens, which.dim, count, generator=generator)
        return [end.to_dict() for end in diagnose.frozen_flow(which, x, start="random tokens", t_max=t_max)]

    redrawn = layer.redrawn(spawn(cell.seed, *path, "control"))
    return {
        "spectrum": diagnose.value_spectra(layer).to_dict(),
        "control spectrum": diagnose.value_spectra(redrawn).to_dict(),
        "heads": diagnose.head_predictions(layer, n_tokens=n_tokens).to_dict(),
        "ends": ends(layer, cell.args["n_starts"], "starts"),
        "control ends": ends(redrawn, cell.args["n_control_starts"], "control starts"),
    }


def _layer(cell: Cell) -> AttentionLayer:
    from separatrix import diagnose

    if cell.args["source"] == "generated":
        return _generated(cell)
    from separatrix import tasks

    path = tasks.locate(cell.args["source"]).paths["weights"]
    return diagnose.attention_layers(path, n_heads=12).layers[cell.args["layer"]]


def _generated(cell: Cell) -> AttentionLayer:
    """A BERT-type block with Gaussian weights, read by the same reader as a file."""
    import torch

    from separatrix import diagnose

    d = cell.args["dim"]
    generator = spawn(cell.seed, "attention-frozen-layers", "generated", cell.args["layer"])
    parts = ("self.query", "self.key", "self.value", "output.dense")
    state = {
        f"encoder.layer.{cell.args['layer']}.attention.{part}.weight": torch.randn(d, d, generator=generator) / d**0.5
        for part in parts
    }
    return diagnose.attention_layers(state, n_heads=cell.args["n_heads"]).layers[0]


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """A row per layer and per end."""
    spectra, heads, ends = [], [], []
    for cell, payload in results:
        place = {"layer": cell.args["layer"], "seed": cell.seed}
        for name, control in (("spectrum", False), ("control spectrum", True)):
            spectrum = payload[name]
            spectra.append(
                {
                    **place,
                    "control": control,
                    "real part": spectrum["principal"][0],
                    "imaginary part": spectrum["principal"][1],
                    "gap": spectrum["gap"],
                    "least real part": spectrum["least_real"],
                    "radius": spectrum["radius"],
                    "asymmetry": spectrum["asymmetry"],
                }
            )
        found = payload["heads"]
        columns = ("consensus", "consensus_cycle", "bipartite", "bipartite_last")
        heads.append({**place, "heads": len(found["consensus"]), **{name: sum(found[name]) for name in columns}})
        for name, control in (("ends", False), ("control ends", True)):
            for end in payload[name]:
                kept = {key: end[key] for key in ("kind", "alignment", "stable", "period", "time", "residual")}
                ends.append({**place, "control": control, **kept, "groups": "/".join(map(str, end["sizes"]))})
    source = results[0][0].args["source"] if results else "nothing"
    tables = {"Spectra of the summed value matrices": spectra, "Stable states of single heads": heads}
    return Measured(
        source=source,
        spectra=spectra,
        heads=heads,
        ends=ends,
        tables={**tables, "Ends of the frozen layers": ends},
    )


def _own(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the layers themselves, without the control."""
    return [row for row in rows if not row.get("control")]


def _real(summary: Measured) -> set[tuple[int, int]]:
    return {(row["seed"], row["layer"]) for row in _own(summary.spectra) if row["imaginary part"] == 0}


def judge_consensus(summary: Measured) -> Judgement:
    """One group that rests, in a layer with a real principal eigenvalue, lies exactly on its eigenvector."""
    every = [row for row in summary.ends if row["kind"] in ("consensus", "consensus cycle")]
    if not every:
        return judge("no start ended in agreement", [])
    worst = min(row["alignment"] for row in every)
    rows = [
        Row("smallest alignment of an agreeing end with the principal line or plane", worst, 1.0, 1e-9),
        Row("agreeing ends that are not stable", sum(row["stable"] is not True for row in every), 0),
    ]
    short = small(max(1 - worst, 0.0))
    return judge(f"{len(every)} of {len(summary.ends)} ends agree; alignments fall short of 1 by at most {short}", rows)


def judge_conjecture(summary: Measured) -> Judgement:
    """Consensus on the principal eigenvector in full, and under the condition that its eigenvalue is real."""
    real, ends = _real(summary), _own(summary.ends)

    def hits(rows: list[dict[str, Any]]) -> int:
        return sum(row["kind"] == "consensus" and row["alignment"] > 1 - 1e-9 for row in rows)

    inside = [row for row in ends if (row["seed"], row["layer"]) in real]
    outside = [row for row in ends if (row["seed"], row["layer"]) not in real]
    holds = [Row("ends at consensus on the principal eigenvector, layers where it is real", hits(inside), len(inside))]
    general = [Row("the same, layers where the principal pair is complex", hits(outside), len(outside))]
    kinds = sorted({f"layer {row['layer']}: {row['kind']} {row['groups']}" for row in outside})
    evidence = f"{hits(inside)} of {len(inside)} ends where the eigenvalue is real; elsewhere {'; '.join(kinds)}"
    rows = (holds if inside else []) + (general if outside else [])
    truth = condition("in layers whose principal eigenvalue is real", holds) if inside else None
    return judge(evidence, rows, truth)


def judge_symmetry(summary: Measured) -> Judgement:
    """Decide ``separatrix-minilm-asymmetry``."""
    measured = [row["asymmetry"] for row in _own(summary.spectra)]
    rows = [
        Row("smallest asymmetry of a summed value matrix", min(measured), "above 0.5", agrees=min(measured) > 0.5),
    ]
    return judge(f"asymmetry from {min(measured):.3f} to {max(measured):.3f}; 0 is symmetric, 1 like noise", rows)


def judge_spectra(summary: Measured) -> Judgement:
    """Decide ``separatrix-minilm-spectra``."""
    rows = []
    for row in _own(summary.spectra):
        name, is_real = f"layer {row['layer']}", row["imaginary part"] == 0
        rows.append(Row(f"principal real part, {name}", row["real part"], PRINCIPAL[row["layer"]], 1e-3))
        expected = "real" if row["layer"] in REAL else "complex"
        agrees = is_real == (row["layer"] in REAL)
        rows.append(Row(f"principal eigenvalue, {name}", "real" if is_real else "complex", expected, agrees=agrees))
    return judge("principal eigenvalue real in layers 0, 2, 3, 4 and complex in layers 1, 5", rows)


def judge_heads(summary: Measured) -> Judgement:
    """Decide ``separatrix-minilm-heads``."""
    total = {name: sum(row[name] for row in summary.heads) for name in ("heads", "consensus", "bipartite")}
    last = sum(row["bipartite_last"] for row in summary.heads)
    rows = [
        Row("heads with a stable consensus", total["consensus"], 39),
        Row("heads with a stable balanced bipartite state", total["bipartite"], 13),
        Row("heads with one on the most negative eigenvector", last, 1),
    ]
    evidence = f"of {total['heads']} heads {total['consensus']} have a real positive principal eigenvalue"
    return judge(f"{evidence}, {total['bipartite']} a stable balanced split, {last} one on the last eigenvector", rows)


def _all(count: int, ends: Sequence[object]) -> bool | None:
    """Whether that many are all of them; nothing is known of none."""
    return count == len(ends) if ends else None


def judge_exceptions(summary: Measured) -> Judgement:
    """Decide ``separatrix-minilm-exceptions``."""
    ends = _own(summary.ends)
    turning = [row for row in ends if row["layer"] == COMPLEX[1]]
    apart = [row for row in ends if row["layer"] == COMPLEX[0]]
    cycles = sum(row["kind"] == "consensus cycle" for row in turning)
    split = sum("/" in row["groups"] for row in apart)
    rows = [
        Row("ends of layer 5 that rotate together", cycles, len(turning), agrees=_all(cycles, turning)),
        Row("ends of layer 1 in several groups", split, len(apart), agrees=_all(split, apart)),
    ]
    groups = ", ".join(row["groups"] for row in apart)
    return judge(f"layer 5: {cycles} of {len(turning)} ends are cycles; layer 1: groups {groups}", rows)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Spectra of all layers, and where each frozen layer ends."""
    from separatrix.report.figures.attention import frozen_ends, layer_spectra

    return {
        "spectra": layer_spectra(summary.spectra, title=f"Value matrices: {summary.source}"),
        "ends": frozen_ends(summary.ends, title=f"Frozen layers: {summary.source}"),
    }


_PLACE = "explanation/do-real-layers-collapse"

EXPERIMENT = Experiment(
    name="attention-frozen-layers",
    title="Attention layers of a trained model, each iterated to its end",
    document="altafini2025",
    place="conclusion",
    version=1,
    scales={
        "smoke": Settings(
            source="generated", n_layers=2, n_starts=2, n_tokens=8, dim=16, n_heads=2, t_max=60.0, n_control_starts=1
        ),
        "laptop": Settings(),
        "paper": Settings(n_starts=20, n_control_starts=5),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    draw=draw,
    data=(DATA,),
    claims=(
        Claim(
            id="separatrix-frozen-agreement",
            document="separatrix",
            place=_PLACE,
            statement="Tokens that agree under a frozen layer end exactly on the principal eigenvector of the summed "
            "value matrix, or rotate in its plane if the principal pair is complex, and stay there.",
            measures="alignment and stability of every end in one group, layers and controls",
            test="alignment 1 within 1e-9; the tangent spectrum has negative real parts",
            judge=judge_consensus,
            counterfeit=with_column("ends", "alignment", 0.9),
        ),
        Claim(
            id="separatrix-frozen-consensus",
            document="separatrix",
            place=_PLACE,
            statement="A trained attention layer, iterated, drives tokens to consensus on the principal eigenvector.",
            measures="ends of the six frozen layers of a sentence encoder from random tokens",
            test="every end is consensus with alignment 1 within 1e-9; restricted to real principal eigenvalues",
            needs=(
                groups("spectra", ("layer", "control"), *((layer, False) for layer in LAYERS)),
                groups("ends", ("layer", "control"), *((layer, False) for layer in LAYERS)),
            ),
            as_a_whole=("spectra",),
            judge=judge_conjecture,
            counterfeit=with_column("ends", "alignment", 0.9),
            scale="laptop",
        ),
        Claim(
            id="separatrix-minilm-asymmetry",
            document="separatrix",
            place=_PLACE,
            statement="The summed value matrices of a sentence encoder are far from the symmetric ones that "
            "altafini2025 assumes.",
            measures="norm of V - V' over sqrt(2) times that of V, six layers",
            test="above 0.5 in every layer (0 is symmetric, 1 like noise)",
            needs=(groups("spectra", ("layer", "control"), *((layer, False) for layer in LAYERS)),),
            judge=judge_symmetry,
            counterfeit=with_column("spectra", "asymmetry", 0.01),
            scale="laptop",
        ),
        Claim(
            id="separatrix-minilm-spectra",
            document="separatrix",
            place=_PLACE,
            statement="The principal eigenvalue of the summed value matrix is real in four of six layers of a "
            "sentence encoder.",
            measures="eigenvalues of W_O W_V",
            test="real parts to 1e-3; real or complex as stated",
            judge=judge_spectra,
            counterfeit=with_column("spectra", "imaginary part", 0.0),
            scale="laptop",
        ),
        Claim(
            id="separatrix-minilm-heads",
            document="separatrix",
            place=_PLACE,
            statement="39 of 72 heads have a stable consensus, 13 of them a stable balanced bipartite state, and 1 "
            "head has one on its most negative eigenvector.",
            measures="closed-form spectra of every head alone",
            test="exact counts",
            needs=(groups("heads", "layer", *LAYERS),),
            as_a_whole=("heads",),
            judge=judge_heads,
            counterfeit=with_column("heads", "bipartite", 0),
            scale="laptop",
        ),
        Claim(
            id="separatrix-minilm-exceptions",
            document="separatrix",
            place=_PLACE,
            statement="Layer 5 ends in a rotating consensus and layer 1 keeps several groups.",
            measures="ends of the two frozen layers with a complex principal pair",
            test="every end as stated",
            judge=judge_exceptions,
            counterfeit=with_column("ends", "kind", "consensus"),
            scale="laptop",
        ),
    ),
)
