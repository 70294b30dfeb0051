from .branch import InputBranch as InputBranch, input_branch as input_branch
from .plane import PrincipalPlane as PrincipalPlane
from .point_set import FixedPoints as FixedPoints
from .search import fixed_points as fixed_points
