from .layers import (
    draw_layer_spectrum as draw_layer_spectrum,
    energy_plot as energy_plot,
    frozen_ends as frozen_ends,
    layer_spectra as layer_spectra,
)
from .motion import (
    attention_frames as attention_frames,
    census_bars as census_bars,
    circle_trajectories as circle_trajectories,
    convergence_curves as convergence_curves,
    metastability_plot as metastability_plot,
    sphere_trajectories as sphere_trajectories,
)
from .phases import phase_plot as phase_plot
from .stability import (
    branch_plot as branch_plot,
    disagreements as disagreements,
    spectrum_plot as spectrum_plot,
    stable_counts as stable_counts,
    window_plot as window_plot,
)
