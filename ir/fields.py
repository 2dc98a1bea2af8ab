"""Field descriptors of operation classes, and the annotations that declare them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from mlc.ir.core import Op

MISSING: Any = object()
"""Sentinel: the field has no default."""


class Field:
    """Descriptor of a field.

    kind   operand | attr | region | successor | type
    shape  one | optional | many; for an attribute, its annotation
    index  its position among the fields of its kind
    """

    __slots__ = ("default", "index", "name", "shape")
    kind: ClassVar[str]

    def __init__(self, name: str, shape: str, default: Any) -> None:
        self.name = name
        self.shape = shape
        self.default = default
        self.index = 0

    def __get__(self, op: Op | None, owner: type | None = None) -> Any:
        if op is None:
            return self if self.default is MISSING else self.default
        return self.read(op)

    def __set__(self, op: Op, value: Any) -> None:
        raise AttributeError(f"{op.name}.{self.name} is not an attribute; use set_operand or rebuild the op")

    def read(self, op: Op) -> Any:
        raise NotImplementedError


class Attribute(Field):
    __slots__ = ()
    kind = "attr"

    def __set__(self, op: Op, value: Any) -> None:
        op.attrs[self.name] = value

    def __get__(self, op: Op | None, owner: type | None = None) -> Any:
        if op is not None:                       # the most frequent access: avoid a call
            return op.attrs.get(self.name, None if self.default is MISSING else self.default)
        return self if self.default is MISSING else self.default


class Operand(Field):
    __slots__ = ()
    kind = "operand"

    def __get__(self, op: Op | None, owner: type | None = None) -> Any:
        if op is not None and op.segments is None:
            return op.operands[self.index]
        return super().__get__(op, owner)

    def read(self, op: Op) -> Any:
        assert op.segments is not None
        start = sum(op.segments[: self.index])
        group = op.operands[start: start + op.segments[self.index]]
        return tuple(group) if self.shape == "many" else group[0] if group else None


class RegionField(Field):
    __slots__ = ()
    kind = "region"

    def read(self, op: Op) -> Any:
        return op.regions[self.index] if self.shape == "one" else op.regions[self.index:]


class Successor(Field):
    __slots__ = ()
    kind = "successor"

    def read(self, op: Op) -> Any:
        return op.successors[self.index] if self.shape == "one" else op.successors[self.index:]


class TypeField(Field):
    __slots__ = ()
    kind = "type"

    def read(self, op: Op) -> Any:
        return op.results[self.index].type if self.shape == "one" else tuple(r.type for r in op.results)


_DECLARES: dict[str, tuple[type[Field], str]] = {
    "Value": (Operand, "one"), "Value | None": (Operand, "optional"), "tuple[Value, ...]": (Operand, "many"),
    "Region": (RegionField, "one"), "tuple[Region, ...]": (RegionField, "many"),
    "Block": (Successor, "one"), "tuple[Block, ...]": (Successor, "many"),
    "ResultType": (TypeField, "one"), "tuple[ResultType, ...]": (TypeField, "many"),
}
"""Kind and shape of the fields that are not attributes, by annotation."""


def declared(name: str, annotation: str, default: Any = MISSING) -> Field:
    """The field that an annotation declares."""
    kind, shape = _DECLARES.get(annotation, (Attribute, annotation))
    return kind(name, shape, default)
