"""Propositions, lemmas and theorems of chapter 4 and appendix B, checked by numbers."""
