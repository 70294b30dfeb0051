from .limit_cycles import LimitCycle as LimitCycle, find_periods as find_periods, limit_cycle as limit_cycle
from .period_two import PeriodTwo as PeriodTwo, find_period_two as find_period_two
