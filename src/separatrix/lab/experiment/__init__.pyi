from .cell import Cell as Cell
from .claim import (
    Claim as Claim,
    Counted as Counted,
    Crossed as Crossed,
    Judgement as Judgement,
    Needed as Needed,
    Row as Row,
    Spanned as Spanned,
    Truth as Truth,
    Verdict as Verdict,
    at_least as at_least,
    condition as condition,
    crossed as crossed,
    groups as groups,
    holds as holds,
    instead as instead,
    interval_row as interval_row,
    judge as judge,
    misprint as misprint,
    spans as spans,
)
from .counterfeit import (
    in_turn as in_turn,
    with_column as with_column,
    with_entry as with_entry,
    with_fields as with_fields,
    with_interval as with_interval,
    with_interval_at as with_interval_at,
)
from .definition import (
    Experiment as Experiment,
    Params as Params,
    Payload as Payload,
    load as load,
)
from .limits import Limits as Limits, usual_limits as usual_limits
from .provenance import code_fingerprint as code_fingerprint, machine as machine, provenance as provenance
from .record import Record as Record
from .rule import rule_digest as rule_digest
from .scales import SCALES as SCALES
from .scratch import scratch_folder as scratch_folder
from .summary import Summary as Summary, Table as Table
