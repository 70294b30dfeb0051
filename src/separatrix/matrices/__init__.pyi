from .attention_instances import (
    AttentionInstance as AttentionInstance,
    attention_instance as attention_instance,
)
from .robust_eigenvalues import robust_eigenvalues as robust_eigenvalues
from .spectral_distance import spectral_distance as spectral_distance
