"""Keys that are equal exactly for operations, regions and attributes that are the same."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from mlc.ir.core import Block, Op, Region, Value


def operation_key(op: Op) -> Hashable:
    """Equal for two operations exactly when they compute the same from the same values."""
    operands: tuple[Any, ...] = tuple([id(v) for v in op.operands])
    if op.commutative and len(operands) == 2 and operands[1] < operands[0]:
        operands = operands[::-1]
    types = tuple([r.type for r in op.results])
    if not op.attrs and not op.regions:
        return type(op), operands, types
    attrs = tuple([(k, attribute_key(v)) for k, v in sorted(op.attrs.items()) if v is not None])
    segments = tuple(op.segments) if op.segments is not None else None
    return type(op), operands, types, attrs, segments, tuple([region_key(r) for r in op.regions])


def attribute_key(value: Any) -> Hashable:
    """Equal exactly for equal attributes: 1, 1.0 and True differ, and so do the two zeros."""
    if isinstance(value, float):
        return "float", math.copysign(1.0, value), value if value == value else "nan"
    if isinstance(value, np.ndarray):
        return "array", value.dtype.name, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, np.generic):
        return "scalar", value.dtype.name, value.tobytes()
    if isinstance(value, tuple | list):
        return "list", tuple([attribute_key(v) for v in value])
    if isinstance(value, dict):
        return "dict", tuple([(k, attribute_key(v)) for k, v in sorted(value.items())])
    return type(value), value


def region_key(region: Region) -> Hashable:
    """The structure of a region: values and blocks inside it by number, values from outside as themselves."""
    numbers: dict[Any, int] = {}
    for block in region.blocks:
        numbers[block] = len(numbers)
    out: list[Hashable] = []
    work: list[Region | Block | Op] = [region]
    while work:
        item = work.pop()
        if isinstance(item, Region):
            out.append(("region", len(item.blocks)))
            for block in item.blocks:
                numbers.setdefault(block, len(numbers))
            work += reversed(item.blocks)
        elif isinstance(item, Block):
            out.append(("block", tuple([a.type for a in item.args])))
            for arg in item.args:
                numbers[arg] = len(numbers)
            work += reversed(item.ops)
        else:
            out.append((type(item), tuple([_value_key(v, numbers) for v in item.operands]),
                        tuple([r.type for r in item.results]),
                        tuple([(k, attribute_key(v)) for k, v in sorted(item.attrs.items()) if v is not None]),
                        tuple([numbers.get(b, -1) for b in item.successors]),
                        tuple(item.segments) if item.segments is not None else None, len(item.regions)))
            for r in item.results:
                numbers[r] = len(numbers)
            work += reversed(item.regions)
    return tuple(out)


def _value_key(value: Value, numbers: dict[Any, int]) -> Hashable:
    number = numbers.get(value)
    return ("outer", id(value)) if number is None else number
