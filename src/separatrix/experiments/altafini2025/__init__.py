"""Experiments on Altafini 2025, self-attention dynamics."""
