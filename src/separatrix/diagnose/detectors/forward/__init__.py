"""Detectors of what one pass shows: numbers, signals, units, structure, the batch."""
