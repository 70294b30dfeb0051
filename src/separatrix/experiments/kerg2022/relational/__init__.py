"""Relational networks: chapters 5 and 7, appendix C."""
