"""autodiff, operations: derivatives of functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mlc.dialects import func
from mlc.dialects.autodiff.attributes import has_cotangent
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.ir.core import Op, ResultType, Symbol, Value, at_end
from mlc.ir.diag import IRError
from mlc.ir.interp import Interpreter
from mlc.ir.passes import find_pass
from mlc.ir.types import TensorType, Type

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


class Derivative(Op):
    """The results of `callee` at its primals, followed by derivatives with respect to the primals `wrt`.

    To interpret one, the pass `grad` expands it, and the expansion is interpreted.
    """

    callee: Symbol
    args: tuple[Value, ...]
    wrt: tuple[int, ...]
    types: tuple[ResultType, ...]
    format = "$callee `(` $args `)` `wrt` $wrt attr-dict `:` functional-type"

    def verify_op(self) -> None:
        function = func.function_named(self, self.callee)
        if function is not None:
            check(self, function)

    def interpret(self, frame: Frame) -> list[Any]:
        return _interpret(self, frame)


class Vjp(Derivative, name="autodiff.vjp", pure=False, effects_of_callee=True):
    """results = callee(primals), then sum_j cotangent[j] * d callee[j] / d primal[i] for i in wrt

    `args` are the primals, followed by one cotangent for each floating-point result of the callee.

        %y, %dx = autodiff.vjp @f(%x, %dy) wrt [0] : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    """


class Grad(Derivative, name="autodiff.grad", pure=False, effects_of_callee=True):
    """results = callee(primals), then d callee[0] / d primal[i] for i in wrt; callee[0] is a 0-d float tensor

        %y, %dx = autodiff.grad @f(%x) wrt [0] : (tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
    """


class Jvp(Derivative, name="autodiff.jvp", pure=False, effects_of_callee=True):
    """results = callee(primals), then sum_i d callee[j] / d primal[i] * tangent[i] for each float result j

    `args` are the primals, followed by a tangent for each of the primals `wrt`, in that order.

        %y, %dy = autodiff.jvp @f(%x, %dx) wrt [0] : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    """


def vjp(function: Func, primals: Sequence[Value], cotangents: Sequence[Value], wrt: Sequence[int]) -> Sequence[Value]:
    """The results of `function` and the cotangents of its arguments `wrt`, given one cotangent per float result."""
    args = (*primals, *cotangents)
    return Vjp(function.sym_name, args, tuple(wrt), _result_types(function, primals, wrt)).results


def grad(function: Func, primals: Sequence[Value], wrt: Sequence[int]) -> Sequence[Value]:
    """The results of `function`, the first of which is a scalar, and its gradients with respect to `wrt`."""
    return Grad(function.sym_name, tuple(primals), tuple(wrt), _result_types(function, primals, wrt)).results


def jvp(function: Func, primals: Sequence[Value], tangents: Sequence[Value], wrt: Sequence[int]) -> Sequence[Value]:
    """The results of `function` and their tangents, one per float result, from tangents of its arguments `wrt`."""
    returned = func.result_types(function, [v.type for v in primals])
    types = (*returned, *(t for t in returned if has_cotangent(t)))
    return Jvp(function.sym_name, (*primals, *tangents), tuple(wrt), types).results


def _result_types(function: Func, primals: Sequence[Value], wrt: Sequence[int]) -> tuple[Type, ...]:
    inputs = [v.type for v in primals]
    return (*func.result_types(function, inputs), *(inputs[i] for i in wrt if 0 <= i < len(inputs)))


def check(op: Derivative, function: Func) -> None:
    """Raise IRError unless the operands, results and `wrt` of a derivative match its function."""
    count, wrt = len(function.args), op.wrt
    inputs, results = [v.type for v in op.args], [r.type for r in op.results]
    if not all(type(i) is int and 0 <= i < count for i in wrt) or len(set(wrt)) != len(wrt):
        op.fail(f"wrt = {list(wrt)} are no {len(wrt)} different arguments of @{op.callee}, which has {count}",
                code="MLC0131")
    for i in wrt:
        if not has_cotangent(function.args[i].type):
            op.fail(f"argument {i} of @{op.callee} has type {function.args[i].type}, which has no derivative",
                    code="MLC0131")
    primals = list(inputs[:count])
    try:
        returned = func.result_types(function, primals)
    except IRError as error:
        raise IRError(f"{op.name} @{op.callee}: {error.message}", code="MLC0120", loc=op.loc) from None
    extra = tuple(inputs[count:])
    if isinstance(op, Grad) and not (returned and has_cotangent(returned[0]) and returned[0].rank == 0
                                     and returned[0].dtype.is_float):
        op.fail(f"the first result of @{op.callee} is {returned[0] if returned else 'missing'}, not a float scalar "
                "such as tensor<f32>", code="MLC0131", hint="sum or average it, or use autodiff.vjp")
    floats = tuple(t for t in returned if has_cotangent(t))
    arguments = tuple(primals[i] for i in wrt)
    if isinstance(op, Jvp) and extra != arguments:
        op.fail(f"the tangents have types ({_types(extra)}), the arguments wrt of @{op.callee} ({_types(arguments)})",
                code="MLC0131")
    required = () if isinstance(op, Grad) else floats
    if not isinstance(op, Jvp) and extra != required:
        op.fail(f"the cotangents have types ({_types(extra)}), the float results of @{op.callee} ({_types(required)})",
                code="MLC0131")
    expected = (*returned, *(floats if isinstance(op, Jvp) else arguments))
    if tuple(results) != expected:
        op.fail(f"the results are ({_types(expected)}), not ({_types(results)})", code="MLC0131")


def _types(types: Iterable[Type]) -> str:
    return ", ".join(map(str, types))


# -- interpretation ---------------------------------------------------------------------------------------------------
EXPANDED_BY = ("decompose_complex", "grad")
"""The passes that expand derivatives into ordinary operations. Like a pipeline, the interpreter finds them by name."""

_EXPANDED: WeakKeyDictionary[Interpreter, dict[Any, tuple[Interpreter, str]]] = WeakKeyDictionary()
"""For each interpreter, a cache of interpreters of modules with an expanded derivative as a function."""


def _interpret(op: Derivative, frame: Frame) -> list[Any]:
    """Interpret the expansion of a derivative, for the current sizes of the operands."""
    inputs = tuple(_sized(v.type, frame) for v in op.operands)
    cache = _EXPANDED.setdefault(frame.interpreter, {})
    if (op, inputs) not in cache:
        cache[op, inputs] = _expanded(op, inputs, [_sized(r.type, frame) for r in op.results], frame.interpreter)
    interpreter, name = cache[op, inputs]
    return interpreter.run(name, frame.all(op.operands))


def _expanded(op: Derivative, inputs: Sequence[Type], results: Sequence[Type],
              interpreter: Interpreter) -> tuple[Interpreter, str]:
    """An interpreter of a copy of the module with the expansion of `op` as an additional function, and its name."""
    module = interpreter.module.clone()
    assert isinstance(module, Module)
    entry = func.function(func.free_symbol(module.body.block, "derivative"), inputs)
    entry.body.block.insert(type(op).make(entry.args, dict(op.attrs), results, loc=op.loc))
    with at_end(entry.block, op.loc):
        func.Return(tuple(entry.block.terminator.results))
    entry.update_type()
    module.body.block.insert(entry)
    for name in EXPANDED_BY:
        find_pass(name).run(module)
    return interpreter.another(module), entry.sym_name


def _sized(type: Type, frame: Frame) -> Type:
    return type.with_shape(frame.shape(type.shape)) if isinstance(type, TensorType) else type
