from .layout import (
    caption_of as caption_of,
    captioned as captioned,
    legend_outside as legend_outside,
    narrow as narrow,
    within as within,
)
from .lint import lint_figure as lint_figure
from .models import model_look as model_look
from .plots import drawable as drawable, plot as plot, plots as plots
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
    styled as styled,
    theme as theme,
    to_page_svg as to_page_svg,
    to_svg as to_svg,
)
