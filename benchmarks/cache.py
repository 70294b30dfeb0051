"""Bounded caches at equal budget: tokens per CPU second and quality, against ``DynamicCache`` and a peer.

A small Llama with random weights reads given tokens one by one, as in generation (teacher forcing, batch 1). Times are
CPU time on one thread; caches are interleaved within a round and compared as ratios to ``DynamicCache`` (sdpa, the
default of transformers) of the same round; median, smallest and largest over the rounds. Quality of a random model is
no quality, so it is measured on a small transformer trained here for recall of values by their keys: accuracy by policy
at one budget.

The peer is ``DecodingPress`` of kvpress, which compresses every few tokens during decoding; it is measured if it is
installed and runs beside these versions. Its scores do not come from attention here (``KnormPress``), so that it need
not compute any.

Usage: python benchmarks/cache.py [--rounds 5] [--quick]; writes benchmarks/results/cache.json.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import pathlib
import platform
import statistics
import time
from typing import Any

import torch
import transformers
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from separatrix import nn, tasks
from separatrix.diagnose import cache_audit
from separatrix.training import TrainingSettings, train

BUDGET = 64
LENGTHS = (256, 1024)
POLICIES = ("window", "sinks", "screening", "heavy_hitter", "tova", "append_only")


def small_llama() -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=512, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=4096,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@torch.no_grad()
def seconds_of(model: Any, tokens: torch.Tensor, cache: Any, context: Any, last: int) -> float:
    """CPU time of the last tokens, one by one, after the others at once."""
    with context:
        model(input_ids=tokens[:, :-last], past_key_values=cache)
        began = time.process_time()
        for token in tokens[:, -last:].split(1, 1):
            model(input_ids=token, past_key_values=cache)
        return time.process_time() - began


def peer(model: Any) -> Any:
    """A context of kvpress."""
    kvpress = importlib.import_module("kvpress")
    return kvpress.DecodingPress(
        base_press=kvpress.KnormPress(), compression_interval=16, target_size=BUDGET, hidden_states_buffer_size=0
    )(model)


def why_no_peer(model: Any) -> str:
    """What keeps the peer from running beside these versions; nothing if it runs."""
    try:
        seconds_of(model, torch.zeros(1, 24, dtype=torch.int64), DynamicCache(), peer(model), 20)
    except Exception as error:
        return f"not measured: {type(error).__name__}: {error}"
    return ""


def speeds(rounds: int, lengths: tuple[int, ...], last: int) -> dict[str, Any]:
    model = small_llama()
    missing = why_no_peer(model)
    found: dict[str, Any] = {"kvpress DecodingPress": missing} if missing else {}
    for length in lengths:
        tokens = torch.randint(512, (1, length), generator=torch.Generator().manual_seed(1))
        times: dict[str, list[float]] = {}
        for _ in range(rounds):
            times.setdefault("DynamicCache", []).append(
                seconds_of(model, tokens, DynamicCache(), contextlib.nullcontext(), last)
            )
            for policy in POLICIES:
                cache = nn.RelevanceCache(BUDGET // 2, BUDGET // 2, policy)
                context = nn.relevance_attention(model, cache, check=False)
                times.setdefault(policy, []).append(seconds_of(model, tokens, cache, context, last))
            if not missing:
                times.setdefault("kvpress DecodingPress", []).append(
                    seconds_of(model, tokens, DynamicCache(), peer(model), last)
                )
        found[str(length)] = {name: summary(values, times["DynamicCache"], last) for name, values in times.items()}
    return found


def summary(values: list[float], base: list[float], last: int) -> dict[str, float]:
    ratios = [value / reference for value, reference in zip(values, base, strict=True)]
    return {
        "tokens per CPU second": round(last / statistics.median(values), 1),
        "time over DynamicCache": round(statistics.median(ratios), 3),
        "least": round(min(ratios), 3),
        "most": round(max(ratios), 3),
    }


def quality(n_steps: int) -> dict[str, float]:
    """Accuracy of recall by policy with 12 of 44 keys."""
    task = tasks.KeyValues(32, 4, 4, 8, 8, 8)
    model = nn.CausalTransformer(task.n_inputs, 64, 2, 4, 2)
    settings = TrainingSettings(n_steps=n_steps, lr=3e-3, schedule="cosine", warmup_steps=n_steps // 6, clip_norm=1.0)
    train(model, tasks.StreamedBatches(task, 32, 0), lambda m, b: task.loss(m(b.inputs).logits, b), settings)
    test = task.sample(100, generator=torch.Generator().manual_seed(2))
    makers = {policy: (lambda policy=policy: nn.BoundedCache(6, 6, policy)) for policy in POLICIES}
    audit = cache_audit(model.eval(), test.inputs, makers, scored=test.targets >= 0)
    return {"no bound": audit.unbounded_accuracy, **{row.name: row.accuracy for row in audit.rows}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short round; nothing is written")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.quick:
        print(json.dumps({"speed": speeds(1, (96,), 8), "recall": quality(5)}, indent=1))
        return
    record = {
        "machine": platform.machine(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "keys a head": BUDGET,
        "rounds": options.rounds,
        "speed by length": speeds(options.rounds, LENGTHS, 48),
        "recall at 12 of 44 keys": quality(600),
    }
    target = pathlib.Path(__file__).parent / "results" / "cache.json"
    target.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
