from .corridor import RecallCorridor as RecallCorridor
from .environment import Choices as Choices, Environment as Environment, Numbers as Numbers
from .minigrid import GRID_SHAPE as GRID_SHAPE, MISSION_WORDS as MISSION_WORDS, make_minigrid as make_minigrid
