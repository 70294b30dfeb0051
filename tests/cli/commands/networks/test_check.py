from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from command_line import run_here

ARCH = """
from torch import nn
def fine():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
def doubled():
    return nn.Sequential(*fine(), nn.Softmax(-1))
def refuses():
    raise RuntimeError("no\\nsuch thing")
number = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    (tmp_path / "my_models.py").write_text(ARCH)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    save_file(model.state_dict(), tmp_path / "w.safetensors")
    draw = numpy.random.default_rng(0)
    numpy.savez(tmp_path / "batch.npz", x=draw.normal(size=(32, 8)), target=draw.integers(0, 3, 32))
    return tmp_path


@pytest.fixture
def check(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """The command, called in a folder with weights, code and a batch."""
    monkeypatch.chdir(folder)

    def called(*words: str) -> tuple[int, str, str]:
        answer = run_here(capsys, monkeypatch, "check", *words)
        return answer.code, answer.out, answer.err

    return called


Check = Callable[..., tuple[int, str, str]]


def test_a_checkpoint_with_its_code_and_a_batch(folder: Path, check: Check) -> None:
    run = ("w.safetensors", "--arch", "my_models:fine", "--sample", "batch.npz", "--loss", "cross_entropy")
    code, out, _ = check(*run, "--html", "report.html")
    assert code == 0
    assert "no fault, no warning" in out
    assert "<svg" in (folder / "report.html").read_text()
    code, out, _ = check(*run[:2], "my_models:doubled", *run[3:], "--json")
    assert code == 2
    assert json.loads(out)["findings"][0]["id"] == "output_loss_mismatch"


def test_weights_alone(folder: Path, check: Check) -> None:
    code, out, _ = check("w.safetensors")
    assert code == 0
    assert "iid" in out
    save_file({"a": torch.full((3, 3), torch.nan)}, folder / "bad.safetensors")
    assert check("bad.safetensors")[0] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.safetensors",), "there is no file"),
        (("w.safetensors", "--arch", "my_models:fine"), "--sample is needed"),
        (("w.safetensors", "--arch", "nowhere:fine", "--sample", "batch.npz"), "cannot be imported"),
        (("w.safetensors", "--arch", "my_models", "--sample", "batch.npz"), "must be MODULE:FUNCTION"),
        (("w.safetensors", "--arch", "my_models:refuses", "--sample", "batch.npz"), "raises RuntimeError (no"),
        (("w.safetensors", "--arch", "my_models:number", "--sample", "batch.npz"), "it is a int"),
        ((".",), "no Hugging Face folder"),
    ],
)
def test_what_could_not_run_is_one_sentence_and_status_3(check: Check, words: tuple[str, ...], said: str) -> None:
    code, out, err = check(*words)
    assert (code, out) == (3, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.fixture
def bert(folder: Path) -> Path:
    """A tiny Hugging Face folder as ``save_pretrained`` writes it."""
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=3,
        max_position_embeddings=16,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.BertForSequenceClassification(config).save_pretrained(folder / "bert", safe_serialization=True)
    return folder / "bert"


def test_a_hugging_face_folder_is_run_on_tokens_that_are_said_to_be_made_up(bert: Path, check: Check) -> None:
    code, out, err = check(str(bert))
    assert code == 0
    assert "BertForSequenceClassification" in out
    assert "8 x 16 random tokens (seed 0)" in out + err


def test_a_hugging_face_folder_takes_a_sample_of_ones_own(bert: Path, check: Check) -> None:
    ids = numpy.random.default_rng(0).integers(0, 30, (6, 9))
    numpy.savez(bert.parent / "own.npz", input_ids=ids, labels=numpy.arange(6) % 3)
    code, out, _ = check(str(bert), "--sample", "own.npz", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["sample"]["loss"] == "own loss"
    assert found["sample"]["shapes"][0] == [6, 9]


def test_a_name_on_the_hub_is_asked_for_without_running_its_code(
    bert: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    asked: list[tuple[str, dict[str, object]]] = []
    config = transformers.AutoConfig.from_pretrained
    weights = transformers.BertForSequenceClassification.from_pretrained

    def hub(load: object, what: str) -> object:
        def called(name: str, **options: object) -> object:
            asked.append((what, {"name": name} | options))
            options["local_files_only"] = True
            return load(str(bert), **options)  # type: ignore[operator]

        return called

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", hub(config, "config"))
    monkeypatch.setattr(transformers.BertForSequenceClassification, "from_pretrained", hub(weights, "weights"))
    code, out, _ = check("hf:somebody/tiny")
    assert code == 0
    assert [what for what, _ in asked] == ["config", "weights"]
    assert all(options["name"] == "somebody/tiny" for _, options in asked)
    assert asked[0][1]["trust_remote_code"] is False
    assert asked[1][1]["use_safetensors"] is True
    assert "BertForSequenceClassification" in out


def test_a_name_that_the_hub_does_not_have_is_one_sentence(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers")

    def absent(*_: object, **__: object) -> object:
        raise OSError("no such repository")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", absent)
    code, _, err = check("hf:nobody/nothing")
    assert code == 3
    assert "no such repository" in err


@pytest.mark.parametrize("turned", [False, True])
def test_an_onnx_file_is_checked_alone_and_with_its_code(folder: Path, check: Check, turned: bool) -> None:
    onnx = pytest.importorskip("onnx")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    tensors, nodes, enters = [], [], "x"
    for k, layer in enumerate((model[0], model[2])):
        weight = layer.weight.detach().T if turned else layer.weight.detach()
        tensors += [onnx.numpy_helper.from_array(weight.numpy().copy(), f"val_{k}w"),
                    onnx.numpy_helper.from_array(layer.bias.detach().numpy(), f"val_{k}b")]  # fmt: skip
        nodes.append(
            onnx.helper.make_node("Gemm", [enters, f"val_{k}w", f"val_{k}b"], [f"h{k}"], transB=int(not turned))
        )
        nodes += [onnx.helper.make_node("Relu", [f"h{k}"], [f"r{k}"])] if k == 0 else []
        enters = f"r{k}"
    real = onnx.TensorProto.FLOAT
    ends = [onnx.helper.make_tensor_value_info(name, real, shape) for name, shape in (("x", [1, 8]), ("h1", [1, 3]))]
    graph = onnx.helper.make_graph(nodes, "mlp", ends[:1], ends[1:], tensors)
    onnx.save(onnx.helper.make_model(graph), folder / "w.onnx")
    code, out, _ = check("w.onnx")
    assert code == 0
    assert "initialisation" in out
    found = {}
    for file in ("w.onnx", "mine.safetensors"):
        save_file(model.state_dict(), folder / "mine.safetensors")
        code, out, _ = check(file, "--arch", "my_models:fine", "--sample", "batch.npz", "--json")
        found[file] = json.loads(out)["measures"]
    assert found["w.onnx"] == found["mine.safetensors"]
