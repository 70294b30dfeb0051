from .adding import Adding as Adding
from .characters import (
    bits_per_symbol as bits_per_symbol,
    evaluation_windows as evaluation_windows,
    load_characters as load_characters,
)
from .copying import Copy as Copy
from .denoising import Denoise as Denoise
from .key_values import KeyValues as KeyValues
from .pixels import (
    PixelSequences as PixelSequences,
    sequential_digits as sequential_digits,
    sequential_mnist as sequential_mnist,
)
from .task import SequenceBatch as SequenceBatch, SequenceTask as SequenceTask, StreamedBatches as StreamedBatches
