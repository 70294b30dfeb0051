from .learned import Learned as Learned
from .policies import (
    SCREENINGS as SCREENINGS,
    AttentionMax as AttentionMax,
    AttentionSum as AttentionSum,
    Fifo as Fifo,
    GivenScores as GivenScores,
    HeavyHitter as HeavyHitter,
    Norm as Norm,
    Oracle as Oracle,
    RandomChoice as RandomChoice,
    Recency as Recency,
    Surprise as Surprise,
)
from .replay import Replay as Replay, replay as replay
from .retention import StartupBias as StartupBias, retention as retention, startup_bias as startup_bias
from .screening import AbstractScreening as AbstractScreening, Sight as Sight
