from .memory import (
    draw_memory_bounds as draw_memory_bounds,
    draw_memory_curves as draw_memory_curves,
    draw_memory_totals as draw_memory_totals,
    draw_transients as draw_transients,
)
