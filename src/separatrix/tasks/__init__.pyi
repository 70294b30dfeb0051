from .batches import (
    AbstractBatches as AbstractBatches,
    ContiguousBatches as ContiguousBatches,
    ShuffledBatches as ShuffledBatches,
)
from .environments import *
from .images import *
from .relational import *
from .semantic import LinearTask as LinearTask, semantic_task as semantic_task, white_regression as white_regression
from .sequences import *
from .store import *
from .text import *
