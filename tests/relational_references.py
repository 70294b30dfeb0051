"""Relational networks once more, problem by problem and step by step, from their descriptions; weights are borrowed.

Nothing here is batched, and no formula of the package is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def normalised(model: Any, rows: Tensor) -> Tensor:
    """Temporal context normalisation of one problem (T, 128)."""
    t = len(rows)
    mean = sum(rows[k] for k in range(t)) / t
    variance = sum((rows[k] - mean) ** 2 for k in range(t)) / (t - 1)
    return (
        torch.stack([(row - mean) / torch.sqrt(variance + 1e-8) for row in rows]) * model.norm.gain + model.norm.shift
    )


def apply(layer: Any, x: Tensor) -> Tensor:
    product = layer.weight @ x
    return product if layer.bias is None else product + layer.bias


def softmax(values: list[Tensor]) -> list[Tensor]:
    top = max(values)
    powers = [torch.exp(value - top) for value in values]
    return [power / sum(powers) for power in powers]


def lstm(cell: Any, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    h, c = state
    sums = cell.weight_ih @ x + cell.bias_ih + cell.weight_hh @ h + cell.bias_hh
    i, f, g, o = sums.chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def sides(model: Any, rows: Tensor) -> tuple[Tensor, Tensor]:
    if model.symmetric:
        return normalised(model, rows), normalised(model, rows)
    maps = (torch.stack([apply(m, row) for row in rows]) for m in (model.first_map, model.second_map))
    first, second = (normalised(model, mapped) for mapped in maps)
    return first, second


def causal_rows(model: Any, rows: Tensor) -> list[list[Tensor]]:
    first, second = sides(model, rows)
    return [
        softmax([torch.dot(first[i], second[j]) / model.temperature for j in range(i + 1)]) for i in range(len(rows))
    ]


def corelnet(model: Any, rows: Tensor) -> Tensor:
    read = [entry for row in causal_rows(model, rows) for entry in row]
    if model.sensory:
        read += list(sides(model, rows)[0].flatten())
    return apply(model.out, torch.relu(apply(model.hidden, torch.stack(read))))


def corelnet_t(model: Any, rows: Tensor) -> Tensor:
    relation = causal_rows(model, rows)
    tokens = [sum(weight * model.positions[j] for j, weight in enumerate(row)) for row in relation]
    if model.sensory:
        seen = sides(model, rows)[0]
        tokens = [torch.cat([token, seen[i]]) for i, token in enumerate(tokens)]
    asked = apply(model.ask, model.query)
    found = []
    for head in range(8):
        part = slice(64 * head, 64 * head + 64)
        scores = [torch.dot(asked[part], apply(model.key, token)[part]) / 8 for token in tokens]
        weights = softmax(scores)
        found.append(sum(w * apply(model.value, token)[part] for w, token in zip(weights, tokens, strict=True)))
    x = layer_norm(model.after_attention, model.query + apply(model.merge, torch.cat(found)))
    x = layer_norm(model.after_feed, x + apply(model.feed_out, torch.relu(apply(model.feed_in, x))))
    return apply(model.out, torch.relu(apply(model.hidden, x)))


def layer_norm(layer: Any, x: Tensor) -> Tensor:
    centred = x - x.sum() / len(x)
    return centred / torch.sqrt((centred**2).sum() / len(x) + 1e-5) * layer.weight + layer.bias


def esbn(model: Any, rows: Tensor) -> Tensor:
    stored, asked = sides(model, rows)
    t = len(rows)
    state = (torch.zeros(512), torch.zeros(512))
    read, seen = torch.zeros(257), torch.zeros(128)
    keys: list[Tensor] = []
    values: list[Tensor] = []
    logits = torch.zeros(())
    for step in range(t + 1):
        state = lstm(model.controller, torch.cat([read, seen]) if model.sensory else read, state)
        key, gate = torch.relu(apply(model.key, state[0])), torch.sigmoid(apply(model.gate, state[0]))
        logits = apply(model.out, state[0])
        if step == t:
            break
        if step:
            scores = [torch.dot(asked[step], value) for value in values]
            weights = softmax(scores)
            sure = [torch.sigmoid(model.confidence_gain * s + model.confidence_bias) for s in scores]
            read = gate * sum(w * torch.cat([k, c]) for w, k, c in zip(weights, keys, sure, strict=True))
        keys.append(key)
        values.append(stored[step])
        seen = stored[step]
    return logits


def plain_lstm(model: Any, rows: Tensor) -> Tensor:
    state = (torch.zeros(512), torch.zeros(512))
    for row in normalised(model, rows):
        state = lstm(model.cell, row, state)
    return apply(model.out, state[0])


def ntm(model: Any, rows: Tensor) -> Tensor:
    seen = [*normalised(model, rows), torch.zeros(128)]
    state = (torch.zeros(512), torch.zeros(512))
    memory = [row.clone() for row in model.memory]
    read = torch.zeros(256)
    addresses: dict[str, list[Tensor]] = {}
    for t, row in enumerate(seen):
        state = lstm(model.cell, torch.cat([row, read]), state)
        said = apply(model.heads, state[0])
        for name, start in (("read", 0), ("write", 262)):
            key, strength, gate, shift, sharpen = said[start : start + 262].split([256, 1, 1, 3, 1])
            if name == "read" and t == 0:
                continue
            key = torch.tanh(key)
            alike = [torch.dot(key, slot) / (key.norm() * slot.norm()) for slot in memory]
            weights = softmax([torch.log1p(torch.exp(strength)).squeeze() * a for a in alike])
            if name in addresses:
                g = torch.sigmoid(gate).squeeze()
                weights = [g * w + (1 - g) * before for w, before in zip(weights, addresses[name], strict=True)]
            moves = softmax(list(shift))
            weights = [
                sum(move * weights[(place - by) % 10] for move, by in zip(moves, (-1, 0, 1), strict=True))
                for place in range(10)
            ]
            power = torch.log1p(torch.exp(sharpen)).squeeze() + 1
            sharp = [w**power for w in weights]
            addresses[name] = [w / sum(sharp) for w in sharp]
            if name == "read":
                read = sum(w * slot for w, slot in zip(addresses["read"], memory, strict=True))  # type: ignore[assignment]
        erase, add = torch.sigmoid(said[524:780]), torch.tanh(said[780:])
        memory = [slot * (1 - w * erase) + w * add for slot, w in zip(memory, addresses["write"], strict=True)]
    return apply(model.out, state[0])


def mnm(model: Any, rows: Tensor) -> Tensor:
    memory = [layer.clone() for layer in model.start]
    state = (torch.zeros(128), torch.zeros(128))
    read = torch.zeros(128)

    def run(x: Tensor) -> list[Tensor]:
        one = torch.tanh(memory[0] @ x)
        two = torch.tanh(memory[1] @ one)
        return [one, two, memory[2] @ two]

    for row in [*normalised(model, rows), torch.zeros(128)]:
        state = lstm(model.cell, torch.cat([row, read]), state)
        how, key, value, asked = torch.tanh(apply(model.heads, state[0])).chunk(4)
        rate = torch.sigmoid(apply(model.rate, how))
        outs, targets = run(key), apply(model.targets, value).chunk(3)
        inputs = [key, outs[0], outs[1]]
        memory = [
            layer - torch.outer((out - target) * 2 / 128, into * rate)
            for layer, out, target, into in zip(memory, outs, targets, inputs, strict=True)
        ]
        read = run(asked)[-1]
    return apply(model.out, apply(model.read_out, torch.cat([state[0], read])))


def predinet(model: Any, rows: Tensor) -> Tensor:
    placed = [torch.cat([row, torch.tensor([float(k)])]) for k, row in enumerate(normalised(model, rows))]
    keys, whole = [apply(model.key, x) for x in placed], torch.cat(placed)
    queries = [apply(layer, whole) for layer in (model.first_query, model.second_query)]
    compared: list[Tensor] = []
    for head in range(32):
        picked = []
        for query in queries:
            weights = softmax([torch.dot(query[16 * head : 16 * head + 16], key) for key in keys])
            picked.append(sum(w * x for w, x in zip(weights, placed, strict=True)))
        gap = apply(model.direction, picked[0]) - apply(model.direction, picked[1])
        compared += [gap, picked[0][-1:], picked[1][-1:]]
    return apply(model.out, torch.relu(apply(model.read, torch.cat(compared))))


def relation_net(model: Any, rows: Tensor) -> Tensor:
    placed = [torch.cat([row, torch.tensor([float(k)])]) for k, row in enumerate(normalised(model, rows))]
    total = torch.zeros(256)
    for one, two in itertools.product(placed, placed):
        pair = torch.relu(apply(model.pair_in, torch.cat([one, two])))
        total = total + torch.relu(apply(model.pair_out, pair))
    return apply(model.out, torch.relu(apply(model.hidden, total)))


def transformer(model: Any, rows: Tensor) -> Tensor:
    x = []
    for k, row in enumerate(normalised(model, rows)):
        place = torch.zeros(128)
        for pair in range(64):
            rate = 10_000 ** (-2 * pair / 128)
            place[2 * pair], place[2 * pair + 1] = math.sin(k * rate), math.cos(k * rate)
        x.append(row + place)
    key_layer = model.query if model.key is None else model.key
    after = []
    for row in x:
        parts = []
        for head in range(8):
            part = slice(16 * head, 16 * head + 16)
            scores = [torch.dot(apply(model.query, row)[part], apply(key_layer, other)[part]) / 4 for other in x]
            weights = softmax(scores)
            parts.append(sum(w * apply(model.value, other)[part] for w, other in zip(weights, x, strict=True)))
        y = layer_norm(model.after_attention, row + apply(model.merge, torch.cat(parts)))
        fed = apply(model.feed.out, torch.relu(apply(model.feed.into, y)))
        after.append(layer_norm(model.last_norm, layer_norm(model.feed.norm, y + fed)))
    mean = sum(after) / len(after)
    return apply(model.out, torch.relu(apply(model.hidden, mean)))  # type: ignore[arg-type]


def corelnet_diff(model: Any, rows: Tensor) -> Tensor:
    scalar = [apply(model.project, row) for row in normalised(model, rows)]
    gaps = torch.cat([one - two for one, two in itertools.product(scalar, scalar)])
    return apply(model.out, torch.relu(apply(model.hidden, gaps)))


def corelnet_mix(model: Any, rows: Tensor) -> Tensor:
    asked = apply(model.ask, rows.mean(0))
    scores = [torch.dot(asked, signature) for signature in model.signatures]
    normal = normalised(model, rows)
    scalar = [apply(model.project, row) for row in normal]
    if scores[0] >= scores[1]:
        read = torch.cat([one - two for one, two in itertools.product(scalar, scalar)])
    else:
        read = torch.stack(
            [entry for one in normal for entry in softmax([torch.dot(one, two) / model.temperature for two in normal])]
        )
    return apply(model.out, torch.relu(apply(model.hidden, read)))


def abstractor(model: Any, rows: Tensor) -> Tensor:
    objects = normalised(model, rows)
    symbols = list(model.symbols)
    for layer in model.layers:
        new = []
        for i, one in enumerate(objects):
            parts = []
            for head in range(8):
                part = slice(16 * head, 16 * head + 16)
                ask = apply(layer.query, one)[part]
                weights = softmax([torch.dot(ask, apply(layer.key, other)[part]) / 4 for other in objects])
                parts.append(sum(w * apply(layer.value, s)[part] for w, s in zip(weights, symbols, strict=True)))
            y = layer_norm(layer.norm, symbols[i] + apply(layer.merge, torch.cat(parts)))
            fed = apply(layer.feed.out, torch.relu(apply(layer.feed.into, y)))
            new.append(layer_norm(layer.feed.norm, y + fed))
        symbols = new
    return apply(model.out, sum(symbols) / len(symbols))  # type: ignore[arg-type]


def relconv(model: Any, rows: Tensor) -> Tensor:
    first, second = sides(model, rows)
    left = [apply(model.left, row).reshape(16, 4) for row in first]
    right = [apply(model.left, row).reshape(16, 4) for row in second]
    found = []
    for group in itertools.combinations(range(len(rows)), min(3, len(rows))):
        alike = torch.cat([(left[i] * right[j]).sum(1) / 2 for i in group for j in group])
        found.append(torch.relu(model.filters @ alike))
    return apply(model.out, torch.relu(apply(model.read, torch.cat(found))))


REFERENCES: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "CoRelNet": corelnet,
    "CoRelNet-T": corelnet_t,
    "ESBN": esbn,
    "PrediNet": predinet,
    "Transformer": transformer,
    "RN": relation_net,
    "LSTM": plain_lstm,
    "NTM": ntm,
    "MNM": mnm,
    "CoRelNet-diff": corelnet_diff,
    "CoRelNet-mix": corelnet_mix,
    "Abstractor": abstractor,
    "RelConvNet": relconv,
}
