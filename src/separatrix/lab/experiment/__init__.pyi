from .cell import Cell as Cell
from .claim import Claim as Claim, Judgement as Judgement, Row as Row, Verdict as Verdict, judge as judge
from .definition import (
    Experiment as Experiment,
    Params as Params,
    Payload as Payload,
    load as load,
)
from .provenance import code_fingerprint as code_fingerprint, machine as machine, provenance as provenance
from .record import Record as Record
from .scales import SCALES as SCALES
from .scratch import scratch_folder as scratch_folder
from .summary import Summary as Summary, Table as Table
