from .regime import (
    draw_balance_profile as draw_balance_profile,
    draw_rich_lazy as draw_rich_lazy,
)
from .style import (
    PALETTE as PALETTE,
    new_figure as new_figure,
    save as save,
    single_axes as single_axes,
    theme as theme,
)
