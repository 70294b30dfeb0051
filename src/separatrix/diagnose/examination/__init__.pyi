from .entry import check as check, diagnose as diagnose
from .watching import Visit as Visit, Watcher as Watcher, watch as watch
from .weights import examine_weights as examine_weights
