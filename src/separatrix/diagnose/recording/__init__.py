"""Watching one forward pass of anybody's model and leaving no trace: recorders, samples, protection, gradients."""
