from .costs import CostModel as CostModel
from .database import StoreWarning as StoreWarning
from .exchange import (
    Taken as Taken,
    export_archive as export_archive,
    import_archive as import_archive,
    merge as merge,
)
from .rebuilding import rebuild as rebuild
from .records import Store as Store, default_folder as default_folder
from .runs import (
    StoredRun as StoredRun,
    best_run as best_run,
    stored_runs as stored_runs,
    unfinished_runs as unfinished_runs,
)
from .tables import export_table as export_table, record_rows as record_rows
from .upkeep import (
    Cleared as Cleared,
    StoreCheck as StoreCheck,
    check_store as check_store,
    clear as clear,
)
