from __future__ import annotations

from separatrix.report.figures.recurrent.screening import draw_accuracies


def test_networks_asked_at_one_delay_stand_side_by_side() -> None:
    rows = [{"model": name, "delay": 20, "mean": 1.0, "low": 0.99, "high": 1.0} for name in ("RelRNN", "LSTM", "SAB")]
    axes = draw_accuracies(rows).axes[0]
    places = [float(container.lines[0].get_xdata()[0]) for container in axes.containers]  # type: ignore[attr-defined]
    assert len(set(places)) == 3
    assert all(abs(place - 20) < 0.6 for place in places)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["20"]
