from .entry import check as check, diagnose as diagnose
from .visits import Visit as Visit
from .watching import Watcher as Watcher, watch as watch
from .weights import examine_weights as examine_weights
