from .adding import Adding as Adding
from .copying import Copy as Copy
from .denoising import Denoise as Denoise
from .task import SequenceBatch as SequenceBatch, SequenceTask as SequenceTask, StreamedBatches as StreamedBatches
