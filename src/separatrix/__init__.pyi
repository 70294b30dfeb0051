from . import (
    advise as advise,
    core as core,
    diagnose as diagnose,
    dynamics as dynamics,
    experiments as experiments,
    lab as lab,
    matrices as matrices,
    nn as nn,
    report as report,
    sources as sources,
    tasks as tasks,
    theory as theory,
    training as training,
)
from .diagnose import check as check
from .report import plot as plot

__version__: str
