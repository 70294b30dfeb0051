from .catalogue import (
    BASIC as BASIC,
    GAME_TESTS as GAME_TESTS,
    TASK_NAMES as TASK_NAMES,
    UNSEEN_RELATIONS as UNSEEN_RELATIONS,
    find_design as find_design,
    make_task as make_task,
)
from .cognitive import DistributionOfN as DistributionOfN, PatternTask as PatternTask
from .enumeration import (
    FiniteProblems as FiniteProblems,
    all_problems as all_problems,
    count_problems as count_problems,
    finite_problems as finite_problems,
)
from .features import ColouredTask as ColouredTask, ComparisonTask as ComparisonTask, SeparatedTask as SeparatedTask
from .game_files import (
    GameFile as GameFile,
    PictureProblems as PictureProblems,
    public_game as public_game,
    read_game as read_game,
)
from .games import GameTask as GameTask
from .glyphs import (
    GlyphSet as GlyphSet,
    glyphs as glyphs,
    random_colours as random_colours,
    read_glyphs as read_glyphs,
    unicode_glyphs as unicode_glyphs,
)
from .patterns import Design as Design, Pattern as Pattern
from .shortcuts import (
    Shortcuts as Shortcuts,
    ideal_relations as ideal_relations,
    shortcut_accuracy as shortcut_accuracy,
)
from .splits import Split as Split
from .task import (
    ProblemBatches as ProblemBatches,
    Problems as Problems,
    RelationalTask as RelationalTask,
)
