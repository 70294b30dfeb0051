from .backward import (
    Exact as Exact,
    Implicit as Implicit,
    Neumann as Neumann,
    OneStep as OneStep,
    Phantom as Phantom,
    Unrolled as Unrolled,
)
from .deq import DEQ as DEQ
