"""Programs of several operations, for tests that compare levels: what fusion, buffers and loops have to get right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.dialects import autodiff
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module, module
from mlc.dialects.func import Return, function
from mlc.dialects.tensor import control
from mlc.dialects.tensor.base import full
from mlc.ir.core import Value, at_end
from mlc.ir.sizes import evaluate
from mlc.ir.types import FloatType, TensorType, i64, to_numpy
from tests.op_samples import t

Array = np.ndarray[Any, Any]
SIZES = {"B": 7, "N": 37}

PROGRAMS: dict[str, Callable[[], tuple[Module, list[Array]]]] = {}
"""name -> (a module with @main, numbers for its arguments)."""


def numbers(types: Sequence[TensorType], seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)

    def one(type: TensorType) -> Array:
        shape, dtype = [evaluate(d, SIZES) for d in type.shape], to_numpy(type.dtype)
        if isinstance(type.dtype, FloatType):
            return rng.standard_normal(shape).astype(dtype)
        return (rng.random(shape) < 0.5) if dtype.kind == "b" else rng.integers(0, 5, shape).astype(dtype)

    return [one(type) for type in types]


def program(*types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a program that takes tensors of `types`; the decorated function builds its body."""
    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        def make() -> tuple[Module, list[Array]]:
            arguments = [t(x) for x in types]
            inside, main = module(), function("main", arguments)
            inside.body.block.insert(main)
            with at_end(main.block):
                out = body(*main.args)
                Return(tuple(out) if isinstance(out, list | tuple) else (out,))
            main.update_type()
            return inside, numbers(arguments)
        PROGRAMS[body.__name__] = make
        return body
    return register


def dot(a: Value, b: Value, i: int = 1, j: int = 0) -> Value:
    return tn.DotGeneral(a, b, (), ((i, j),)).result


@program("5x40xf32", "40xf32", "5x1xf32")
def elementwise_chain(a: Value, b: Value, c: Value) -> Value:
    return tn.Tanh(tn.Exp(a).result * b + c).result


@program("Bx40xf32", "40xf32")
def symbolic_batch(a: Value, b: Value) -> Value:
    return tn.Exp(a + b).result


@program("BxNxf32", "Nxf32")
def symbolic_rows_and_columns(a: Value, b: Value) -> list[Value]:
    return [a + b, tn.ReduceSum(a * b, (1,)).result, tn.ReduceMax(a, (0,)).result]


@program("9x37xf32")
def softmax_by_hand(a: Value) -> Value:
    e = tn.Exp(a - tn.Reshape(tn.ReduceMax(a, (1,)).result, (9, 1)).result).result
    return e / tn.Reshape(tn.ReduceSum(e, (1,)).result, (9, 1)).result


@program("13x21xf32", "21x100xf32", "100xf32")
def linear_relu(a: Value, b: Value, c: Value) -> Value:
    return tn.Relu(dot(a, b) + c).result


@program("Bx21xf32", "17x21xf32")
def product_with_transposed_factor(a: Value, b: Value) -> Value:
    return dot(a, b, 1, 1)


@program("21x13xf32", "21x17xf32")
def transposed_product(a: Value, b: Value) -> Value:
    return tn.Transpose(dot(a, b, 0, 0), (1, 0)).result


@program("3x5x7xf32", "3x7x6xf32")
def batched_product(a: Value, b: Value) -> Value:
    return tn.DotGeneral(a, b, ((0, 0),), ((2, 1),)).result


@program("3x20xf32")
def returns_arguments_and_copies(a: Value) -> list[Value]:
    return [a, a, a + a]


@program("6x4xf32")
def reshape_between_kernels(a: Value) -> Value:
    return tn.Exp(tn.Reshape(tn.Exp(a).result, (3, 8)).result).result


@program("5x20xf32", "0x20xf32", "2x20xf32")
def concat_with_empty(a: Value, b: Value, c: Value) -> Value:
    return tn.Concat((tn.Exp(a).result, b, c * 2.0), 0).result


@program("10x20xf32", "3x2xi64", "10x2xi64")
def gathers(x: Value, rows: Value, columns: Value) -> list[Value]:
    return [tn.Take(x, rows, 0).result, tn.TakeAlong(x, columns, 1).result * 2.0]


@program("6x20xf32")
def slices_and_pads(a: Value) -> Value:
    middle = tn.Slice(a, (1, 0), (5, 20), (1, 3)).result
    return tn.Pad(tn.Reverse(middle, (1,)).result, tn.Full(2.0, (), a.type.dtype).result, (1, 2), (0, 3), (1, 0)).result


@program("3x20xf32")
def constants(a: Value) -> list[Value]:
    table = np.random.default_rng(3).standard_normal((3, 20)).astype("f4")
    return [a + tn.Constant(table).result, tn.Constant(table).result, tn.Full(2.0, (2, 3), a.type.dtype).result]


@program("4x33xbf16", "33xf16")
def narrow_floats(a: Value, b: Value) -> list[Value]:
    return [tn.Exp(a * a).result, tn.ReduceSum(b, (0,)).result]


@program("5x17xi32", "5x17xi32", "5x17xi1")
def integers(a: Value, b: Value, c: Value) -> list[Value]:
    return [tn.Select(c, tn.FloorDiv(a, b).result, tn.Rem(a, b).result).result, tn.ReduceMax(a, (1,)).result,
            tn.ReduceAny(c, (0,)).result]


@program("Bx20xf32")
def many_results_in_one_kernel(a: Value) -> list[Value]:
    e = tn.Exp(a).result
    return [e, e + 1.0, tn.Log(e + 1.0).result, e * e]


@program("8x30xf32")
def row_statistics(a: Value) -> list[Value]:
    return [tn.Softmax(a, 1).result, tn.LogSumExp(a, 1).result, tn.Mean(a, (0,)).result, tn.Var(a, (1,), 1.0).result]


@program("3x11xf32", "11xf32")
def unused_and_scalar(a: Value, b: Value) -> Value:
    tn.Exp(b)
    return tn.ReduceSum(a, (0, 1)).result * 0.5


@program("Bx5xf32", "5x5xf32", "Bx5xf32")
def loop_that_carries_two(x: Value, w: Value, y: Value) -> list[Value]:
    def body(i: Value, a: Value, b: Value) -> list[Value]:
        return [tn.Tanh(dot(b, w)).result, a + tn.Cast(control.from_index(i), a.type.dtype).result]
    return [*control.for_loop(0, 3, [x, y], body), *control.for_loop(0, 0, [x + y], lambda i, a: [a * a])]


@program("7xf32", "i32")
def loop_while_something_is_large(x: Value, n: Value) -> list[Value]:
    def large(x: Value, count: Value) -> Value:
        return tn.And(tn.Compare("gt", tn.ReduceMax(tn.Abs(x).result, (0,)).result, full(0.01, x)).result,
                      tn.Compare("lt", count, full(60, count)).result).result

    def step(x: Value, count: Value) -> list[Value]:
        odd = tn.Compare("eq", tn.Rem(count, full(2, count)).result, full(1, count)).result
        x, = control.cond(odd, lambda: [tn.Reverse(x, (0,)).result * 0.5], lambda: control.for_loop(
            0, n, [x], lambda i, y: [y * 0.75]))
        return [x, count + 1]
    return list(control.while_loop(large, step, [x, full(0, n)]))


def _with_gradient(shape: tuple[int, ...], batch: int | str) -> tuple[Module, list[Array]]:
    """An MLP's loss and its gradients, through calls and derivative operations."""
    weights = [t(x) for i, o in zip(shape, shape[1:]) for x in (f"{i}x{o}xf32", f"{o}xf32")]
    data = [t(f"{batch}x{shape[0]}xf32"), TensorType(t(f"{batch}xf32").shape, i64)]
    inside = module()
    loss = function("loss", [*weights, *data], private=True)
    inside.body.block.insert(loss)
    with at_end(loss.block):
        *p, x, y = loss.args
        for k in range(0, len(p), 2):
            x = dot(x, p[k]) + p[k + 1]
            x = tn.Relu(x).result if k < len(p) - 2 else x
        Return((tn.CrossEntropy(x, y, 1, "mean").result,))
    loss.update_type()
    main = function("main", [*weights, *data])
    inside.body.block.insert(main)
    with at_end(main.block):
        Return(tuple(autodiff.grad(loss, list(main.args), range(len(weights)))))
    main.update_type()
    return inside, [a * np.float32(0.2) if a.dtype == np.float32 else a for a in numbers([*weights, *data])]


PROGRAMS["mlp_gradient"] = lambda: _with_gradient((6, 19, 5), 7)
PROGRAMS["mlp_gradient_of_symbolic_batch"] = lambda: _with_gradient((6, 19, 5), "B")
