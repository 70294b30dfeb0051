from .attention_instances import AttentionInstance as AttentionInstance, attention_instance as attention_instance
from .balance import *
from .ensembles import *
from .memory import *
from .spectra import *
