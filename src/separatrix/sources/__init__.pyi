from . import (
    agarwala2022 as agarwala2022,
    altafini2025 as altafini2025,
    anguita2024 as anguita2024,
    kerg2022 as kerg2022,
)
from .catalogue import documents as documents, find_document as find_document, find_erratum as find_erratum
from .document import Document as Document, Erratum as Erratum, Item as Item
from .notation import NOTATION as NOTATION, Term as Term, notation_page as notation_page
