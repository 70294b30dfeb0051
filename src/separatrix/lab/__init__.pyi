from .campaign import (
    ExperimentError as ExperimentError,
    RunReport as RunReport,
    best_report as best_report,
    report_from_store as report_from_store,
    run_experiments as run_experiments,
)
from .cell import Cell as Cell
from .claim import (
    Claim as Claim,
    Judgement as Judgement,
    Row as Row,
    Verdict as Verdict,
    judge as judge,
)
from .database import StoreWarning as StoreWarning
from .engine import (
    AbstractEngine as AbstractEngine,
    EngineError as EngineError,
    Finished as Finished,
    RunInterrupted as RunInterrupted,
)
from .experiment import SCALES as SCALES, Experiment as Experiment, Params as Params, load as load
from .jobs import JobTable as JobTable, Lease as Lease
from .ledger import LedgerEntry as LedgerEntry, ledger as ledger
from .local_engine import LocalEngine as LocalEngine, physical_cores as physical_cores
from .progress import RunProgress as RunProgress
from .provenance import code_fingerprint as code_fingerprint, machine as machine, provenance as provenance
from .publication import (
    Publication as Publication,
    publish as publish,
    read_publication as read_publication,
    read_publications as read_publications,
)
from .record import Record as Record
from .runs import (
    StoredRun as StoredRun,
    best_run as best_run,
    stored_runs as stored_runs,
    unfinished_runs as unfinished_runs,
)
from .store import Store as Store, default_folder as default_folder
