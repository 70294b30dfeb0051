"""Commands that run experiments and look after their records."""
