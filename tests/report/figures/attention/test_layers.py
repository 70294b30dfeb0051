from __future__ import annotations

import types

import torch

from separatrix.report import energy_plot, frozen_ends, layer_spectra, plot


def test_complex_principal_pairs_are_open_circles() -> None:
    base = {"least real part": -1.0, "asymmetry": 0.9, "control": False}
    rows = [
        {**base, "layer": 0, "real part": 1.0, "imaginary part": 0.0},
        {**base, "layer": 1, "real part": 1.2, "imaginary part": 0.3},
    ]
    left = layer_spectra(rows, title="t").axes[0]
    faces = [line.get_markerfacecolor() for line in left.lines if line.get_marker() == "o"]
    assert faces[0] != "none"
    assert faces[1] == "none"


def test_groups_of_an_end_are_written_beside_it() -> None:
    rows = [
        {"layer": 0, "control": False, "kind": "consensus", "alignment": 1.0, "groups": "48"},
        {"layer": 1, "control": False, "kind": "clustering", "alignment": 0.1, "groups": "30/18"},
        {"layer": 1, "control": True, "kind": "consensus cycle", "alignment": 1.0, "groups": "48"},
    ]
    figure = frozen_ends(rows, title="t")
    assert [text.get_text() for text in figure.axes[0].texts] == ["30/18"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["consensus", "consensus cycle", "clustering", "weights drawn anew"]


def test_energy_has_a_panel_for_tokens_update_and_output() -> None:
    row = {"energy": 0.05, "low": 0.04, "high": 0.06, "chance": 0.02, "random high": 0.03, "rotated": 0.04}
    rows = [{**row, "what": what, "control": False} for what in ("tokens", "update", "output")]
    figure = energy_plot(rows, title="t")
    assert [axes.get_title() for axes in figure.axes] == ["tokens", "update", "output"]


def test_spectrum_of_a_layer_can_be_plotted() -> None:
    kind = type("LayerSpectrum", (types.SimpleNamespace,), {})
    result = kind(name="layer 3", principal=1 + 0.5j, head_principal=torch.tensor([1 + 0j, 0.5 + 0.2j]))
    axes = plot(result)
    assert "layer 3" in axes.get_title()
    assert len(axes.lines[0].get_xdata()) == 2
