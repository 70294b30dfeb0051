"""Separatrix: networks that are dynamical systems, simulated, predicted, compared, trained and diagnosed.

Rooms are resolved on first use, so importing the package imports neither torch nor the machinery that finds them.
"""

__version__ = "0.1.0"


def _open():  # type: ignore[no-untyped-def]
    """The room as other rooms open, once somebody asks for a name."""
    from separatrix.core.rooms import open_room

    opened = open_room(__name__, __file__)
    globals().update(zip(("__getattr__", "__dir__", "__all__"), opened, strict=True))
    return opened


def __getattr__(name: str) -> object:
    find, _, everything = _open()
    return everything if name == "__all__" else find(name)


def __dir__() -> object:
    return _open()[1]()
