from .digits import Digits as Digits, load_digits as load_digits
from .idx import read_idx as read_idx
from .mnist import Mnist as Mnist, load_mnist as load_mnist, pixel_vectors as pixel_vectors
