"""Detectors for one kind of layer: attention, recurrence in time, iterated maps, families of weights."""
