"""Calls, loops and branches, errors, and the arithmetic of scalars that decide them."""

from __future__ import annotations

from typing import Any

from mlc.backends.onnx import elementwise
from mlc.backends.onnx.writer import Writer, array_type, refused, result, row
from mlc.dialects.func import Func
from mlc.ir.core import Op
from mlc.ir.types import TensorType, bind_symbols, i1, i64

ARITH = {"addi": "Add", "subi": "Sub", "muli": "Mul", "maxsi": "Max", "minsi": "Min"}
BITS = {"andi": ("And", "BitwiseAnd"), "ori": ("Or", "BitwiseOr"), "xori": ("Xor", "BitwiseXor")}
PREDICATES = {"eq": "Equal", "slt": "Less", "sle": "LessOrEqual", "sgt": "Greater", "sge": "GreaterOrEqual"}


@row(*(f"arith.{n}" for n in ARITH))
def arithmetic(w: Writer, op: Op) -> str:
    """One operation on integers."""
    return w.binary(ARITH[op.name.partition(".")[2]], *w.all(op.operands))


@row(*(f"arith.{n}" for n in BITS))
def bits(w: Writer, op: Op) -> str:
    """An operation on bits, or on truth values."""
    logical, bitwise = BITS[op.name.partition(".")[2]]
    xs = w.all(op.operands)
    return w.logical(logical, *xs) if result(op).dtype == i1 else w.binary(bitwise, *xs)


@row("arith.divsi", "arith.remsi", "arith.floordivsi")
def divide(w: Writer, op: Op) -> str:
    """A quotient rounded to zero or down, or the remainder of the former; not of 0, which upstream leaves open."""
    a, b = w.all(op.operands)
    if op.name == "arith.divsi":
        return w.binary("Div", a, b)
    rest = w.op("Mod", [a, b], w.types[a], fmod=int(op.name == "arith.remsi"))
    return rest if op.name == "arith.remsi" else w.binary("Div", w.binary("Sub", a, rest), b)


@row("arith.constant")
def constant(w: Writer, op: Any) -> str:
    """A number."""
    return w.constant(op.value, result(op).dtype)


@row("arith.cmpi")
def compare(w: Writer, op: Any) -> str:
    """A comparison of signed integers."""
    xs = w.all(op.operands)
    if op.predicate == "ne":
        return w.logical("Not", w.compare("Equal", *xs))
    if op.predicate not in PREDICATES:
        raise refused(op, f"the comparison {op.predicate}")
    return w.compare(PREDICATES[op.predicate], *xs)


@row("arith.select")
def select(w: Writer, op: Any) -> str:
    """One of two numbers."""
    return w.where(*w.all(op.operands))


@row("arith.index_cast", "arith.extsi", "arith.trunci")
def cast(w: Writer, op: Op) -> str:
    """An integer of another width."""
    return w.cast(w.of(op.operands[0]), result(op).dtype)


@row("arith.extui", "arith.index_castui")
def extend(w: Writer, op: Op) -> str:
    """An integer of another width, whose bits are those of one without a sign."""
    x = w.of(op.operands[0])
    dtype = w.types[x].dtype
    if dtype != i1:
        x = w.cast(x, elementwise.UNSIGNED[dtype.width])
    return w.cast(x, result(op).dtype)


# -- errors -----------------------------------------------------------------------------------------------------------
@row("tensor.fail_if")
def fail_if(w: Writer, op: Any) -> None:
    """The graph fails, by an index that is out of range."""
    w.fail_if(w.of(op.bad))


@row("tensor.constrain_size")
def constrain_size(w: Writer, op: Any) -> None:
    """The graph fails for sizes that do not fit."""
    w.fail_if(w.reshape(w.compare("Less", w.size(op.size), w.constant([0], i64)), ()))


# -- control flow -----------------------------------------------------------------------------------------------------
@row("func.call")
def call(w: Writer, op: Any) -> list[str]:
    """The body of the function, in terms of the arguments."""
    callee = w.functions[str(op.callee)]
    env = bind_symbols([a.type for a in callee.args], [v.type for v in op.operands])
    copy = callee.clone(env=env)
    assert isinstance(copy, Func)
    w.names.update(zip(copy.args, w.all(op.operands)))
    return w.block(copy.block)


@row("scf.if")
def branch(w: Writer, op: Any) -> list[str]:
    """One of two graphs."""
    types = [array_type(r.type, op) for r in op.results]
    graphs = []
    for name, region in (("then", op.then_body), ("otherwise", op.else_body)):
        with w.graph(name, []) as (graph, _):
            w.finish(w.block(region.block) if region.blocks else [], op)
            graphs.append(graph)
    if not types:
        if any(graph.nodes for graph in graphs):
            raise refused(op, "has no results, and reports errors")
        return []
    return w.node("If", [w.of(op.condition)], types, then_branch=graphs[0], else_branch=graphs[1])


@row("scf.for")
def counted(w: Writer, op: Any) -> list[str]:
    """A loop with the number of its turns, ceil((upper - lower) / step)."""
    lower, upper, step = w.all((op.lower, op.upper, op.step))
    span = w.binary("Sub", upper, lower)
    known = w.static(step)
    if known is not None and int(known) == 1:
        turns = span
    else:
        one = w.like(1, step)
        turns = w.binary("Div", w.binary("Add", span, w.binary("Sub", step, one)), step)
    turns = w.cast(w.binary("Max", turns, w.like(0, turns)), i64)
    given = w.all(op.init)
    if not given:
        raise refused(op, "carries no value, and reports errors")
    types = [w.types[n] for n in given]
    with w.graph("loop", [TensorType((), i64), TensorType((), i1), *types]) as (body, (turn, going, *carried)):
        number = w.cast(turn, w.types[step].dtype)
        w.names[op.counter] = w.binary("Add", lower, w.binary("Mul", number, step))
        w.names.update(zip(op.carried, carried))
        w.finish([going, *w.block(op.block)], op)
    return w.node("Loop", [turns, w.constant(True, i1), *given], types, body=body)


@row("scf.while")
def loop(w: Writer, op: Any) -> list[str]:
    """A loop whose first region decides: it runs once more for each turn, for what it gives to the second."""
    going, *passed = _before(w, op, w.all(op.init))
    types = [w.types[n] for n in passed]
    if not passed:
        raise refused(op, "carries no value")
    with w.graph("loop", [TensorType((), i64), TensorType((), i1), *types]) as (body, (_, _, *carried)):
        w.names.update(zip(op.after.block.args, carried))
        w.finish(_before(w, op, w.block(op.after.block)), op)
    return w.node("Loop", ["", going, *passed], types, body=body)


def _before(w: Writer, op: Any, given: list[str]) -> list[str]:
    """The first region: whether to go on, and the values that it gives."""
    w.names.update(zip(op.before.block.args, given))
    return w.block(op.before.block)
