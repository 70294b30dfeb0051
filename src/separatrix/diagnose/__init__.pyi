from .attention import *
from .balance import *
from .eviction import *
from .recurrence import *
from .regime import *
from .rest_points import *
from .steps import *
