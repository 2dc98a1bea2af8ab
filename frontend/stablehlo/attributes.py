"""Reads the types and attributes of StableHLO."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import numpy as np

from mlc.frontend.stablehlo.syntax import SYNTAX, UNSUPPORTED, ArrayType, TokenType, TupleType, ValueType
from mlc.ir.diag import Loc, UserError
from mlc.ir.lexer import Token
from mlc.ir.type_parser import TypeParser
from mlc.ir.types import SCALARS, ScalarType

ENUM = re.compile(r"#stablehlo<\s*\w+\s+(\w+)\s*>")
NARROW = re.compile(r"f8\w+|f6\w+|f4\w+|u?i[24]\b|s?i\d+|f\d+|tf32")
LONGEST = 300
"""Most characters of a message, which may quote the text."""
SIGNED = {f"si{n}": f"i{n}" for n in (8, 16, 32, 64)}


class AttributeReader(TypeParser):
    """Types are `ArrayType`, `TokenType` and `TupleType`; enumerations are their words, structures are dicts."""

    dense_type: ArrayType | None = None                    # of the last constant: the type behind it belongs to both

    def dense(self) -> tuple[np.ndarray[Any, Any], Any]:
        """`dense<...> : tensor<...>` as an array, with its type."""
        array, type = super().dense()
        found: Any = type
        self.dense_type = found
        return array, type

    def splat(self, value: np.ndarray[Any, Any], shape: Any) -> np.ndarray[Any, Any]:
        """An array whose elements are all the same, which takes the memory of one."""
        return np.broadcast_to(value, shape)

    def fail_at(self, offset: int, message: str, code: str) -> NoReturn:
        """Raise an error at a place of the text."""
        message = message if len(message) <= LONGEST else message[:LONGEST] + "..."
        raise UserError(message, code=code if code == UNSUPPORTED else SYNTAX, loc=self.loc(offset))

    # -- types ----------------------------------------------------------------------------------------------------
    def value_type(self) -> ValueType:
        """The type of a value; a bare element type is refused."""
        token = self.token
        found = self._type()
        if not isinstance(found, ArrayType | TokenType | TupleType):
            self.fail(f"{found} is no type of a value", SYNTAX, token)
        return found

    def _type(self) -> Any:
        token = self.token
        self.deeper()
        try:
            if token.kind == "dtype":
                return self._dialect_type(self.take())
            if token.text == "tensor":
                self.take()
                return self._array(token)
            if token.text == "tuple":
                self.take()
                self.expect("<")
                return TupleType(tuple(self.list_of(self.value_type, ">")))
            if token.text == "(":
                return self.signature()
            return self._scalar(token)
        finally:
            self.depth -= 1

    type = _type

    def _dialect_type(self, token: Token) -> Any:
        if token.text in ("!stablehlo.token", "!mhlo.token"):
            return TokenType()
        if token.text.startswith("!quant"):
            self.fail("quantized types are not supported", UNSUPPORTED, token)
        self.fail(f"the type {token.text} is not supported", UNSUPPORTED, token)

    def _scalar(self, token: Token) -> Any:
        self.take()
        if token.text in SCALARS:
            return SCALARS[token.text]
        if token.text in SIGNED:
            return SCALARS[SIGNED[token.text]]
        if token.text == "complex":
            self.expect("<")
            part = self.word()
            self.expect(">")
            return SCALARS.get(f"complex<{part}>") or self.fail(f"complex<{part}> is no type", SYNTAX, token)
        if token.text == "none":
            return None
        if NARROW.fullmatch(token.text):
            self.fail(f"elements of {token.text} are not supported", UNSUPPORTED, token)
        self.fail(f"expected a type, found {token.text[:40]!r}" if token.text else "expected a type", SYNTAX, token)

    def _array(self, token: Token) -> ArrayType:
        self.expect("<")
        at = self.token.start
        if self.text.startswith("*", at):
            self.fail("arrays of unknown rank are not supported", UNSUPPORTED, token)
        rest = re.compile(r"(?:\s*(?:\d+|\?)\s*x)*").match(self.text, at)
        assert rest is not None
        word = re.compile(r"\s*(![\w.]+|[A-Za-z]\w*)").match(self.text, rest.end())
        if word and word[1].startswith("!quant"):
            self.fail("quantized types are not supported", UNSUPPORTED, token)
        if word and word[1] not in SCALARS and word[1] not in SIGNED and NARROW.fullmatch(word[1]):
            self.fail(f"elements of {word[1]} are not supported", UNSUPPORTED, token)
        shape, dtype = self.shape()
        if self.accept(","):                               # an encoding: bounds of dynamic sizes, or a layout
            self.fail("bounded sizes and other encodings of types are not supported", UNSUPPORTED, token)
        self.expect(">")
        return ArrayType(tuple(shape), dtype)

    def signature(self) -> tuple[list[Any], list[Any]]:
        """`(types) -> types`."""
        self.expect("(")
        inputs = self.list_of(self.value_type, ")")
        self.expect("->")
        results = self.list_of(self._result_type, ")") if self.accept("(") else [self.value_type()]
        return inputs, results

    def _result_type(self) -> ValueType:
        found = self.value_type()
        if self.at("{"):
            self.attr_dict()
        return found

    def types(self) -> list[ValueType]:
        """One or more types, comma separated."""
        out = [self.value_type()]
        while self.accept(","):
            out.append(self.value_type())
        return out

    # -- attributes -----------------------------------------------------------------------------------------------
    def _attribute(self) -> Any:
        token = self.token
        if token.text in ("dense_resource", "sparse", "opaque"):
            self.fail(f"constants {token.text}<...> are not supported", UNSUPPORTED)
        if token.kind in ("number", "hex"):
            found = self.typed_number()[0]
            return found
        if token.text == "-":
            self.fail(f"expected a number, found {token.text!r}", SYNTAX)
        if token.text == "loc":
            self.skip_location()
            return None
        return super()._attribute()

    def typed_number(self, default: Any = None) -> Any:
        """`3 : i32`, `1.5`, `0x7FC00000 : f32`; the type is optional."""
        token = self.take()
        type = self._type() if self.accept(":") else default
        return self.number_of(token, type if isinstance(type, ScalarType) else None), type

    def hash_attribute(self) -> Any:
        """`#stablehlo<direction LT>` as LT, `#stablehlo.gather<...>` as a dict, `#stablehlo.conv<...>` as its parts."""
        token = self.take()
        if not self.at("<"):
            return token.text
        if token.text in ("#stablehlo", "#chlo", "#mhlo"):
            self.take()
            self.word()
            found = self.take().text
            self.expect(">")
            return found
        if token.text in ("#stablehlo.conv", "#mhlo.conv"):
            self.take()
            parts = self.convolution_dimensions()
            self.expect(">")
            return parts
        if token.text.startswith(("#stablehlo.", "#chlo.", "#mhlo.")):
            self.take()
            return dict(self.list_of(self._field, ">"))
        return self._skipped(token)

    def _field(self) -> tuple[str, Any]:
        name = self.word("the name of a field")
        return name, self.attribute() if self.accept("=") else True

    def _skipped(self, token: Token) -> str:
        """The text of an attribute of another dialect."""
        depth = 0
        while True:
            found = self.take()
            if found.kind == "end":
                self.fail("the attribute does not end", SYNTAX, token)
            depth += (found.kind == "punct") * ((found.text == "<") - (found.text == ">"))
            if not depth:
                return self.text[token.start: found.start + 1]

    def convolution_dimensions(self) -> list[list[Any]]:
        """`[b, 0, f]x[0, i, o]->[b, 0, f]` as three lists of letters and numbers."""
        at = self.token.start
        one = r"\[([\w\s,?]*)\]"
        m = re.compile(rf"\s*{one}\s*x\s*{one}\s*->\s*{one}").match(self.text, at)
        if m is None:
            self.fail("expected dimension numbers such as [b, 0, f]x[0, i, o]->[b, 0, f]", SYNTAX)
        while self.token.start < m.end() and self.token.kind != "end":
            self.take()
        parts = [[x.strip() for x in found.split(",")] for found in m.groups()]
        return [[int(x) if x.isdigit() and len(x) < 4 else x for x in part] for part in parts]

    # -- locations ------------------------------------------------------------------------------------------------
    def skip_location(self) -> None:
        """An optional `loc(...)`: places are those of the text."""
        if not self.accept("loc"):
            return
        start = self.expect("(")
        depth = 1
        while depth:
            token = self.take()
            if token.kind == "end":
                self.fail("the location does not end", SYNTAX, start)
            depth += (token.kind == "punct") * ((token.text == "(") - (token.text == ")"))

    def alias(self) -> None:
        """`#loc1 = loc(...)`: a location under a name; other aliases are refused."""
        token = self.take()
        self.expect("=")
        if not token.text.startswith("#loc"):
            self.fail(f"the alias {token.text} is not supported", UNSUPPORTED, token)
        self.skip_location()

    def place(self, token: Token) -> Loc:
        """The place of a token."""
        return self.loc(token.start)
