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
from .planning import Estimate as Estimate, RunPlan as RunPlan, plan_run as plan_run
from .results import *
from .store import *
from .sweeping import (
    Span as Span,
    Sweep as Sweep,
    WithinBudget as WithinBudget,
    sweep_points as sweep_points,
    sweep_requests as sweep_requests,
    swept as swept,
)
