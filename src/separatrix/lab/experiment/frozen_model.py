"""The base of settings and summaries: checked and frozen values, where a misspelt name gets the nearest."""

from __future__ import annotations

from typing import Any

import pydantic

from separatrix.core.errors import InvalidInput
from separatrix.core.names import require_options
from separatrix.core.scalars import in_words


class FrozenModel(pydantic.BaseModel):
    """A frozen model without unknown fields; the constructor names the nearest field for a misspelt one.

    Raises:
        InvalidInput: a field is missing, unknown or of the wrong type.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    def __init__(self, /, **values: Any) -> None:
        require_options(type(self).__name__, values, type(self).model_fields)
        try:
            super().__init__(**values)
        except pydantic.ValidationError as error:
            raise InvalidInput(first_problem(type(self).__name__, error)) from None


def first_problem(owner: str, error: pydantic.ValidationError) -> str:
    """The first of the problems that pydantic found, as one sentence: which field, what is wrong, what it was."""
    problem = error.errors()[0]
    field = ".".join(str(part) for part in problem["loc"]) or "values"
    words = problem["msg"].removesuffix(".")
    return f"{field} of {owner}: {words[0].lower()}{words[1:]}; got {in_words(problem['input'])}."
