from .fisher_memory import (
    amplification_bound as amplification_bound,
    delay_line_memory as delay_line_memory,
    delay_line_total as delay_line_total,
    delay_line_total_leading as delay_line_total_leading,
    feedback_line_radius as feedback_line_radius,
    memory_ceiling as memory_ceiling,
    normal_memory as normal_memory,
    normal_memory_matrix as normal_memory_matrix,
    normal_memory_total as normal_memory_total,
    sharp_triangular_memory_bound as sharp_triangular_memory_bound,
    triangular_memory_bound as triangular_memory_bound,
)
from .powers import unit_triangular_power as unit_triangular_power
