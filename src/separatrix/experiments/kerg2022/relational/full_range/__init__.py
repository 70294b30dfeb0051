"""Relational networks over the whole range of held-out shapes: appendix C, Figs. 6 to 11."""
