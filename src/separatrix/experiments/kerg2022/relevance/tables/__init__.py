"""Accuracies and rewards of trained networks: copy, denoise, characters, pixels, MiniGrid."""
