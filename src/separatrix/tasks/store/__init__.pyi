from .catalogue import datasets as datasets, find_dataset as find_dataset
from .location import Located as Located, locate as locate
from .registry import DataFile as DataFile, Dataset as Dataset, Mirror as Mirror
