"""Parser: lark parses each logical line by grammar.lark, and the layout determines how lines nest.

A line with a syntax error is reported, and parsing continues with the next, so all syntax errors of a file are found in
one run. Trees are built while lark reduces, without recursion, and each node has its height, so that too deep nesting
is rejected before any recursive function runs.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from mlc.frontend.language import syntax as S
from mlc.frontend.language.diagnostics import Diagnostics, Source
from mlc.frontend.language.layout import Layout, Line
from mlc.ir.diag import UserError

DEEPEST = 60
"""Limit on the nesting of expressions."""
KEYWORDS = frozenset({"def", "model", "import", "from", "as", "for", "in", "if", "elif", "else", "while", "unroll",
                      "return", "yield", "assert", "buffer", "and", "or", "not", "true", "false", "none"})
_HEADS = (S.If, S.Else, S.While, S.For, S.Function, S.Model, S.Broken)


class TooDeep(Exception):
    """An expression is nested too deeply; `at` says where."""

    def __init__(self, at: int) -> None:
        self.at = at


class Keyword(Exception):
    """A keyword is used as a name."""

    def __init__(self, token: Token) -> None:
        self.token = token


class Builder(Transformer[Token, Any]):
    """Builds nodes from lark's reductions. Offsets are relative to the line until `Reader` moves them."""

    def __init__(self) -> None:
        super().__init__()
        self.base = 0

    def _at(self, x: Any) -> int:
        return self.base + (x.start_pos or 0) if isinstance(x, Token) else int(x.at)

    def _node(self, cls: Callable[..., Any], at: int, *fields: Any, **keywords: Any) -> Any:
        node = cls(*fields, **keywords)
        node.at = at
        node.depth = 1 + max((x.depth for x in _nodes((fields, tuple(keywords.values())))), default=0)
        if node.depth > DEEPEST:
            raise TooDeep(at)
        return node

    def _name(self, token: Token) -> str:
        if token.value in KEYWORDS:
            raise Keyword(token)
        if token.value.startswith("__"):
            raise Misplaced(self._at(token), f"{token.value} is no name: those with two underscores are Python's",
                            f"call it {token.value.strip('_') or 'x'}", "MLC0650")
        return str(token.value)

    # -- expressions --------------------------------------------------------------------------------------------------
    def variable(self, children: list[Token]) -> Any:
        return self._node(S.Name, self._at(children[0]), self._name(children[0]))

    def number(self, children: list[Token]) -> Any:
        text = children[0].value.replace("_", "")
        value = int(text.lstrip("0")[:40] or "0") if text.isdecimal() else float(text)     # of more digits none fits
        return self._node(S.Literal, self._at(children[0]), value)

    def string(self, children: list[Token]) -> Any:
        return self._node(S.Literal, self._at(children[0]), unquoted(children[0].value))

    def constant(self, children: list[Token]) -> Any:
        value = {"true": True, "false": False, "none": None}[children[0].value]
        return self._node(S.Literal, self._at(children[0]), value)

    def rest(self, children: list[Token]) -> Any:
        return self._node(S.Literal, self._at(children[0]), ...)

    def unit(self, children: list[Token]) -> Any:
        return self._node(S.Tuple, self._at(children[0]), ())

    def grouped(self, children: list[Any]) -> Any:
        inside = children[1]
        if isinstance(inside, S.Tuple) and not inside.brackets:
            inside.grouped = True                          # [(a, b)] is no [a, b]
        return inside

    def expressions(self, children: list[Any]) -> Any:
        items = _kept(children)
        if len(items) == 1 and children[-1] is None:
            return items[0]
        return self._node(S.Tuple, items[0].at, items)

    def listed(self, children: list[Any]) -> Any:
        inside = children[1]
        several = isinstance(inside, S.Tuple) and not inside.brackets and not inside.grouped
        items = () if inside is None else inside.items if several else (inside,)
        return self._node(S.Tuple, self._at(children[0]), items, brackets=True)

    def comprehension(self, children: list[Any]) -> Any:
        bracket, value, target, source = children
        return self._node(S.Comprehension, self._at(bracket), value, self._target(target), source)

    def function(self, children: list[Any]) -> Any:
        head, value = children
        names = head.items if isinstance(head, S.Tuple) and not head.brackets else (head,)
        parameters = []
        for x in names:
            if not isinstance(x, S.Name):
                raise Misplaced(x.at, "before => stand names", "write x => ..., or (x, y) => ...")
            parameters.append(self._node(S.Parameter, x.at, x.name))
        return self._node(S.Lambda, head.at, parameters, value)

    def chosen(self, children: list[Any]) -> Any:
        value, word, condition, _, other = children
        return self._node(S.Choice, self._at(word), value, condition, other)

    def logical(self, children: list[Any]) -> Any:
        return self._node(S.Logical, self._at(children[1]), str(children[1]), children[::2])

    def prefix(self, children: list[Any]) -> Any:
        operator, operand = children
        if operator != "not" and isinstance(operand, S.Literal) and type(operand.value) in (int, float):
            value: Any = operand.value
            return self._node(S.Literal, self._at(operator), -value if operator == "-" else value)
        return self._node(S.Prefix, self._at(operator), str(operator), operand)

    def chain(self, children: list[Any]) -> Any:
        return self._node(S.Chain, children[0].at, children[0], self._pairs(children[1:]))

    def compared(self, children: list[Any]) -> Any:
        return self._node(S.Compared, children[0].at, children[0], self._pairs(children[1:]))

    def _pairs(self, children: list[Any]) -> list[tuple[str, int, Any]]:
        return [(str(op), self._at(op), x) for op, x in zip(children[::2], children[1::2])]

    def range(self, children: list[Any]) -> Any:
        first, dots, last = children
        return self._node(S.Range, self._at(dots), first, last)

    def arguments(self, children: list[Any]) -> Any:
        return _kept(children)

    def keyword(self, children: list[Any]) -> Any:
        return self._name(children[0]), self._at(children[0]), children[1]

    def call(self, children: list[Any]) -> Any:
        function, given = children
        at = function.at
        seen = set[str]()
        for x in given:
            if isinstance(x, tuple):
                if x[0] in seen:
                    raise Misplaced(x[1], f"{x[0]} is given twice", "give it once")
                seen.add(x[0])
            elif seen:
                raise Misplaced(x.at, "an argument without a name follows one with a name", "put it before them")
        return self._node(S.Call, at, function, [x for x in given if not isinstance(x, tuple)],
                          [x for x in given if isinstance(x, tuple)])

    def slice(self, children: list[Any]) -> Any:
        first, colon, last, _, step = children
        return self._node(S.Slice, self._at(colon if first is None else first), (first, last, step))

    def indexed(self, children: list[Any]) -> Any:
        indices = _kept(children[1:])
        alone = len(indices) == 1 and children[-1] is None
        return self._node(S.Indexed, self._at(children[1]), children[0], indices, alone)

    def attribute(self, children: list[Any]) -> Any:
        return self._node(S.Attribute, self._at(children[1]), children[0], str(children[1]))

    def derivative(self, children: list[Any]) -> Any:
        return self._node(S.Derivative, children[0].at, children[0])

    # -- types --------------------------------------------------------------------------------------------------------
    def tensor_type(self, children: list[Any]) -> Any:
        return self._node(S.TensorType, self._at(children[0]), str(children[0]), _kept(children[1:]))

    def plain_type(self, children: list[Any]) -> Any:
        return self._node(S.NamedType, self._at(children[0]), [str(x) for x in children])

    def model_type(self, children: list[Any]) -> Any:
        *names, given = children
        at = self._at(names[0])
        function = self._node(S.Name, at, str(names[0]))
        for name in names[1:]:
            function = self._node(S.Attribute, self._at(name), function, str(name))
        return self._node(S.NamedType, at, [str(x) for x in names], self.call([function, given]))

    def tuple_type(self, children: list[Any]) -> Any:
        items = _kept(children)
        return items[0] if len(items) == 1 and children[-1] is None else self._node(
            S.TupleType, self._at(children[0]), items)

    def like_type(self, children: list[Any]) -> Any:
        return self._node(S.LikeType, self._at(children[0]), children[1])

    # -- statements ---------------------------------------------------------------------------------------------------
    def evaluated(self, children: list[Any]) -> Any:
        return self._node(S.Evaluated, children[0].at, children[0])

    def assigned(self, children: list[Any]) -> Any:
        return self._node(S.Assigned, children[0].at, self._target(children[0]), children[1])

    def updated(self, children: list[Any]) -> Any:
        target, operator, value = children
        if not isinstance(target, S.Name):
            raise Misplaced(target.at, f"{operator} changes a name", "write name += value")
        return self._node(S.Assigned, self._at(operator), target, value, str(operator)[:-1])

    def _target(self, node: Any) -> Any:
        """Check the target of an assignment: a name, or a tuple of targets."""
        work = [node]
        while work:
            x = work.pop()
            if isinstance(x, S.Tuple) and x.items and not x.brackets:
                work += x.items
            elif isinstance(x, S.Indexed):
                raise Misplaced(x.at, "elements of a tensor cannot be assigned: values never change",
                                "make a changed one with where, index_copy, scatter or dynamic_update_slice")
            elif not isinstance(x, S.Name):
                raise Misplaced(x.at, "only names can be given a value", "write name = value, or a, b = values")
        return node

    def declared(self, children: list[Any]) -> Any:
        buffer, name, _, type, value = children
        drawn = isinstance(value, Drawn)
        return self._node(S.Declared, self._at(name), self._name(name), type, None if drawn else value,
                          value.value if drawn else None, buffer is not None)

    def drawn(self, children: list[Any]) -> Any:
        return Drawn(children[0])

    def returned(self, children: list[Any]) -> Any:
        return self._node(S.Returned, self._at(children[0]), children[1])

    def yielded(self, children: list[Any]) -> Any:
        return self._node(S.Yielded, self._at(children[0]), children[1])

    def asserted(self, children: list[Any]) -> Any:
        message = next((unquoted(x.value) for x in children[2:] if isinstance(x, Token) and x.type == "STRING"), None)
        return self._node(S.Asserted, self._at(children[0]), children[1], message)

    def if_head(self, children: list[Any]) -> Any:
        return self._node(S.If, self._at(children[0]), children[1])

    def elif_head(self, children: list[Any]) -> Any:
        return self._node(S.Else, self._at(children[0]), children[1])

    def else_head(self, children: list[Any]) -> Any:
        return self._node(S.Else, self._at(children[0]), None)

    def while_head(self, children: list[Any]) -> Any:
        return self._node(S.While, self._at(children[0]), children[1])

    def for_head(self, children: list[Any]) -> Any:
        unrolled, target, source, _ = children
        return self._node(S.For, target.at, self._target(target), source, unrolled is not None)

    def collected(self, children: list[Any]) -> Any:
        results, target, source, _ = children
        return self._node(S.For, target.at, self._target(target), source, False, self._target(results))

    # -- definitions --------------------------------------------------------------------------------------------------
    def parameter(self, children: list[Any]) -> Any:
        name, _, type, default = children
        return self._node(S.Parameter, self._at(name), self._name(name), type, default)

    def parameters(self, children: list[Any]) -> Any:
        found = _kept(children)
        names = [p.name for p in found]
        for i, p in enumerate(found):
            if p.name in names[:i]:
                raise Misplaced(p.at, f"two parameters are called {p.name}", "give one another name")
            if i and p.default is None and found[i - 1].default is not None:
                raise Misplaced(p.at, f"{p.name} has no default, and {names[i - 1]} before it has one",
                                f"put {p.name} before it, or give it a default")
        return Parameters(found)

    def body(self, children: list[Any]) -> Any:
        return self._node(S.Returned, children[0].at, children[0])

    def definition(self, children: list[Any]) -> Any:
        name, parameters, result, *body = children
        out = self._node(S.Function, self._at(name), self._name(name), parameters.found, result)
        out.body = _kept(body)
        return out

    def model(self, children: list[Any]) -> Any:
        name, parameters, _ = children
        return self._node(S.Model, self._at(name), self._name(name), parameters.found if parameters else ())

    def import_file(self, children: list[Any]) -> Any:
        file, name = children
        path = unquoted(file.value)
        given = self._name(name) if name is not None else re.sub(r"\W", "_", Path(path).stem)
        return self._node(S.Import, self._at(file), path, given)

    def import_names(self, children: list[Any]) -> Any:
        file, *names = (x for x in children if x.type != "COMMA")
        return self._node(S.Import, self._at(file), unquoted(file.value), "",
                          [(self._name(x), self._at(x)) for x in names])


class Drawn:
    """`~ distribution`, until its declaration is built."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.at, self.depth = value.at, value.depth


class Parameters:
    """The parameters of a definition, until it is built."""

    def __init__(self, found: Sequence[Any]) -> None:
        self.found = found


class Misplaced(Exception):
    """Error for syntax that the grammar accepts and the language does not."""

    def __init__(self, at: int, message: str, hint: str, code: str = "MLC0620") -> None:
        self.at, self.message, self.hint, self.code = at, message, hint, code


def _kept(children: Sequence[Any]) -> list[Any]:
    """The children without punctuation and gaps."""
    return [x for x in children if x is not None and not isinstance(x, Token)]


def _nodes(fields: Any) -> list[Any]:
    """The nodes directly in a node's fields, which are lists and tuples of them."""
    out, work = list[Any](), [fields]
    while work:
        x = work.pop()
        if type(x) in _SEQUENCES:
            work += x
        elif isinstance(x, S.Node):
            out.append(x)
    return out


_SEQUENCES = (list, tuple)


_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def unquoted(text: str) -> str:
    """The value of a string literal."""
    inside = text[3:-3] if text.startswith('"""') else text[1:-1]
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), inside)


reading = threading.Lock()
"""There is one parser, whose builder knows the line that is read."""


@cache
def _lark() -> tuple[Lark, Builder]:
    builder = Builder()
    text = (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="contextual", maybe_placeholders=True,
                transformer=builder), builder


# -- a whole file -----------------------------------------------------------------------------------------------------
class Reader:
    """Parses one source; errors go to `diagnostics`."""

    def __init__(self, source: Source, diagnostics: Diagnostics) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.lark, self.builder = _lark()

    def read(self) -> S.File:
        lines = Layout(self.source, self.diagnostics).split()
        with reading:
            body = self._block(lines)
        return S.File(body, S.take_doc(body))

    def error(self, at: int, message: str, hint: str | None = None, code: str = "MLC0620") -> None:
        self.diagnostics.add(UserError(message, code=code, loc=self.source.loc(at), hint=hint))

    def _block(self, lines: Sequence[Line]) -> list[S.Node]:
        out: list[S.Node] = []
        for line in lines:
            node = self._line(line)
            body = self._block(line.block)
            if isinstance(node, S.Function) and node.body and body:
                self.error(line.block[0].at, f"{node.name} has its result after = and a block too",
                           "write : in place of = and the result, and return it at the end of the block")
            elif isinstance(node, _HEADS):
                if not body and not isinstance(node, S.Broken) and not (isinstance(node, S.Function) and node.body):
                    self.error(line.at, "a block is missing after this line", "indent the lines that belong to it")
                if isinstance(node, S.Function | S.Model):
                    node.doc = S.take_doc(body)
                node.body = [*node.body, *body]
            elif body:
                self.error(line.block[0].at, "this line is indented, but the line above it begins no block",
                           "indent it as the line above")
                out.append(node)
                out += body
                continue
            if isinstance(node, S.Else):
                self._join(node, out)
            else:
                out.append(node)
        return out

    def _join(self, node: S.Else, before: list[S.Node]) -> None:
        """Attach an `elif` or `else` to the `if` directly above it."""
        last = before[-1] if before else None
        while isinstance(last, S.If) and last.other and isinstance(last.other[0], S.If) and last.other[0].is_elif:
            last = last.other[0]
        if isinstance(last, S.Broken):
            return
        if not isinstance(last, S.If) or last.other:
            word = "else" if node.condition is None else "elif"
            self.error(node.at, f"there is no if above this {word}", f"indent {word} as its if")
            return
        if node.condition is None:
            last.other = node.body
        else:
            other = S.If(node.condition, node.body, is_elif=True)
            other.at = node.at
            last.other = [other]

    def _line(self, line: Line) -> Any:
        text = self.source.text[line.at: line.end]
        if line.broken:
            return self._broken(line, text)
        self.builder.base = line.at
        try:
            return self.lark.parse(text)
        except Misplaced as error:
            self.error(error.at, error.message, error.hint, error.code)
        except TooDeep as error:
            self.error(error.at, f"expressions are nested more than {DEEPEST} deep",
                       "name parts of it on lines of their own", "MLC0621")
        except Keyword as error:
            at = line.at + (error.token.start_pos or 0)
            self.error(at, f"{error.token.value} is a word of the language and no name", "choose another name")
        except UnexpectedInput as error:
            self._unexpected(line, text, error)
        return self._broken(line, text)

    def _broken(self, line: Line, text: str) -> S.Broken:
        """Placeholder for a line that could not be parsed; its names are not reported as unknown."""
        out = S.Broken(bound_names(text))
        out.at = line.at
        return out

    def _unexpected(self, line: Line, text: str, error: UnexpectedInput) -> None:
        from mlc.frontend.language.expectations import described
        if isinstance(error, UnexpectedToken):
            offset = len(text) if error.token.type == "$END" else error.token.start_pos or 0
            found, expected = ("" if error.token.type == "$END" else str(error.token)), error.accepts or error.expected
        else:
            assert isinstance(error, UnexpectedCharacters)
            place: Any = error.pos_in_stream
            offset, found, expected = place, text[place], set()
        message, hint = described(text, offset, found, expected)
        self.error(line.at + offset, message, hint)


def bound_names(text: str) -> list[str]:
    """The names that an unparsable line seems to assign."""
    words: list[str] = re.findall(r"[^\W\d]\w*", text)
    if words and words[0] in ("def", "model"):
        return words[1:2]
    if words and words[0] in ("import", "from"):
        return [w for w in words[1:] if w not in KEYWORDS]
    if (m := re.match(r"(?:unroll\s+)?for\s+(.*?)\s+in\b", text)) or (m := re.match(r"([^=:~]*)[=:~]", text)):
        return [w for w in re.findall(r"[^\W\d]\w*", m[1]) if w not in KEYWORDS]
    return []


def parse(source: Source, diagnostics: Diagnostics) -> S.File:
    """Parse a text to a syntax tree, with `Broken` for unparsable lines."""
    return Reader(source, diagnostics).read()
