"""vector, lanes: masks, steps and reductions."""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.arith import UnsignedBinary, one_bit, store, unsigned
from mlc.dialects.combining import KINDS, CombiningKind
from mlc.dialects.vector.shape import Broadcast
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import (
    ScalarType,
    Type,
    VectorType,
    i1,
    index,
    to_numpy,
)

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


# -- masks and lanes --------------------------------------------------------------------------------------------------
class CreateMask(Op, name="vector.create_mask", pure=True):
    """result[i] = all(i < sizes)"""

    sizes: tuple[Value, ...]
    type: ResultType
    format = "$sizes attr-dict `:` type(result)"

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, VectorType) or type.dtype != i1 or len(self.sizes) != type.rank or any(
                v.type != index for v in self.sizes):
            self.fail(f"takes one index per dimension of a vector of i1, not {type}", code="MLC0164")
        return type

    def ref(self, *sizes: int) -> Any:
        out = np.ones(self.result.type.shape, np.bool_)
        for axis, n in enumerate(sizes):
            along = np.arange(out.shape[axis]) < n
            out &= along.reshape(tuple(-1 if a == axis else 1 for a in range(out.ndim)))
        return out


class Step(Op, name="vector.step", pure=True):
    """result[l] = l"""

    type: ResultType
    format = "attr-dict `:` type(result)"

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, VectorType) or type.rank != 1 or type.dtype != index:
            self.fail(f"gives a vector of index, not {type}", code="MLC0164")
        return type

    def ref(self) -> Any:
        return np.arange(self.result.type.shape[0], dtype=np.int64)


def join_lanes(kind: str, lanes: list[Any], dtype: ScalarType) -> Any:
    """Reduce lanes by a combining kind."""
    join = CombiningKind(kind).associative_op
    if dtype == i1:
        return store(np.asarray(reduce(join.f, [one_bit(v) for v in lanes])) & 1, dtype)
    if issubclass(join, UnsignedBinary):
        lanes = [unsigned(v, dtype)[()] for v in lanes]
    return store(np.asarray(reduce(join.f, lanes)).astype(to_numpy(dtype)), dtype)


class Reduction(Op, name="vector.reduction", pure=True):
    """result = the lanes of a vector, and `acc` if given, reduced by the combining kind"""

    kind: str
    vector: Value
    acc: Value | None = None

    def infer(self) -> Type:
        self.kind = self.kind.removeprefix("#vector.kind<").removesuffix(">")
        type = self.vector.type
        if not isinstance(type, VectorType) or type.rank != 1 or self.kind not in KINDS:
            self.fail(f"no reduction {self.kind!r} of {type}", code="MLC0164")
        if not isinstance(type.dtype, CombiningKind(self.kind).associative_op.accepts):
            self.fail(f"{self.kind} does not work on {type}", code="MLC0164")
        if self.acc is not None and self.acc.type != type.dtype:
            self.fail(f"the accumulator is {self.acc.type}, not {type.dtype}", code="MLC0164")
        return type.dtype

    def ref(self, x: Any, acc: Any = None) -> Any:
        return join_lanes(self.kind, list(x) if acc is None else [*x, acc], self.result.type)

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return f"#vector.kind<{value}>" if name == "kind" and generic else super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("kind",))
        p.append(f" <{self.kind}>, {p.values(self.operands)}{' ' + extra if extra else ''} : "
                 f"{p.type(self.vector.type)} into {p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        parser.expect("<")
        kind = parser.keyword(KINDS)
        parser.expect(">")
        parser.expect(",")
        refs = parser.operand_list()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        vector = parser.type()
        parser.expect("into")
        type = parser.type()
        return Reduction.make(parser.resolve_all(refs, [vector, type][:len(refs)]), {"kind": kind, **extra}, [type])


def splat(value: Value, lanes: int) -> Value:
    """A vector of `lanes` equal elements."""
    return Broadcast(value, VectorType((lanes,), value.type)).result


def lane_count(type: Type) -> int:
    """Number of elements of a type: 1 for a scalar."""
    return math.prod(type.shape) if isinstance(type, VectorType) else 1
