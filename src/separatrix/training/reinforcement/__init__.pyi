from .advantages import advantages as advantages
from .agent import Agent as Agent, GridEncoder as GridEncoder
from .play import Episodes as Episodes, play as play
from .ppo import (
    AgentRun as AgentRun,
    PpoSettings as PpoSettings,
    clipped_objective as clipped_objective,
    train_agent as train_agent,
)
