"""Fields of requests: read by type and range, and refused by name where they are unknown or wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlc.tools.serve.errors import ApiError, wrong


def parsed(body: bytes) -> Any:
    """The value of a body of JSON, which is of UTF-8."""
    try:
        value = json.loads(body.decode(), parse_constant=_no_constant)
        if b"\\u" in body:
            json.dumps(value, ensure_ascii=False).encode() # half of a surrogate pair is no character
        return value
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is no JSON") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


class Fields:
    """The fields of an object of JSON, each of which is asked for once; `check_all_read` refuses the others.

    values  the object
    place   the path to it, for messages
    """

    def __init__(self, values: Any, place: str = "") -> None:
        if not isinstance(values, Mapping):
            raise wrong(place or "body", f"{place or 'the body'} is no object of JSON")
        self.values, self.place = values, place
        self.read = set[str]()

    def path(self, name: str) -> str:
        """The path of a field, for messages."""
        return f"{self.place}.{name}" if self.place else name

    def any(self, name: str) -> Any:
        """The value of a field; None if it is missing or null."""
        self.read.add(name)
        return self.values.get(name)

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self.values.get(name) is not None

    def number(self, name: str, low: float, high: float) -> float | None:
        """A number from low to high."""
        value = self.any(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)
                                  or not low <= value <= high):
            raise wrong(self.path(name), f"{self.path(name)} is not a number from {low:g} to {high:g}")
        return None if value is None else float(value)

    def integer(self, name: str, low: int, high: int) -> int | None:
        """An integer from low to high."""
        value = self.any(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high):
            raise wrong(self.path(name), f"{self.path(name)} is not an integer from {low} to {high}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self.any(name)
        if value is not None and not isinstance(value, bool):
            raise wrong(self.path(name), f"{self.path(name)} is neither true nor false")
        return default if value is None else value

    def text(self, name: str, default: str | None = None) -> str:
        """A string; it is required if there is no default."""
        value = self.any(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise wrong(self.path(name), f"{self.path(name)} is not a string" if name in self.values else
                        f"{self.path(name)} is missing")
        return value

    def one_of(self, name: str, *choices: str) -> str:
        """One of some strings; the first if it is missing."""
        value = self.text(name, choices[0])
        if value not in choices:
            raise wrong(self.path(name), f"{self.path(name)} is {value[:40]!r}, and may be {', '.join(choices)}")
        return value

    def list(self, name: str, most: int) -> list[Any]:
        """A list of some length at most; empty if it is missing."""
        value = self.any(name)
        if value is not None and (not isinstance(value, list) or len(value) > most):
            raise wrong(self.path(name), f"{self.path(name)} is not a list of at most {most} elements")
        return value or []

    def inner(self, name: str) -> Fields:
        """The fields of an object in a field."""
        return Fields(self.any(name), self.path(name))

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Refuse fields that are known and not supported, each with its reason."""
        for name, reason in reasons.items():
            if self.any(name) not in (None, False):
                raise wrong(self.path(name), f"{self.path(name)} is not supported: {reason}")

    def check_all_read(self) -> None:
        """Refuse fields that nothing has asked for."""
        for name in self.values.keys() - self.read:
            raise ApiError(400, f"{self.path(str(name))[:80]} is not supported", self.path(str(name))[:80],
                           "unsupported_field")
