from .attention import (
    disagreements as disagreements,
    spectrum_plot as spectrum_plot,
    stable_counts as stable_counts,
    window_plot as window_plot,
)
from .style import (
    PALETTE as PALETTE,
    new_figure as new_figure,
    save as save,
    single_axes as single_axes,
    theme as theme,
)
