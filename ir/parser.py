"""Text to IR: both printings of every level, with a place for every complaint.

Files are hostile data: nesting, token counts and sizes are bounded before anything is built, and whatever is wrong
ends in one ParseError or IRError with line and column.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mlc.ir import sizes
from mlc.ir.core import REGISTRY, Block, Op, Region, Symbol, Value
from mlc.ir.diag import Error, IRError, Loc, ParseError
from mlc.ir.literals import decode_attr, decode_numbers, float_from_bits, symbol, unquote
from mlc.ir.sizes import Dim
from mlc.ir.types import (
    SCALARS,
    TYPE_READERS,
    FloatType,
    FunctionType,
    MemRefType,
    NoneType,
    ScalarType,
    TensorType,
    Type,
    VectorType,
    to_numpy,
)

OpClass = type[Op]                       # inside Parser, `type` is a method
MAX_TEXT = 256 << 20
"""Bytes of one module's text."""
MAX_DEPTH = 64
"""Regions within regions, and brackets within brackets of a type or an attribute."""
MAX_ELEMENTS = 1 << 48
"""Elements of a static shape."""

_TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*|\{-\#[\s\S]*?\#-\})                  # the last: resources, for tools that know them
  | (?P<value>%[\w$.-]+(?:\#\d+)?)
  | (?P<block>\^[\w$.-]+)
  | (?P<symbol>@(?:[\w$.]+|"(?:[^"\\]|\\.)*"))
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<hex>0x[0-9A-Fa-f]+(?![\w]))
  | (?P<number>-?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?)
  | (?P<hash>\#[\w.]+)
  | (?P<dtype>![\w.]+)
  | (?P<word>[A-Za-z_][\w$.]*)
  | (?P<punct>->|::|[-+*/(){}\[\]<>,:=?])
""", re.VERBOSE)


@dataclass(slots=True)
class Token:
    kind: str
    text: str
    start: int


@dataclass(slots=True)
class Unresolved:
    """A use of a value by name, before its type is known."""

    name: str
    token: Token


class _Placeholder(Value):
    """Stands for a value that is used before the text defines it."""

    __slots__ = ("token",)
    token: Token


def parse_file(path: str | Path) -> Op:
    """Read a module from a file; a missing or undecodable file is a ParseError."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise ParseError(f"cannot read {path}: {error.strerror}", code="MLC0201") from None
    try:
        return parse_module(text.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not UTF-8: byte {text[error.start]:#04x} at offset {error.start}",
                         code="MLC0202") from None


def parse_module(text: str, file: str = "<text>") -> Op:
    """The `builtin.module` that `text` holds; a text without one is wrapped in one."""
    parser = Parser(text, file)
    return parser.module()


@cache
def load_dialect(name: str) -> None:
    """Import the dialect that an operation or type of this name would be defined in, if mlc has it."""
    dialect = name.split(".")[0] if "." in name else "builtin"
    if importlib.util.find_spec("mlc.dialects." + dialect) is not None:
        importlib.import_module("mlc.dialects." + dialect)


class Parser:
    """A position in a list of tokens, and the names in scope."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        if len(text) > MAX_TEXT:
            raise ParseError(f"the text has {len(text)} characters, more than {MAX_TEXT}", code="MLC0204")
        self.line_starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.tokens: list[Token] = []
        self.pos = 0
        self.depth = 0
        self.scopes: list[dict[str, Value]] = [{}]
        self.forward: list[dict[str, _Placeholder]] = [{}]
        self.block_names: list[dict[str, Block]] = []
        self.aliases: dict[str, Any] = {}
        self._tokenize()

    def _tokenize(self) -> None:
        at, text, out = 0, self.text, self.tokens
        match = _TOKEN.match
        while at < len(text):
            m = match(text, at)
            if m is None:
                self.fail_at(at, f"unexpected character {text[at]!r}", "MLC0203")
            if m.lastgroup != "space":
                out.append(Token(m.lastgroup or "", m[0], at))
            at = m.end()
        out.append(Token("end", "", len(text)))

    # -- places and complaints ------------------------------------------------------------------------------------
    def loc(self, offset: int) -> Loc:
        import bisect
        line = bisect.bisect_right(self.line_starts, offset)
        return Loc(self.file, line, offset - self.line_starts[line - 1] + 1)

    def fail_at(self, offset: int, message: str, code: str) -> NoReturn:
        raise ParseError(message, code=code, loc=self.loc(offset))

    def fail(self, message: str, code: str = "MLC0203", token: Token | None = None) -> NoReturn:
        self.fail_at((token or self.tokens[self.pos]).start, message, code)

    # -- tokens ---------------------------------------------------------------------------------------------------
    @property
    def token(self) -> Token:
        return self.tokens[self.pos]

    def take(self) -> Token:
        token = self.tokens[self.pos]
        if token.kind != "end":
            self.pos += 1
        return token

    def at(self, text: str) -> bool:
        token = self.tokens[self.pos]
        return token.text == text and token.kind != "string"

    def at_value(self) -> bool:
        return self.token.kind == "value"

    def accept(self, text: str) -> bool:
        if self.at(text):
            self.pos += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        if not self.at(text):
            found = self.token.text
            self.fail(f"expected '{text}', found {repr(found) if found else 'the end of the text'}")
        return self.take()

    def kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            found = self.token.text
            self.fail(f"expected {what}, found {repr(found) if found else 'the end of the text'}")
        return self.take()

    def word(self, what: str = "a name") -> str:
        return self.kind("word", what).text

    def symbol(self, what: str = "a name such as @f") -> Symbol:
        return symbol(self.kind("symbol", what).text)

    def keyword(self, allowed: Sequence[str]) -> str:
        token = self.token
        if token.text not in allowed:
            self.fail(f"expected one of {', '.join(allowed)}, found {token.text!r}")
        return self.take().text

    def integer(self) -> int:
        token = self.kind("number", "an integer")
        if "." in token.text or len(token.text) > 40:
            self.fail(f"expected an integer, found {token.text[:40]!r}", token=token)
        return int(token.text)

    def list_of(self, one: Callable[[], Any], end: str) -> list[Any]:
        """Comma separated items up to and including `end`."""
        out: list[Any] = []
        if self.accept(end):
            return out
        while True:
            out.append(one())
            if self.accept(end):
                return out
            self.expect(",")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nesting deeper than {MAX_DEPTH}", "MLC0204")

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
        if token.text in ("tensor", "memref", "vector"):
            self.expect("<")
            shape, dtype = self.shape()
            return getattr(self, "_" + token.text)(shape, dtype, token)  # type: ignore[no-any-return]
        if token.text == "none":
            return NoneType()
        self.fail(f"unknown type {token.text!r}", "MLC0206", token)

    def shape(self) -> tuple[list[Any], ScalarType]:
        """`4x?x(2*B+1)xf32`, read from the text itself since its pieces are no tokens; None stands for `?`."""
        at = self.token.start
        dims: list[Dim | None] = []
        dim = re.compile(r"\s*(?:(\d+)|(\?)|\(([^()]+)\)|([A-Za-z_]\w*?))\s*x")
        word = re.compile(r"\w+")
        while m := dim.match(self.text, at) or self._nested_dim(at):
            if (whole := word.match(self.text, at)) and whole[0] in SCALARS:        # `index` holds an x
                break
            number, unknown, expression, name = (group or None for group in m.groups())
            if number is not None:
                if len(number) > 19 or int(number) >= MAX_ELEMENTS:
                    self.fail_at(at, f"size {number[:24]} is absurd", "MLC0204")
                dims.append(int(number))
            elif unknown:
                dims.append(None)
            else:
                try:
                    dims.append(sizes.parse(str(expression if expression is not None else name)))
                except ParseError as error:
                    self.fail_at(at, error.message, error.code)
            if len(dims) > 64:
                self.fail_at(at, "a shape has more than 64 dimensions", "MLC0204")
            at = m.end()
        count = 1
        for d in dims:
            count *= d if isinstance(d, int) and d else 1
        if count > MAX_ELEMENTS:
            self.fail_at(at, f"a shape with {count} elements is absurd", "MLC0204")
        if self.text.startswith("!", at):                   # an element of a dialect's type, as in vector<8x!llvm.ptr>
            while self.token.start < at:
                self.take()
            dtype = self.type()
            if not isinstance(dtype, ScalarType):
                self.fail_at(at, f"{dtype} cannot be an element", "MLC0206")
            return dims, dtype
        if not (m := word.match(self.text, at)) or m[0] not in SCALARS:
            self.fail_at(at, f"expected an element type, found {self.text[at:at + 12].split('>')[0]!r}", "MLC0206")
        while self.token.start < m.end() and self.token.kind != "end":
            self.take()
        return dims, SCALARS[m[0]]

    def _nested_dim(self, at: int) -> re.Match[str] | None:
        """A size with parentheses within parentheses, as `((B + 1) floordiv 2)x`: groups as for the other sizes."""
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
            if len(dims) != len(shape):
                self.fail(f"the encoding names {len(dims)} sizes, the shape has {len(shape)}", "MLC0206", token)
            shape = [self._encoded_size(d, n, token) for d, n in zip(dims, shape)]
        self.expect(">")
        if None in shape:
            self.fail("a tensor's sizes are integers or symbols, not '?'", "MLC0206", token)
        return TensorType(tuple(shape), dtype)

    def _encoded_size(self, encoded: Any, written: int | None, token: Token) -> Dim:
        """One size of an encoding: a symbol's text where the shape says `?`, else the same number."""
        if isinstance(encoded, str) and written is None:
            try:
                return sizes.parse(encoded)
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

        def number() -> int | None:
            return None if self.accept("?") else self.integer()

        if self.accept(","):
            if self.word() != "strided":
                self.fail("the layout of a memref is strided<[...], offset: ...>", "MLC0206", token)
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
        return MemRefType(tuple(shape), dtype, strides, offset)

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
        """A signature, or one type that stands for every operand and the only result."""
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
        if token.text == "dense":
            return self.dense()[0]
        if token.text == "array":
            return self.array()
        if token.kind == "hash":
            return self.hash_attribute()
        if token.text == "unit":
            self.take()
            return True
        return self.type()

    def hash_attribute(self) -> Any:
        """`#dialect.name<word, ...>` of upstream's enumerations: its words."""
        token = self.take()
        self.expect("<")
        words = self.list_of(lambda: self.take().text, ">")
        return f"{token.text}<{', '.join(words)}>"

    def typed_number(self, default: Type | None = None) -> tuple[int | float, Type | None]:
        """`3 : i32`, `1.5`, `0x7FC00000 : f32`; the type is `default` where none is written."""
        token = self.take()
        type = self.type() if self.accept(":") else default
        return self.number_of(token, type), type

    def number_of(self, token: Token, type: Type | None = None) -> int | float:
        """The number that a token writes; hexadecimal digits are the bits of a float type."""
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
        """`dense<...> : tensor<...>` as an array, with the type it was given."""
        start = self.expect("dense")
        self.expect("<")
        body = None if self.at(">") else self._dense_body()
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
            return (np.full(shape, values) if values.ndim == 0 else values.reshape(shape)), type
        except (ValueError, OverflowError, TypeError) as error:
            self.fail(f"the elements do not fit {type}: {error}", "MLC0207", start)

    def _dense_body(self) -> Any:
        if self.token.kind == "string":
            token = self.take()
            text = unquote(token.text)
            if not re.fullmatch(r"0x(?:[0-9A-Fa-f]{2})*", text):
                self.fail("a dense string is 0x and pairs of hexadecimal digits", "MLC0207", token)
            return bytes.fromhex(text[2:])
        if self.accept("["):
            self.deeper()
            out = self.list_of(self._dense_body, "]")
            self.depth -= 1
            return out
        token = self.take()
        if token.kind not in ("number", "hex") and token.text not in ("true", "false"):
            self.fail(f"expected a number, found {token.text!r}", "MLC0207", token)
        return token.text

    # -- values and blocks ----------------------------------------------------------------------------------------
    def operand(self) -> Unresolved:
        token = self.kind("value", "a value such as %0")
        return Unresolved(token.text[1:], token)

    def operand_list(self) -> list[Unresolved]:
        """Zero or more values, comma separated."""
        if not self.at_value():
            return []
        out = [self.operand()]
        while self.accept(","):
            out.append(self.operand())
        return out

    def lookup(self, name: str) -> Value | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def resolve(self, ref: Unresolved, type: Type | None = None) -> Value:
        """The value a name stands for; one not defined yet needs a type, and stands in until its definition."""
        value = self.lookup(ref.name)
        if value is None:
            if type is None:
                self.fail(f"%{ref.name} is not defined here", "MLC0208", ref.token)
            value = self.forward[-1].setdefault(ref.name, _Placeholder(type))
            value.token = ref.token
        if type is not None and value.type != type:
            self.fail(f"%{ref.name} has type {value.type}, not {type}", "MLC0209", ref.token)
        return value

    def resolve_all(self, refs: Sequence[Unresolved], types: Sequence[Type] | None = None) -> list[Value]:
        if types and len(types) != len(refs):
            self.fail(f"{len(refs)} operands but {len(types)} types", "MLC0209", refs[0].token if refs else None)
        return [self.resolve(r, t) for r, t in zip(refs, types or itertools.repeat(None))]

    def define(self, name: str, value: Value, token: Token) -> None:
        scope = self.scopes[-1]
        if name in scope:
            self.fail(f"%{name} is defined twice", "MLC0210", token)
        base = name.split("#")[0]
        if not base.isdigit():
            value.name = base
        scope[name] = value
        if (early := self.forward[-1].pop(name, None)) is not None:
            if early.type != value.type:
                self.fail(f"%{name} was used as {early.type} but is {value.type}", "MLC0209", early.token)
            early.replace_by(value)

    def successor(self) -> Block:
        name = self.kind("block", "a block such as ^bb1").text
        return self.block_names[-1].setdefault(name, Block())

    def successor_list(self) -> list[Block]:
        out = [self.successor()]
        while self.accept(","):
            out.append(self.successor())
        return out

    def typed_arg(self) -> tuple[Token, Type]:
        """`%x: type`."""
        token = self.kind("value", "an argument such as %x")
        self.expect(":")
        return token, self.type()

    # -- operations -----------------------------------------------------------------------------------------------
    def region(self, args: Sequence[tuple[Token, Type]] = (), isolated: bool = False) -> Region:
        """`{ blocks }`. `args` are the arguments of the entry block where its header does not spell them."""
        self.expect("{")
        self.deeper()
        region = Region()
        self.scopes, outer = ([{}] if isolated else [*self.scopes, {}]), self.scopes
        self.forward.append({})
        self.block_names.append({})
        self._blocks(region, args)
        end = self.expect("}")
        for name, block in self.block_names.pop().items():
            if block.region is None:
                self.fail(f"block {name} is not defined", "MLC0208", end)
        for name, early in self.forward.pop().items():
            if len(self.forward) > 1 and not isolated:
                self._defer(name, early)
            else:
                self.fail(f"%{name} is not defined", "MLC0208", early.token)
        self.scopes = outer
        self.depth -= 1
        return region

    def _defer(self, name: str, early: _Placeholder) -> None:
        """A name unresolved in an inner region may be defined later in an outer one."""
        held = self.forward[-1].setdefault(name, early)
        if held is not early:
            early.replace_by(held)

    def _blocks(self, region: Region, args: Sequence[tuple[Token, Type]]) -> None:
        if not self.token.kind == "block":
            block = region.add(Block())
            for token, type in args:
                self.define(token.text[1:], block.add_arg(type, loc=self.loc(token.start)), token)
            self._ops(block)
        while self.token.kind == "block":
            token = self.take()
            block = self.block_names[-1].setdefault(token.text, Block())
            if block.region is not None:
                self.fail(f"block {token.text} is defined twice", "MLC0210", token)
            region.add(block)
            if self.accept("("):
                for arg, type in self.list_of(self.typed_arg, ")"):
                    self.define(arg.text[1:], block.add_arg(type, loc=self.loc(arg.start)), arg)
                    self.location()
            self.expect(":")
            self._ops(block)

    def _ops(self, block: Block) -> None:
        while not (self.at("}") or self.token.kind in ("end", "block")):
            block.insert(self.op())

    def op(self) -> Op:
        """One operation with its results, detached; its results are in scope afterwards."""
        start = self.token
        results: list[tuple[Token, int]] = []
        if self.at_value():
            while True:
                token = self.take()
                count = self.integer() if self.accept(":") else 1
                if count > 4096:
                    self.fail("more than 4096 results", "MLC0204", token)
                results.append((token, count))
                if not self.accept(","):
                    break
                self.kind("value", "a result") if not self.at_value() else None
            self.expect("=")
        name = self.take()
        op = self._generic_op(name) if name.kind == "string" else self._pretty_op(name)
        explicit = self.location()
        op.loc = explicit or self.loc(start.start)
        self._name_results(op, results, start)
        return op

    def _pretty_op(self, name: Token) -> Op:
        from mlc.ir.assembly import parse_op
        if name.kind != "word":
            self.fail(f"expected an operation, found {name.text!r}" if name.text else
                      "expected an operation, found the end of the text", token=name)
        cls = self._class(name.text, name)
        return self.guarded(name, lambda: parse_op(self, cls))

    def _class(self, name: str, token: Token) -> OpClass:
        load_dialect(name)
        cls = REGISTRY.get(name) or REGISTRY.get("builtin." + name)
        if cls is None:
            import difflib
            near = difflib.get_close_matches(name, REGISTRY, 1)
            raise ParseError(f"unknown operation {name}", code="MLC0211", loc=self.loc(token.start),
                             hint=f"did you mean {near[0]}?" if near else None)
        return cls

    def guarded(self, token: Token, make: Callable[[], Op]) -> Op:
        """Run `make`; an error about the operation gets the place of `token`."""
        try:
            return make()
        except Error as error:
            if not (error.loc.file == self.file and error.loc.col):        # an operation inside has its own place
                error.loc = self.loc(token.start)
            raise
        except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, AssertionError) as error:
            raise ParseError(f"{token.text.strip(chr(34))} is ill-formed: {error}", code="MLC0212",
                             loc=self.loc(token.start)) from None

    def _generic_op(self, token: Token) -> Op:
        cls = self._class(unquote(token.text).removeprefix("mlc."), token)
        self.expect("(")
        refs = self.list_of(self.operand, ")")
        successors = self.list_of(self.successor, "]") if self.accept("[") else []
        attrs: dict[str, Any] = {}
        if self.accept("<"):
            attrs = self.attr_dict()
            self.expect(">")
        regions: list[Region] = []
        if self.accept("("):
            regions = self.list_of(lambda: self._generic_region(cls), ")")
        if self.at("{"):
            attrs |= self.attr_dict()
        self.expect(":")
        inputs, results = self.signature()
        if len(refs) != len(inputs):
            self.fail(f"{len(refs)} operands but {len(inputs)} types", "MLC0209", token)
        operands = self.resolve_all(refs, inputs)
        segments = attrs.pop("operandSegmentSizes", None)
        return self.guarded(token, lambda: self.build(cls, operands, attrs, results, regions, successors, segments))

    def _generic_region(self, cls: OpClass) -> Region:
        """A region; `{}` has no blocks (of a module: an empty one), a block without operations has its label."""
        empty = self.tokens[self.pos + 1].text == "}" if self.at("{") else False
        region = self.region(isolated=cls.isolated)
        if empty and not cls.symbol_table:
            region.blocks.clear()
        return region

    def build(self, cls: OpClass, operands: Sequence[Value], attrs: dict[str, Any], types: Sequence[Type] | None,
              regions: Sequence[Region] = (), successors: Sequence[Block] = (),
              segments: Sequence[int] | None = None) -> Op:
        """Make the operation from what was read, with its attributes decoded to the Python types they are declared."""
        attrs = {k: decode_attr(cls, k, v) for k, v in attrs.items()}
        for f in cls.attr_fields:
            if f.name not in attrs:
                if f.name not in cls.attr_defaults:
                    raise ParseError(f"{cls.name} needs the attribute {f.name}", code="MLC0212",
                                     loc=self.loc(self.token.start))
                attrs[f.name] = f.default
        attrs = {f.name: attrs[f.name] for f in cls.attr_fields} | attrs      # in the order of declaration
        region_fields = [f for f in cls.fields if f.kind == "region"]
        if all(f.shape == "one" for f in region_fields) and len(regions) != len(region_fields):
            raise IRError(f"{cls.name} has {len(region_fields)} regions, not {len(regions)}", code="MLC0101")
        block_fields = [f for f in cls.fields if f.kind == "successor"]
        if all(f.shape == "one" for f in block_fields) and len(successors) != len(block_fields):
            raise IRError(f"{cls.name} has {len(block_fields)} successors, not {len(successors)}", code="MLC0101")
        type_fields = [f for f in cls.fields if f.kind == "type"]
        if type_fields and type_fields[0].shape == "one" and (types is None or len(types) != len(type_fields)):
            raise IRError(f"{cls.name} has {len(type_fields)} results, not {len(types or ())}", code="MLC0101")
        if segments is not None:
            segments = [int(n) for n in segments]
        return cls.make(operands, attrs, types, regions, successors, segments)

    def _name_results(self, op: Op, names: list[tuple[Token, int]], start: Token) -> None:
        total = sum(n for _, n in names)
        if names and total != len(op.results):
            self.fail(f"{op.name} has {len(op.results)} results, but {total} are named", "MLC0210", start)
        at = 0
        for token, count in names:
            base = token.text[1:]
            if count == 1:
                self.define(base, op.results[at], token)
                at += 1
                continue
            for i in range(count):
                self.define(f"{base}#{i}", op.results[at + i], token)
            at += count

    def location(self) -> Loc | None:
        """`loc(...)` if one stands here."""
        if not self.accept("loc"):
            return None
        self.expect("(")
        loc = self._location_body()
        self.expect(")")
        return loc

    def _location_body(self) -> Loc:
        if self.accept("unknown"):
            return Loc("", 0)
        self.deeper()
        name = unquote(self.kind("string", "a file or a name").text)
        if self.accept("("):
            inner = self._location_body()
            self.expect(")")
            loc = Loc(inner.file, inner.line, inner.col, (*inner.via, name))
        else:
            self.expect(":")
            line = self.integer()
            self.expect(":")
            loc = Loc(name, line, self.integer())
        self.depth -= 1
        return loc

    def module(self) -> Op:
        """The whole text as one module."""
        block = Block()
        while self.token.kind != "end":
            block.insert(self.op())
        if self.forward[-1]:
            early = next(iter(self.forward[-1].values()))
            self.fail(f"{early.token.text} is not defined", "MLC0208", early.token)
        first = block.first
        if first is not None and first.next is None and first.name == "builtin.module":
            return first.detach()
        load_dialect("builtin.module")
        return REGISTRY["builtin.module"].make([], {"sym_name": None}, [], [Region(block)], loc=Loc(self.file, 1, 1))
