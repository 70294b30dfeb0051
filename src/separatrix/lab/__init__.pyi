from .cell import Cell as Cell
from .claim import (
    Claim as Claim,
)
from .claim import (
    Judgement as Judgement,
)
from .claim import (
    Row as Row,
)
from .claim import (
    Verdict as Verdict,
)
from .claim import (
    judge as judge,
)
from .experiment import SCALES as SCALES
from .experiment import Experiment as Experiment
from .experiment import Params as Params
from .record import Record as Record
