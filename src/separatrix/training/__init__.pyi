from .best import BestState as BestState
from .checkpoint import (
    CheckpointWarning as CheckpointWarning,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from .interrupt import FinishStep as FinishStep
from .log import History as History
from .loop import TrainingRun as TrainingRun, train as train
from .members import Members as Members
from .optim import (
    clip_gradients as clip_gradients,
    make_optimiser as make_optimiser,
    warmup_cosine as warmup_cosine,
)
from .over_seeds import Spread as Spread, paired_difference as paired_difference, spread as spread
from .reinforcement import *
from .relational import *
from .settings import ParameterGroup as ParameterGroup, TrainingSettings as TrainingSettings
