"""An agent with memory trained in a small environment, and what it earns there and in a larger one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from separatrix.core.names import choose
from separatrix.lab import Cell, Payload

CORRIDORS = {"Corridor-3": 3, "Corridor-9": 9}
"""Environments of our own, which need nothing installed."""
PAIRS = {
    "Corridor": ("Corridor-3", "Corridor-9"),
    "RedBlueDoors": ("RedBlueDoors-6x6", "RedBlueDoors-8x8"),
    "GoToObject": ("GoToObject-6x6-N2", "GoToObject-8x8-N2"),
    "Memory": ("MemoryS7", "MemoryS13"),
    "GoToDoor": ("GoToDoor-5x5", "GoToDoor-8x8"),
    "Fetch": ("Fetch-5x5-N2", "Fetch-8x8-N3"),
    "DoorKey": ("DoorKey-5x5", "DoorKey-16x16"),
}
"""Where an agent learns, and where it is tried afterwards."""


def environment(name: str) -> Callable[[], Any]:
    """Gives new environments of a name."""
    from separatrix import tasks

    if name in CORRIDORS:
        return lambda: tasks.RecallCorridor(CORRIDORS[name])
    return lambda: tasks.make_minigrid(name)


def build_agent(args: Any, seed: int) -> Any:
    """Reader, LSTM with memory, and heads, as wide as the environment wants them."""
    import torch

    from separatrix import nn, tasks, training
    from separatrix.core import spawn, stream_seed

    name = PAIRS[choose("pair", args["pair"], PAIRS)][0]
    n_actions = environment(name)().action_space.n
    own = name in CORRIDORS
    encoder: Any = torch.nn.Identity()
    if not own:
        encoder = training.GridEncoder(tasks.GRID_SHAPE, len(tasks.MISSION_WORDS), seed)
    width, size = 4 if own else encoder.output_size, args["n_hidden"]
    generator = spawn(seed, "kergB", "weights")
    places = (args["n_buffer"], args["n_relevant"])
    cores = {
        "RelLSTM": lambda: nn.RelLSTM(width, size, *places, carry_memory=True, generator=generator),
        "MemLSTM": lambda: nn.MemLSTM(width, size, carry_memory=True, generator=generator),
    }
    core = cores[choose("model", args["model"], cores)]()
    return training.Agent(encoder, core, n_actions, size, stream_seed(seed, "kergB", "heads") % 2**31)


def run_grid(cell: Cell) -> Payload:
    """Learn, then act in fresh episodes of both environments."""
    from separatrix import training

    args, (learned, tried) = cell.args, PAIRS[cell.args["pair"]]
    agent = build_agent(args, cell.seed)
    names = ("n_frames", "n_environments", "n_steps", "longest", "batch_frames", "lr")
    settings = training.PpoSettings(**{name: args[name] for name in names}, seed=cell.seed)
    run = training.train_agent(agent, environment(learned), settings)
    shown = [row for row in run.history.records if row["reward"] is not None]
    found: Payload = {
        "ending": run.ending,
        "n_frames": run.n_frames,
        "curve": {"frames": [row["step"] for row in shown], "reward": [row["reward"] for row in shown]},
    }
    for part, name in (("train", learned), ("test", tried)):
        found[part] = training.play(agent, environment(name), args["n_episodes"], seed=cell.seed).rewards.tolist()
    return found
