from .figures import *
from .pages import *
