from .kernels import (
    Kernels as Kernels,
    finite_width_tangent_kernel as finite_width_tangent_kernel,
    kernels as kernels,
    readout_gradient as readout_gradient,
)
from .linear import (
    divergence_exponent as divergence_exponent,
    existence_weight_var as existence_weight_var,
    length_variance as length_variance,
    linear_critical_weight_var as linear_critical_weight_var,
    mean_response as mean_response,
    output_variance as output_variance,
    resolvent_moment as resolvent_moment,
)
from .nonlinear import MeanField as MeanField, critical_weight_var as critical_weight_var, mean_field as mean_field
