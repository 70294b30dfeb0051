"""Fixed-point solvers, one method per file; ``base`` holds the interface and ``find_equilibrium`` the loop."""
