from .campaign import (
    ExperimentError as ExperimentError,
    RunReport as RunReport,
    best_report as best_report,
    report_from_store as report_from_store,
    run_experiments as run_experiments,
)
from .engines import *
from .experiment import *
from .ledger import LedgerEntry as LedgerEntry, ledger as ledger
from .publication import (
    Publication as Publication,
    publish as publish,
    read_publication as read_publication,
    read_publications as read_publications,
)
from .store import *
