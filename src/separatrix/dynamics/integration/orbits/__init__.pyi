from .floquet import Floquet as Floquet
