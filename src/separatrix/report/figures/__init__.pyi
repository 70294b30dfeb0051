from .attention import (
    disagreements as disagreements,
    spectrum_plot as spectrum_plot,
    stable_counts as stable_counts,
    window_plot as window_plot,
)
from .attention_layers import (
    draw_layer_spectrum as draw_layer_spectrum,
    energy_plot as energy_plot,
    frozen_ends as frozen_ends,
    layer_spectra as layer_spectra,
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
from .experiment import draw_experiment as draw_experiment
from .memory import (
    draw_memory_bounds as draw_memory_bounds,
    draw_memory_curves as draw_memory_curves,
    draw_memory_totals as draw_memory_totals,
    draw_transients as draw_transients,
)
from .plots import drawable as drawable, plot as plot, plots as plots
from .regime import draw_balance_profile as draw_balance_profile, draw_rich_lazy as draw_rich_lazy
from .style import (
    DIVERGING as DIVERGING,
    PALETTE as PALETTE,
    SEQUENTIAL as SEQUENTIAL,
    faint as faint,
    ink as ink,
    new_figure as new_figure,
    paper as paper,
    save as save,
    single_axes as single_axes,
    theme as theme,
    to_page_svg as to_page_svg,
    to_svg as to_svg,
)
