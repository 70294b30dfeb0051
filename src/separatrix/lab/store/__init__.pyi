from .database import StoreWarning as StoreWarning
from .rebuilding import rebuild as rebuild
from .records import Store as Store, default_folder as default_folder
from .runs import (
    StoredRun as StoredRun,
    best_run as best_run,
    stored_runs as stored_runs,
    unfinished_runs as unfinished_runs,
)
