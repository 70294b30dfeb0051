"""``python -m separatrix`` is the command line."""

from separatrix.cli.main import main

main()
