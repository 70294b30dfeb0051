"""Detectors of what the loss and its slope show: its value, weights that cannot move, its curvature."""
