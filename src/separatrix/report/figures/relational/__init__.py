"""Figures of relational networks: accuracies on unseen pictures, problems as pictures."""
