"""Attributes that dialects define: frozen dataclasses, printed `#dialect.name<field = value, ...>`.

A class has a `mnemonic`; its fields, with annotations and defaults, define the syntax. Fields at their default are not
printed. `ir/type_parser.py` parses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

from mlc.ir.sizes import Dim, Size, substitute

ATTRIBUTES: dict[str, type[DialectAttribute]] = {}
"""Attribute classes by mnemonic."""
BY_CLASS: dict[str, type[DialectAttribute]] = {}
"""Attribute classes by class name, as the annotations of operations spell it."""


class DialectAttribute:
    """Base of the attributes of dialects; subclasses are frozen dataclasses.

        @dataclass(frozen=True, slots=True)
        class Layout(DialectAttribute):
            mnemonic: ClassVar[str] = "example.layout"
            rows: int
            columns: int = 1

    declares `#example.layout<rows = 3>`, with `columns` at its default.
    """

    __slots__ = ()
    mnemonic: ClassVar[str]

    def __init_subclass__(cls) -> None:
        ATTRIBUTES[cls.mnemonic] = BY_CLASS[cls.__name__] = cls

    def printed(self) -> dict[str, Any]:
        """The fields without a default, and those that differ from it."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}  # type: ignore[arg-type]

    def substitute(self, env: Mapping[str, Dim]) -> Self:
        """The attribute with the size symbols of `env` replaced in its fields."""
        changed = {name: substitute(v, env) for name, v in self.printed().items() if isinstance(v, Size)}
        return replace(self, **changed) if changed else self  # type: ignore[type-var]
