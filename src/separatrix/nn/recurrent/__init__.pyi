from .calling import AbstractSequenceCore as AbstractSequenceCore
from .comparators import (
    LRU as LRU,
    AntisymmetricRNN as AntisymmetricRNN,
    CoRNN as CoRNN,
    MinGRU as MinGRU,
)
from .core import AbstractRecurrent as AbstractRecurrent
from .explicit import (
    DrivenLinearRNN as DrivenLinearRNN,
    adding_solution as adding_solution,
    copy_solution as copy_solution,
)
from .free_rnn import IRNN as IRNN, FreeRNN as FreeRNN
from .goru import GORU as GORU
from .nonnormal_rnn import NonNormalRNN as NonNormalRNN
from .orthogonal_rnn import (
    EURNN as EURNN,
    SVDRNN as SVDRNN,
    URNN as URNN,
    ExpRNN as ExpRNN,
    HouseholderRNN as HouseholderRNN,
    OrthogonalRNN as OrthogonalRNN,
    ScoRNN as ScoRNN,
)
from .sequence_model import SequenceModel as SequenceModel, parameter_count as parameter_count
from .steps import *
