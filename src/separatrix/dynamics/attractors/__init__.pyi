from .censuses import (
    Census as Census,
    Contradiction as Contradiction,
    InstanceCensus as InstanceCensus,
    census as census,
    family_table as family_table,
)
from .classification import Tolerances as Tolerances, classify as classify
from .metastability import (
    Metastability as Metastability,
    Plateau as Plateau,
    metastability_record as metastability_record,
)
from .proportions import (
    equal_proportions_p as equal_proportions_p,
    unseen_mass as unseen_mass,
    wilson_interval as wilson_interval,
)
from .search import find_equilibria as find_equilibria, partitions as partitions
