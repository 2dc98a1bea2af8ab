"""autodiff, batch: a function of one lane as a function of many, by one walk that names no operation on tensors.

    f(x, w) -> y          f_vmap(xs, w) -> ys, where xs and ys have an axis of lanes before their own

What depends on no batched argument stays as it is, once for all lanes. Functions are memoised by (callee, batched
arguments, number of lanes where that is known), and calls inside become calls of batched functions. batch_walk.py goes
through operations, batch_control.py through loops and conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects import func
from mlc.dialects.autodiff.activity import RECOMPUTE
from mlc.dialects.autodiff.batch_control import Batcher
from mlc.dialects.autodiff.batch_custom import bring_rules
from mlc.dialects.autodiff.batch_walk import PASS_NAME, Batched, Request, Scope, Walk, batched_type
from mlc.dialects.autodiff.custom import is_custom
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import broadcast_to
from mlc.ir.core import Op, ResultType, Symbol, Value, at_end, before, located
from mlc.ir.diag import IRError, Loc, UserError
from mlc.ir.printer import quote
from mlc.ir.sizes import Dim, sym
from mlc.ir.types import TensorType, Type, i1, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer

Lanes = dict[Request, Batched]
"""The functions that were batched, by what asked for them."""


class Vmap(Op, name="autodiff.vmap", pure=False, effects_of_callee=True):
    """results[l] = callee(args), in which those that `batched` lists stand for their elements [l], for l < lanes

    Of the results that `common` lists, no axis is made: they depend on nothing batched.

        %y = autodiff.vmap @f(%x, %w) batched [0] lanes "B" : (tensor<Bx4xf32>, tensor<4xf32>) -> tensor<Bxf32>
    """

    callee: Symbol
    args: tuple[Value, ...]
    batched: tuple[int, ...]
    lanes: Dim
    types: tuple[ResultType, ...]
    common: tuple[int, ...] = ()

    def verify_op(self) -> None:
        function = func.function_named(self, self.callee)
        if function is not None:
            check(self, function)

    def interpret(self, frame: Frame) -> list[Any]:
        """One lane after the other, stacked."""
        args, call = frame.all(self.args), frame.interpreter.call
        found = [call(self.callee, [x[lane] if i in self.batched else x for i, x in enumerate(args)])
                 for lane in range(frame.size(self.lanes))]
        common = found[:1]
        if self.common and not found:            # no batched argument makes a difference to them
            common = [call(self.callee, [np.zeros(x.shape[1:], x.dtype) if i in self.batched else x
                                         for i, x in enumerate(args)])]
        return [common[0][j] if j in self.common else np.asarray([values[j] for values in found], to_numpy(
            r.type.dtype)).reshape(frame.shape(r.type.shape)) for j, r in enumerate(self.results)]

    def print_form(self, p: Printer) -> None:
        lanes = str(self.lanes) if isinstance(self.lanes, int) else quote(str(self.lanes))
        extra = p.attr_dict(self, ("callee", "batched", "lanes", *(() if self.common else ("common",))))
        p.append(f" @{self.callee}({p.values(self.args)}) batched {list(self.batched)} lanes {lanes}"
                 f"{' ' + extra if extra else ''} : {p.functional_type(self)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        attrs: dict[str, Any] = {"callee": parser.symbol("a function's name such as @f")}
        parser.expect("(")
        refs = parser.list_of(parser.operand, ")")
        parser.expect("batched")
        attrs["batched"] = parser.attribute()
        parser.expect("lanes")
        attrs["lanes"] = parser.attribute() if parser.token.kind == "string" else parser.integer()
        attrs |= parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        inputs, results = parser.functional_type()
        operands = parser.resolve_all(refs, inputs * len(refs) if len(inputs) == 1 else inputs)
        return parser.build(Vmap, operands, attrs, results)


def vmap(function: Func, args: Sequence[Value], batched: Sequence[int], lanes: Dim,
         common: Sequence[int] = ()) -> Sequence[Value]:
    """The results of `function` for each element of the arguments `batched`, stacked but for those of `common`."""
    inputs = [lane_type(v.type) if i in batched else v.type for i, v in enumerate(args)]
    types = [t if j in common else stacked_type(t, lanes) for j, t in enumerate(func.result_types(function, inputs))]
    return Vmap(function.sym_name, tuple(args), tuple(batched), lanes, tuple(types), tuple(common)).results


def lane_type(type: TensorType) -> TensorType:
    return type.with_shape(type.shape[1:])


def stacked_type(type: Type, lanes: Dim) -> Type:
    return type.with_shape((lanes, *type.shape)) if isinstance(type, TensorType) else type


def check(op: Vmap, function: Func) -> None:
    """Raise IRError where operands or results do not fit the function and the number of lanes."""
    count = len(op.args)
    if not op.batched or not all(0 <= i < count for i in op.batched) or list(op.batched) != sorted(set(op.batched)):
        op.fail(f"batched = {list(op.batched)} are no arguments of @{op.callee} in ascending order, which has {count}",
                code="MLC0138")
    for i in op.batched:
        type = op.args[i].type
        if not isinstance(type, TensorType) or type.rank == 0 or type.shape[0] != op.lanes:
            op.fail(f"argument {i} is {type}, which has no first axis of {op.lanes} lanes", code="MLC0138")
    try:
        returned = func.result_types(function, [lane_type(v.type) if i in op.batched else v.type
                                                for i, v in enumerate(op.args)])
    except IRError as error:
        raise IRError(f"{op.name} @{op.callee}: {error.message}", code="MLC0120", loc=op.loc) from None
    for j, t in enumerate(returned):
        if not isinstance(t, TensorType):
            op.fail(f"result {j} of @{op.callee} is {t}, not a tensor", code="MLC0138")
    expected = tuple(t if j in op.common else stacked_type(t, op.lanes) for j, t in enumerate(returned))
    if tuple(r.type for r in op.results) != expected:
        op.fail(f"the results are ({', '.join(map(str, expected))}), not "
                f"({', '.join(str(r.type) for r in op.results)})", code="MLC0138")


# -- expansion --------------------------------------------------------------------------------------------------------
def expand_vmap(op: Vmap, function: Func, module: Module, made: Lanes) -> None:
    """Replace one operation by a call of the batched function."""
    check(op, function)
    lanes = op.lanes if isinstance(op.lanes, int) else None
    batched = batch(module, Request(op.callee, op.batched, lanes), made, op.loc)
    with before(op, op.loc.through(PASS_NAME)):
        results = list(func.call(batched.function, op.args))
        for j, (result, is_batched) in enumerate(zip(op.results, batched.results)):
            if j in op.common and is_batched:
                raise UserError(f"result {j} of @{op.callee} differs from lane to lane, but is asked for once",
                                code="MLC0139", loc=op.loc, hint="give it an axis in out_axes")
            if j not in op.common and not is_batched:
                results[j] = broadcast_to(results[j], result.type.shape)
    op.replace_by(*results)


def batch(module: Module, request: Request, made: Lanes, asked: Loc) -> Batched:
    """The function that `request` asks for, and before it those that calls inside ask for; `made` is the memo.

    Walks wait while what they call is batched: calls are nested, Python's are not.
    """
    table = {f.sym_name: f for f in func.functions(module)}
    names = {str(op.attrs.get("sym_name")) for op in module.body.block}
    work: dict[Request, Walk] = {} if request in made else {request: _function(table, names, request, asked)}
    answer: Batched | None = None
    while work:
        current = next(reversed(work))
        try:
            wanted = work[current].send(answer)  # type: ignore[arg-type]
            if (answer := made.get(wanted)) is None:
                if wanted in work:
                    raise UserError(f"@{wanted.callee} calls itself: a recursive function cannot be batched",
                                    code="MLC0137", loc=table[wanted.callee].loc, notes=(_asked(asked),))
                work[wanted] = _function(table, names, wanted, asked)
        except StopIteration as stop:
            del work[current]
            answer = made[current] = stop.value
        except BaseException as error:
            _unwind(list(work.values()), error)
            raise
    return made[request]


def _unwind(walks: Sequence[Walk], error: BaseException) -> None:
    """Let walks leave the places where they insert, the last first."""
    for walk in reversed(walks):
        try:
            walk.throw(error)
        except BaseException as raised:
            if raised is not error:
                raise


def _asked(loc: Loc) -> str:
    return f"vmap is asked for at {loc}"


def _function(table: Mapping[Symbol, Func], names: set[str], request: Request, asked: Loc) -> Walk:
    """Batch one function, under a name that is none of `names`."""
    if request.callee not in table:
        raise UserError(f"@{request.callee} is not defined", code="MLC0106", loc=asked)
    function = table[request.callee]
    if len(function.body.blocks) != 1:
        raise UserError(f"@{function.sym_name} has branches between blocks, which cannot be batched", code="MLC0137",
                        loc=function.loc, notes=(_asked(asked),))
    source = function.clone()                    # in which composites are taken apart
    assert isinstance(source, Func)
    lanes: Dim = request.lanes if request.lanes is not None else sym(
        func.free_name("lanes", func.size_names(function)))
    live: list[Type] = [TensorType((lanes,), i1)] if request.masked else []
    types = [batched_type(a.type, lanes, asked) if i in request.batched else a.type for i, a in enumerate(source.args)]
    out = func.function("", [*live, *types], ["live"] * len(live) + [a.name for a in source.args], private=True)
    out.loc = function.loc.through(PASS_NAME)
    scope = Scope(out.args[0] if request.masked else None)
    for i, (arg, new) in enumerate(zip(source.args, out.args[len(live):])):
        scope.bind(arg, new, i in request.batched)
    with at_end(out.block):
        returned = yield from Batcher(lanes, asked, table).block(source.block, scope)
        with located(source.block.terminator.loc.through(PASS_NAME)):
            func.Return(tuple(v for v, _ in returned))
    module = function.parent
    assert module is not None
    out.sym_name = Symbol(func.free_name(f"{function.sym_name}_vmap", names))
    names.add(out.sym_name)
    out.update_type()
    if RECOMPUTE in function.attrs:
        out.attrs[RECOMPUTE] = function.attrs[RECOMPUTE]
    module.insert(out, function.next)
    flags = tuple(is_batched for _, is_batched in returned)
    if is_custom(function):
        yield from bring_rules(function, out, request, lanes, flags, table)
        out.update_type()
        flags = (True,) * len(flags)
    return Batched(out, flags)
