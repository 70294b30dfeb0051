from .batches import ContiguousBatches as ContiguousBatches, ShuffledBatches as ShuffledBatches
from .catalogue import datasets as datasets, find_dataset as find_dataset
from .digits import Digits as Digits, load_digits as load_digits
from .idx import read_idx as read_idx
from .location import Located as Located, locate as locate
from .mnist import Mnist as Mnist, load_mnist as load_mnist, pixel_vectors as pixel_vectors
from .registry import DataFile as DataFile, Dataset as Dataset, Mirror as Mirror
from .semantic import LinearTask as LinearTask, semantic_task as semantic_task, white_regression as white_regression
from .text import (
    Text as Text,
    conditional_entropy as conditional_entropy,
    load_text as load_text,
    make_text as make_text,
    split_pieces as split_pieces,
)
from .text_made import made_up_text as made_up_text, normalise_text8 as normalise_text8
