"""Networks with and without planted faults, on which ``separatrix.check`` is measured."""
