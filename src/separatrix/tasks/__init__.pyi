from .digits import Digits as Digits, load_digits as load_digits
