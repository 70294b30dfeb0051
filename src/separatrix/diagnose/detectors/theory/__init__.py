"""What the theory of dynamical systems adds to a diagnosis: notes, each with its document and equation."""
