"""Measures ``separatrix.check``.

    python benchmarks/check.py halves            found and accused on both halves of the seeds, published rules beside
    python benchmarks/check.py choose            ranges of healthy models on the choosing half, into thresholds.toml
    python benchmarks/check.py scale [--layers]  a transformer of 124 M parameters: seconds, memory, no false alarm
    python benchmarks/check.py evidence          what advice brought, from results/check-advice.json into evidence.toml
    python benchmarks/check.py watch             what watch() adds to a training step

Results go to benchmarks/results/check_*.json.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import separatrix  # noqa: E402
from check_recipes import scores as bench  # noqa: E402

THRESHOLDS = Path(separatrix.__file__).parent / "diagnose" / "findings" / "thresholds.toml"


def halves() -> None:
    answer: dict[str, Any] = {"recipes": len(bench.RECIPES)}
    for name, seeds in (("choosing", bench.CHOOSING), ("testing", bench.TESTING)):
        found = bench.scores(seeds)
        answer[name] = {
            "seeds": list(seeds),
            "summary": bench.summary(found),
            "table": bench.table(found),
            "missed": [[one.recipe, one.seed, list(one.accused)] for one in found if one.fault and not one.found],
            "accused": [[one.recipe, one.seed, list(one.accused)] for one in found if not one.fault and one.accused],
        }
        print(name, answer[name]["summary"], answer[name]["missed"], answer[name]["accused"], flush=True)
    write("check_halves", answer)


def choose() -> None:
    """Write the ranges of the choosing half behind the thresholds, which are set by hand."""
    ranges = bench.ranges(bench.scores(bench.CHOOSING, [n for n, r in bench.RECIPES.items() if r.fault is None]))
    lines = [
        f"{name} = {{ n = {n}, min = {low:.4g}, max = {high:.4g} }}" for name, (low, high, n) in ranges.items()
        if name not in ("loss_classes", "head_rms") and not name.startswith("precision_")
    ]  # fmt: skip
    text = re.sub(r"\n\[reference\]\n.*", "", THRESHOLDS.read_text(), flags=re.DOTALL).rstrip("\n")
    THRESHOLDS.write_text(text + "\n\n[reference]\n" + "\n".join(lines) + "\n")


def evidence() -> None:
    """What the paired experiments published, for the advice to carry."""
    from separatrix.diagnose.findings.evidence import FILE, as_toml
    from separatrix.experiments.ours.check_advice import TABLE

    published = json.loads((HERE.parent / "results" / "check-advice.json").read_text())
    FILE.write_text(as_toml(published["summary"]["tables"][TABLE], published["version"]))


class Block(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.n1, self.n2, self.heads = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width), heads
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(torch.nn.functional.gelu(self.up(self.n2(x))))


class Language(torch.nn.Module):
    """The size and start of GPT-2 small: 124 M parameters, N(0, 0.02), residual projections / sqrt(2 layers)."""

    def __init__(self, layers: int = 12, width: int = 768, vocabulary: int = 50257) -> None:
        super().__init__()
        self.table, self.places = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(1024, width)
        self.blocks = torch.nn.ModuleList(Block(width, 12) for _ in range(layers))
        self.last = torch.nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Embedding):
                torch.nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, torch.nn.Linear):
                torch.nn.init.zeros_(module.bias)
        for block in self.blocks:
            for layer in (block.out, block.down):
                torch.nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.table(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.last(h) @ self.table.weight.T


def scale(layers: int, budget: float) -> None:
    torch.manual_seed(0)
    model = Language(layers)
    x = torch.randint(0, 50257, (2, 129))
    began, cpu = time.perf_counter(), time.process_time()
    found = separatrix.check(
        model, x[:, :-1], loss="cross_entropy", target=x[:, 1:], budget_seconds=budget,
        optimizer=torch.optim.AdamW(model.parameters(), lr=3e-4),
    )  # fmt: skip
    answer = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "threads": torch.get_num_threads(),
        "budget": budget,
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "accused": [finding.id for finding in found.findings if finding.severity in ("warning", "fault")],
        "skipped": [repr(skip) for skip in found.skipped],
        "costs": {finding.id: round(finding.cost_seconds, 2) for finding in found.findings},
    }
    print(found)
    print(json.dumps(answer, indent=1))
    write(f"check_scale_{layers}_{budget:g}", answer)


VISITS, BLOCK = 10, 5


def watch() -> None:
    """CPU time of training steps with and without watch(), interleaved in blocks."""
    torch.manual_seed(0)
    model = Language(4, 192, 2000)
    x = torch.randint(0, 2000, (4, 65))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def steps(count: int, watcher: Any = None) -> float:
        began = time.process_time()
        for _ in range(count):
            optimizer.zero_grad()
            logits = model(x[:, :-1])
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())
            loss.backward()
            if watcher is not None:
                watcher.note(loss)
            optimizer.step()
        return (time.process_time() - began) / count

    steps(3)
    watcher = separatrix.diagnose.watch(model, optimizer)
    while len(watcher.visits) < 3:  # tunes itself; the first two are made before anything is known
        steps(1, watcher)
    plain, watched, ratios = [], [], []
    for _ in range(VISITS):  # from visit to visit, short blocks in turn
        before, first = len(watcher.visits), len(plain)
        while len(watcher.visits) == before:
            watcher.pause()
            plain.append(steps(BLOCK))
            watcher.resume()
            watched.append(steps(BLOCK, watcher))
        ratios.append(sum(watched[first:]) / sum(plain[first:]))
    watcher.close()
    answer = {
        "every": watcher.every,
        "visits": VISITS,
        "steps": BLOCK * len(watched),
        "plain_seconds": sum(plain) / len(plain),
        "watched_seconds": sum(watched) / len(watched),
        "ratio": sum(watched) / sum(plain),
        "standard_error": statistics.stdev(ratios) / math.sqrt(len(ratios)),
        "ratios": ratios,
        "own_account": watcher.share,
        "visit_in_steps": statistics.median(visit.seconds for visit in watcher.visits[1:]) * len(plain) / sum(plain),
    }
    print(json.dumps(answer, indent=1))
    write("check_watch", answer)


def write(name: str, answer: dict[str, Any]) -> None:
    (HERE / "results" / f"{name}.json").write_text(json.dumps(answer, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("halves", "choose", "scale", "watch", "evidence"))
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--budget", type=float, default=240.0)
    options = parser.parse_args()
    if options.what == "scale":
        scale(options.layers, options.budget)
    else:
        {"halves": halves, "choose": choose, "watch": watch, "evidence": evidence}[options.what]()
