"""Linear recurrences: lemmas, Fisher memory, propositions, explicit solutions, Schur forms."""
