from .attention import (
    disagreements as disagreements,
    spectrum_plot as spectrum_plot,
    stable_counts as stable_counts,
    window_plot as window_plot,
)
from .attention_motion import (
    attention_frames as attention_frames,
    branch_plot as branch_plot,
    census_bars as census_bars,
    circle_trajectories as circle_trajectories,
    convergence_curves as convergence_curves,
    metastability_plot as metastability_plot,
    sphere_trajectories as sphere_trajectories,
)
from .style import (
    PALETTE as PALETTE,
    new_figure as new_figure,
    save as save,
    single_axes as single_axes,
    theme as theme,
)
