"""differentiate, bodies: outlines the bodies of loops and conditionals into functions, which can be differentiated."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from mlc.dialects import func, scf, tensor
from mlc.dialects.autodiff.attributes import has_cotangent
from mlc.dialects.autodiff.predication import Predicated
from mlc.dialects.func import Func
from mlc.ir import sizes
from mlc.ir.core import Block, Op, Region, Symbol, Value, at_end, before, builder
from mlc.ir.sizes import Size
from mlc.ir.types import FloatType, TensorType, Type, i1

CONTROL = (scf.For, scf.If, scf.While, Predicated)


def is_control(op: Op) -> bool:
    return isinstance(op, CONTROL)


def outline(module: Op, name: str) -> None:
    """Outline the body of every loop and conditional in function `name` and in its callees."""
    table = {f.sym_name: f for f in func.functions(module)}
    seen: set[str] = set()
    work = [Symbol(name)]
    while work:
        current = work.pop()
        if current in seen or current not in table:
            continue
        seen.add(current)
        function = table[current]
        for op in [op for op in function.block if is_control(op)]:
            if any(has_cotangent(r.type) for r in op.results):
                for block in bodies(_simple(op)):
                    if not _is_call(block):
                        if isinstance(op, Predicated):
                            _pass_sizes(function, op)
                        outlined = _outlined(function, block)
                        table[outlined.sym_name] = outlined
        work += func.references(function)


def bodies(op: Op) -> list[Block]:
    """The blocks of a loop or conditional that compute its loop-carried values or results."""
    if isinstance(op, scf.While):
        return [op.after.block]
    return [region.block for region in op.regions if region.blocks]


def body_call(block: Block) -> func.Call:
    call = block.first
    assert isinstance(call, func.Call)
    return call


def leading(op: Op) -> int:
    """The number of body arguments before the loop-carried values: 1 for a `for`, its induction variable, else 0."""
    return 1 if isinstance(op, scf.For) else 0


def while_of(op: scf.While, start: Sequence[Value], step: Callable[[Sequence[Value]], Sequence[Value]]) -> scf.While:
    """A `while` with the condition of `op` on its leading loop-carried values; `step` computes the next ones."""
    types = tuple(v.type for v in start)
    first, second = Block(types), Block(types)
    mapping: dict[Value, Value] = dict(zip(op.before.block.args, first.args))
    with at_end(first, builder.loc):
        for inner in op.before.block:
            if inner.terminator:
                scf.Condition(mapping.get(inner.operands[0], inner.operands[0]), tuple(first.args))
            else:
                inner.insert_clone(mapping)
    with at_end(second, builder.loc):
        scf.Yield(tuple(step(second.args)))
    return scf.While(tuple(start), Region(first), Region(second), types)


def _is_call(block: Block) -> bool:
    """Whether a block only calls a function and yields its results."""
    call = block.first
    return (isinstance(call, func.Call) and call.next is block.last and tuple(block.terminator.operands) == call.results
            and list(call.args[: len(block.args)]) == list(block.args)
            and not any(v in block.args for v in call.args[len(block.args):]))


def _simple(op: Op) -> Op:
    """Rewrite a loop so that its first region only forwards its arguments; other values are recomputed at uses."""
    if not isinstance(op, scf.While) or list(op.before.block.terminator.operands[1:]) == list(op.before.block.args):
        return op
    types = [v.type for v in op.init]

    def handed_on(args: Sequence[Value]) -> Sequence[Value]:
        mapping: dict[Value, Value] = dict(zip(op.before.block.args, args))
        for inner in op.before.block:
            if inner.terminator:
                return [mapping.get(v, v) for v in inner.operands]
            inner.insert_clone(mapping)
        raise AssertionError

    first, second = Block(types), Block(types)
    with at_end(first, op.loc):
        condition = handed_on(first.args)[0]
        scf.Condition(condition, tuple(first.args))
    with at_end(second, op.loc):
        mapping: dict[Value, Value] = dict(zip(op.after.block.args, handed_on(second.args)[1:]))
        for inner in op.after.block:
            inner.insert_clone(mapping)
    with before(op):
        simple = scf.While(op.init, Region(first), Region(second), tuple(types))
        results = handed_on(simple.results)[1:]
    op.replace_by(*results)
    return simple


def _outlined(around: Func, block: Block) -> Func:
    """Move the body of `block` to a function of its arguments and captured values, and call that."""
    captured = _captured(block)
    inside = list(block.args)
    terminator = block.terminator
    body = [op for op in block if op is not terminator]
    for name in _unbound([*body, terminator], [*inside, *captured]):
        captured.append(_binder(around, name))
    outlined = func.function("", [v.type for v in (*inside, *captured)], [v.name for v in (*inside, *captured)],
                         private=True)
    outlined.loc = terminator.loc
    mapping: dict[Value, Value] = dict(zip((*inside, *captured), outlined.args))
    with at_end(outlined.block, terminator.loc):
        for op in body:
            _sink(op, mapping)
            op.insert_clone(mapping)
        for v in terminator.operands:
            _sink_value(v, mapping)
        func.Return(tuple(mapping[v] for v in terminator.operands))
    outlined.update_type()
    module = around.parent
    assert module is not None
    outlined.sym_name = func.free_symbol(module, f"{around.sym_name}_body")
    module.insert(outlined, around)
    with before(terminator):
        results = func.call(outlined, (*inside, *captured))
    terminator.set_operands(results)
    for op in reversed(body):
        op.erase()
    return outlined


def _pass_sizes(around: Func, op: Predicated) -> None:
    """Pass to an isolated body arguments that bind the size symbols it uses; in place of floats, all of which belong to
    batch elements, booleans of such a size."""
    for name in _unbound(list(op.block), op.block.args):
        if any(name in bound_sizes(v.type) for v in op.block.args):
            continue
        arg = _binder(around, name)
        if isinstance(arg.type.dtype, FloatType):
            with before(op, op.loc):
                arg = tensor.Full(0, (sizes.sym(name),), i1).result
        op.set_operands([*op.operands, arg], [1, len(op.args) + 1])
        op.block.add_arg(arg.type, arg.name)


def _binder(around: Func, name: str) -> Value:
    """The argument or bind_size of a function that binds a size symbol."""
    bound = (op.results[0] for op in around.walk() if op.binds_size)
    return next(v for v in itertools.chain(around.args, bound) if name in bound_sizes(v.type))


def _is_constant(v: Value) -> bool:
    op = v.op
    return op is not None and not op.operands and op.pure and not op.regions


def _captured(block: Block) -> list[Value]:
    """The values that a block captures, except constants."""
    own: set[Value] = set(block.args)
    out: dict[Value, None] = {}
    for top in block:
        for op in top.walk():
            own.update(op.results)
            own.update(a for region in op.regions for b in region.blocks for a in b.args)
            out.update((v, None) for v in op.operands if v not in own and not _is_constant(v))
    return [v for v in out if v not in own]


def _sink(op: Op, mapping: dict[Value, Value]) -> None:
    """Clone the constants that an operation captures."""
    own: set[Value] = set()
    for inner in op.walk():
        for v in inner.operands:
            if v not in own:
                _sink_value(v, mapping)
        own.update(inner.results)


def _sink_value(v: Value, mapping: dict[Value, Value]) -> None:
    if v not in mapping and _is_constant(v) and v.op is not None and v.op.parent is not builder.block:
        mapping[v] = v.op.insert_clone({}).results[v.op.results.index(v)]


def _unbound(body: Sequence[Op], binders: Sequence[Value]) -> list[str]:
    """The size symbols that a body uses and that none of the values bind."""
    bound = {n for v in binders for n in bound_sizes(v.type)}
    own = {str(op.attrs["size"]) for top in body for op in top.walk() if op.binds_size}
    used = {n: None for top in body for op in top.walk() for n in size_symbols(op)}
    read = [v for top in body for op in top.walk() for v in op.operands]
    values = [v for v in (*binders, *read) if isinstance(v.type, TensorType)]
    used |= {n: None for v in values for d in v.type.shape for n in sizes.symbols(d)}
    return [n for n in used if n not in bound and n not in own]


def bound_sizes(type: Type) -> list[str]:
    """The size symbols that values of `type` bind: those that are a whole dimension."""
    return [n for d in type.shape if (n := sizes.symbol_name(d))] if isinstance(type, TensorType) else []


def size_symbols(op: Op) -> Iterator[str]:
    """The size symbols in the results, arguments and attributes of one operation."""
    work: list[object] = [r.type for r in op.results] + list(op.attrs.values())
    work += [a.type for region in op.regions for block in region.blocks for a in block.args]
    while work:
        value = work.pop()
        if isinstance(value, Size):
            yield from sorted(sizes.symbols(value))
        elif isinstance(value, tuple | list):
            work += value
        elif isinstance(value, TensorType):
            work += value.shape
