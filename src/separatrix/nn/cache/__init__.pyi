from .attached import relevance_attention as relevance_attention
from .bounded import BoundedKeys as BoundedKeys, play_eviction as play_eviction
from .eviction import AbstractEviction as AbstractEviction, CacheSight as CacheSight
from .hub import RelevanceCache as RelevanceCache
from .played import PlayedScreening as PlayedScreening
from .policies import (
    EVICTIONS as EVICTIONS,
    AppendOnlyKeys as AppendOnlyKeys,
    FirstKeys as FirstKeys,
    GivenKeyScores as GivenKeyScores,
    HeavyHitterKeys as HeavyHitterKeys,
    LastQueryKeys as LastQueryKeys,
    NewestKeys as NewestKeys,
    ScoredBy as ScoredBy,
    ScreenedKeys as ScreenedKeys,
)
from .transformer import (
    BoundedCache as BoundedCache,
    CausalOutput as CausalOutput,
    CausalTransformer as CausalTransformer,
)
