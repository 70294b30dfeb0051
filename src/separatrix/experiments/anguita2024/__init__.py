"""Experiments on Anguita 2024, lambda-balanced linear networks."""
