"""Calls, loops and branches, and the arithmetic of scalars that decide them."""

from __future__ import annotations

from typing import Any

from mlc.backends.stablehlo.operations import result
from mlc.backends.stablehlo.writer import DATA_DEPENDENT, RUN_TIME_CHECK, Writer, array_type, refused, row
from mlc.ir.core import Op
from mlc.ir.types import TensorType, i1

ARITH = {"addi": "add", "subi": "subtract", "muli": "multiply", "andi": "and", "ori": "or", "xori": "xor",
         "maxsi": "maximum", "minsi": "minimum", "divsi": "divide", "remsi": "remainder"}
PREDICATES = {"eq": "EQ", "ne": "NE", "slt": "LT", "sle": "LE", "sgt": "GT", "sge": "GE"}


@row(*(f"arith.{n}" for n in ARITH))
def arithmetic(w: Writer, op: Op) -> str:
    """One operation on integers."""
    return w.op(ARITH[op.name.partition(".")[2]], [w.of(x) for x in op.operands], result(op))


@row("arith.constant")
def constant(w: Writer, op: Any) -> str:
    """A number."""
    return w.constant(op.value, result(op))


@row("arith.cmpi")
def compare(w: Writer, op: Any) -> str | None:
    """A comparison of signed integers."""
    x, y = (w.of(v) for v in op.operands)
    if op.predicate not in PREDICATES:
        raise refused(op, f"the comparison {op.predicate}")
    return w.compare(PREDICATES[op.predicate], x, y)


@row("arith.select")
def select(w: Writer, op: Any) -> str:
    """One of two numbers."""
    return w.select(*(w.of(v) for v in op.operands))


@row("tensor.fail_if")
def fail_if(w: Writer, op: Any) -> None:
    """XLA has no operation that stops a program because of the elements of arrays."""
    raise refused(op, f"it reports {op.message!r} where the program runs, and a program of XLA cannot stop",
                  "return the condition as a result, and check it where the results are used", RUN_TIME_CHECK)


@row("tensor.bind_size")
def bind_size(w: Writer, op: Any) -> None:
    """XLA has no size that elements determine."""
    raise refused(op, f"elements of arrays determine the size {op.size}, and XLA has none of that kind",
                  "give the array a fixed size, and a mask of the elements that count", DATA_DEPENDENT)


@row("tensor.constrain_size")
def constrain_size(w: Writer, op: Any) -> None:
    """An error for sizes that do not fit."""
    w.demand(w.compare("GE", w.size(op.size), w.size(0)), op.message)


@row("arith.index_cast", "arith.extsi", "arith.trunci", "arith.extui")
def cast(w: Writer, op: Op) -> str:
    """An integer of another width."""
    return w.cast(w.of(op.operands[0]), result(op).dtype)


@row("func.call")
def call(w: Writer, op: Any) -> list[str]:
    """A call of a function of the module."""
    names = [w.of(x) for x in op.operands]
    types = [array_type(r.type, op) for r in op.results]
    out = _results(w, types)
    w.line(f'{_bound(out)}"func.call"({", ".join(names)}) <{{callee = @{op.callee}}}> : ({w.types_of(names)}) -> '
           f"({w.types_of(out)})")
    return out


def _results(w: Writer, types: list[TensorType]) -> list[str]:
    """Names of several results."""
    return [w.new(t) for t in types]


def _bound(names: list[str]) -> str:
    return f"{', '.join(names)} = " if names else ""


def _end(w: Writer, inputs: list[str], out: list[str]) -> None:
    w.line(f"}}) : ({w.types_of(inputs)}) -> ({w.types_of(out)})")


@row("scf.if")
def branch(w: Writer, op: Any) -> list[str]:
    """One of two regions."""
    types = [array_type(r.type, op) for r in op.results]
    out, condition = _results(w, types), w.of(op.condition)
    w.line(f'{_bound(out)}"stablehlo.if"({condition}) (')
    w.region("", [], lambda _: w.block(op.then_body.block))
    w.region("}, ", [], lambda _: w.block(op.else_body.block) if op.else_body.blocks else [])
    _end(w, [condition], out)
    return out


@row("scf.for")
def counted(w: Writer, op: Any) -> list[str]:
    """A loop that carries its counter."""
    bounds = [w.of(v) for v in (op.lower, op.upper, op.step)]
    given = [bounds[0], *(w.of(v) for v in op.init)]
    types = [w.types[n] for n in given]
    out = _results(w, types)
    w.line(f'{_bound(out)}"stablehlo.while"({", ".join(given)}) (')
    w.region("", types, lambda xs: [w.compare("LT", xs[0], bounds[1])])

    def body(xs: list[str]) -> list[str]:
        w.names.update(zip(op.body.block.args, xs))
        found = w.block(op.body.block)
        return [w.op("add", [xs[0], bounds[2]], types[0]), *found]

    w.region("}, ", types, body)
    _end(w, given, out)
    return out[1:]


@row("scf.while")
def loop(w: Writer, op: Any) -> list[str]:
    """A loop whose first region decides: it runs once more for each turn, for what it gives to the second."""
    given = [w.of(v) for v in op.init]
    first = _before(w, op, given)
    going, passed = first[0], first[1:]
    carried = [going, *passed]
    types = [w.types[n] for n in carried]
    out = _results(w, types)
    w.line(f'{_bound(out)}"stablehlo.while"({", ".join(carried)}) (')
    w.region("", types, lambda xs: xs[:1])

    def body(xs: list[str]) -> list[str]:
        w.names.update(zip(op.after.block.args, xs[1:]))
        return _before(w, op, w.block(op.after.block))

    w.region("}, ", types, body)
    _end(w, carried, out)
    assert types[0] == TensorType((), i1)
    return out[1:]


def _before(w: Writer, op: Any, given: list[str]) -> list[str]:
    """The first region: whether to go on, and the values that it gives."""
    w.names.update(zip(op.before.block.args, given))
    return w.block(op.before.block)
