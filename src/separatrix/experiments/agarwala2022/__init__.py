"""Experiments on Agarwala and Schoenholz 2022, deep equilibrium networks."""
