"""Commands that show, publish and check what experiments gave."""
