"""Makes the folder from which the documentation site is built: hand-written pages, generated pages, navigation."""
