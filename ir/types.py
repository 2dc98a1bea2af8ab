"""Types, shared by all levels: immutable, with a textual form.

Element types are scalars. A `TensorType` is a value without memory, with static or symbolic sizes; a `MemRefType` is
memory, with static sizes or `?`; a `VectorType` is a value in registers. Dialects define types by subclassing `Type`
and registering a parser in `TYPE_READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from mlc.ir import sizes
from mlc.ir.affine import AffineMap
from mlc.ir.attributes import DialectAttribute
from mlc.ir.diag import IRError
from mlc.ir.sizes import Dim


class Type:
    """Base of all types. `dialect` names the dialect whose ops Python operators on its values build."""

    __slots__ = ()
    dialect: ClassVar[str] = ""

    def text(self, generic: bool = False) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()


class ScalarType(Type):
    """A type that can be an element of a tensor, memref or vector."""

    __slots__ = ()
    dialect = "arith"
    width: int

    @property
    def is_float(self) -> bool:
        return isinstance(self, FloatType)

    @property
    def is_complex(self) -> bool:
        return isinstance(self, ComplexType)

    @property
    def is_inexact(self) -> bool:
        """Whether it is a type of floats or of complex numbers, those that have derivatives."""
        return isinstance(self, FloatType | ComplexType)

    @property
    def is_bool(self) -> bool:
        return isinstance(self, IntType) and self.width == 1

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory; a bool is a byte."""
        return max(1, self.width // 8)


@dataclass(frozen=True, slots=True)
class IntType(ScalarType):
    """`i1` (bool), `i8` ... `i64` (signed at the tensor level, signless below) and `ui8` ... `ui64`."""

    width: int
    unsigned: bool = False

    def text(self, generic: bool = False) -> str:
        return f"{'u' if self.unsigned else ''}i{self.width}"


@dataclass(frozen=True, slots=True)
class FloatType(ScalarType):
    name: str
    width: int

    def text(self, generic: bool = False) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ComplexType(ScalarType):
    """`complex<f32>` or `complex<f64>`: a real and an imaginary part, adjacent in memory."""

    part: FloatType

    @property
    def width(self) -> int:  # type: ignore[override]
        return 2 * self.part.width

    def text(self, generic: bool = False) -> str:
        return f"complex<{self.part}>"


@dataclass(frozen=True, slots=True)
class IndexType(ScalarType):
    """Type of sizes and indices: a 64-bit integer on every supported target."""

    @property
    def width(self) -> int:  # type: ignore[override]
        return 64

    def text(self, generic: bool = False) -> str:
        return "index"


i1, i8, i16, i32, i64 = (IntType(w) for w in (1, 8, 16, 32, 64))
ui8, ui16, ui32, ui64 = (IntType(w, True) for w in (8, 16, 32, 64))
f16, bf16, f32, f64 = FloatType("f16", 16), FloatType("bf16", 16), FloatType("f32", 32), FloatType("f64", 64)
c64, c128 = ComplexType(f32), ComplexType(f64)
index = IndexType()

SCALARS: dict[str, ScalarType] = {
    str(t): t for t in (i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f16, bf16, f32, f64, c64, c128, index)
}
_NUMPY_NAMES = {"bool": i1, "int8": i8, "int16": i16, "int32": i32, "int64": i64, "uint8": ui8, "uint16": ui16,
                "uint32": ui32, "uint64": ui64, "float16": f16, "bfloat16": bf16, "float32": f32, "float64": f64,
                "complex64": c64, "complex128": c128}


@cache                                                      # numpy takes microseconds to put a name together
def from_numpy(dtype: np.dtype[Any]) -> ScalarType:
    """The element type of a numpy dtype, in either byte order; IRError if mlc does not support it."""
    if found := _NUMPY_NAMES.get(dtype.name):
        return found
    raise IRError(f"dtype {dtype} is not supported", code="MLC0110",
                  hint="use one of " + ", ".join(_NUMPY_NAMES))


@cache
def to_numpy(type: ScalarType) -> np.dtype[Any]:
    """The numpy dtype that holds one element; `index` is int64."""
    if type == bf16:
        import ml_dtypes
        narrow: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return narrow
    if type == index:
        return np.dtype(np.int64)
    return np.dtype(next(name for name, t in _NUMPY_NAMES.items() if t == type))


def dim_text(d: Dim) -> str:
    """The text of a size within the shape of a type."""
    text = str(d).replace(" ", "")
    plain = isinstance(d, int) or (text.isidentifier() and "x" not in text)
    return text if plain else f"({d})"


class ShapedType(Type):
    """A type with a shape and an element type."""

    __slots__ = ()
    shape: tuple[Any, ...]
    dtype: ScalarType

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class TensorType(ShapedType):
    """`tensor<Bx784xf32>`: an immutable array value. Each size is an int >= 0 or a polynomial over symbols."""

    shape: tuple[Dim, ...]
    dtype: ScalarType
    dialect: ClassVar[str] = "tensor"

    @property
    def is_static(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)

    @property
    def size(self) -> Dim:
        """The number of elements."""
        return sizes.product(self.shape)

    def with_shape(self, shape: Iterable[Dim]) -> TensorType:
        return TensorType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: ScalarType) -> TensorType:
        return TensorType(self.shape, dtype)

    def text(self, generic: bool = False) -> str:
        if not generic or self.is_static:
            return "tensor<" + "".join(dim_text(d) + "x" for d in self.shape) + f"{self.dtype}>"
        dims = ", ".join(str(d) if isinstance(d, int) else f'"{d}"' for d in self.shape)
        shape = "".join(f"{d}x" if isinstance(d, int) else "?x" for d in self.shape)
        return f"tensor<{shape}{self.dtype}, #mlc.enc<{{dims = [{dims}]}}>>"


@dataclass(frozen=True, slots=True)
class MemRefType(ShapedType):
    """`memref<?x784xf32>`: memory. A size of None is `?`. Row-major unless it has `strides` (and an `offset`).

    `space` is the memory space: `workgroup`, `private`, or "" for global memory.
    """

    shape: tuple[int | None, ...]
    dtype: ScalarType
    strides: tuple[int | None, ...] | None = None
    offset: int | None = 0
    space: str = ""

    def text(self, generic: bool = False) -> str:
        shape = "".join("?x" if d is None else f"{d}x" for d in self.shape)
        layout = ""
        if self.strides is not None:
            strides = ", ".join("?" if s is None else str(s) for s in self.strides)
            offset = "" if self.offset == 0 else f", offset: {'?' if self.offset is None else self.offset}"
            layout = f", strided<[{strides}]{offset}>"
        space = f", #gpu.address_space<{self.space}>" if self.space else ""
        return f"memref<{shape}{self.dtype}{layout}{space}>"


@dataclass(frozen=True, slots=True)
class VectorType(ShapedType):
    """`vector<16xf32>`: a value of fixed shape in registers."""

    shape: tuple[int, ...]
    dtype: ScalarType
    dialect: ClassVar[str] = "arith"

    def text(self, generic: bool = False) -> str:
        return "vector<" + "".join(f"{d}x" for d in self.shape) + f"{self.dtype}>"


@dataclass(frozen=True, slots=True)
class FunctionType(Type):
    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def text(self, generic: bool = False) -> str:
        inputs = ", ".join(t.text(generic) for t in self.inputs)
        results = ", ".join(t.text(generic) for t in self.results)
        single = len(self.results) == 1 and not isinstance(self.results[0], FunctionType)
        return f"({inputs}) -> {results}" if single else f"({inputs}) -> ({results})"


@dataclass(frozen=True, slots=True)
class NoneType(Type):
    def text(self, generic: bool = False) -> str:
        return "none"


TYPE_READERS: dict[str, Callable[[Any], Type]] = {}
"""Parsers of dialect types by full name (`loop.tile`, `llvm.ptr`); each takes the parser, positioned after the name."""


def element(type: Type) -> ScalarType:
    """The scalar type of a scalar or shaped type."""
    if isinstance(type, ShapedType):
        return type.dtype
    assert isinstance(type, ScalarType), type
    return type


def like(type: Type, dtype: ScalarType) -> Type:
    """`type` with its element type replaced."""
    if isinstance(type, ScalarType):
        return dtype
    if isinstance(type, TensorType):
        return TensorType(type.shape, dtype)
    assert isinstance(type, ShapedType), type
    return type.__class__(type.shape, dtype)  # type: ignore[call-arg]


def substitute(type: Type, env: Mapping[str, Dim]) -> Type:
    """`type` with the size symbols of `env` replaced."""
    if isinstance(type, TensorType) and not type.is_static:
        return type.with_shape(sizes.substitute(d, env) for d in type.shape)
    if isinstance(type, FunctionType):
        return FunctionType(tuple(substitute(t, env) for t in type.inputs),
                            tuple(substitute(t, env) for t in type.results))
    return type


def substitute_attr(value: Any, env: Mapping[str, Dim]) -> Any:
    """An attribute with the size symbols of `env` replaced, in sizes and types inside it."""
    if isinstance(value, sizes.Size):
        return sizes.substitute(value, env)
    if isinstance(value, AffineMap | DialectAttribute):
        return value.substitute(env)
    if isinstance(value, Type):
        return substitute(value, env)
    if isinstance(value, tuple):
        return tuple([substitute_attr(v, env) for v in value])
    if isinstance(value, dict):
        return {k: substitute_attr(v, env) for k, v in value.items()}
    return value


def bind_symbols(formal: Sequence[Type], actual: Sequence[Type]) -> dict[str, Dim]:
    """The sizes bound to the symbols of `formal` types by values of the `actual` types.

    The first size that is a symbol alone binds it; IRError if the types differ after substitution.
    """
    if len(formal) != len(actual):
        raise IRError(f"takes {len(formal)} arguments, got {len(actual)}", code="MLC0120")
    env: dict[str, Dim] = {}
    for f, a in zip(formal, actual):
        if isinstance(f, TensorType) and isinstance(a, TensorType) and f.rank == a.rank:
            for d, e in zip(f.shape, a.shape):
                if (name := sizes.symbol_name(d)) is not None:
                    env.setdefault(name, e)
    for i, (f, a) in enumerate(zip(formal, actual)):
        if f != a and substitute(f, env) != a:
            raise IRError(f"argument {i} has type {a}, expected {f}"
                          + (f" with {', '.join(f'{k} = {v}' for k, v in env.items())}" if env else ""),
                          code="MLC0120")
    return env


def int_range(dtype: ScalarType) -> tuple[int, int]:
    """Minimum and maximum of an integer type or bool."""
    if dtype.is_bool:
        return 0, 1
    info = np.iinfo(to_numpy(dtype))
    return int(info.min), int(info.max)
