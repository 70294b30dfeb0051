"""Kernels of the compiled loop, one kind of work each; compiled by numba, which importing them imports."""
