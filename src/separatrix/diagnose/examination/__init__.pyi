from .entry import check as check, diagnose as diagnose
from .weights import check_weights as check_weights
