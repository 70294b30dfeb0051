"""Equilibrium networks trained on digits and text, with their scales, rates and widths."""
