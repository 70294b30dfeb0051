"""Pairs of trainings with and without a change that ``separatrix.check`` advises."""
