"""A run of an attentive network along a sequence: cells, alignment, stores, and the loops that fuse them."""
