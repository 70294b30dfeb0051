from .convolution import (
    FreeProduct as FreeProduct,
    FreeSum as FreeSum,
    free_product as free_product,
    free_sum as free_sum,
)
from .edges import elliptic_radius as elliptic_radius, product_edge as product_edge, slopes_edge as slopes_edge
from .hermitisation import (
    annulus as annulus,
    elliptic_boundary as elliptic_boundary,
    hermitised_resolvent as hermitised_resolvent,
)
from .known import (
    Arcsine as Arcsine,
    Bernoulli as Bernoulli,
    MarchenkoPastur as MarchenkoPastur,
    Semicircle as Semicircle,
    TwoPoint as TwoPoint,
    UniformLaw as UniformLaw,
)
from .law import AbstractLaw as AbstractLaw
from .operator_valued import (
    iid_resolvent_density as iid_resolvent_density,
    iid_resolvent_moment_function as iid_resolvent_moment_function,
    semicircular_resolvent as semicircular_resolvent,
)
from .reflected import Reflected as Reflected, reflect as reflect
from .sampled import AtomsAndDensity as AtomsAndDensity, Discrete as Discrete
