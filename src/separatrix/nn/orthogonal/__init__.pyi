from .attach import (
    OrthogonalMatrix as OrthogonalMatrix,
    make_orthogonal_ as make_orthogonal_,
    orthogonality_penalty as orthogonality_penalty,
)
from .bounded_spectrum import BoundedSpectrum as BoundedSpectrum, bound_spectrum_ as bound_spectrum_
from .catalogue import ORTHOGONAL_MAPS as ORTHOGONAL_MAPS, find_orthogonal_map as find_orthogonal_map
from .cayley import Cayley as Cayley, ComplexCayley as ComplexCayley
from .givens import Fft as Fft, Givens as Givens
from .householder import Householder as Householder
from .manifold import (
    AbstractOrthogonalMap as AbstractOrthogonalMap,
    nearest_orthogonal as nearest_orthogonal,
    orthogonality_error as orthogonality_error,
)
from .nonnormal import NonNormalMatrix as NonNormalMatrix, SpectrumWarning as SpectrumWarning
from .rebased import Exp as Exp, FullCapacity as FullCapacity
from .singular import SingularMargin as SingularMargin
from .unitary import LieU as LieU, UnitaryRecipe as UnitaryRecipe
