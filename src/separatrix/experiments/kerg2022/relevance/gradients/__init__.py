"""Gradients over time of trained networks, and memory against the length."""
