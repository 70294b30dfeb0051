from .attention import *
from .equilibrium_networks import *
from .free_probability import *
from .learning import *
from .recurrence import *
