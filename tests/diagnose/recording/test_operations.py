from __future__ import annotations

import json
import subprocess
import sys

import pytest

CODE = """
import json, sys, torch, separatrix
from torch import nn

def said(wrap):
    torch.manual_seed(0)
    model = wrap(nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3)))
    found = separatrix.check(model, torch.randn(16, 5), loss="cross_entropy", target=torch.randint(3, (16,)))
    return [(one.id, one.severity) for one in found.findings]

plain = said(lambda model: model)
loaded = "torch._dynamo" in sys.modules
compiled = said(lambda model: torch.compile(model, backend="eager"))
print(json.dumps([loaded, "torch._dynamo" in sys.modules, plain, said(lambda model: model), compiled]))
"""


@pytest.mark.slow
def test_the_compiler_of_torch_is_not_loaded_for_an_examination_and_changes_none_where_it_is() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    before, after, plain, again, compiled = json.loads(done.stdout)
    assert (before, after) == (False, True)
    assert plain
    assert again == plain
    assert compiled == plain
