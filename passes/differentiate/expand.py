"""differentiate, expand: every operation of autodiff as calls of functions that are made for it."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import func
from mlc.dialects.autodiff.attributes import CUSTOM, has_cotangent
from mlc.dialects.autodiff.operations import Derivative, Grad, Jvp, check
from mlc.dialects.autodiff.vmap import Vmap
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.ir.core import before
from mlc.ir.diag import Loc
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType
from mlc.passes.differentiate.activity import PASS_NAME, Halves, Request
from mlc.passes.differentiate.batch import Lanes, expand_vmap
from mlc.passes.differentiate.forward import PASS_NAME as FORWARD_NAME
from mlc.passes.differentiate.forward import Push, Pushed, push_forward
from mlc.passes.differentiate.reverse import take_apart
from mlc.passes.differentiate.reverse_control import full


def expand(module: Module) -> None:
    """Replace every derivative and `vmap` of `module`, those in callees first."""
    table = {f.sym_name: f for f in func.functions(module)}
    made: dict[Request, Halves] = {}
    pushed: dict[Push, Pushed] = {}
    batched: Lanes = {}
    for function in func.callees_first(module):
        for op in [op for op in function.walk() if isinstance(op, Derivative | Vmap)]:
            if op.callee not in table:
                op.fail(f"@{op.callee} is not defined", code="MLC0106")
            if isinstance(op, Vmap):
                expand_vmap(op, table[op.callee], module, batched)
            elif isinstance(op, Jvp):
                _expand_jvp(op, table[op.callee], module, pushed, made)
            else:
                _expand_op(op, table[op.callee], module, made)
    for function in func.functions(module):
        for name in CUSTOM:                      # the derivatives have been taken
            function.attrs.pop(name, None)


def _expand_op(op: Derivative, function: Func, module: Module, made: dict[Request, Halves]) -> None:
    check(op, function)
    count = len(function.args)
    primals, cotangents = op.args[:count], op.args[count:]
    of = (0,) if isinstance(op, Grad) else tuple(
        j for j, t in enumerate(function.function_type.results) if has_cotangent(t))
    halves = take_apart(module, Request(op.callee, tuple(sorted(op.wrt)), of), made, op.loc)
    with before(op, op.loc.through(PASS_NAME)):
        results = func.call(halves.forward, primals)
        if isinstance(op, Grad):
            cotangents = (full(1.0, op.results[0].type),)
        gradients = halves.call_backward(primals, results, cotangents)
    position = {i: k for k, i in enumerate(halves.request.wrt)}
    own = len(op.results) - len(op.wrt)
    op.replace_by(*results[:own], *(gradients[position[i]] for i in op.wrt))


def _expand_jvp(op: Jvp, function: Func, module: Module, made: dict[Push, Pushed],
                halves: dict[Request, Halves]) -> None:
    check(op, function)
    count = len(function.args)
    primals, tangents = op.args[:count], dict(zip(op.wrt, op.args[count:]))
    pushed = push_forward(module, Push(op.callee, tuple(sorted(op.wrt))), made, halves, op.loc)
    with before(op, op.loc.through(FORWARD_NAME)):
        results, found = pushed.call(primals, [tangents[i] for i in sorted(op.wrt)])
        given = [found[j] if j in found else full(0.0, r.type) for j, r in enumerate(results) if has_cotangent(r.type)]
    op.replace_by(*results, *given)


def saved_bytes(module: Module, function: Func, wrt: Sequence[int], loc: Loc) -> Dim:
    """The bytes that the forward half of `function` leaves for the backward half, besides arguments and results."""
    of = tuple(j for j, t in enumerate(function.function_type.results) if has_cotangent(t))
    halves = take_apart(module, Request(function.sym_name, tuple(sorted(wrt)), of), {}, loc)
    own = len(function.args) + len(function.function_type.results)
    types = [halves.forward.function_type.results[p - len(function.args)] for p in halves.saved if p >= own]
    return sum((t.size * t.dtype.itemsize for t in types if isinstance(t, TensorType)), 0)
