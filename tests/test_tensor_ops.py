"""The tensor dialect, beyond the registry-wide tests: errors, special values, orders, rewrites, promotion."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as torch_nn

from mlc.dialects import arith, tensor
from mlc.dialects.builtin import Module, module
from mlc.dialects.func import Return, function
from mlc.dialects.tensor.base import full, less, rounded
from mlc.dialects.tensor.map import map_elements
from mlc.dialects.tensor.orders import dot_in_order, reduce_in_order
from mlc.dialects.tensor.promotion import promote
from mlc.dialects.tensor.source import size
from mlc.ir.core import Op, Value, at_end
from mlc.ir.diag import IRError, Loc, UserIndexError, UserTypeError
from mlc.ir.exact import fma
from mlc.ir.interp import Interpreter
from mlc.ir.parser import parse_module
from mlc.ir.printer import to_text
from mlc.ir.rewrite import RULES, apply_rules, rules_for
from mlc.ir.sizes import sym
from mlc.ir.types import TensorType, bf16, f16, f32, f64, i1, i8, i16, i32, i64, index, to_numpy, ui8, ui16, ui32, ui64
from tests.arrays import Array, difference
from tests.op_samples import B, main_of, t
from tests.test_registry import gradients

TORCH = {i1: torch.bool, i8: torch.int8, i16: torch.int16, i32: torch.int32, i64: torch.int64, ui8: torch.uint8,
         ui16: torch.uint16, ui32: torch.uint32, ui64: torch.uint64, f16: torch.float16, bf16: torch.bfloat16,
         f32: torch.float32, f64: torch.float64}
FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -3.7, 1e-40, 3e38, -7.25, 1e-3]


def program(types: list[TensorType], make: Callable[..., Any]) -> Module:
    """A module whose @main returns what `make` builds from its arguments."""
    inside, main = module(), function("main", types)
    inside.body.block.insert(main)
    with at_end(main.block):
        made = make(*main.args)
        Return(tuple(v.result if isinstance(v, Op) else v for v in (made if isinstance(made, list) else [made])))
    main.update_type()
    return inside


def evaluate(make: Callable[..., Any], *args: Any) -> list[Array]:
    """Interpret the operations that `make` builds on arrays."""
    from mlc.ir.types import from_numpy
    arrays = [np.asarray(a) for a in args]
    inside = program([TensorType(a.shape, from_numpy(a.dtype)) for a in arrays], make)
    return [np.asarray(x) for x in Interpreter(inside).call("main", arrays)]


def derivative(make: Callable[..., Any], *args: Any) -> list[Array]:
    """The gradients of the sum of what `make` builds."""
    def both(*xs: Value) -> list[Value]:
        made = make(*xs)
        out = made.result if isinstance(made, Op) else made
        assert out.op is not None
        return gradients(out.op.enclosing(Module), {out: full(1, out, out.type.shape)}, xs)
    return evaluate(both, *args)


# -- errors -----------------------------------------------------------------------------------------------------------
def scalar_map(body: Callable[..., Value], *types: str) -> Callable[..., Value]:
    return lambda *xs: map_elements(xs, body)


WRONG: list[tuple[str, Callable[..., Any], tuple[str, ...], str]] = [
    ("MLC0111", tensor.Add, ("2x3xf32", "4xf32"), "tensor.add: shapes [2, 3] and [4] do not broadcast"),
    ("MLC0111", tensor.Mul, ("Bxf32", "3xf32"), "shapes [B] and [3] do not broadcast"),
    ("MLC0111", tensor.Select, ("2xi1", "3xf32", "f32"), "shapes [2] and [3] and [] do not broadcast"),
    ("MLC0111", lambda x: tensor.BroadcastTo(x, (2, 4)), ("3xf32",), "[3] does not broadcast to [2, 4]"),
    ("MLC0112", tensor.Sub, ("3xf32", "3xi32"), "element types differ: f32 and i32"),
    ("MLC0112", lambda x, y: tensor.Concat((x, y), 0), ("3xf32", "3xf64"), "element types differ: f32 and f64"),
    ("MLC0112", lambda x, y: tensor.DotGeneral(x, y, (), ()), ("3xf32", "3xf64"), "element types differ"),
    ("MLC0113", tensor.Exp, ("3xi32",), "does not work on i32, only on float elements"),
    ("MLC0113", tensor.Add, ("3xi1", "3xi1"), "does not work on i1, only on int and float elements"),
    ("MLC0113", tensor.Select, ("3xf32", "3xf32", "3xf32"), "the condition has f32 elements, not i1"),
    ("MLC0113", lambda x, i: tensor.Take(x, i, 0), ("3xf32", "2xf32"), "the indices have f32 elements, not integers"),
    ("MLC0113", lambda x: tensor.Softmax(x, 0), ("3xi32",), "does not work on i32, only on float elements"),
    ("MLC0113", scalar_map(lambda x: x), ("3xui8",), "arith does not support elements of type ui8"),
    ("MLC0114", lambda x: tensor.ReduceSum(x, (2,)), ("2x3xf32",), "axis 2 is out of range for 2 dimensions"),
    ("MLC0114", lambda x: tensor.ReduceSum(x, (1, 0)), ("2x3xf32",), "axes [1, 0] are not in ascending order"),
    ("MLC0114", lambda x, y: tensor.DotGeneral(x, y, ((0, 0),), ((0, 0),)), ("3xf32", "3xf32"),
     "an axis of operand 0 is used twice"),
    ("MLC0115", lambda x: tensor.Reshape(x, (B, 4)), ("Bx3xf32",), "[B, 3] has 3*B elements, [B, 4] has 4*B"),
    ("MLC0115", lambda x, y: tensor.DotGeneral(x, y, (), ((1, 0),)), ("2x128xf32", "64x3xf32"),
     "inner sizes differ: 128 (axis 1 of [2, 128]) and 64 (axis 0 of [64, 3])"),
    ("MLC0115", lambda x, y: tensor.Concat((x, y), 0), ("2x3xf32", "2x4xf32"),
     "shape [2, 4] of operand 1 does not fit [2, 3] outside axis 0"),
    ("MLC0115", lambda x, i: tensor.TakeAlong(x, i, 1), ("2x3xf32", "3x3xi32"),
     "indices of shape [3, 3] do not fit [2, 3] outside axis 1"),
    ("MLC0115", lambda x, w: tensor.LayerNorm(x, w, None, (1,)), ("2x3xf32", "2xf32"),
     "weight or bias of shape [2] does not fit the normalised axes [3]"),
    ("MLC0115", lambda x, y: tensor.CrossEntropy(x, y, 1), ("2x3xf32", "3xi64"),
     "labels of shape [3] do not fit logits of shape [2, 3] without axis 1"),
    ("MLC0116", lambda: tensor.Full(300, (2,), ui8), (), "300 is not a value of ui8"),
    ("MLC0116", lambda: tensor.Full(0.5, (2,), i32), (), "0.5 is not a value of i32"),
    ("MLC0116", lambda: tensor.Full(0, (-2,), i32), (), "-2 is not a size"),
    ("MLC0116", lambda x: tensor.Transpose(x, (0, 0)), ("2x3xf32",), "perm [0, 0] is not a permutation of 2 axes"),
    ("MLC0116", lambda x: tensor.Slice(x, (0,), (8,), (1,)), ("7xf32",), "axis 0: 0:8:1 does not lie within size 7"),
    ("MLC0116", lambda x: tensor.Slice(x, (0,), (B + 1,), (1,)), ("Bxf32",), "0:B + 1:1 does not lie within size B"),
    ("MLC0116", lambda x: tensor.Slice(x, (7,), (0,), (-1,)), ("7xf32",), "7:0:-1 does not lie within size 7"),
    ("MLC0116", lambda x: tensor.Slice(x, (0,), (7,), (0,)), ("7xf32",), "the step is 0"),
    ("MLC0116", lambda x, v: tensor.Pad(x, v, (-1,), (0,), (0,)), ("7xf32", "f32"), "negative padding low -1"),
    ("MLC0116", lambda x: tensor.Gelu(x, "fast"), ("3xf32",), "approximate is 'fast'"),
    ("MLC0116", lambda x, y: tensor.Compare("lte", x, y), ("3xf32", "3xf32"), "no predicate 'lte'"),
    ("MLC0116", lambda x: tensor.ReduceSum(x, (0,), "lanes<3>"), ("3xf32",), "order 'lanes<3>' is neither"),
    ("MLC0116", lambda x: tensor.ReduceSum(x, (0,), "lanes<4, 1>"), ("3xf32",), "order 'lanes<4, 1>' is neither"),
    ("MLC0116", lambda x, y: tensor.CrossEntropy(x, y, 0, "avg"), ("3xf32", "i64"), "reduction is 'avg'"),
    ("MLC0117", lambda x, v: tensor.Pad(x, v, (0,), (0,), (0,)), ("3xf32", "3xf32"), "the value has shape [3], not []"),
    ("MLC0117", lambda x: tensor.Slice(x, (0,), (2,), (1,)), ("2x3xf32",), "2 dimensions need as many starts"),
    ("MLC0117", lambda: tensor.Concat((), 0), (), "nothing to concatenate"),
    ("MLC0119", lambda x: tensor.Map((x,), t_region()), ("3xf32",), "the body does not end by yielding one value"),
]


def t_region() -> Any:
    from mlc.ir.core import Block, Region
    return Region(Block([f32]))


@pytest.mark.parametrize("code, make, types, message", WRONG, ids=[f"{c}-{m[:40]}" for c, _, _, m in WRONG])
def test_errors_name_the_operand(code: str, make: Callable[..., Any], types: tuple[str, ...], message: str) -> None:
    with pytest.raises(IRError) as error:
        program([t(x) for x in types], make)
    assert error.value.code == code and message in error.value.message
    assert error.value.loc.file == __file__, "the error points at the line that asked for the operation"


def test_scalar_operand_is_refused() -> None:
    with pytest.raises(IRError, match="operand 1 is f32, not a tensor") as error:
        program([t("3xf32")], lambda x: tensor.Add(x, arith.constant(1.0, f32)))
    assert error.value.code == "MLC0118"


def test_errors_say_where_the_operands_come_from() -> None:
    with pytest.raises(IRError) as error:
        program([t("2xf32")], lambda x: tensor.Add(tensor.Exp(x).result, full(0, x, (3,))))
    assert [note.split(",")[0] for note in error.value.notes] == ["operand 0", "operand 1"]
    assert all("comes from " + __file__ in note for note in error.value.notes)


def test_index_out_of_range_is_a_user_error() -> None:
    for picked, message in (([0, 3], "index 3 at [1] is out of range for size 3 of axis 0"),
                            (-1, "index -1 is out of range for size 3 of axis 0")):
        with pytest.raises(UserIndexError) as error:
            evaluate(lambda x, i: tensor.Take(x, i, 0), np.zeros((3, 2)), np.asarray(picked))
        assert message in error.value.message and error.value.loc.file == __file__
    with pytest.raises(IndexError):
        evaluate(lambda x, i: tensor.TakeAlong(x, i, 0), np.zeros(3), np.array([5]))
    with pytest.raises(IndexError):
        evaluate(lambda x, y: tensor.CrossEntropy(x, y, 1), np.zeros((2, 3)), np.array([0, 3]))


def test_unprovable_comparisons_of_sizes_are_false() -> None:
    b, c = sym("B"), sym("C")
    assert less(1, 2) and less(b, b + 1) and less(0, b * c + 1) and not less(b, b) and not less(0, b)
    assert not less(b, c) and not less(b + 1, 2 * b) and not less(0, (b - 3) // 2 + 1)


# -- meaning ----------------------------------------------------------------------------------------------------------
ELEMENTWISE: list[tuple[Callable[..., Any], Callable[..., Any], int]] = [
    (tensor.Neg, torch.neg, 1), (tensor.Abs, torch.abs, 1), (tensor.Sign, torch.sign, 1), (tensor.Exp, torch.exp, 1),
    (tensor.Exp2, torch.exp2, 1), (tensor.Expm1, torch.expm1, 1), (tensor.Log, torch.log, 1),
    (tensor.Log2, torch.log2, 1), (tensor.Log1p, torch.log1p, 1), (tensor.Sqrt, torch.sqrt, 1),
    (tensor.Rsqrt, torch.rsqrt, 1), (tensor.Sin, torch.sin, 1), (tensor.Cos, torch.cos, 1),
    (tensor.Tanh, torch.tanh, 1), (tensor.Sigmoid, torch.sigmoid, 1), (tensor.Erf, torch.erf, 1),
    (tensor.Erfc, torch.erfc, 1), (tensor.Log10, torch.log10, 1), (tensor.Sinh, torch.sinh, 1),
    (tensor.Cosh, torch.cosh, 1), (tensor.Asinh, torch.asinh, 1), (tensor.Acosh, torch.acosh, 1),
    (tensor.Atanh, torch.atanh, 1), (tensor.Tan, torch.tan, 1), (tensor.Asin, torch.asin, 1),
    (tensor.Acos, torch.acos, 1), (tensor.Atan2, torch.atan2, 2), (tensor.Hypot, torch.hypot, 2),
    (tensor.Fmod, torch.fmod, 2),
    (tensor.Floor, torch.floor, 1), (tensor.Ceil, torch.ceil, 1), (tensor.Round, torch.round, 1),
    (tensor.Reciprocal, torch.reciprocal, 1), (tensor.IsNan, torch.isnan, 1), (tensor.Add, torch.add, 2),
    (tensor.Sub, torch.sub, 2), (tensor.Mul, torch.mul, 2), (tensor.Div, torch.div, 2),
    (tensor.FloorDiv, torch.floor_divide, 2), (tensor.Rem, torch.remainder, 2), (tensor.Pow, torch.pow, 2),
    (tensor.Maximum, torch.maximum, 2), (tensor.Minimum, torch.minimum, 2),
    (lambda x, y: tensor.Compare("lt", x, y), torch.lt, 2), (lambda x, y: tensor.Compare("ne", x, y), torch.ne, 2),
    (lambda x, y: tensor.Select(tensor.Compare("ge", x, y).result, x, y), lambda x, y: torch.where(x >= y, x, y), 2),
    (tensor.Relu, torch.relu, 1),
    (tensor.Elu, torch_nn.elu, 1), (tensor.Gelu, torch_nn.gelu, 1),
    (lambda x: tensor.Gelu(x, "tanh"), lambda x: torch_nn.gelu(x, approximate="tanh"), 1),
    (tensor.Silu, lambda x: torch_nn.silu(x.clamp(min=-1e30)), 1), (tensor.Softplus, torch_nn.softplus, 1),
    (tensor.LogSigmoid, torch_nn.logsigmoid, 1),
]
ALONG_AXES: list[tuple[Callable[..., Any], Callable[..., Any], int]] = [
    (lambda x: tensor.Softmax(x, 0), lambda x: torch.softmax(x, 0), 1),
    (lambda x: tensor.LogSoftmax(x, 0), lambda x: torch.log_softmax(x, 0), 1),
    (lambda x: tensor.LogSumExp(x, 0), lambda x: torch.logsumexp(x, 0), 1),
    (lambda x: tensor.ReduceMax(x, (0,)), lambda x: torch.amax(x, 0), 1),
    (lambda x: tensor.ReduceMin(x, (0,)), lambda x: torch.amin(x, 0), 1),
    (lambda x: tensor.ReduceProd(x, (0,)), lambda x: torch.prod(x, 0), 1),
    (lambda x: tensor.ArgMax(x, 0), lambda x: torch.argmax(x, 0), 1),
    (lambda x: tensor.ReduceSum(x, (0,)), lambda x: torch.sum(x, 0), 1),
    (lambda x: tensor.Mean(x, (0,)), lambda x: torch.mean(x, 0), 1),
    (lambda x: tensor.Var(x, (0,)), lambda x: torch.var(x, 0), 1),
    (lambda x: tensor.Var(x, (0,), 0), lambda x: torch.var(x, 0, correction=0), 1),
    (lambda x: tensor.LayerNorm(x, None, None, (0,)), lambda x: torch_nn.layer_norm(x, x.shape), 1),
    (lambda x, w: tensor.LayerNorm(x, w, w, (0,), 1e-3), lambda x, w: torch_nn.layer_norm(x, x.shape, w, w, 1e-3), 2),
    (lambda x, y: tensor.DotGeneral(x, y, (), ((0, 0),)), torch.dot, 2),
    (lambda x, y: tensor.DotGeneral(x, y, (), ()), torch.outer, 2),
    (lambda x, y: tensor.Concat((x, y), 0), lambda x, y: torch.cat([x, y]), 2),
    (lambda x: tensor.Reverse(x, (0,)), lambda x: torch.flip(x, [0]), 1),
]


def numbers(rng: np.random.Generator, special: bool, count: int) -> list[Array]:
    """Every pair of special floats, or random ones."""
    if not special:
        return [rng.standard_normal(257).astype(np.float32) * 3 for _ in range(count)]
    grid = np.meshgrid(*[np.array(FLOATS, np.float32)] * count)
    return [g.ravel() for g in grid]


@pytest.mark.parametrize("ours, theirs, count", ELEMENTWISE, ids=[str(i) for i in range(len(ELEMENTWISE))])
@pytest.mark.parametrize("special", [False, True])
def test_elements_same_as_torch(ours: Callable[..., Any], theirs: Callable[..., Any], count: int,
                                special: bool) -> None:
    xs = numbers(np.random.default_rng(0), special, count)
    got, = evaluate(ours, *xs)
    if special:                             # one by one: torch's loops over vectors have other special cases
        want = torch.stack([theirs(*(torch.tensor(v) for v in row)) for row in zip(*xs)]).numpy()
    else:
        want = theirs(*map(torch.from_numpy, xs)).numpy()
    assert difference(got, want, 2e-6) is None


@pytest.mark.parametrize("ours, theirs, count", ALONG_AXES, ids=[str(i) for i in range(len(ALONG_AXES))])
def test_reductions_same_as_torch(ours: Callable[..., Any], theirs: Callable[..., Any], count: int) -> None:
    for xs in (numbers(np.random.default_rng(0), False, count), [np.array([1.0, math.nan, 2.0], np.float32)] * count,
               [np.array([-math.inf, 1.0, 2.0], np.float32)] * count, [np.array([math.inf, 1.0], np.float32)] * count):
        (got,), want = evaluate(ours, *xs), theirs(*map(torch.from_numpy, xs)).numpy()
        assert difference(got, want, 2e-5) is None


def test_indexing_same_as_torch() -> None:
    rng = np.random.default_rng(0)
    x, logits, labels = rng.standard_normal((5, 7)), rng.standard_normal((4, 3, 6)), rng.integers(0, 3, (4, 6))
    rows, along = rng.integers(0, 5, (2, 3)), rng.integers(0, 7, (5, 2))
    pairs = [
        (evaluate(lambda x, i: tensor.Take(x, i, 0), x, rows), torch.from_numpy(x)[torch.from_numpy(rows)]),
        (evaluate(lambda x, i: tensor.TakeAlong(x, i, 1), x, along),
         torch.gather(torch.from_numpy(x), 1, torch.from_numpy(along))),
        *((evaluate(lambda x, y, how=how: tensor.CrossEntropy(x, y, 1, how), logits, labels), torch_nn.cross_entropy(
            torch.from_numpy(logits), torch.from_numpy(labels), reduction=how)) for how in ("none", "mean", "sum")),
    ]
    for (got,), want in pairs:
        assert difference(got, want.numpy(), 1e-12) is None


INTS = [0, 1, -1, 2, -2, 3, -7, 8, 31, 32, 33, 100, -100, 2**31 - 1, -2**31]


@pytest.mark.parametrize("ours, theirs", [
    (tensor.Add, torch.add), (tensor.Sub, torch.sub), (tensor.Mul, torch.mul), (tensor.Maximum, torch.maximum),
    (tensor.And, torch.bitwise_and), (tensor.Or, torch.bitwise_or), (tensor.Xor, torch.bitwise_xor),
    (tensor.Shl, torch.bitwise_left_shift), (tensor.Shr, torch.bitwise_right_shift), (tensor.Pow, torch.pow),
    (tensor.FloorDiv, torch.floor_divide), (tensor.Rem, torch.remainder)])
def test_integers_same_as_torch(ours: Callable[..., Any], theirs: Callable[..., Any]) -> None:
    x, y = (g.ravel() for g in np.meshgrid(np.array(INTS, np.int32), np.array(INTS, np.int32)))
    if ours in (tensor.FloorDiv, tensor.Rem):
        keep = (y != 0) & ~((y == -1) & (x == -2**31))
        x, y = x[keep], y[keep]
    got, = evaluate(ours, x, y)
    assert difference(got, theirs(torch.from_numpy(x), torch.from_numpy(y)).numpy(), "bits") is None


def test_integer_division_by_zero_is_zero() -> None:
    x = np.array([5, -5, 0, -2**31], np.int32)
    for cls in (tensor.FloorDiv, tensor.Rem):
        assert (evaluate(cls, x, np.int32(0))[0] == 0).all()
    assert evaluate(tensor.FloorDiv, x, np.int32(-1))[0].tolist() == [-5, 5, 0, -2**31]


def test_the_power_of_one_half_is_no_square_root() -> None:
    """Of -0 and -inf it is 0 and inf, however many exponents there are."""
    x = np.array([-0.0, -math.inf, 4.0], np.float32)
    for exponents in ([0.5], [0.5] * 3):
        assert tensor.Pow.f(x, np.array(exponents, np.float32)).tolist() == [0.0, math.inf, 2.0]
        assert not np.signbit(tensor.Pow.f(x, np.array(exponents, np.float32))).any()


def test_zeros_of_extrema_are_ordered() -> None:
    zeros = np.array([0.0, -0.0, -0.0], np.float32)
    for cls, reduce, sign in ((tensor.Maximum, tensor.ReduceMax, False), (tensor.Minimum, tensor.ReduceMin, True)):
        for a, b in ((0.0, -0.0), (-0.0, 0.0)):
            got, = evaluate(cls, np.float32(a), np.float32(b))
            assert bool(np.signbit(got)) is sign
        for order in (zeros, zeros[::-1].copy()):
            got, = evaluate(lambda x, reduce=reduce: reduce(x, (0,)), order)
            assert bool(np.signbit(got)) is sign
    got, = evaluate(lambda x: tensor.ReduceMax(x, (0,)), np.array([-0.0, -1.0]))
    assert np.signbit(got)


def test_empty_reductions_give_the_identity_element() -> None:
    for cls, dtype, want in (
            (tensor.ReduceSum, "f4", 0), (tensor.ReduceProd, "i4", 1), (tensor.ReduceMax, "f4", -np.inf),
            (tensor.ReduceMin, "f4", np.inf), (tensor.ReduceMax, "i1", -128), (tensor.ReduceMin, "u1", 255),
            (tensor.ReduceAny, "?", False), (tensor.ReduceAll, "?", True)):
        got, = evaluate(lambda x, cls=cls: cls(x, (0,)), np.zeros((0, 2), dtype))
        assert (got == want).all()


def test_casts() -> None:
    x = np.array([1.9, -1.9, 300.0, -300.0, math.nan, math.inf, -math.inf, -0.0, 1e30], np.float32)
    for target, want in ((i8, [1, -1, 127, -128, 0, 127, -128, 0, 127]), (ui8, [1, 0, 255, 0, 0, 255, 0, 0, 255]),
                         (i1, [1, 1, 1, 1, 1, 1, 1, 0, 1]),
                         (i64, [1, -1, 300, -300, 0, 2**63 - 1, -2**63, 0, 2**63 - 1])):
        got, = evaluate(lambda v, target=target: tensor.Cast(v, target), x)
        assert got.tolist() == want and got.dtype == to_numpy(target)
    edge = np.array([2.0**63, np.nextafter(2.0**63, 0), -2.0**63, 2.0**64])
    assert evaluate(lambda v: tensor.Cast(v, i64), edge)[0].tolist() == [2**63 - 1, 2**63 - 1024, -2**63, 2**63 - 1]
    assert evaluate(lambda v: tensor.Cast(v, ui64), edge)[0].tolist() == [2**63, 2**63 - 1024, 0, 2**64 - 1]
    assert evaluate(lambda v: tensor.Cast(v, ui8), np.array([-1, 256, 511], np.int32))[0].tolist() == [255, 0, 255]


def test_casts_to_bf16_round_once() -> None:
    """Double rounding through f32 could create or break a tie of bf16."""
    from fractions import Fraction
    rng = np.random.default_rng(1)
    ties = 1 + (2 * rng.integers(0, 128, 500) + 1) * 2.0**-8
    wide = np.concatenate([ties + s * 2.0**-40 for s in (-1, 0, 1)]) * rng.choice([-1, 1, 2.0**30], 1500)
    whole = (rng.integers(2**39, 2**40, 500) >> 31 << 31 | 1 << 31) + rng.integers(-1, 2, 500)
    for x in (wide, whole, -whole, whole.astype(np.uint64)):
        got = rounded(x, bf16)
        near = [np.frombuffer((got.view(np.int16) + np.int16(d)).tobytes(), got.dtype) for d in (-1, 1)]
        for value, chosen, *others in zip(x.tolist(), got, *near):
            best = min(abs(Fraction(float(o)) - Fraction(value)) for o in (chosen, *others))
            assert abs(Fraction(float(chosen)) - Fraction(value)) == best


def test_symbolic_sizes_are_runtime_values() -> None:
    inside = program([t("Bx3xf32")], lambda x: [size(2 * B + 1, i64), size(B, f32), size(4, f64),
                                                tensor.Iota((B,), 0, i8)])
    got = Interpreter(inside).call("main", [np.zeros((5, 3), np.float32)])
    assert [np.asarray(g).tolist() for g in got] == [11, 5.0, 4.0, [0, 1, 2, 3, 4]]


def test_operators_take_numbers() -> None:
    x = np.array([1.0, 2.0], np.float32)
    got, = evaluate(lambda v: 2 - (v * 3 + 1) / 2, x)
    assert difference(got, (2 - (x * 3 + 1) / 2).astype(np.float32), "bits") is None
    assert evaluate(lambda v: -v * 3 - 1, np.array([1, 2], np.int8))[0].tolist() == [-4, -7]
    with pytest.raises(IRError, match=r"0.5 is not a value of i8"):
        evaluate(lambda v: v * 0.5, np.array([1, 2], np.int8))


def test_float16_is_computed_in_float32() -> None:
    big = np.array([60000, 60000, -60000], np.float16)
    for order in (None, "chain", "lanes<2>"):
        assert float(evaluate(lambda x, order=order: tensor.ReduceSum(x, (0,), order), big)[0]) == 60000 - 32 + 32
    assert float(evaluate(lambda x: tensor.Mean(x, (0,)), big)[0]) == 20000


# -- orders -----------------------------------------------------------------------------------------------------------
def lanes_by_hand(x: Array, count: int, combine: Callable[[Any, Any], Any], identity: float) -> Any:
    """The definition, on one row, one element at a time."""
    lane = [x.dtype.type(identity)] * count
    for start in range(0, len(x), count):
        for i in range(count):
            lane[i] = combine(lane[i], x[start + i] if start + i < len(x) else x.dtype.type(identity))
    while len(lane) > 1:
        lane = [combine(lane[i], lane[i + len(lane) // 2]) for i in range(len(lane) // 2)]
    return lane[0]


@pytest.mark.parametrize("order, count", [("chain", 1), ("lanes<1>", 1), ("lanes<4>", 4), ("lanes<16>", 16)])
@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 33])
def test_lane_order_of_sums_matches_its_definition(order: str, count: int, length: int) -> None:
    rng = np.random.default_rng(length)
    for dtype in (np.float32, np.float64):
        x = (rng.standard_normal((2, length)) * 10.0 ** rng.integers(-6, 6, (2, length))).astype(dtype)
        for combine, identity in ((np.add, 0.0), (np.multiply, 1.0), (np.maximum, -np.inf), (np.minimum, np.inf)):
            got = reduce_in_order(x, (1,), order, combine, identity)
            for row, value in zip(x, got):
                assert difference(value, lanes_by_hand(row, count, combine, identity), "bits") is None


@pytest.mark.parametrize("length", [0, 1, 5, 33])
def test_ordered_products_are_sequential(length: int) -> None:
    rng = np.random.default_rng(length)
    for dtype in (np.float32, np.float64):
        x, y = (rng.standard_normal((1, n, length)).astype(dtype) for n in (2, 3))
        got = dot_in_order(x, y, "chain")
        for m in range(2):
            for n in range(3):
                total: Any = dtype(0)
                for k in range(length):
                    total = fma(x[0, m, k], y[0, n, k], total)[()]
                assert difference(got[0, m, n], dtype(total), "bits") is None


def runs_by_hand(x: Array, run: int, level: int, combine: Callable[[Any, Any], Any], identity: float) -> Any:
    """A run of runs, each of which starts from the identity."""
    total, size = x.dtype.type(identity), run ** level
    for start in range(0, len(x), size):
        total = combine(total, runs_by_hand(x[start: start + size], run, level - 1, combine, identity) if level
                        else x[start])
    return total


@pytest.mark.parametrize("count, run", [(1, 2), (1, 5), (4, 2), (2, 3)])
@pytest.mark.parametrize("length", [0, 1, 5, 16, 33, 100])
def test_run_order_of_sums_matches_its_definition(count: int, run: int, length: int) -> None:
    x = np.random.default_rng(length).standard_normal(length).astype(np.float32)
    for combine, identity in ((np.add, 0.0), (np.multiply, 1.0), (np.maximum, -np.inf)):
        whole = length - length % count
        lane = [runs_by_hand(x[i: whole: count], run, 3, combine, identity) for i in range(count)]
        lane = [combine(v, x[whole + i]) if whole + i < length else v for i, v in enumerate(lane)]
        while len(lane) > 1:
            lane = [combine(lane[i], lane[i + len(lane) // 2]) for i in range(len(lane) // 2)]
        got = reduce_in_order(x, (0,), f"lanes<{count}, {run}>", combine, identity)
        assert difference(got, np.float32(lane[0]), "bits") is None


@pytest.mark.parametrize("length", [4096, 65536, 99991, pytest.param(1 << 20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_sums_are_as_exact_as_those_of_numpy(length: int, kind: str) -> None:
    rng = np.random.default_rng(length)
    count = max(24, 2 ** 20 // length)
    made = [getattr(rng, kind)(size=length).astype(np.float32) for _ in range(count)]
    exact = [math.fsum(x) for x in made]
    ours = [reduce_in_order(x, (0,), "lanes<64, 32>", np.add, 0.0) - e for x, e in zip(made, exact)]
    theirs = [x.sum() - e for x, e in zip(made, exact)]
    assert np.sqrt(np.mean(np.square(ours))) < 2 * np.sqrt(np.mean(np.square(theirs)))


def test_reduced_axes_are_row_major() -> None:
    x = np.random.default_rng(2).standard_normal((3, 5, 7)).astype(np.float32)
    for order in ("chain", "lanes<8>"):
        got = reduce_in_order(x, (0, 2), order, np.add, 0.0)
        rows = np.ascontiguousarray(x.transpose(1, 0, 2)).reshape(5, 21)
        assert difference(got, reduce_in_order(rows, (1,), order, np.add, 0.0), "bits") is None


def test_sums_start_from_plus_zero() -> None:
    for order in (None, "chain", "lanes<4>"):
        got, = evaluate(lambda x, order=order: tensor.ReduceSum(x, (0,), order), np.array([-0.0, -0.0]))
        assert not np.signbit(got)


def test_order_of_a_product_in_16_bits() -> None:
    rng = np.random.default_rng(4)
    for dtype in (f16, bf16):
        x, y = (rounded(rng.standard_normal(s), dtype) for s in ((3, 9), (9, 2)))
        got, = evaluate(lambda x, y: tensor.DotGeneral(x, y, (), ((1, 0),), "chain"), x, y)
        wide = dot_in_order(x[None].astype(np.float32), y.T[None].astype(np.float32), "chain")[0]
        assert difference(got, wide.astype(got.dtype), "bits") is None


# -- map --------------------------------------------------------------------------------------------------------------
def float_body(x: Value, y: Value) -> Value:
    bits = arith.Bitcast(x, i32).result
    low = arith.AndI(bits, arith.constant(0x7FFFFF, i32)).result
    shifted = arith.ShRUI(bits, arith.constant(3, i32)).result
    mixed = arith.SIToFP(arith.XorI(low, shifted).result, f32).result
    wide = arith.ExtF(arith.DivF(x, y).result, f64).result
    narrow = arith.TruncF(wide * wide, f32).result
    less = arith.CmpF("olt", x, y).result
    chosen = arith.Select(less, narrow, arith.MaximumF(mixed, y).result).result
    position = arith.IndexCast(arith.IndexCast(low, index).result + arith.constant(1, index), i32).result
    return arith.AddF(chosen, arith.SIToFP(position, f32).result).result


def int_body(x: Value, y: Value) -> Value:
    quotient = arith.DivSI(x, arith.OrI(y, arith.constant(1, i32)).result).result
    narrow = arith.ExtSI(arith.TruncI(x, i8).result, i32).result
    flag = arith.ExtUI(arith.CmpI("ult", x, y).result, i32).result
    return arith.Select(arith.CmpI("slt", y, narrow).result, quotient, narrow).result + flag


@pytest.mark.parametrize("body, dtype", [(float_body, f32), (int_body, i32)])
def test_map_is_its_body_element_by_element(body: Callable[..., Value], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    numpy = to_numpy(dtype)
    x = np.frombuffer(rng.bytes(4 * 257), numpy).copy()
    x[:16] = np.array(FLOATS, np.float32) if dtype == f32 else rng.integers(-3, 3, 16)
    y = x[::-1].copy()
    whole, = evaluate(lambda x, y: map_elements((x, y), body), x, y)
    for i in range(len(x)):
        one, = evaluate(lambda x, y: map_elements((x, y), body), x[i], y[i])
        assert difference(whole[i], one[()], "bits") is None


def test_map_broadcasts() -> None:
    x, y = np.arange(3.0).reshape(3, 1), np.arange(4.0)
    got, = evaluate(lambda x, y: map_elements((x, y), lambda a, b: a * 10.0 + b), x, y)
    assert difference(got, x * 10 + y, "bits") is None
    got, = evaluate(lambda x: map_elements((x,), lambda a: arith.constant(7.0, f32)), x)
    assert difference(got, np.full((3, 1), 7, np.float32), "bits") is None


# -- derivatives where they are a choice ------------------------------------------------------------------------------
KINKS: list[tuple[Callable[..., Any], Callable[..., Any], list[Any]]] = [
    (tensor.Maximum, torch.maximum, [[1.0, 2.0, 2.0], [2.0, 2.0, 1.0]]),
    (tensor.Minimum, torch.minimum, [[1.0, 2.0, 2.0], [2.0, 2.0, 1.0]]),
    (lambda x: tensor.ReduceMax(x, (1,)), lambda x: torch.amax(x, 1), [[[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]]),
    (lambda x: tensor.ReduceMin(x, (0,)), lambda x: torch.amin(x, 0), [[[1.0, 3.0, 3.0], [1.0, 2.0, 4.0]]]),
    (lambda x: tensor.ReduceProd(x, (1,)), lambda x: torch.prod(x, 1), [[[2.0, 0.0, 3.0], [0.0, 0.0, 3.0]]]),
    (tensor.Pow, torch.pow, [[0.0, 0.0, 0.0, 2.0, -2.0], [0.0, 1.0, 2.0, 0.0, 2.0]]),
    (tensor.Relu, torch.relu, [[-1.0, 0.0, -0.0, 2.0]]), (tensor.Abs, torch.abs, [[-1.0, 0.0, 2.0]]),
    (tensor.Sign, torch.sign, [[-1.0, 0.0, 2.0]]), (tensor.Floor, torch.floor, [[-1.0, 0.5]]),
    (tensor.Softplus, torch_nn.softplus, [[-1.0, 0.0, 5.0]]),
    (tensor.LogSigmoid, torch_nn.logsigmoid, [[-100.0, 0.0, 100.0]]),
    (tensor.Elu, torch_nn.elu, [[-1000.0, -1.0, 0.0, 2.0, 1000.0]]),
    (tensor.Rem, torch.remainder, [[5.0, -5.0], [3.0, 3.0]]),
    (lambda x: tensor.LogSumExp(x, 0), lambda x: torch.logsumexp(x, 0), [[-math.inf, 0.0, 1.0]]),
]


@pytest.mark.parametrize("ours, theirs, points", KINKS, ids=[str(i) for i in range(len(KINKS))])
def test_derivatives_at_kinks_match_torch(ours: Callable[..., Any], theirs: Callable[..., Any],
                                          points: list[Any]) -> None:
    def opened(*xs: Value) -> Value:
        op = ours(*xs)
        made: Any = op.decompose() if isinstance(op, tensor.Composite) and type(op).vjp is Op.vjp else op.result
        assert isinstance(made, Value)
        return made
    xs = [np.array(p) for p in points]
    leaves = [torch.tensor(x, requires_grad=True) for x in xs]
    theirs(*leaves).sum().backward()
    for got, leaf in zip(derivative(opened, *xs), leaves):
        assert leaf.grad is not None
        np.testing.assert_allclose(got, leaf.grad.numpy(), rtol=1e-12, atol=1e-300)


def test_no_gradient_passes_stop_gradient() -> None:
    x = np.array([1.0, 2.0])
    got, = derivative(lambda x: x * tensor.StopGradient(x).result, x)
    assert got.tolist() == [1.0, 2.0]


# -- promotion --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("a", TORCH, ids=str)
@pytest.mark.parametrize("b", TORCH, ids=str)
def test_type_promotion_matches_torch(a: Any, b: Any) -> None:
    try:
        want = torch.promote_types(TORCH[a], TORCH[b])
    except RuntimeError:                                   # unsigned integers of 16 bits and more
        if (want := np.promote_types(to_numpy(a), to_numpy(b))) != np.float64:
            assert to_numpy(promote(a, b)) == want
            return
        with pytest.raises(UserTypeError, match="have no common type"):
            promote(a, b)
    else:
        assert TORCH[promote(a, b)] == want


# -- rewrites ---------------------------------------------------------------------------------------------------------
F = "tensor<Bx3xf32>"
REWRITES: list[tuple[str, str]] = [          # rule, body of a function of %x %y: F, %i: tensor<3xi32>, %p: tensor<3xi1>
    ("constant_of_equal_elements", "%r = tensor.constant dense<2.5> : tensor<4xf32>"),
    ("constant_of_equal_elements", "%r = tensor.constant dense<> : tensor<0xf32>"),
    ("elementwise_of_splats", f"%a = tensor.full 2.5 : {F}\n%b = tensor.full -0.1 : tensor<f32>\n"
                              f"%r = tensor.div %a, %b : ({F}, tensor<f32>) -> {F}"),
    ("elementwise_of_splats", "%a = tensor.full 2 : tensor<3xi8>\n%r = tensor.compare lt, %a, %a : (tensor<3xi8>, "
                              "tensor<3xi8>) -> tensor<3xi1>"),
    ("splat_to_the_right", f"%c = tensor.full 2.0 : tensor<f32>\n%r = tensor.mul %c, %x : (tensor<f32>, {F}) -> {F}"),
    ("add_zero", f"%c = tensor.full -0.0 : tensor<f32>\n%r = tensor.add %x, %c : ({F}, tensor<f32>) -> {F}"),
    ("add_zero", "%c = tensor.full 0 : tensor<3xi32>\n%r = tensor.add %i, %c : tensor<3xi32>"),
    ("sub_zero", f"%c = tensor.full 0.0 : tensor<f32>\n%r = tensor.sub %x, %c : ({F}, tensor<f32>) -> {F}"),
    ("one_on_the_right", f"%c = tensor.full 1.0 : tensor<f32>\n%r = tensor.mul %x, %c : ({F}, tensor<f32>) -> {F}"),
    ("one_on_the_right", f"%c = tensor.full 1.0 : tensor<f32>\n%r = tensor.pow %x, %c : ({F}, tensor<f32>) -> {F}"),
    ("int_times_zero", "%c = tensor.full 0 : tensor<3xi32>\n%r = tensor.mul %i, %c : tensor<3xi32>"),
    ("square", f"%c = tensor.full 2.0 : tensor<f32>\n%r = tensor.pow %x, %c : ({F}, tensor<f32>) -> {F}"),
    ("bits_with_constant", "%c = tensor.full -1 : tensor<3xi32>\n%r = tensor.and %i, %c : tensor<3xi32>"),
    ("bits_with_constant", "%c = tensor.full 0 : tensor<3xi1>\n%r = tensor.and %p, %c : tensor<3xi1>"),
    ("idempotent", "%r = tensor.and %p, %p : tensor<3xi1>"),
    ("involution", f"%a = tensor.neg %x : {F}\n%r = tensor.neg %a : {F}"),
    ("involution", "%a = tensor.logical_not %p : tensor<3xi1>\n%r = tensor.logical_not %a : tensor<3xi1>"),
    ("abs_of_neg", f"%a = tensor.neg %x : {F}\n%r = tensor.abs %a : {F}"),
    ("rounding_twice", f"%a = tensor.round %x : {F}\n%r = tensor.ceil %a : {F}"),
    ("add_of_neg", f"%a = tensor.neg %y : {F}\n%r = tensor.add %x, %a : {F}"),
    ("sub_of_neg", f"%a = tensor.neg %y : {F}\n%r = tensor.sub %x, %a : {F}"),
    ("cast_to_same", f"%r = tensor.cast %x : {F} to {F}"),
    ("cast_of_exact_cast", f"%a = tensor.cast %x : {F} to tensor<Bx3xf64>\n"
                           f"%r = tensor.cast %a : tensor<Bx3xf64> to {F}"),
    ("cast_of_exact_cast", "%a = tensor.cast %i : tensor<3xi32> to tensor<3xi64>\n"
                           "%r = tensor.cast %a : tensor<3xi64> to tensor<3xi8>"),
    ("cast_of_splat", f"%a = tensor.full 2.7 : {F}\n%r = tensor.cast %a : {F} to tensor<Bx3xi8>"),
    ("select_known", f"%c = tensor.full 1 : tensor<i1>\n%r = tensor.select %c, %x, %y : (tensor<i1>, {F}, {F}) -> {F}"),
    ("select_known", f"%r = tensor.select %p, %x, %x : (tensor<3xi1>, {F}, {F}) -> {F}"),
    ("select_of_not", f"%n = tensor.logical_not %p : tensor<3xi1>\n"
                      f"%r = tensor.select %n, %x, %y : (tensor<3xi1>, {F}, {F}) -> {F}"),
    ("not_of_compare", f"%c = tensor.compare eq, %x, %y : ({F}, {F}) -> tensor<Bx3xi1>\n"
                       "%r = tensor.logical_not %c : tensor<Bx3xi1>"),
    ("reduce_single", f"%a = tensor.reshape %x : {F} to tensor<Bx1x3xf32>\n"
                      f"%r = tensor.reduce_max %a {{axes = [1]}} : (tensor<Bx1x3xf32>) -> {F}"),
    ("reduce_nothing", "%a = tensor.full 2.0 : tensor<3x0xf32>\n"
                       "%r = tensor.reduce_max %a {axes = [1]} : (tensor<3x0xf32>) -> tensor<3xf32>"),
    ("sum_of_zeros", f"%a = tensor.full 0.0 : {F}\n%r = tensor.reduce_sum %a {{axes = [1]}} : ({F}) -> tensor<Bxf32>"),
    ("reduce_twice", f"%a = tensor.reduce_min %x {{axes = [1]}} : ({F}) -> tensor<Bxf32>\n"
                     "%r = tensor.reduce_min %a {axes = [0]} : (tensor<Bxf32>) -> tensor<f32>"),
    ("shape_unchanged", f"%r = tensor.reshape %x : {F} to {F}"),
    ("shape_unchanged", f"%r = tensor.broadcast_to %x : {F} to {F}"),
    ("reshape_twice", f"%a = tensor.reshape %x : {F} to tensor<(3*B)xf32>\n"
                      "%r = tensor.reshape %a : tensor<(3*B)xf32> to tensor<3xBxf32>"),
    ("broadcast_twice", f"%a = tensor.broadcast_to %x : {F} to tensor<2xBx3xf32>\n"
                        "%r = tensor.broadcast_to %a : tensor<2xBx3xf32> to tensor<4x2xBx3xf32>"),
    ("transpose_nothing", f"%r = tensor.transpose %x {{perm = [0, 1]}} : {F}"),
    ("transpose_twice", f"%a = tensor.transpose %x {{perm = [1, 0]}} : ({F}) -> tensor<3xBxf32>\n"
                        f"%r = tensor.transpose %a {{perm = [1, 0]}} : (tensor<3xBxf32>) -> {F}"),
    ("transpose_of_single_axes", f"%a = tensor.reshape %x : {F} to tensor<Bx1x3xf32>\n%r = tensor.transpose %a "
                                 f"{{perm = [1, 0, 2]}} : (tensor<Bx1x3xf32>) -> tensor<1xBx3xf32>"),
    ("slice_everything", f'%r = tensor.slice %x {{starts = [0, 0], stops = ["B", 3], steps = [1, 1]}} : {F}'),
    ("add_of_padded", "%c = tensor.full 0.0 : tensor<f32>\n" + "".join(
        f"%{name} = tensor.pad %{x}, %c {{low = [1, 0], high = [0, 2], interior = [0, 1]}} : ({F}, tensor<f32>) -> "
        "tensor<(B + 1)x8xf32>\n" for name, x in ("ax", "by")) + "%r = tensor.add %a, %b : tensor<(B + 1)x8xf32>"),
    ("slice_twice", f'%a = tensor.slice %x {{starts = [1, 0], stops = ["B", 3], steps = [1, 2]}} : ({F}) -> '
                    'tensor<(B - 1)x2xf32>\n'
                    '%r = tensor.slice %a {starts = [1, 1], stops = ["B - 1", 2], steps = [1, 1]} : '
                    '(tensor<(B - 1)x2xf32>) -> tensor<(B - 2)x1xf32>'),
    ("pad_with_nothing", "%c = tensor.full 0 : tensor<i32>\n"
                         "%r = tensor.pad %i, %c {low = [0], high = [0], interior = [0]} : "
                         "(tensor<3xi32>, tensor<i32>) -> tensor<3xi32>"),
    ("concat_of_one", "%c = tensor.full 0 : tensor<0xi32>\n%r = tensor.concat %i, %c {axis = 0} : (tensor<3xi32>, "
                      "tensor<0xi32>) -> tensor<3xi32>"),
    ("reverse_short", f"%a = tensor.reshape %x : {F} to tensor<Bx1x3xf32>\n"
                      f"%r = tensor.reverse %a {{axes = [1, 2]}} : tensor<Bx1x3xf32>"),
    ("reverse_twice", f"%a = tensor.reverse %x {{axes = [0, 1]}} : {F}\n%r = tensor.reverse %a {{axes = [1]}} : {F}"),
    ("copy_of_splat", f"%c = tensor.full 2.0 : {F}\n"
                      f"%r = tensor.transpose %c {{perm = [1, 0]}} : ({F}) -> tensor<3xBxf32>"),
    ("transpose_of_product", f"%d = tensor.dot_general %x, %y {{batch = [], contract = [[1, 1]]}} : ({F}, {F}) -> "
                             "tensor<BxBxf32>\n%r = tensor.transpose %d {perm = [1, 0]} : tensor<BxBxf32>"),
    ("windows_apart", f"%r = tensor.windows %x {{axis = 1, size = 2, stride = 2}} : ({F}) -> tensor<Bx1x2xf32>"),
    ("windows_of_one", f"%r = tensor.windows %x {{axis = 0, size = 1}} : ({F}) -> tensor<Bx1x3xf32>"),
    ("windows_of_one", f"%a = tensor.reshape %x : {F} to tensor<Bx1x3xf32>\n%r = tensor.place %a "
                       f'{{axis = 0, size = "B"}} : tensor<Bx1x3xf32>'),
    ("slice_at_known_start", f"%b = tensor.full 0 : tensor<i64>\n%c = tensor.full 9 : tensor<i8>\n%r = "
                             f"tensor.dynamic_slice %x, %b, %c {{shape = [\"B\", 2]}} : "
                             f"({F}, tensor<i64>, tensor<i8>) -> tensor<Bx2xf32>"),
    ("dot_of_nothing", "%a = tensor.full 2.0 : tensor<3x0xf32>\n%r = tensor.dot_general %a, %a {batch = [], "
                       "contract = [[1, 1]]} : (tensor<3x0xf32>, tensor<3x0xf32>) -> tensor<3x3xf32>"),
    ("dot_of_single_terms", f"%r = tensor.dot_general %x, %x {{batch = [[0, 0]], contract = []}} : ({F}, {F}) -> "
                            "tensor<Bx3x3xf32>"),
    ("product_with_repeated", f"%a = tensor.broadcast_to %y : {F} to tensor<BxBx3xf32>\n%r = tensor.dot_general %x, %a "
                              "{batch = [[0, 0]], contract = [[1, 2]]} : "
                              f"({F}, tensor<BxBx3xf32>) -> tensor<BxBxf32>"),
    ("take_of_repeated", f"%a = tensor.broadcast_to %x : {F} to tensor<3xBx3xf32>\n"
                         "%b = tensor.iota {axis = 0} : tensor<3x1x1xi64>\n"
                         "%c = tensor.broadcast_to %b : tensor<3x1x1xi64> to tensor<3xBx1xi64>\n%r = tensor.take_along "
                         "%a, %c {axis = 2} : (tensor<3xBx3xf32>, tensor<3xBx1xi64>) -> tensor<3xBx1xf32>"),
]


@pytest.mark.parametrize("rule, body", REWRITES, ids=[f"{i}-{r}" for i, (r, _) in enumerate(REWRITES)])
def test_rewrites_preserve_every_bit(rule: str, body: str) -> None:
    """The rule fires, alone, and the function gives the same bits for infinities, NaN, zeros and denormals."""
    result = body.rsplit(" to ", 1)[-1] if " to " in body.splitlines()[-1] else body.rsplit(" -> ", 1)[-1] \
        if "->" in body.splitlines()[-1] else body.rsplit(" : ", 1)[-1]
    text = (f"func.func @main(%x: {F}, %y: {F}, %i: tensor<3xi32>, %p: tensor<3xi1>) -> {result} {{\n{body}\n"
            f"func.return %r : {result}\n}}")
    before, after = parse_module(text), parse_module(text)
    counters = apply_rules(after, "test", lambda cls: [r for r in rules_for(cls) if r.name == rule])
    assert counters.fired.get(rule), f"{rule} does not fire on\n{body}"
    values = np.array(FLOATS + [-x for x in FLOATS[:2]], np.float32)
    for b in (6, 2):
        x, y = np.resize(values, (b, 3)), np.resize(values[::-1], (b, 3))
        args = [x, y, np.array([-2**31, 0, 7], np.int32), np.array([True, False, True])]
        want, = Interpreter(before).call("main", args)
        got, = Interpreter(after).call("main", args)
        assert difference(np.asarray(got), np.asarray(want), "bits") is None, to_text(after)


def test_every_rewrite_is_tested() -> None:
    ours = {r.name for cls, rules in RULES.items() if cls.__module__.startswith("mlc.dialects.tensor") for r in rules}
    assert {rule for rule, _ in REWRITES} == ours


NO_REWRITE = [
    f"%c = tensor.full 0.0 : tensor<f32>\n%r = tensor.add %x, %c : ({F}, tensor<f32>) -> {F}",       # -0.0 + 0.0 is 0.0
    f"%c = tensor.full 0.0 : tensor<f32>\n%r = tensor.mul %x, %c : ({F}, tensor<f32>) -> {F}",       # inf * 0 is NaN
    f"%c = tensor.full -0.0 : tensor<f32>\n%r = tensor.sub %x, %c : ({F}, tensor<f32>) -> {F}",
    f"%c = tensor.full 1.0 : tensor<2x1x1xf32>\n%r = tensor.mul %x, %c : ({F}, tensor<2x1x1xf32>) -> tensor<2xBx3xf32>",
    f"%c = tensor.compare lt, %x, %y : ({F}, {F}) -> tensor<Bx3xi1>\n%r = tensor.logical_not %c : tensor<Bx3xi1>",
    "%c = tensor.cast %i : tensor<3xi32> to tensor<3xf64>\n%r = tensor.cast %c : tensor<3xf64> to tensor<3xi8>",
    "%c = tensor.full 1.0 : tensor<3xf32>\n%r = tensor.exp %c : tensor<3xf32>",
]


@pytest.mark.parametrize("body", NO_REWRITE)
def test_unsound_rewrites_do_not_fire(body: str) -> None:
    text = f"func.func @main(%x: {F}, %y: {F}, %i: tensor<3xi32>) {{\n{body}\n}}"
    inside = parse_module(text.replace("\n}", "\nfunc.return\n}"))
    assert isinstance(inside, Module)
    last = main_of(inside).block.terminator.prev
    assert last is not None
    last.detach()
    for rule in rules_for(type(last)):
        assert rule.apply(last) is None, rule.name
    assert not isinstance(last, tensor.Exp) or last.fold() is None


def test_rewritten_operations_keep_the_location() -> None:
    inside = program([t("3xf32")], lambda x: tensor.Neg(tensor.Neg(x).result).result * 2.0)
    apply_rules(inside, "canonicalize")
    assert all(op.loc != Loc("", 0) for op in inside.walk() if op.name.startswith("tensor."))


def test_the_reference_of_a_product_does_not_depend_on_layouts() -> None:
    """Its sum has no order yet; a product that underflows is +0, as the sum of the term -0 is."""
    with at_end(module().body.block):
        f = function("f", [TensorType((3, 7), f64), TensorType((7, 5), f64)])
    with at_end(f.block):
        dot = tensor.DotGeneral(f.args[0], f.args[1], (), ((1, 0),))
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 7)) * 10.0 ** rng.integers(-9, 9, (3, 7)), rng.standard_normal((7, 5))
    want = dot.ref(x, y)
    for a, b in ((np.asfortranarray(x), y), (np.repeat(x, 2, 1)[:, ::2], np.asfortranarray(y))):
        np.testing.assert_array_equal(dot.ref(a, b), want)
    np.testing.assert_array_equal(dot.ref(x[:, ::-1], y[::-1]), want)
    with at_end(module().body.block):
        g = function("g", [TensorType((1,), f32)] * 2)
        h = function("h", [TensorType((300, 1), f64), TensorType((1,), f64)])
    with at_end(g.block):
        single = tensor.DotGeneral(g.args[0], g.args[1], (), ((0, 0),))
    with at_end(h.block):
        column = tensor.DotGeneral(h.args[0], h.args[1], (), ((1, 0),))
    assert not np.signbit(single.ref(np.array([-1e-30], np.float32), np.array([1e-30], np.float32)))
    x, y = rng.standard_normal((300, 1)), rng.standard_normal(1)
    np.testing.assert_array_equal(column.ref(x, y), x[:, 0] * y)
