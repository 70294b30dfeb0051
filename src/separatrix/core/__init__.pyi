from .arrays import (
    as_tensor as as_tensor,
)
from .arrays import (
    relative_asymmetry as relative_asymmetry,
)
from .arrays import (
    require_finite as require_finite,
)
from .arrays import (
    require_integer as require_integer,
)
from .arrays import (
    require_last_dim as require_last_dim,
)
from .arrays import (
    require_matrix as require_matrix,
)
from .arrays import (
    require_positive as require_positive,
)
from .arrays import (
    require_square as require_square,
)
from .errors import (
    ConvergenceWarning as ConvergenceWarning,
)
from .errors import (
    CorruptData as CorruptData,
)
from .errors import (
    DatasetUnavailable as DatasetUnavailable,
)
from .errors import (
    InvalidInput as InvalidInput,
)
from .errors import (
    MissingData as MissingData,
)
from .errors import (
    MissingExtra as MissingExtra,
)
from .errors import (
    NotConverged as NotConverged,
)
from .errors import (
    OutsideTheory as OutsideTheory,
)
from .errors import (
    SeparatrixError as SeparatrixError,
)
from .errors import (
    ShapeError as ShapeError,
)
from .errors import (
    StoreError as StoreError,
)
from .errors import (
    nearest_names as nearest_names,
)
from .errors import (
    unknown_name as unknown_name,
)
from .formula import FORMULAS as FORMULAS
from .formula import Formula as Formula
from .formula import formula as formula
from .outcome import Outcome as Outcome
from .random import spawn as spawn
from .random import spawn_numpy as spawn_numpy
from .random import stream_seed as stream_seed
from .result import Result as Result
from .result import brief as brief
from .result import plain as plain
