"""The contents of a text of StableHLO: functions of operations, whose values have names and types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from mlc.ir.diag import Loc, UserError
from mlc.ir.types import ScalarType

SYNTAX, UNSUPPORTED = "MLC0860", "MLC0861"
"""Codes of a text that is no StableHLO, and of an operation or type that mlc does not run."""


@dataclass(frozen=True, slots=True)
class ArrayType:
    """`tensor<2x?xf32>`: sizes, of which None is `?`, and the type of the elements."""

    shape: tuple[int | None, ...]
    dtype: ScalarType

    def __str__(self) -> str:
        return "tensor<" + "".join("?x" if n is None else f"{n}x" for n in self.shape) + f"{self.dtype}>"


@dataclass(frozen=True, slots=True)
class TokenType:
    """`!stablehlo.token`: the order of effects."""

    def __str__(self) -> str:
        return "!stablehlo.token"


@dataclass(frozen=True, slots=True)
class TupleType:
    """`tuple<...>`."""

    parts: tuple[Any, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.parts))}>"


ValueType = ArrayType | TokenType | TupleType


@dataclass(slots=True)
class Operation:
    """An operation.

    name      with its dialect, `stablehlo.add`
    operands  names of values
    types     the types of the operands
    results   the types of the results
    names     the names of the results
    attrs     attributes by their names in generic form
    regions   functions of blocks with one block each
    loc       its place in the text
    """

    name: str
    operands: list[str]
    types: list[ValueType]
    results: list[ValueType]
    attrs: dict[str, Any]
    regions: list[Region]
    loc: Loc
    names: list[str] = field(default_factory=list)

    def refuse(self, reason: str) -> NoReturn:
        """Refuse the operation: mlc does not run it."""
        raise UserError(f"{self.name}: {reason}", code=UNSUPPORTED, loc=self.loc,
                        hint="write the program without it, for one device and mlc's element types")

    def wrong(self, reason: str) -> NoReturn:
        """Refuse the text: the operation breaks a rule of its own."""
        raise UserError(f"{self.name}: {reason}", code=SYNTAX, loc=self.loc)

    def get(self, name: str, otherwise: Any = None) -> Any:
        """An attribute, or another value if it is not given."""
        return self.attrs.get(name, otherwise)

    def need(self, name: str) -> Any:
        """An attribute that the operation must have."""
        if name not in self.attrs:
            self.wrong(f"it needs the attribute {name}")
        return self.attrs[name]

    def ints(self, name: str, otherwise: Sequence[int] | None = None) -> list[int]:
        """An attribute that is a list of integers."""
        found = self.attrs.get(name)
        if found is None:
            if otherwise is None:
                self.wrong(f"it needs the attribute {name}")
            return list(otherwise)
        values = found.tolist() if hasattr(found, "tolist") else found
        if not isinstance(values, list | tuple) or not all(isinstance(x, int) for x in values):
            self.wrong(f"{name} is no list of integers")
        return [int(x) for x in values]

    @property
    def array(self) -> ArrayType:
        """The type of its only result, an array."""
        if len(self.results) != 1 or not isinstance(self.results[0], ArrayType):
            self.wrong("its result is one array")
        return self.results[0]

    def operand(self, number: int) -> ArrayType:
        """The type of an operand, an array."""
        if number >= len(self.types):
            self.wrong(f"it has {len(self.types)} operands")
        type = self.types[number]
        if not isinstance(type, ArrayType):
            self.wrong(f"operand {number} is {type}, no array")
        return type


@dataclass(slots=True)
class Region:
    """A block of operations: its arguments, and what it ends with."""

    names: list[str]
    types: list[ValueType]
    operations: list[Operation]

    @property
    def last(self) -> Operation | None:
        """The operation that it returns by."""
        return self.operations[-1] if self.operations else None

    def inside(self) -> Iterator[Operation]:
        """All operations, those of nested regions too."""
        for op in self.operations:
            yield op
            for region in op.regions:
                yield from region.inside()


@dataclass(slots=True)
class Function:
    """`func.func`: a region under a name, the attributes of its arguments, and the types of its results."""

    name: str
    body: Region | None
    results: list[ValueType]
    argument_attrs: list[dict[str, Any]]
    loc: Loc


@dataclass(slots=True)
class Program:
    """The functions of a text by name."""

    functions: dict[str, Function]

    def main(self) -> Function:
        """The function to run: `main`, or the only public one."""
        found = self.functions.get("main")
        if found is None and len(self.functions) == 1:
            found = next(iter(self.functions.values()))
        if found is None or found.body is None:
            raise UserError("the program has no function main", code=SYNTAX,
                            hint="its functions are " + (", ".join(list(self.functions)[:20]) or "none"))
        return found
