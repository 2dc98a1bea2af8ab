"""differentiate, expand: replaces autodiff operations by calls of the functions that compute them."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import func
from mlc.dialects.autodiff.attributes import CUSTOM, has_cotangent
from mlc.dialects.autodiff.backward import Backward
from mlc.dialects.autodiff.batch import Vmap
from mlc.dialects.autodiff.operations import Derivative, Grad, Jvp, check
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.ir.core import before
from mlc.ir.diag import Loc
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType
from mlc.passes.differentiate.activity import PASS_NAME, VjpFunctions, VjpRequest
from mlc.passes.differentiate.batch import BatchedFunctions, expand_vmap
from mlc.passes.differentiate.forward import PASS_NAME as FORWARD_NAME
from mlc.passes.differentiate.forward import JvpFunction, JvpRequest, jvp_function
from mlc.passes.differentiate.reverse import expand_backward, vjp_functions
from mlc.passes.differentiate.reverse_control import full


def expand(module: Module) -> None:
    """Replace every derivative and `vmap` of `module`, callees first."""
    table = {f.sym_name: f for f in func.functions(module)}
    vjps: dict[VjpRequest, VjpFunctions] = {}
    jvps: dict[JvpRequest, JvpFunction] = {}
    batched: BatchedFunctions = {}
    for function in func.callees_first(module):
        for op in [op for op in function.walk() if isinstance(op, Derivative | Vmap | Backward)]:
            if isinstance(op, Backward):
                expand_backward(op, function, module, vjps)
                continue
            if op.callee not in table:
                op.fail(f"@{op.callee} is not defined", code="MLC0106")
            if isinstance(op, Vmap):
                expand_vmap(op, table[op.callee], module, batched)
            elif isinstance(op, Jvp):
                _expand_jvp(op, table[op.callee], module, jvps, vjps)
            else:
                _expand_op(op, table[op.callee], module, vjps)
    for function in func.functions(module):
        for name in CUSTOM:                      # no derivatives are left that would need the rules
            function.attrs.pop(name, None)


def _expand_op(op: Derivative, function: Func, module: Module, memo: dict[VjpRequest, VjpFunctions]) -> None:
    check(op, function)
    count = len(function.args)
    primals, cotangents = op.args[:count], op.args[count:]
    of = (0,) if isinstance(op, Grad) else tuple(
        j for j, t in enumerate(function.function_type.results) if has_cotangent(t))
    pair = vjp_functions(module, VjpRequest(op.callee, tuple(sorted(op.wrt)), of), memo, op.loc)
    with before(op, op.loc.through(PASS_NAME)):
        results = func.call(pair.forward, primals)
        if isinstance(op, Grad):
            cotangents = (full(1.0, op.results[0].type),)
        gradients = pair.call_backward(primals, results, cotangents)
    position = {i: k for k, i in enumerate(pair.request.wrt)}
    own = len(op.results) - len(op.wrt)
    op.replace_by(*results[:own], *(gradients[position[i]] for i in op.wrt))


def _expand_jvp(op: Jvp, function: Func, module: Module, memo: dict[JvpRequest, JvpFunction],
                vjps: dict[VjpRequest, VjpFunctions]) -> None:
    check(op, function)
    count = len(function.args)
    primals, tangents = op.args[:count], dict(zip(op.wrt, op.args[count:]))
    tangent_function = jvp_function(module, JvpRequest(op.callee, tuple(sorted(op.wrt))), memo, vjps, op.loc)
    with before(op, op.loc.through(FORWARD_NAME)):
        results, dys = tangent_function.call(primals, [tangents[i] for i in sorted(op.wrt)])
        dense = [dys[j] if j in dys else full(0.0, r.type) for j, r in enumerate(results) if has_cotangent(r.type)]
    op.replace_by(*results, *dense)


def saved_bytes(module: Module, function: Func, wrt: Sequence[int], loc: Loc) -> Dim:
    """The bytes that the forward function of `function` saves for backward, other than arguments and results."""
    of = tuple(j for j, t in enumerate(function.function_type.results) if has_cotangent(t))
    pair = vjp_functions(module, VjpRequest(function.sym_name, tuple(sorted(wrt)), of), {}, loc)
    own = len(function.args) + len(function.function_type.results)
    types = [pair.forward.function_type.results[p - len(function.args)] for p in pair.saved if p >= own]
    return sum((t.size * t.dtype.itemsize for t in types if isinstance(t, TensorType)), 0)
