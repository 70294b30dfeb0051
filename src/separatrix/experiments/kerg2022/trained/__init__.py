"""Recurrent networks trained on sequences: comparisons, learned forms, gradients during training."""
