"""Fields of the JSON files of a model, by name and type: one that is missing or of another type is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

_REQUIRED: Any = object()
_HUGE = 1e30


class Fields:
    """The fields of an object of a JSON file.

    data    the object
    origin  the file, and the place in it, for messages
    """

    def __init__(self, data: Mapping[str, Any], origin: str) -> None:
        self.data, self.origin = data, origin

    def refusal(self, what: str, hint: str = "") -> UserError:
        """The error that a model has something that mlc does not run."""
        return UserError(f"{self.origin}: {what}", code="MLC0911", loc=user_loc(), hint=hint)

    def integer(self, name: str, default: int = _REQUIRED) -> int:
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 40:
            raise self.refusal(f"{name} is {value!r}, expected a number that is not negative")
        return value

    def number(self, name: str, default: float = _REQUIRED) -> float:
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refusal(f"{name} is {value!r}, expected a number")
        if not -_HUGE < value < _HUGE:                     # NaN neither
            raise self.refusal(f"{name} is {value!r}, expected a finite number")
        return float(value)

    def positive(self, name: str, default: float = _REQUIRED) -> float:
        """A number above 0: one that is divided by, or whose logarithm is taken."""
        value = self.number(name, default)
        if value <= 0:
            raise self.refusal(f"{name} is {value!r}, expected a number above 0")
        return value

    def optional_number(self, name: str) -> float | None:
        return None if self.data.get(name) is None else self.number(name)

    def flag(self, name: str, default: bool) -> bool:
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise self.refusal(f"{name} is {value!r}, expected true or false")
        return value

    def text(self, name: str, default: str = _REQUIRED) -> str:
        value = self._value(name, default)
        if not isinstance(value, str):
            raise self.refusal(f"{name} is {value!r}, expected a text")
        return value

    def sequence(self, name: str) -> Sequence[Any]:
        value = self._value(name, _REQUIRED)
        if not isinstance(value, list):
            raise self.refusal(f"{name} is {value!r}, expected a list")
        return value

    def mapping(self, name: str) -> Mapping[str, Any] | None:
        value = self.data.get(name)
        if value is not None and not isinstance(value, dict):
            raise self.refusal(f"{name} is {value!r}, expected an object")
        return value

    def identifiers(self, name: str) -> tuple[int, ...]:
        """A token, several or none."""
        value = self.data.get(name)
        values = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(x, int) and not isinstance(x, bool) and x >= 0 for x in values):
            raise self.refusal(f"{name} is {value!r}, expected the number of a token, or several")
        return tuple(values)

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        value = self.text(name, default)
        if value not in choices:
            raise self.refusal(f"{name} is {value!r}", "mlc knows " + ", ".join(choices))
        return value

    def only(self, name: str, allowed: Sequence[Any]) -> None:
        """Refuse a field with a value that would change what the model computes."""
        if self.data.get(name) not in (None, *allowed):
            raise self.refusal(f"{name} is {self.data[name]!r}, which mlc does not run",
                               "it has to be " + " or ".join(map(repr, allowed)))

    def _value(self, name: str, default: Any) -> Any:
        value = self.data.get(name)
        if value is not None:
            return value
        if default is _REQUIRED:
            raise self.refusal(f"{name} is missing")
        return default
