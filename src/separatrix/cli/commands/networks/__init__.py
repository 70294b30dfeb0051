"""Commands about networks: what is wrong with one, what its layers do, which start to take."""
