from .cache import *
from .dropout import VariationalDropout as VariationalDropout, renew_masks as renew_masks
from .equilibrium import *
from .memory import *
from .orthogonal import *
from .recurrent import *
from .relational import *
from .side_by_side import SideBySide as SideBySide
