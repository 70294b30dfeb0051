"""Layer pairs: where they are in a model, and which conservation law governs each."""
