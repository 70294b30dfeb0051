from .style import (
    PALETTE as PALETTE,
    new_figure as new_figure,
    save as save,
    single_axes as single_axes,
    theme as theme,
)
