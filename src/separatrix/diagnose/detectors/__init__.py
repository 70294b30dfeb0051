"""Detectors: what is wrong with a network, each from one exact measure; grouped by what they look at."""
