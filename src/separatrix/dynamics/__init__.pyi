from .attractors import *
from .cycles import *
from .equilibria import *
from .flows import *
from .integration import *
from .solve import *
from .spectra import *
