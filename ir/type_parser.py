"""The parser of types and attributes, of every dialect."""

from __future__ import annotations

import importlib
import importlib.util
import re
from functools import cache
from typing import Any

import numpy as np

from mlc.ir import sizes
from mlc.ir.affine import AffineMap
from mlc.ir.affine_syntax import parse_map, parse_size
from mlc.ir.attributes import ATTRIBUTES, DialectAttribute
from mlc.ir.bounds import MAX_ELEMENTS
from mlc.ir.diag import IRError, ParseError
from mlc.ir.lexer import MAX_TEXT, Lexer, Token
from mlc.ir.literals import decode_numbers, dialect_attribute, float_from_bits, symbol, unquote
from mlc.ir.sizes import Dim
from mlc.ir.types import (
    SCALARS,
    TYPE_READERS,
    ComplexType,
    FloatType,
    FunctionType,
    MemRefType,
    NoneType,
    ScalarType,
    TensorType,
    Type,
    VectorType,
    c128,
    to_numpy,
)


@cache
def load_dialect(name: str) -> None:
    """Import the dialect of an operation or type of this name, if there is one."""
    dialect = name.split(".")[0] if "." in name else "builtin"
    if importlib.util.find_spec("mlc.dialects." + dialect) is not None:
        importlib.import_module("mlc.dialects." + dialect)


_PLAIN = re.compile(r"\w+<[\w?+*() -]*>")
"""A type of an array without an encoding, a layout or an element type of a dialect."""
_DIM = re.compile(r"\s*(?:(\d+)|(\?)|\(([^()]+)\)|([A-Za-z_]\w*?))\s*x")
_WORD = re.compile(r"complex<\w+>|\w+")
AttributeClass = type[DialectAttribute]     # inside TypeParser, `type` is a method


class TypeParser(Lexer):
    """Parses types and attributes at the current position.

    array_types  those without further parts that the text has had, by their text, each with its number of tokens
    """

    def __init__(self, text: str, file: str) -> None:
        self.array_types: dict[str, tuple[Type, int]] = {}
        super().__init__(text, file)

    # -- types ----------------------------------------------------------------------------------------------------
    def type(self) -> Type:
        self.deeper()
        try:
            return self._type()
        finally:
            self.depth -= 1

    def _type(self) -> Type:
        token = self.token
        if token.kind == "dtype":
            self.take()
            name = token.text[1:].removeprefix("mlc.")
            load_dialect(name)
            if name not in TYPE_READERS:
                self.fail(f"unknown type !{name}", "MLC0206", token)
            try:
                return TYPE_READERS[name](self)
            except ParseError:
                raise
            except IRError as error:
                self.fail(error.message, "MLC0206", token)
        if token.text == "(":
            inputs, results = self.signature()
            return FunctionType(tuple(inputs), tuple(results))
        if token.kind != "word":
            self.fail(f"expected a type, found {token.text!r}" if token.text else "expected a type", "MLC0206")
        self.take()
        if token.text in SCALARS:
            return SCALARS[token.text]
        if token.text == "complex":
            self.expect("<")
            part = self.word()
            self.expect(">")
            if (found := SCALARS.get(f"complex<{part}>")) is None:
                self.fail(f"complex<{part}> is no type: the parts are f32 or f64", "MLC0206", token)
            return found
        if token.text in ("tensor", "memref", "vector"):
            return self._array_type(token)
        if token.text == "none":
            return NoneType()
        self.fail(f"unknown type {token.text!r}", "MLC0206", token)

    def _array_type(self, token: Token) -> Type:
        """The type of a tensor, memref or vector; one that the text has had already is the same as before."""
        plain = _PLAIN.match(self.text, token.start)
        if plain is not None and (known := self.array_types.get(plain[0])) is not None:
            self.pos += known[1]
            return known[0]
        first = self.pos
        self.expect("<")
        shape, dtype = self.shape()
        found: Type = getattr(self, "_" + token.text)(shape, dtype, token)
        if plain is not None:
            self.array_types[plain[0]] = found, self.pos - first
        return found

    def shape(self) -> tuple[list[Any], ScalarType]:
        """`4x?x(2*B+1)xf32`, read from the text itself, as its pieces are not tokens; None stands for `?`."""
        at = self.token.start
        dims: list[Dim | None] = []
        while m := _DIM.match(self.text, at) or self._nested_dim(at):
            if (whole := _WORD.match(self.text, at)) and (          # `index` and `complex` hold an x
                    whole[0] in SCALARS or whole[0].startswith("complex<")):
                break
            number, unknown, expression, name = (group or None for group in m.groups())
            if number is not None:
                if len(number) > 19 or int(number) >= MAX_ELEMENTS:
                    self.fail_at(at, f"size {number[:24]} is too large", "MLC0204")
                dims.append(int(number))
            elif unknown:
                dims.append(None)
            else:
                try:
                    dims.append(parse_size(str(expression if expression is not None else name)))
                except ParseError as error:
                    self.fail_at(at, error.message, error.code)
            if len(dims) > 64:
                self.fail_at(at, "a shape has more than 64 dimensions", "MLC0204")
            at = m.end()
        count = 1
        for d in dims:
            count *= d if isinstance(d, int) and d else 1
        if count > MAX_ELEMENTS:
            self.fail_at(at, f"a shape with {count} elements is too large", "MLC0204")
        if self.text.startswith("!", at):                   # an element type of a dialect, as in vector<8x!llvm.ptr>
            while self.token.start < at:
                self.take()
            dtype = self.type()
            if not isinstance(dtype, ScalarType):
                self.fail_at(at, f"{dtype} cannot be an element", "MLC0206")
            return dims, dtype
        if (m := _WORD.match(self.text, at)) and m[0].startswith("complex<") and m[0] not in SCALARS:
            self.fail_at(at, f"{m[0]} is no type: the parts are f32 or f64", "MLC0206")
        if not m or m[0] not in SCALARS:
            self.fail_at(at, f"expected an element type, found {self.text[at:at + 12].split('>')[0]!r}", "MLC0206")
        while self.token.start < m.end() and self.token.kind != "end":
            self.take()
        return dims, SCALARS[m[0]]

    def _nested_dim(self, at: int) -> re.Match[str] | None:
        """A size with nested parentheses, such as `((B + 1) floordiv 2)x`, with the same groups as other sizes."""
        depth = 0
        for end in range(at, min(at + 4096, len(self.text))):
            depth += (self.text[end] == "(") - (self.text[end] == ")")
            if depth == 0:
                nested = re.compile(rf"()()\((.{{{end - at - 1}}})\)()\s*x", re.S)
                return nested.match(self.text, at) if end > at else None
        return None

    def _tensor(self, shape: list[Any], dtype: ScalarType, token: Token) -> Type:
        if self.accept(","):
            name = self.kind("hash", "#mlc.enc").text
            if name != "#mlc.enc":
                self.fail(f"unknown tensor encoding {name}", "MLC0206")
            self.expect("<")
            dims = self.attr_dict().get("dims", ())
            self.expect(">")
            if not isinstance(dims, tuple):
                self.fail(f"the sizes of an encoding are a list, not {dims}", "MLC0206", token)
            if len(dims) != len(shape):
                self.fail(f"the encoding names {len(dims)} sizes, the shape has {len(shape)}", "MLC0206", token)
            shape = [self._encoded_size(d, n, token) for d, n in zip(dims, shape)]
        self.expect(">")
        if None in shape:
            self.fail("a tensor's sizes are integers or symbols, not '?'", "MLC0206", token)
        return TensorType(tuple(shape), dtype)

    def _encoded_size(self, encoded: Any, written: int | None, token: Token) -> Dim:
        """One size of an encoding: the text of a symbolic size if the shape has `?`, else the same number."""
        if isinstance(encoded, str) and written is None:
            try:
                return parse_size(encoded)
            except ParseError as error:
                self.fail(error.message, error.code, token)
        if isinstance(encoded, bool) or not isinstance(encoded, int) or encoded != written:
            self.fail(f"the encoding says {encoded!r} where the shape says {'?' if written is None else written}",
                      "MLC0206", token)
        return encoded

    def _vector(self, shape: list[Any], dtype: ScalarType, token: Token) -> Type:
        self.expect(">")
        if not all(isinstance(d, int) and d > 0 for d in shape):
            self.fail("a vector's sizes are positive integers", "MLC0206", token)
        return VectorType(tuple(shape), dtype)

    def _memref(self, shape: list[Any], dtype: ScalarType, token: Token) -> Type:
        strides: tuple[int | None, ...] | None = None
        offset: int | None = 0
        space = ""

        def number() -> int | None:
            return None if self.accept("?") else self.integer()

        while self.accept(","):
            if self.token.text == "#gpu.address_space" and not space:
                space = self.hash_attribute().removeprefix("#gpu.address_space<").removesuffix(">")
                continue
            if strides is not None or space or self.word() != "strided":
                self.fail("the layout of a memref is strided<[...], offset: ...>, then comes its memory space, "
                          "#gpu.address_space<...>", "MLC0206", token)
            self.expect("<")
            self.expect("[")
            strides = tuple(self.list_of(number, "]"))
            if self.accept(","):
                self.expect("offset")
                self.expect(":")
                offset = number()
            self.expect(">")
        self.expect(">")
        if any(isinstance(d, sizes.Size) for d in shape):
            self.fail("a memref's sizes are integers or '?'", "MLC0206", token)
        if space not in ("", "workgroup", "private"):
            self.fail(f"there is no memory space {space}: workgroup or private", "MLC0206", token)
        return MemRefType(tuple(shape), dtype, strides, offset, space)

    def type_list(self) -> list[Type]:
        """One or more types, comma separated."""
        out = [self.type()]
        while self.accept(","):
            out.append(self.type())
        return out

    def signature(self) -> tuple[list[Type], list[Type]]:
        """`(types) -> type` or `(types) -> (types)`."""
        self.expect("(")
        inputs = self.list_of(self.type, ")")
        self.expect("->")
        results = self.list_of(self.type, ")") if self.accept("(") else [self.type()]
        return inputs, results

    def functional_type(self) -> tuple[list[Type], list[Type]]:
        """A signature, or a single type, of every operand and the only result."""
        if self.at("("):
            return self.signature()
        one = self.type()
        return [one], [one]

    # -- attributes -----------------------------------------------------------------------------------------------
    def attr_dict(self) -> dict[str, Any]:
        """`{name = attribute, ...}`."""
        self.expect("{")

        def entry() -> tuple[str, Any]:
            token = self.take()
            name = unquote(token.text) if token.kind == "string" else token.text
            if token.kind not in ("string", "word"):
                self.fail(f"expected an attribute name, found {token.text!r}", token=token)
            return name, self.attribute() if self.accept("=") else True

        entries = self.list_of(entry, "}")
        if len(dict(entries)) != len(entries):
            self.fail("an attribute is given twice")
        return dict(entries)

    def attribute(self) -> Any:
        self.deeper()
        try:
            return self._attribute()
        finally:
            self.depth -= 1

    def _attribute(self) -> Any:
        token = self.token
        if token.kind == "string":
            self.take()
            return unquote(token.text)
        if token.kind == "symbol":
            self.take()
            return symbol(token.text)
        if token.kind in ("number", "hex"):
            return self.typed_number()[0]
        if token.text in ("true", "false"):
            self.take()
            return token.text == "true"
        if token.text == "[":
            self.take()
            return tuple(self.list_of(self.attribute, "]"))
        if token.text == "{":
            return self.attr_dict()
        if token.text == "(" and self.peek_number():
            return self.complex_number()
        if token.text == "dense":
            return self.dense()[0]
        if token.text == "array":
            return self.array()
        if token.text == "affine_map":
            return self.affine_map()
        if token.kind == "hash":
            return self.hash_attribute()
        if token.text == "unit":
            self.take()
            return True
        return self.type()

    def hash_attribute(self) -> Any:
        """`#dialect.name<...>`: an attribute of one of our dialects, or the text of an enumeration of upstream's."""
        token = self.take()
        name, start = token.text[1:].removeprefix("mlc."), token.start
        load_dialect(name)
        if name in ATTRIBUTES:
            return self.dialect_attribute(ATTRIBUTES[name], token)
        self.expect("<")
        while not self.at(">") and self.token.kind != "end":
            self.take()
        end = self.expect(">").start
        return self.text[start: end + 1]

    def dialect_attribute(self, cls: AttributeClass, token: Token) -> DialectAttribute:
        """`<field = value, ...>`."""
        self.expect("<")

        def entry() -> tuple[str, Any]:
            name = self.word("the name of a field")
            self.expect("=")
            return name, self.attribute()

        fields = self.list_of(entry, ">")
        if len(dict(fields)) != len(fields):
            self.fail("a field is given twice", token=token)
        try:
            return dialect_attribute(cls, dict(fields))
        except IRError as error:
            self.fail(error.message, error.code, token)

    def affine_map(self) -> AffineMap:
        """`affine_map<(d0, d1)[B] -> (d0, d1 + B)>`."""
        start = self.expect("affine_map")
        first = self.expect("<").start + 1
        while not self.at(">") and self.token.kind != "end":
            self.take()
        end = self.expect(">").start
        try:
            return parse_map(self.text[first: end])
        except ParseError as error:
            self.fail(error.message, error.code, start)

    def typed_number(self, default: Type | None = None) -> tuple[int | float, Type | None]:
        """`3 : i32`, `1.5`, `0x7FC00000 : f32`; the type is optional."""
        token = self.take()
        type = self.type() if self.accept(":") else default
        return self.number_of(token, type), type

    def peek_number(self) -> bool:
        """Whether a number follows the parenthesis at the current position."""
        return re.match(r"\(\s*[-+\d]", self.text[self.token.start: self.token.start + 64]) is not None

    def complex_number(self) -> complex:
        """`(1.0, -2.0)`, with an optional type behind it that says which bits hexadecimal digits are."""
        start = self.token
        body = self.elements()
        type = self.type() if self.accept(":") else c128
        if not isinstance(type, ComplexType) or not isinstance(body, tuple):
            self.fail(f"a complex number is no {type}", "MLC0207", start)
        return complex(decode_numbers(body, type))

    def number_of(self, token: Token, type: Type | None = None) -> int | float:
        """The number of a token; hexadecimal digits are the bits of a float type."""
        if token.kind not in ("number", "hex"):
            self.fail(f"expected a number, found {token.text!r}", token=token)
        if len(token.text) > 400:
            self.fail("a number of more than 400 characters", "MLC0204", token)
        if token.kind == "hex":
            if isinstance(type, FloatType) and (len(token.text) - 2) * 4 > type.width:
                self.fail(f"{token.text} has more bits than {type}", "MLC0207", token)
            return float_from_bits(int(token.text, 16), type) if isinstance(type, FloatType) else int(token.text, 16)
        return float(token.text) if "." in token.text or isinstance(type, FloatType) else int(token.text)

    def array(self) -> tuple[Any, ...]:
        """`array<i64: 1, 2>`."""
        self.expect("array")
        self.expect("<")
        self.type()
        if self.accept(">"):
            return ()
        self.expect(":")
        return tuple(self.list_of(self.attribute, ">"))

    def dense(self) -> tuple[np.ndarray[Any, Any], Type]:
        """`dense<...> : tensor<...>` as an array, with its type."""
        start = self.expect("dense")
        self.expect("<")
        body = None if self.at(">") else self.elements()
        self.expect(">")
        self.expect(":")
        type = self.type()
        shape, dtype = getattr(type, "shape", None), getattr(type, "dtype", None)
        if shape is None or dtype is None or not all(isinstance(d, int) for d in shape):
            self.fail(f"dense<...> needs a static shaped type, not {type}", "MLC0207", start)
        numpy = to_numpy(dtype)
        count = int(np.prod([int(d) for d in shape], dtype=object)) if shape else 1
        if count * numpy.itemsize > MAX_TEXT * 16:
            self.fail(f"a constant of {count} elements is too large", "MLC0204", start)
        try:
            if body is None:
                return np.zeros(shape, numpy), type
            if isinstance(body, bytes):
                return np.frombuffer(body, numpy.newbyteorder("<")).astype(numpy).reshape(shape), type
            with np.errstate(over="ignore"):     # a decimal beyond the range is infinite, as for scalars
                values = np.array(decode_numbers(body, dtype), dtype=numpy)
            return (self.splat(values, shape) if values.ndim == 0 else values.reshape(shape)), type
        except (ValueError, OverflowError, TypeError) as error:
            self.fail(f"the elements do not fit {type}: {error}", "MLC0207", start)

    def splat(self, value: np.ndarray[Any, Any], shape: Any) -> np.ndarray[Any, Any]:
        """An array whose elements are all the same."""
        return np.full(shape, value)

    def elements(self) -> Any:
        """The elements of a dense literal, as texts in nested lists; a complex number is a pair of texts."""
        if self.token.kind == "string":
            token = self.take()
            text = unquote(token.text)
            if not re.fullmatch(r"0x(?:[0-9A-Fa-f]{2})*", text):
                self.fail("a dense string is 0x and pairs of hexadecimal digits", "MLC0207", token)
            return bytes.fromhex(text[2:])
        if self.accept("["):
            self.deeper()
            out = self.list_of(self.elements, "]")
            self.depth -= 1
            return out
        if self.accept("("):
            parts = tuple(self.list_of(self.elements, ")"))
            if len(parts) != 2 or not all(isinstance(p, str) for p in parts):
                self.fail("a complex number is written as (real part, imaginary part)", "MLC0207")
            return parts
        token = self.take()
        if token.kind not in ("number", "hex") and token.text not in ("true", "false"):
            self.fail(f"expected a number, found {token.text!r}", "MLC0207", token)
        return token.text
