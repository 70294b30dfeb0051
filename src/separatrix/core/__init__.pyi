from .arithmetic import *
from .arrays import (
    as_float64 as as_float64,
    as_tensor as as_tensor,
    relative_asymmetry as relative_asymmetry,
    require_finite as require_finite,
    require_last_dim as require_last_dim,
    require_matrix as require_matrix,
    require_square as require_square,
)
from .errors import (
    ConvergenceWarning as ConvergenceWarning,
    CorruptData as CorruptData,
    DatasetUnavailable as DatasetUnavailable,
    DivergenceWarning as DivergenceWarning,
    InvalidInput as InvalidInput,
    MissingData as MissingData,
    MissingExtra as MissingExtra,
    NotConverged as NotConverged,
    OutsideTheory as OutsideTheory,
    SeparatrixError as SeparatrixError,
    ShapeError as ShapeError,
    StoreError as StoreError,
    UnknownOption as UnknownOption,
    nearest_names as nearest_names,
    unknown_name as unknown_name,
)
from .formula import (
    FORMULAS as FORMULAS,
    NOT_FORMULAS as NOT_FORMULAS,
    Formula as Formula,
    formula as formula,
    not_a_formula as not_a_formula,
)
from .names import choose as choose, resolve as resolve, suggest_options as suggest_options
from .networks import *
from .outcome import Outcome as Outcome
from .random import spawn as spawn, spawn_numpy as spawn_numpy, stream_seed as stream_seed
from .result import Result as Result, brief as brief, plain as plain
from .scalars import (
    in_words as in_words,
    require_flags as require_flags,
    require_integer as require_integer,
    require_kind as require_kind,
    require_number as require_number,
    require_positive as require_positive,
)
