from .campaign import (
    ExperimentError as ExperimentError,
    RunReport as RunReport,
    best_report as best_report,
    judgements_of as judgements_of,
    report_from_store as report_from_store,
    run_experiments as run_experiments,
)
from .engines import *
from .experiment import *
from .ledger import LedgerEntry as LedgerEntry, ledger as ledger, shipped_publications as shipped_publications
from .results import *
from .store import *
