from .cell import Cell as Cell
from .claim import (
    Claim as Claim,
    Judgement as Judgement,
    Row as Row,
    Verdict as Verdict,
    judge as judge,
)
from .experiment import SCALES as SCALES, Experiment as Experiment, Params as Params
from .record import Record as Record
