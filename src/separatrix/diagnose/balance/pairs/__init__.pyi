from .laws import Law as Law, LayerPair as LayerPair
from .search import PairSearch as PairSearch, SkippedLayer as SkippedLayer, find_pairs as find_pairs
