"""Pages that follow from the code. To add one, add a line to ``GENERATED``."""

from __future__ import annotations

import importlib
import importlib.util
from typing import NamedTuple


class GeneratedPage(NamedTuple):
    """A page, and the function without arguments that returns its Markdown, as ``module:function``."""

    title: str
    path: str
    maker: str

    @property
    def exists(self) -> bool:
        """Whether the module that makes it is there."""
        return importlib.util.find_spec(self.maker.split(":")[0]) is not None

    def text(self) -> str:
        """The page."""
        module, function = self.maker.split(":")
        return str(getattr(importlib.import_module(module), function)())


GENERATED = (
    GeneratedPage("Command line", "command-line.md", "sitegen.commands:commands_page"),
    GeneratedPage("Experiments", "experiments.md", "sitegen.records:experiments_page"),
    GeneratedPage("Ledger", "ledger.md", "sitegen.records:ledger_page"),
    GeneratedPage("Equations", "equations.md", "sitegen.records:equations_page"),
    GeneratedPage("Statements", "statements.md", "sitegen.statements:statements_page"),
    GeneratedPage("Errata", "errata.md", "sitegen.records:errata_page"),
    GeneratedPage("Relational numbers", "relational-numbers.md", "sitegen.relational:relational_page"),
    GeneratedPage("Notation", "notation.md", "separatrix.sources.notation:notation_page"),
)


def present() -> list[GeneratedPage]:
    """The pages that can be made."""
    return [page for page in GENERATED if page.exists]
