from .catalogue import (
    datasets as datasets,
    find_dataset as find_dataset,
    register_dataset as register_dataset,
)
from .location import Located as Located, ModifiedData as ModifiedData, cache_folder as cache_folder, locate as locate
from .registry import DataFile as DataFile, Dataset as Dataset, Mirror as Mirror
