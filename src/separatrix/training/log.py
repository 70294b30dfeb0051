"""What happened in training, as plain records that any program can read."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias, final

from separatrix.core.names import choose, suggest_options
from separatrix.core.result import plain

TrainingRecord: TypeAlias = dict[str, Any]
"""Step, and numbers by name; a list of numbers when several members are trained side by side."""


@final
@suggest_options
@dataclasses.dataclass
class History:
    """Records in the order of their steps. Equal runs have equal histories: no clock time is in them."""

    records: list[TrainingRecord] = dataclasses.field(default_factory=list)

    def add(self, step: int, **values: Any) -> None:
        """Add numbers to the record of a step, which must be the last or a new one."""
        if not self.records or self.records[-1]["step"] != step:
            self.records.append({"step": step})
        self.records[-1].update({name: _number(value) for name, value in values.items()})

    def column(self, name: str) -> tuple[list[int], list[Any]]:
        """Steps at which a quantity was recorded, and its values."""
        known = {key for record in self.records for key in record}
        choose("quantity of this history", name, known)
        rows = [(record["step"], record[name]) for record in self.records if name in record]
        return [step for step, _ in rows], [value for _, value in rows]

    def last(self, name: str) -> Any:
        """The latest value of a quantity."""
        return self.column(name)[1][-1]

    def __len__(self) -> int:
        return len(self.records)


def _number(value: Any) -> Any:
    """Plain Python, with NaN and infinity kept as numbers; a tensor of one entry becomes a number."""
    if hasattr(value, "tolist"):
        value = (value.cpu() if hasattr(value, "cpu") else value).tolist()
    if isinstance(value, list):
        return value[0] if len(value) == 1 else value
    return value if isinstance(value, float) else plain(value)
