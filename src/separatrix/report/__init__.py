"""Figures, tables and HTML from result objects; the only room that draws."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
