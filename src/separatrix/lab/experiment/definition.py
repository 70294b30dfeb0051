"""An experiment: parameters at three scales, cells, a summary, claims, figures.

The walk of data: ``expand`` turns parameters into cells; ``run`` computes one cell (a pure function); ``summarise``
condenses the payloads of all cells into a ``Summary``; claims judge the summary; ``draw`` turns it into figures.

The dialect: a module has ``Settings(Params)``, the functions ``expand``, ``run``, ``summarise``, ``draw`` and
``judge_...``, and binds the whole to ``EXPERIMENT``.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, final

import pydantic

from separatrix.core.errors import InvalidInput, SeparatrixError
from separatrix.core.names import choose, resolve, suggest_options
from separatrix.core.result import brief

from .cell import Cell
from .claim import Claim
from .frozen_model import FrozenModel, first_problem
from .limits import OPEN, Limits
from .scales import SCALES, Scale
from .summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Payload: TypeAlias = dict[str, Any]
"""What a cell computes: numbers, strings, lists, dictionaries, tensors and numpy arrays."""


class Params(FrozenModel):
    """Base of an experiment's settings: one flat, frozen model with the document's own values where it gives them."""

    model_config = pydantic.ConfigDict(allow_inf_nan=False)

    seeds: tuple[int, ...] = (0,)


@final
@suggest_options
@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class Experiment:
    """One figure, table or theorem, and how to compute it at each scale.

    Args:
        name: as on the command line, ``"altafini-fig2"``.
        title: what it shows, in a few words.
        document: key of a source document, or ``"separatrix"`` for an experiment of our own.
        place: figure, table or theorem in that document.
        version: raise it whenever the meaning or value of a computed number changes.
        scales: parameters for ``smoke`` (seconds), ``laptop`` (minutes on two cores) and ``paper``.
        expand: parameters to the arguments of each cell; a ``"seed"`` key becomes the cell's seed (else 0).
        run: a cell to its payload; pure, deterministic, no printing, no files.
        home: the module that binds the experiment (``__name__``), where workers find it; that of ``run`` if not given.
        summarise: all payloads with their cells, in the order of ``expand``, to the summary.
        summary: the class of that summary, which reads it back from a published file; the one that ``summarise`` is
            annotated to return if not given.
        claims: statements judged from the summary; each takes over document and place unless it names its own.
        draw: the summary to named figures, or ``None``.
        data: names of the data sets it reads, whose digests go into each record.
        limits: time and memory of one cell, above which it is stopped and set aside; open where the scale's usual ones
            (``usual_limits``) will do.
    """

    name: str
    title: str
    document: str
    place: str
    version: int
    scales: Mapping[Scale, Params]
    expand: Callable[[Any], Iterable[Mapping[str, Any]]]
    run: Callable[[Cell], Payload]
    summarise: Callable[[Sequence[tuple[Cell, Payload]]], Summary]
    summary: type[Summary] = None  # type: ignore[assignment]
    claims: tuple[Claim, ...] = ()
    draw: Callable[[Any], Mapping[str, Figure]] | None = None
    home: str = ""
    data: tuple[str, ...] = ()
    limits: Limits = OPEN

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", self.name):
            raise InvalidInput(
                "name of an experiment must be letters, digits, hyphens, dots and underscores, at most 100, since "
                f"files are named by it; got {brief(self.name)}."
            )
        if set(self.scales) != set(SCALES):
            raise InvalidInput(f"scales of experiment {self.name!r} must be {SCALES}; got {tuple(self.scales)}.")
        if self.summary is None:
            object.__setattr__(self, "summary", _returned(self.summarise, self.name))
        claims = tuple(claim.within(self.document, self.place) for claim in self.claims)
        object.__setattr__(self, "claims", claims)
        repeated = {claim.id for claim in claims if sum(other.id == claim.id for other in claims) > 1}
        if repeated:
            raise InvalidInput(f"claims of experiment {self.name!r} repeat {', '.join(sorted(repeated))}.")

    def __repr__(self) -> str:
        return f"Experiment({self.name!r}: {self.title})"

    @property
    def module(self) -> str:
        """Dotted name of the module that defines the experiment."""
        return self.home or self.run.__module__

    @property
    def entry(self) -> str:
        """``module:name``, by which a worker process finds the experiment."""
        return f"{self.module}:{self.name}"

    @property
    def typed_name(self) -> str:
        """What to type for it on the command line: its name, or its entry if it is not of this package."""
        return self.name if self.module.startswith("separatrix.") else self.entry

    def params(self, scale: str = "smoke", /, seeds: Sequence[int] | None = None, **changes: Any) -> Params:
        """The parameters of a scale with changes; unknown names and values of the wrong type are refused."""
        base = resolve("scale", scale, {str(name): params for name, params in self.scales.items()})
        for name in changes:
            choose(f"parameter of {self.name}", name, type(base).model_fields)
        if seeds is not None:
            changes = {**changes, "seeds": tuple(seeds)}
        try:
            return type(base)(**{**base.model_dump(), **changes})
        except InvalidInput as error:
            problem = error.__context__
            if not isinstance(problem, pydantic.ValidationError):
                raise
            raise InvalidInput(first_problem(self.name, problem)) from None  # people know its name, not its class

    def cells(self, params: Params) -> list[Cell]:
        """The cells of a run, in order.

        Raises:
            InvalidInput: a parameter is an empty list where no scale has one; ``expand`` fails, or yields nothing,
                something else than dictionaries, or a cell twice.
        """
        self._refuse_empty(params)
        cells: dict[str, Cell] = {}
        for given in self._expanded(params):
            seed = given.pop("seed", 0)
            if isinstance(seed, bool) or not isinstance(seed, int):
                raise InvalidInput(f"expand of experiment {self.name!r} must yield integers as seeds; got {seed!r}.")
            cell = Cell(self.name, self.version, given, seed, self.entry)
            if cell.key in cells:
                raise InvalidInput(
                    f"expand of experiment {self.name!r} yields one cell twice ({brief(given)}, seed {seed}); "
                    "what differs between repetitions must be an argument or the seed."
                )
            cells[cell.key] = cell
        if not cells:
            changed = [f"{name}={brief(value)}" for name, value in self._unusual(params)]
            blamed = f" with {', '.join(changed)}" if changed else ""
            raise InvalidInput(f"expand of experiment {self.name!r} yields no cell{blamed}: there is nothing to run.")
        return list(cells.values())

    def _refuse_empty(self, params: Params) -> None:
        """A list of nothing asks for no work, or for a verdict on nothing."""
        for name, value in self._unusual(params):
            if isinstance(value, tuple | list) and not value:
                raise InvalidInput(f"{name} of {self.name} must hold at least one value: there is nothing to run.")

    def _unusual(self, params: Params) -> list[tuple[str, Any]]:
        """Parameters with a value that none of the scales has."""
        return [
            (name, value)
            for name, value in params
            if all(getattr(scale, name, None) != value for scale in self.scales.values())
        ]

    def _expanded(self, params: Params) -> list[dict[str, Any]]:
        """Cell arguments as plain dictionaries of JSON values (tuples become lists, so that keys survive a trip)."""
        try:
            expanded = list(self.expand(params))
        except SeparatrixError:
            raise
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InvalidInput(f"expand of experiment {self.name!r} fails on these parameters ({reason}).") from error
        for given in expanded:
            if not isinstance(given, Mapping):
                raise InvalidInput(f"expand of experiment {self.name!r} must yield dictionaries; got {brief(given)}.")
        return [{name: _listed(value) for name, value in given.items()} for given in expanded]


def load(entry: str) -> Experiment:
    """The experiment behind ``module:name``, importing its module if need be.

    Raises:
        InvalidInput: not of that form, no such module, or no such experiment in it.
    """
    import importlib

    if not isinstance(entry, str) or ":" not in entry:
        raise InvalidInput(f"entry must be module:name of an experiment; got {entry!r}.")
    module_name, _, name = entry.partition(":")
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", module_name) or not name:
        raise InvalidInput(f"entry must be module:name of an experiment; got {brief(entry)}.")
    try:
        module = sys.modules.get(module_name) or importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"no module for {brief(entry)}: {error}; set PYTHONPATH to its folder.") from None
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidInput(f"the module of {brief(entry)} fails when it is imported ({reason}).") from error
    known = {value.name: value for value in vars(module).values() if isinstance(value, Experiment)}
    return resolve(f"experiment of module {module_name}", name, known)


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InvalidInput(f"a cell's arguments must have strings as keys; got {brief(key)}.")
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, tuple | list) else value


def _returned(summarise: Callable[..., Summary], name: str) -> type[Summary]:
    """The class of summary that a function is annotated to return; the plain one if it is not annotated."""
    function = inspect.unwrap(summarise)
    given = getattr(function, "__annotations__", {}).get("return", Summary)
    found = getattr(function, "__globals__", {}).get(given) if isinstance(given, str) else given
    if not (isinstance(found, type) and issubclass(found, Summary)):
        raise InvalidInput(f"summarise of experiment {name!r} must return a Summary; its annotation is {given!r}.")
    return found
