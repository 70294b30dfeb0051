from . import (
    agarwala2022 as agarwala2022,
)
from . import (
    altafini2025 as altafini2025,
)
from . import (
    anguita2024 as anguita2024,
)
from . import (
    kerg2022 as kerg2022,
)
from .catalogue import documents as documents
from .catalogue import find_document as find_document
from .catalogue import find_erratum as find_erratum
from .document import Document as Document
from .document import Erratum as Erratum
