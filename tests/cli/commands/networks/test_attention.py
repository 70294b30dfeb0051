from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy
import pytest
import torch
from safetensors.torch import save_file

from command_line import run_here


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    numpy.save(tmp_path / "value.npy", numpy.diag([3.0, 1.0, -4.0]))
    numpy.save(tmp_path / "coupling.npy", numpy.diag([0.9, 0.2, -1.1]))
    numpy.save(tmp_path / "query.npy", numpy.eye(3))
    tensors = {
        "head.value": torch.diag(torch.tensor([3.0, 1.0, -4.0])),
        "head.key": torch.diag(torch.tensor([0.9, 0.2, -1.1])),
    }
    save_file(tensors, tmp_path / "head.safetensors")
    rng = numpy.random.default_rng(0)
    tokens = rng.normal(size=(2, 6, 3))
    numpy.save(tmp_path / "tokens.npy", tokens / numpy.linalg.norm(tokens, axis=-1, keepdims=True))
    return tmp_path


Call: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    def invoke(folder: Path, *arguments: str) -> tuple[int, str, str]:
        here = [part.replace("@", f"{folder}/") for part in arguments]
        answer = run_here(capsys, monkeypatch, "attention", *here)
        return answer.code, answer.out, answer.err

    return invoke


def test_count_prints_exact_integers(folder: Path, call: Call) -> None:
    code, out, _ = call(folder, "count", "--coupling", "@coupling.npy", "--value", "@value.npy", "--n-tokens", "10")
    assert code == 0
    assert "stable points: 1676" in out
    assert "on v_1: 1004" in out
    assert "stable n_1 on v_3: 4 to 6" in out


def test_count_speaks_json_and_reads_safetensors(folder: Path, call: Call) -> None:
    code, out, _ = call(
        folder, "count", "--query", "@query.npy", "--key", "@head.safetensors:head.key",
        "--value", "@head.safetensors:head.value", "--n-tokens", "10", "--json",
    )  # fmt: skip
    found = json.loads(out)
    assert code == 0
    assert found["per_eigenvector"] == [1004, 0, 672]
    assert found["total"] == 1676


def test_count_of_a_million_tokens_and_of_causal_order(folder: Path, call: Call) -> None:
    where = ["--coupling", "@coupling.npy", "--value", "@value.npy"]
    code, out, _ = call(folder, "count", *where, "--n-tokens", "1000000", "--json")
    assert code == 0
    assert json.loads(out)["windows"][0] == [[199851, 800149]]
    code, out, _ = call(folder, "count", *where, "--n-tokens", "8", "--causal")
    assert code == 0
    assert out.startswith("stable points: ")


def test_spectrum_says_whether_the_state_is_stable(folder: Path, call: Call) -> None:
    where = ["spectrum", "--coupling", "@coupling.npy", "--value", "@value.npy"]
    code, out, _ = call(folder, *where, "--n1", "6", "--n2", "4", "--eigenvector", "1")
    assert code == 0
    assert "bipartite on v_1, sizes 6 and 4: stable" in out
    code, out, _ = call(folder, *where, "--n1", "10", "--eigenvector", "2", "--json")
    found = json.loads(out)
    assert (found["kind"], found["stable"]) == ("consensus", False)
    assert sum(len(block["eigenvalues"]) * block["multiplicity"] for block in found["blocks"]) == 20


def test_classify_and_census_follow_the_flow(folder: Path, call: Call) -> None:
    where = ["--coupling", "@coupling.npy", "--value", "@value.npy"]
    code, out, _ = call(folder, "classify", *where, "--tokens", "@tokens.npy", "--json")
    states = json.loads(out)["states"]
    assert code == 0
    assert len(states) == 2
    assert all(state["stable"] for state in states)
    code, out, _ = call(folder, "census", *where, "--n-tokens", "6", "--n-starts", "4", "--json")
    found = json.loads(out)
    assert code == 0
    assert sum(family["count"] for family in found["families"].values()) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["count", "--value", "@value.npy"], "give either --coupling, or both --query and --key"),
        (["count", "--value", "@value.npy", "--query", "@query.npy"], "give either --coupling"),
        (["count", "--value", "@none.npy", "--coupling", "@coupling.npy"], "--value: there is no file"),
        (["count", "--value", "@head.safetensors", "--coupling", "@coupling.npy"], "holds 2 tensors; name one"),
        (["count", "--value", "@head.safetensors:head.valu", "--coupling", "@coupling.npy"], "mean 'head.value'"),
        (["count", "--value", "@tokens.npy", "--coupling", "@coupling.npy"], "value must be a square matrix"),
        (["count", "--value", "@value.npy", "--coupling", "@coupling.npy", "--n-tokens", "0"], "at least 1; got 0"),
        (["count", "--value", "@value.npy", "--coupling", "@coupling.npy", "--beta", "-1"], "beta must be"),
        (
            ["spectrum", "--value", "@value.npy", "--coupling", "@coupling.npy", "--n1", "3", "--eigenvector", "4"],
            "from 1 to 3; got 4",
        ),
        (["count", "--value", "@bad.npy", "--coupling", "@coupling.npy"], "is not a .npy file of plain numbers"),
        (["count", "--value", "@value.txt", "--coupling", "@coupling.npy"], "comes from FILE.npy or FILE.safetensors"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_exit_code_two(
    folder: Path, arguments: list[str], message: str, call: Call
) -> None:
    (folder / "bad.npy").write_bytes(b"not an array")
    (folder / "value.txt").write_text("1 0\n0 1\n")
    code, _, errors = call(folder, *arguments)
    assert code == 2
    assert message in errors
    assert len(errors.strip().splitlines()) == 1


def test_pickled_arrays_are_refused(folder: Path, call: Call) -> None:
    numpy.save(folder / "pickle.npy", numpy.array([{"a": 1}], dtype=object), allow_pickle=True)
    code, _, errors = call(folder, "count", "--value", "@pickle.npy", "--coupling", "@coupling.npy")
    assert code == 2
    assert "plain numbers" in errors


@pytest.mark.parametrize("causal", [[], ["--causal"]])
def test_count_says_that_consensus_rotates_instead_of_a_bare_zero(folder: Path, call: Call, causal: list[str]) -> None:
    numpy.save(folder / "rotating.npy", numpy.array([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]]))
    where = ["count", "--coupling", "@coupling.npy", "--value", "@rotating.npy", "--n-tokens", "6", *causal]
    code, out, _ = call(folder, *where)
    assert code == 0
    assert "stable points: 0" in out
    assert "tokens that agree rotate with period 3.142" in out
    code, out, _ = call(folder, *where, "--json")
    assert "rotate" in json.loads(out)["warning"]


def test_census_decides_multistability_by_the_closed_form_too(folder: Path, call: Call) -> None:
    numpy.save(folder / "hidden.npy", numpy.array([[-0.12, -2.46, -2.81], [-0.14, -0.92, 2.35], [0.18, -1.0, -0.68]]))
    numpy.save(folder / "pulls.npy", numpy.array([[0.67, -1.19, 0.68], [-1.19, 1.41, 0.23], [0.68, 0.23, -1.37]]))
    where = ["census", "--coupling", "@hidden.npy", "--value", "@pulls.npy", "--n-tokens", "10", "--n-starts", "6"]
    code, out, _ = call(folder, *where, "--json")
    found = json.loads(out)
    assert code == 0
    assert not found["reached_several"]
    assert found["multistable"]
    assert "closed form counts" in found["multistable_reason"]
    code, out, _ = call(folder, *where)
    assert "\nmultistable: the closed form counts" in out


@pytest.mark.slow
def test_sweep_and_phase_speak_in_tables_and_json_and_draw(folder: Path, call: Call) -> None:
    where = ["--coupling", "@coupling.npy", "--value", "@value.npy", "--n-tokens", "10", "--betas", "0.2", "1.4"]
    code, out, err = call(folder, "sweep", *where, "--n-betas", "7", "--no-clusterings", "--output", "@sweep.svg")
    assert code == 0
    assert "pair on v1" in out
    assert "0.3851" in out
    assert "drew" in err
    assert (folder / "sweep.svg").read_text().startswith("<?xml")
    code, out, _ = call(folder, "sweep", *where, "--n-betas", "3", "--no-clusterings", "--json")
    found = json.loads(out)
    assert [row["state"] for row in found["events"]] == ["pair on v1", "pair on v3"]
    code, out, _ = call(folder, "phase", *where, "--n-betas", "4", "--n-starts", "3", "--output", "@phase.png")
    assert code == 0
    assert "pairs on v_1: stable from beta = 0.385082 on" in out
    assert (folder / "phase.png").stat().st_size > 1000
    code, out, _ = call(folder, "phase", *where, "--n-betas", "4", "--json")
    found = json.loads(out)
    assert found["critical"]["v_3"] == pytest.approx(0.884505, abs=1e-6)
    assert len(found["table"]) == 4
    code, _, errors = call(folder, "phase", *where[:-2], "1.0", "0.5")
    assert code == 2
    assert "--betas must be two increasing numbers" in errors
