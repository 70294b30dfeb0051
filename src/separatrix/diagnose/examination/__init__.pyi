from .entry import check as check, diagnose as diagnose
from .watching import Visit as Visit, Watcher as Watcher, watch as watch
from .weights import check_weights as check_weights
