from .base import (
    AbstractEngine as AbstractEngine,
    EngineError as EngineError,
    Finished as Finished,
    RunInterrupted as RunInterrupted,
)
from .jobs import JobTable as JobTable, Lease as Lease
from .local import LocalEngine as LocalEngine, physical_cores as physical_cores
from .progress import RunProgress as RunProgress
