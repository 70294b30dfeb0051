from .attentive import GrowthWarning as GrowthWarning, Recall as Recall
from .backtracking import SAB as SAB, HDetachLSTM as HDetachLSTM
from .full import MemLSTM as MemLSTM, MemRNN as MemRNN
from .keeping import *
from .relevant import RelLSTM as RelLSTM, RelRNN as RelRNN
from .windowed import WindowedAttention as WindowedAttention
