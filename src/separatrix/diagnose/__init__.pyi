from .attention import *
from .balance import *
from .regime import *
