from .catalogue import datasets as datasets, find_dataset as find_dataset
from .digits import Digits as Digits, load_digits as load_digits
from .idx import read_idx as read_idx
from .location import Located as Located, locate as locate
from .registry import DataFile as DataFile, Dataset as Dataset, Mirror as Mirror
from .semantic import LinearTask as LinearTask, semantic_task as semantic_task, white_regression as white_regression
