from .base import (
    AbstractEngine as AbstractEngine,
    EngineError as EngineError,
    Finished as Finished,
    RunInterrupted as RunInterrupted,
)
from .computation import (
    ONE_THREAD as ONE_THREAD,
    compute_record as compute_record,
    counted_interrupts as counted_interrupts,
    explain_failure as explain_failure,
)
from .dask_engine import DaskEngine as DaskEngine
from .first_step import FirstStep as FirstStep, first_step as first_step, largest_cell as largest_cell
from .jobs import JobTable as JobTable, Lease as Lease
from .local import LocalEngine as LocalEngine, physical_cores as physical_cores
from .progress import RunProgress as RunProgress
