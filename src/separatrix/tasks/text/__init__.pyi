from .corpus import (
    Text as Text,
    conditional_entropy as conditional_entropy,
    load_text as load_text,
    make_text as make_text,
    split_pieces as split_pieces,
)
from .made import made_up_text as made_up_text, normalise_text8 as normalise_text8
