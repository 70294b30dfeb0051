from .audit import CacheAudit as CacheAudit, CacheRow as CacheRow, cache_audit as cache_audit
from .measures import KeptMeasures as KeptMeasures, measure_kept as measure_kept
from .needles import NeedleTable as NeedleTable, needle_table as needle_table
from .runs import CacheRun as CacheRun, run_cache as run_cache
