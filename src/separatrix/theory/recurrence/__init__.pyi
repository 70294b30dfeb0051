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
from .sparse_attention import (
    alignment_gradient as alignment_gradient,
    single_attention_gradient as single_attention_gradient,
    sparse_attention_bound as sparse_attention_bound,
)
from .uniform_attention import (
    uniform_attention_asymptote as uniform_attention_asymptote,
    uniform_attention_coefficients as uniform_attention_coefficients,
    uniform_attention_constant as uniform_attention_constant,
    uniform_attention_curve as uniform_attention_curve,
    uniform_attention_exponent as uniform_attention_exponent,
    uniform_attention_gradient as uniform_attention_gradient,
    uniform_attention_jacobian as uniform_attention_jacobian,
    uniform_attention_norm as uniform_attention_norm,
)
