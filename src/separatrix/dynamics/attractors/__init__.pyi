from .censuses import Contradiction as Contradiction, census as census
from .classification import classify as classify
from .counts import Census as Census, InstanceCensus as InstanceCensus, family_table as family_table
from .evidence import Tolerances as Tolerances
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
