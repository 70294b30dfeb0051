from . import (
    deq_kernels as deq_kernels,
    free_probability as free_probability,
    linear_deq as linear_deq,
    nonlinear_deq as nonlinear_deq,
)
from .activations import ACTIVATIONS as ACTIVATIONS, Activation as Activation, find_activation as find_activation
from .deq_kernels import Kernels as Kernels, kernels as kernels
from .linear_deq import (
    divergence_exponent as divergence_exponent,
    length_variance as length_variance,
    mean_response as mean_response,
    resolvent_moment as resolvent_moment,
)
from .nonlinear_deq import MeanField as MeanField, mean_field as mean_field
