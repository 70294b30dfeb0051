"""Attentive recurrent networks with bounded memory: theorems, tables and figures of chapter 4 and appendix B."""
