"""scf: structured loops and conditionals, on values of any type, with upstream's semantics.

    loop = scf.loop(zero, n, one, [start])
    with at_end(loop.block):
        Yield((loop.carried[0] + x,))
    loop.results[0]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.ir.core import Block, BlockArg, Op, OpResult, Region, ResultType, Value
from mlc.ir.types import FunctionType, IndexType, IntType, Type, i1, index

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Yield(Op, name="scf.yield", terminator=True, pure=False):
    """Yield these values to the enclosing operation."""

    values: tuple[Value, ...]

    def verify_op(self) -> None:
        parent = self.parent_op
        if isinstance(parent, For | If):
            expected = parent.results
        elif isinstance(parent, While):
            expected = parent.before.block.args  # type: ignore[assignment]
        else:
            self.fail("is outside of scf.for, scf.if and scf.while", code="MLC0160")
        if [v.type for v in self.values] != [r.type for r in expected]:
            self.fail(f"yields {_types(self.values)}, expected {_types(expected)}", code="MLC0160")

    def print_form(self, p: Printer) -> None:
        _print_values(p, self, self.values)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        values, extra = _parse_values(parser)
        return Yield.make(values, extra, None)


class For(Op, name="scf.for", pure=False, effects_inside=True):
    """x = init; for i in range(lower, upper, step): x = body(i, x); the results are the last x

    Bounds are compared signed, and the step is positive. The body takes i and then the loop-carried values.
    """

    lower: Value
    upper: Value
    step: Value
    init: tuple[Value, ...]
    body: Region

    def infer(self) -> tuple[Type, ...]:
        kind = self.lower.type
        if not isinstance(kind, IndexType | IntType) or {self.upper.type, self.step.type} != {kind}:
            self.fail("bounds and step must have the same integer type", code="MLC0160")
        return tuple(v.type for v in self.init)

    def verify_op(self) -> None:
        expected = [self.lower.type, *(v.type for v in self.init)]
        if [a.type for a in self.block.args] != expected:
            self.fail(f"the body takes {_types(self.block.args)}, expected the counter and {_types(self.init)}",
                      code="MLC0160")

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def counter(self) -> Value:
        return self.block.args[0]

    @property
    def carried(self) -> Sequence[Value]:
        return self.block.args[1:]

    def incoming(self, value: OpResult | BlockArg) -> list[Value]:
        """The values that a result, or an argument of the body, may be."""
        number = value.index - (1 if isinstance(value, BlockArg) else 0)
        return [self.init[number], self.block.terminator.operands[number]] if number >= 0 else [self.lower]

    def interpret(self, frame: Frame) -> list[Any]:
        lower, upper, step = (int(frame[v]) for v in (self.lower, self.upper, self.step))
        if step <= 0:
            self.fail(f"the step is {step}, not positive", code="MLC0161")
        values = frame.all(self.init)
        for i in range(lower, upper, step):
            values = frame.run(self.body, [i, *values])
        return values

    def print_form(self, p: Printer) -> None:
        counter, lower, upper, step = p.values([self.counter, self.lower, self.upper, self.step]).split(", ")
        p.append(f" {counter} = {lower} to {upper} step {step}")
        if self.init:
            pairs = ", ".join(f"{p.name(a)} = {p.name(v)}" for a, v in zip(self.carried, self.init))
            p.append(f" iter_args({pairs}) -> ({p.types(v.type for v in self.init)})")
        if self.lower.type != index:
            p.append(f" : {p.type(self.lower.type)}")
        p.braces(self.body, entry_args=False)
        if extra := p.attr_dict(self):
            p.append(" " + extra)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        counter = parser.kind("value", "a loop counter such as %i")
        parser.expect("=")
        bounds = [parser.operand()]
        for word in ("to", "step"):
            parser.expect(word)
            bounds.append(parser.operand())
        names, refs, types = [], [], list[Type]()
        if parser.accept("iter_args"):
            parser.expect("(")
            pairs = parser.list_of(lambda: (parser.kind("value", "a name"), parser.expect("="), parser.operand()), ")")
            names, refs = [p[0] for p in pairs], [p[2] for p in pairs]
            parser.expect("->")
            parser.expect("(")
            types = parser.list_of(parser.type, ")")
            if len(types) != len(refs):
                parser.fail(f"{len(refs)} values are carried, but {len(types)} types are given", "MLC0209")
        kind = parser.type() if parser.accept(":") else index
        operands = parser.resolve_all([*bounds, *refs], [kind] * 3 + types)
        body = parser.region([(counter, kind), *zip(names, types)])
        _end(parser, body)
        extra = parser.attr_dict() if parser.at("{") else {}
        return For.make(operands, extra, None, [body])


class If(Op, name="scf.if", pure=False, effects_inside=True):
    """results = condition ? then_body() : else_body()

    Without results, the second region may be empty.
    """

    condition: Value
    then_body: Region
    else_body: Region
    types: tuple[ResultType, ...] = ()

    def infer(self) -> tuple[Type, ...]:
        if self.condition.type != i1:
            self.fail(f"the condition is {self.condition.type}, not i1", code="MLC0160")
        return tuple(r.type for r in self.results)

    def verify_op(self) -> None:
        if self.results and not self.else_body.blocks:
            self.fail("has results, but no second region that yields them", code="MLC0160")

    def incoming(self, value: OpResult | BlockArg) -> list[Value]:
        """The values that a result may be."""
        return [region.block.terminator.operands[value.index] for region in (self.then_body, self.else_body)]

    def interpret(self, frame: Frame) -> list[Any]:
        taken = self.then_body if frame[self.condition] else self.else_body
        return frame.run(taken) if taken.blocks else []

    def print_form(self, p: Printer) -> None:
        p.append(f" {p.name(self.condition)}")
        if self.results:
            p.append(f" -> ({p.types(r.type for r in self.results)})")
        p.braces(self.then_body)
        if self.else_body.blocks:
            p.append(" else")
            p.braces(self.else_body)
        if extra := p.attr_dict(self):
            p.append(" " + extra)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        condition = parser.resolve(parser.operand(), i1)
        types: list[Type] = []
        if parser.accept("->"):
            types = parser.list_of(parser.type, ")") if parser.accept("(") else [parser.type()]
        regions = [parser.region(), parser.region() if parser.accept("else") else Region()]
        for region in regions:
            _end(parser, region)
        extra = parser.attr_dict() if parser.at("{") else {}
        return If.make([condition], extra, types, regions)


class Condition(Op, name="scf.condition", terminator=True, pure=False):
    """Continue with the second region of the loop, or exit the loop, with these values"""

    condition: Value
    values: tuple[Value, ...]

    def infer(self) -> tuple[Type, ...]:
        if self.condition.type != i1:
            self.fail(f"the condition is {self.condition.type}, not i1", code="MLC0160")
        return ()

    def verify_op(self) -> None:
        parent = self.parent_op
        if not isinstance(parent, While) or [v.type for v in self.values] != [r.type for r in parent.results]:
            self.fail("must end the first region of an scf.while, with values of its result types", code="MLC0160")

    def print_form(self, p: Printer) -> None:
        p.append(f"({p.name(self.condition)})")
        _print_values(p, self, self.values)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        parser.expect("(")
        condition = parser.resolve(parser.operand(), i1)
        parser.expect(")")
        values, extra = _parse_values(parser)
        return Condition.make([condition, *values], extra, None)


class While(Op, name="scf.while", pure=False):
    """x = init; while (going, y = before(x)): x = after(y); the results are the last y"""

    init: tuple[Value, ...]
    before: Region
    after: Region
    types: tuple[ResultType, ...] = ()

    def verify_op(self) -> None:
        if [a.type for a in self.before.block.args] != [v.type for v in self.init]:
            self.fail(f"the first region takes {_types(self.before.block.args)}, expected {_types(self.init)}",
                      code="MLC0160")
        if [a.type for a in self.after.block.args] != [r.type for r in self.results]:
            self.fail(f"the second region takes {_types(self.after.block.args)}, expected {_types(self.results)}",
                      code="MLC0160")

    def incoming(self, value: OpResult | BlockArg) -> list[Value]:
        """The values that a result, or an argument of a region, may be."""
        if value.owner is self.before.block:
            return [self.init[value.index], self.after.block.terminator.operands[value.index]]
        condition = self.before.block.terminator
        assert isinstance(condition, Condition)
        return [condition.values[value.index]]

    def interpret(self, frame: Frame) -> list[Any]:
        values = frame.all(self.init)
        while True:
            going, *values = frame.run(self.before, values)
            if not going:
                return values
            values = frame.run(self.after, values)

    def print_form(self, p: Printer) -> None:
        pairs = ", ".join(f"{p.name(a)} = {p.name(v)}" for a, v in zip(self.before.block.args, self.init))
        p.append(f" ({pairs}) : {p.type(FunctionType(tuple(v.type for v in self.init), self.types))}"
                 if pairs else f" : () -> ({p.types(self.types)})")
        p.braces(self.before, entry_args=False)
        p.append(" do")
        p.braces(self.after)
        if extra := p.attr_dict(self):
            p.append(" attributes " + extra)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        names, refs = [], []
        if parser.accept("("):
            pairs = parser.list_of(lambda: (parser.kind("value", "a name"), parser.expect("="), parser.operand()), ")")
            names, refs = [p[0] for p in pairs], [p[2] for p in pairs]
        parser.expect(":")
        inputs, results = parser.signature()
        operands = parser.resolve_all(refs, inputs)
        before = parser.region(list(zip(names, inputs)))
        parser.expect("do")
        after = parser.region()
        _end(parser, after)
        extra = parser.attr_dict() if parser.accept("attributes") else {}
        return While.make(operands, extra, results, [before, after])


class Reduce(Op, name="scf.reduce", terminator=True, pure=False):
    """Terminator of the body of an scf.parallel; there is no reduction"""

    def verify_op(self) -> None:
        if not isinstance(self.parent_op, Parallel):
            self.fail("is outside of scf.parallel", code="MLC0160")

    def print_form(self, p: Printer) -> None:
        if extra := p.attr_dict(self):
            p.append(" " + extra)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        return Reduce.make([], parser.attr_dict() if parser.at("{") else {}, None)


class Parallel(Op, name="scf.parallel", pure=False, effects_inside=True):
    """for every i0 in range(lower0, upper0, step0), i1 in range(lower1, upper1, step1), ...: body(i0, i1, ...)

    In any order, or concurrently: no iteration accesses an element that another one writes. Each is large enough for a
    thread of its own. There are no reductions, hence no `init` values.
    """

    lower: tuple[Value, ...]
    upper: tuple[Value, ...]
    step: tuple[Value, ...]
    init: tuple[Value, ...]
    body: Region

    def infer(self) -> tuple[Type, ...]:
        if not len(self.lower) == len(self.upper) == len(self.step) > 0:
            self.fail("needs as many lower bounds as upper bounds and steps, at least one of each", code="MLC0160")
        if any(v.type != index for v in self.operands) or self.init:
            self.fail("bounds and steps must be indices, and reductions are not supported", code="MLC0160")
        return ()

    def verify_op(self) -> None:
        if [a.type for a in self.counters] != [index] * len(self.lower):
            self.fail(f"the body takes {_types(self.counters)}, expected one index per dimension", code="MLC0160")

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def counters(self) -> Sequence[Value]:
        return self.block.args

    def interpret(self, frame: Frame) -> list[Any]:
        lower, upper, step = ([int(frame[v]) for v in group] for group in (self.lower, self.upper, self.step))
        if min(step) <= 0:
            self.fail(f"the step is {min(step)}, not positive", code="MLC0161")
        for counters in reversed([*itertools.product(*map(range, lower, upper, step))]):
            frame.run(self.body, counters)                 # not in sequential order, to expose dependences
        return []

    def print_form(self, p: Printer) -> None:
        lower, upper, step = (f"({p.values(group)})" for group in (self.lower, self.upper, self.step))
        p.append(f" ({p.values(self.counters)}) = {lower} to {upper} step {step}")
        p.braces(self.body, entry_args=False)
        if extra := p.attr_dict(self, ("operandSegmentSizes",)):
            p.append(" " + extra)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        parser.expect("(")
        counters = parser.list_of(lambda: parser.kind("value", "a loop counter such as %i"), ")")
        groups = []
        for word in ("=", "to", "step"):
            parser.expect(word)
            parser.expect("(")
            groups.append(parser.list_of(parser.operand, ")"))
        operands = parser.resolve_all([ref for group in groups for ref in group], [index] * sum(map(len, groups)))
        body = parser.region([(counter, index) for counter in counters])
        _end(parser, body, Reduce)
        extra = parser.attr_dict() if parser.at("{") else {}
        return Parallel.make(operands, extra, None, [body], segments=[*map(len, groups), 0])


def loop(lower: Value, upper: Value, step: Value, init: Sequence[Value] = (), name: str = "") -> For:
    """A loop whose body has its arguments but no operations; end it with Yield."""
    return For(lower, upper, step, tuple(init), Region(Block([lower.type, *(v.type for v in init)], [name])))


def parallel(lower: Sequence[Value], upper: Sequence[Value], step: Sequence[Value],
             names: Sequence[str] = ()) -> Parallel:
    """A parallel loop with an empty body; end it with Reduce."""
    body = Region(Block([index] * len(lower), names))
    return Parallel(tuple(lower), tuple(upper), tuple(step), (), body)


def branch(condition: Value, types: Sequence[Type] = (), otherwise: bool = True) -> If:
    """A conditional with empty blocks; end each with Yield. Without `otherwise` there is no second one."""
    return If(condition, Region(Block()), Region(Block()) if otherwise or types else Region(), tuple(types))


def _end(parser: Parser, region: Region, terminator: type[Op] = Yield) -> None:
    """Insert a terminator without values that the text omits, located at the closing brace."""
    for block in region.blocks:
        if block.last is None or not block.last.terminator:
            block.insert(terminator.make([], {}, None, loc=parser.loc(parser.tokens[parser.pos - 1].start)))


def _print_values(p: Printer, op: Op, values: Sequence[Value]) -> None:
    """`{attributes} %a, %b : type, type`."""
    if extra := p.attr_dict(op):
        p.append(" " + extra)
    if values:
        p.append(f" {p.values(values)} : {p.types(v.type for v in values)}")


def _parse_values(parser: Parser) -> tuple[list[Value], dict[str, Any]]:
    extra = parser.attr_dict() if parser.at("{") else {}
    refs = parser.operand_list()
    types = parser.type_list() if refs and parser.accept(":") else None
    return parser.resolve_all(refs, types), extra


def _types(values: Sequence[Value]) -> str:
    return ", ".join(str(v.type) for v in values) or "nothing"
