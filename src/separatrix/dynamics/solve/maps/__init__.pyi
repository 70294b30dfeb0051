from .counted import AffineMap as AffineMap, CountedMap as CountedMap
from .products import jacobian_product as jacobian_product, transposed_product as transposed_product
