from __future__ import annotations

from pathlib import Path

import pytest
import torch

from attention_models import bert_state
from separatrix import theory
from separatrix.diagnose import attention_layers, head_predictions, value_spectra
from separatrix.diagnose.attention.spectra import asymmetry


def test_asymmetry_is_zero_for_symmetric_one_for_noise_and_root_two_for_skew(generator: torch.Generator) -> None:
    g = torch.randn(200, 200, generator=generator, dtype=torch.float64)
    assert float(asymmetry(g + g.mT)) == pytest.approx(0, abs=1e-14)
    assert float(asymmetry(g)) == pytest.approx(1, abs=0.02)  # fluctuates like 1/d
    assert float(asymmetry(g - g.mT)) == pytest.approx(2**0.5)


@pytest.mark.parametrize("seed", range(4))
def test_predictions_of_a_head_are_those_of_its_whole_matrices(seed: int) -> None:
    layer = attention_layers(bert_state(9, seed=100 * seed), n_heads=3).layers[0]
    found = head_predictions(layer, n_tokens=6, token_norm=2.0)
    for head in range(3):
        value, coupling = layer.values[head], layer.couplings[head]
        eigenvalues = torch.linalg.eigvals(value)
        first = complex(eigenvalues[int(eigenvalues.real.argmax())])
        assert abs(complex(found.principal[head]).real - first.real) < 1e-12
        if abs(first.imag) < 1e-12 and first.real > 1e-9:
            assert bool(found.consensus[head]) == bool(theory.consensus_spectrum(value, 0, 6).stable)
            whole = theory.bipartite_spectrum(coupling, value, 0, 3, 3, 4.0)
            assert bool(found.bipartite[head]) == bool(whole.stable)
        else:
            assert not found.consensus[head]
            assert not found.bipartite[head]


def test_spectrum_of_a_layer_is_that_of_the_summed_value_matrix() -> None:
    layer = attention_layers(bert_state(8, seed=5), n_heads=2).layers[0]
    found = value_spectra(layer)
    eigenvalues = torch.linalg.eigvals(layer.value_sum)
    assert found.principal.real == pytest.approx(float(eigenvalues.real.max()))
    assert found.least_real == pytest.approx(float(eigenvalues.real.min()))
    assert found.is_real == (found.principal.imag == 0)
    assert found.gap > 0
    heads = [float(torch.linalg.eigvals(value).real.max()) for value in layer.values]
    assert found.head_principal.real.tolist() == pytest.approx(heads, abs=1e-12)


@pytest.mark.needs_data
def test_minilm_spectra_and_heads_have_their_known_numbers(data_dir: Path) -> None:
    layers = attention_layers(data_dir / "weights" / "minilm_l6_attention.safetensors", n_heads=12).layers
    spectra = [value_spectra(layer) for layer in layers]
    assert [s.is_real for s in spectra] == [True, False, True, True, True, False]
    assert [s.principal.real for s in spectra] == pytest.approx([1.238, 1.071, 1.655, 1.510, 1.115, 1.532], abs=1e-3)
    assert [s.least_real for s in spectra] == pytest.approx([-0.80, -1.94, -1.48, -1.91, -1.77, -0.99], abs=5e-3)
    assert all(0.9 < s.asymmetry < 0.99 for s in spectra)
    heads = [head_predictions(layer) for layer in layers]
    totals = [sum(int(getattr(h, name).sum()) for h in heads) for name in ("consensus", "bipartite", "bipartite_last")]
    assert totals == [39, 13, 1]
