from .attention import *
from .house import *
from .learning import *
from .recurrent import *
from .results import *
