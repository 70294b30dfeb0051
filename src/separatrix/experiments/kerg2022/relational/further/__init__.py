"""Further tasks and networks: appendix C, Figs. 1 to 5, 12 and 13."""
