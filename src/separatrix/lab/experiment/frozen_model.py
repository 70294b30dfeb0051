"""The base of settings and summaries: checked and frozen values, where a misspelt name gets the nearest."""

from __future__ import annotations

from typing import Any

import pydantic

from separatrix.core.names import require_options


class FrozenModel(pydantic.BaseModel):
    """A frozen model without unknown fields; the constructor names the nearest field for a misspelt one."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    def __init__(self, /, **values: Any) -> None:
        require_options(type(self).__name__, values, type(self).model_fields)
        super().__init__(**values)
