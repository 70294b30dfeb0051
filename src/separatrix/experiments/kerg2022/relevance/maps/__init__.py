"""What trained networks attend to: maps over a sequence, and what they amount to."""
