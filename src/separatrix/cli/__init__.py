"""The command line: one file per command. Torch is imported only when a command computes."""
