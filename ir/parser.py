"""The parser: both textual forms of every level.

Input is untrusted: nesting, token counts and sizes are bounded before anything is built, and every fault raises a
ParseError or IRError with line and column.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from mlc.ir.core import REGISTRY, Block, Op, Region, Value
from mlc.ir.diag import MODULE, Error, IRError, Loc, ParseError
from mlc.ir.files import read_at_most
from mlc.ir.lexer import MAX_TEXT, Token
from mlc.ir.literals import decode_attr, unquote
from mlc.ir.type_parser import TypeParser, load_dialect
from mlc.ir.types import Type

OpClass = type[Op]                       # inside Parser, `type` is a method


@dataclass(slots=True)
class Unresolved:
    """A use of a value by name, before its type is known."""

    name: str
    token: Token


class _Placeholder(Value):
    """Placeholder for a value that is used before its definition."""

    __slots__ = ("token",)
    token: Token


@lru_cache(1024)
def _nearest(name: str) -> str | None:
    """A hint that an unknown operation is a known one misspelled; looking takes longer than to read many operations."""
    import difflib
    near = difflib.get_close_matches(name, REGISTRY, 1)
    return f"did you mean {near[0]}?" if near else None


def parse_file(path: str | os.PathLike[str]) -> Op:
    """Read a module from a file; a missing or undecodable file is a ParseError."""
    try:
        text = read_at_most(path, MAX_TEXT)
    except OSError as error:
        raise ParseError(f"cannot read {path}: {error.strerror}", code="MLC0201") from None
    try:
        return parse_module(text.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not UTF-8: byte {text[error.start]:#04x} at offset {error.start}",
                         code="MLC0202") from None


def parse_module(text: str, file: str = "<text>") -> Op:
    """Parse a `builtin.module`; a text without one is wrapped in one."""
    parser = Parser(text, file)
    return parser.module()


class Parser(TypeParser):
    """Parses operations: a position in a list of tokens, and the names in scope."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.scopes: list[dict[str, Value]] = [{}]
        self.forward: list[dict[str, _Placeholder]] = [{}]
        self.block_names: list[dict[str, Block]] = []

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
        """The value of a name; a forward reference needs a type, and resolves to a placeholder until its definition."""
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
        """`{ blocks }`. `args` are the arguments of an entry block without a header."""
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
        """Move a forward reference to the enclosing region, which may define it later."""
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
        """One operation with its results, detached; defines the names of its results."""
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
        cls = REGISTRY.get(name) or REGISTRY.get("builtin." + name) or REGISTRY.get("func." + name)
        if cls is None:
            raise ParseError(f"unknown operation {name}", code="MLC0211", loc=self.loc(token.start),
                             hint=_nearest(name))
        return cls

    def guarded(self, token: Token, make: Callable[[], Op]) -> Op:
        """Run `make`; errors about the operation are located at `token`."""
        try:
            return make()
        except Error as error:
            if not (error.loc.file == self.file and error.loc.col):        # a nested operation has its own location
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
        """A region; `{}` has no blocks (in a module: an empty one), an empty block is written as its label."""
        empty = self.tokens[self.pos + 1].text == "}" if self.at("{") else False
        region = self.region(isolated=cls.isolated)
        if empty and not cls.symbol_table:
            region.blocks.clear()
        return region

    def build(self, cls: OpClass, operands: Sequence[Value], attrs: dict[str, Any], types: Sequence[Type] | None,
              regions: Sequence[Region] = (), successors: Sequence[Block] = (),
              segments: Sequence[int] | None = None) -> Op:
        """Build the operation from its parsed parts; attributes are decoded to their declared Python types."""
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
        """An optional `loc(...)`."""
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
        if self.accept("fused"):
            self.expect("[")
            found: list[Loc] = self.list_of(self._location_body, "]") or [Loc("", 0)]
            self.depth -= 1
            loc = found[0]
            for other in found[1:]:
                loc = loc.with_fused(other)
            return loc
        name = unquote(self.kind("string", "a file or a name").text)
        if self.accept("("):
            inner = self._location_body()
            self.expect(")")
            if name.startswith(MODULE):
                loc = replace(inner, scope=name.removeprefix(MODULE))
            else:
                loc = replace(inner, via=(*inner.via, name))
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
