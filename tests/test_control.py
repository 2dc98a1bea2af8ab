"""Loops and conditions on tensors: the builders, the passes above kernels, buffers, and native code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mlc.dialects import autodiff
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module, module
from mlc.dialects.func import Return, function
from mlc.dialects.tensor import control
from mlc.ir.core import Value, at_end
from mlc.ir.diag import IRError
from mlc.ir.interp import run_function
from mlc.ir.sizes import sym
from mlc.ir.types import i32
from mlc.ir.verify import verify
from tests.op_samples import t

Array = np.ndarray[Any, Any]


def program(body: Callable[..., Sequence[Value]], *types: str) -> Module:
    """@main of tensors, returning what `body` builds."""
    inside, main = module(), function("main", [t(x) for x in types])
    inside.body.block.insert(main)
    with at_end(main.block):
        Return(tuple(body(*main.args)))
    main.update_type()
    verify(inside)
    return inside


def power(x: Value, n: Any) -> Sequence[Value]:
    return control.for_loop(0, n, [x], lambda i, y: [y * x + tn.Cast(control.from_index(i), x.type.dtype).result])


def test_for_loop_runs_with_bounds_of_every_kind() -> None:
    x = np.array([1.0, 2.0], np.float32)
    want = ((x * x + 0) * x + 1)
    for body, types, args in (
            (lambda x: power(x, 2), ("2xf32",), [x]),
            (lambda x: power(x, sym("B")), ("Bxf32",), [x]),
            (lambda x, n: power(x, n), ("2xf32", "ui8"), [x, np.uint8(2)]),
            (lambda x, n: power(x, tn.Item(n).result), ("2xf32", "1x1xi32"), [x, np.full((1, 1), 2, np.int32)])):
        found, = run_function(program(body, *types), "main", args)
        np.testing.assert_array_equal(found, want)


def test_while_loop_and_cond() -> None:
    def collatz(n: Value) -> Sequence[Value]:
        one, two = (tn.Full(k, (), i32).result for k in (1, 2))

        def step(n: Value, count: Value) -> Sequence[Value]:
            odd = tn.Compare("eq", tn.Rem(n, two).result, one).result
            following, = control.cond(odd, lambda: [n * 3 + 1], lambda: [tn.FloorDiv(n, two).result])
            return [following, count + 1]

        return control.while_loop(lambda n, count: tn.Compare("gt", n, one).result, step,
                                  [n, tn.Full(0, (), i32).result])

    assert [int(x) for x in run_function(program(collatz, "i32"), "main", [np.int32(27)])] == [1, 111]


def test_an_item_is_one_integer() -> None:
    with pytest.raises(IRError, match="not a tensor of one element"):
        program(lambda x: [tn.Item(x).result], "2xi64")
    with pytest.raises(IRError, match="does not support element type f32"):
        program(lambda x: [tn.Item(x).result], "f32")
    with pytest.raises(IRError, match="i32 cannot become a tensor of i64"):
        program(lambda x: [tn.FromScalar(tn.Item(x).result, t("i64").dtype).result], "i32")


def test_a_loop_has_a_derivative() -> None:
    inside = program(lambda x: power(x, 3), "f64")
    main = inside.body.block.first
    assert main is not None
    outer = function("outer", [t("f64")])
    inside.body.block.insert(outer)
    with at_end(outer.block):
        Return(tuple(autodiff.grad(main, list(outer.args), [0])))  # type: ignore[arg-type]
    outer.update_type()
    assert run_function(inside, "outer", [np.float64(2.0)]) == [20.0, 33.0]      # x^4 + x + 2
