"""Every option of every command with values nobody should give it; as a program, so that its memory can be limited.

``python wrong_words.py [SHARE]`` prints how many command lines were tried and which ended in anything but an answer or
one sentence. A new command is covered once it has its line in ``BASE``; a new option on the day it is written.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import signal
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import typer

import separatrix.lab.engines.local as local
from separatrix.cli import app as parsing, main as program
from separatrix.lab import Store
from short_experiments import SHORT, InlineEngine, run_inline

GIGABYTES, SECONDS = 6, 25
OWN = "short_experiments:short"

BASE: dict[str, tuple[str, ...]] = {
    "list": (),
    "run": (OWN, "--store", "new"),
    "resume": (OWN, "--store", "store"),
    "plan": (OWN, "--store", "store"),
    "sweep": (OWN, "--grid", "n_cells=1,2", "--store", "new"),
    "claims": (OWN, "--store", "store"),
    "show": (OWN, "--store", "store"),
    "report": (OWN, "--store", "store", "-o", "pages"),
    "publish": (OWN, "--scale", "smoke", "--store", "store", "-o", "published"),
    "verify": ("published/short.json", "--experiment", OWN, "--sample", "1"),
    "store export": ("table.csv", "--store", "store"),
    "store import": ("whole.zip", "--store", "new"),
    "store merge": ("store", "--store", "new"),
    "store verify": ("--store", "store"),
    "store gc": ("--store", "store"),
    "store rebuild": ("--store", "store"),
    "errata": (),
    "cite": ("kerg2022",),
    "version": (),
    "warm-up": (),
    "advise deq": ("--width", "16"),
    "attention count": ("--value", "value.npy", "--n-tokens", "3"),
    "attention spectrum": ("--value", "value.npy", "--n1", "2", "--n2", "1"),
    "attention classify": ("--value", "value.npy", "--tokens", "tokens.npy"),
    "attention census": ("--value", "value.npy", "--n-tokens", "3", "--n-starts", "2"),
    "attention sweep": ("--value", "value.npy", "--n-tokens", "3", "--n-betas", "2"),
    "attention phase": ("--value", "value.npy", "--n-tokens", "3", "--n-betas", "2", "--n-starts", "2"),
    "data list": (),
    "data show": ("mnist",),
    "data get": ("nothing",),
    "check": ("nothing.safetensors",),
    "relational list": (),
    "relational sample": ("identity_rules", "-o", "sheet.svg", "--rows", "1"),
    "relational explain": (OWN, "--store", "store"),
    "diagnose attention": ("nothing.safetensors",),
    "diagnose recurrent": ("nothing.safetensors",),
    "diagnose fixed-points": ("nothing.safetensors",),
}
VALUES = ("", " ", "-1", "0", "nan", "inf", "1e400", "1000000000", "10" * 40, "x", "x" * 5000, "a\0b", "é✓", ":",
          ":x", "x:", "../..", "[" * 20_000, "{}", "null", "0.5", "1,2", "=", "a=b=c", "..", "1..2", "\ud800", "--",
          "%s", "fails:x", "nowhere/x", "pipe", "device", "folder", "/dev/full", "/proc/x.csv", "huge.npy", "cube.npy",
          "bad.npy", "truncated.zip", "deep.json")  # fmt: skip


def make_things() -> None:
    """What command lines may lead to, in the present folder."""
    numpy.save("value.npy", numpy.diag([1.0, 0.5, 0.2]))
    numpy.save("tokens.npy", numpy.eye(3))
    numpy.save("cube.npy", numpy.ones((2, 2, 2)))
    numpy.save("bad.npy", numpy.array([[numpy.nan, 1], [1, numpy.inf]]))
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }".ljust(117) + "\n"
    Path("huge.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    Path("deep.json").write_text("[" * 100_000)
    Path("truncated.zip").write_bytes(b"PK\x03\x04 cut")
    Path("folder").mkdir()
    Path("fails.py").write_text("raise SystemExit('at import')")
    os.mkfifo("pipe")
    Path("device").symlink_to("/dev/zero")
    with Store("store") as store:
        run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    for words in (("publish", *BASE["publish"]), ("store", "export", "whole.zip", "--store", "store")):
        assert call(list(words))[0] == 0


def commands(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from commands(command.get_command(None, name), f"{path} {name}".strip())
    else:
        yield path, command


def without_a_line(found: dict[str, Any]) -> list[str]:
    """Commands that ``BASE`` does not know, and those that it alone knows."""
    return sorted(set(found) ^ set(BASE))


def all_commands() -> dict[str, Any]:
    return dict(commands(typer.main.get_command(parsing.app)))


def lines(name: str, command: Any) -> Iterator[list[str]]:
    """The usual words with one of them replaced, or one option added, in every wrong way."""
    base, words = BASE[name], name.split()
    for place, word in enumerate(base):
        if not word.startswith("-"):
            for value in VALUES:
                yield [*words, *base[:place], value, *base[place + 1 :]]
    for parameter in command.params:
        option = parameter.opts[0]
        if option.startswith("--") and option not in base and not getattr(parameter, "is_flag", False):
            for value in VALUES:
                yield [*words, *base, option, value]


class Late(BaseException):
    """It took too long."""


def _late(number: int, frame: Any) -> None:
    raise Late


def call(words: list[str]) -> tuple[int, str]:
    sys.argv = ["separatrix", *words]
    out, err = io.StringIO(), io.StringIO()
    code = 0
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            program.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except Late:
        return 99, f"longer than {SECONDS} s"
    except BaseException as error:
        return 98, f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return code, err.getvalue()


def is_raw(code: int, err: str) -> bool:
    return code not in (0, 1, 2, 3) or "Traceback" in err or (code == 2 and not err.strip())


def main(share: float) -> None:
    signal.signal(signal.SIGALRM, _late)
    sys.path.insert(0, os.getcwd())
    local.LocalEngine = lambda *args, **options: InlineEngine()  # type: ignore[misc,assignment]
    os.environ.update(XDG_DATA_HOME=f"{os.getcwd()}/data-home", COLUMNS="1000")
    make_things()
    import torch  # noqa: F401, its memory is not what is limited

    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + (GIGABYTES << 30), resource.RLIM_INFINITY))
    found = all_commands()
    answer: dict[str, Any] = {"calls": 0, "raw": [], "without a line": without_a_line(found)}
    for name, command in found.items():
        if name not in BASE:
            continue
        for words in lines(name, command):
            chosen = random.Random(zlib.crc32(repr(words).encode(errors="replace"))).random()
            if chosen >= share:
                continue
            code, err = call(words)
            answer["calls"] += 1
            if is_raw(code, err):
                answer["raw"].append([" ".join(word[:40] for word in words), code, err[-300:]])
                print(answer["raw"][-1], file=sys.stderr, flush=True)
    print(json.dumps(answer))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
