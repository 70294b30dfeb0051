"""Trajectories of plain self-attention in one compiled loop: when it is used, how it is called, its kernels."""
