"""Experiments on Kerg 2022, recurrent networks."""
