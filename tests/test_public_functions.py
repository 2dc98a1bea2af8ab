"""The public functions against PyTorch: the same names and arguments give the same values and gradients."""
from __future__ import annotations

import inspect
import math
from collections.abc import Set
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontend import tree
from tests import (
    public_cases_indices,
    public_cases_linalg,
    public_cases_nn,
    public_cases_operators,
    public_cases_options,
    public_cases_peers,
    public_cases_special,
    public_cases_windows,
)
from tests.public_case import NN, B, C, Case, D, F, K, N, P, S, U, look_up, made, marked, torch_function

torch = pytest.importorskip("torch")

SPECIAL = K(0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 3.5, 1e-30, 1e30, math.inf, -math.inf, math.nan)
CASES = [
    # one operand
    *(C(n, F(3, 4)) for n in (
        "abs", "neg", "positive", "sign", "exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "asinh", "tanh",
        "atan", "sigmoid", "erf", "erfc", "square", "reciprocal", "floor", "ceil", "round", "trunc", "frac", "deg2rad",
        "rad2deg", "detach", "isnan", "isinf", "isfinite", "logical_not", "relu")),
    *(C(n, P(3, 4)) for n in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt")),
    *(C(n, SPECIAL) for n in ("isnan", "isinf", "isfinite", "floor", "ceil", "round", "trunc", "sign", "nan_to_num",
                              "abs", "neg", "logical_not", "sqrt")),
    C("atan2", F(3, 4), F(4)), C("asin", U(-0.9, 0.9, 5)), C("acos", U(-0.9, 0.9, 5)),
    C("atan2", K(0.0, -0.0, 1.0, 0.0, -1.0, math.inf, -math.inf), K(-1.0, -1.0, 0.0, 2.0, -0.0, math.inf, -math.inf),
      constant=(0, 1)),
    C("acosh", U(1.1, 3, 5)), C("atanh", U(-0.9, 0.9, 5)), C("logit", U(0.1, 0.9, 5)),
    C("nan_to_num", SPECIAL, 7.0, 8.0, -8.0), C("abs", N(5, 4, low=-5)), C("square", N(5, 4, low=-5)),
    C("bitwise_not", N(9, 5, low=-9)), C("bitwise_not", B(5)), C("exp", N(4, 5)), C("sign", N(3, 4, low=-3)),
    # two operands
    *(C(n, F(3, 4), F(3, 4)) for n in ("add", "sub", "mul", "maximum", "minimum", "fmax", "fmin", "hypot", "logaddexp",
                                       "copysign", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or")),
    *(C(n, F(3, 1, 4), P(5, 1)) for n in ("add", "sub", "mul", "div", "true_divide", "maximum")
      if n != "true_divide"),
    C("add", F(3), F(3), alpha=2), C("sub", F(3), 1.5), C("mul", F(3), N(4, 3)), C("mul", B(4), B(4)),
    C("add", B(4), B(4)), C("div", N(9, 5), N(5, 5, low=1)), C("add", N(9, 5), 2.5),
    C("div", F(3, 4), P(3, 4), rounding_mode="floor", constant=(0, 1)),
    C("div", F(3, 4), P(3, 4), rounding_mode="trunc", constant=(0, 1)),
    C("div", N(20, 9, low=-20), N(6, 9, low=1), rounding_mode="trunc"),
    C("floor_divide", N(20, 9, low=-20), N(6, 9, low=1)), C("floor_divide", F(9), P(9), constant=(0, 1)),
    C("remainder", F(9), P(9), constant=(1,)), C("remainder", N(20, 9, low=-20), N(-1, 9, low=-6)),
    C("fmod", F(9), P(9), constant=(1,)), C("fmod", N(20, 9, low=-20), N(6, 9, low=1)),
    C("pow", P(3, 4), F(3, 4)), *(C("pow", F(5), e) for e in (0, 1, 2, 3, 4)), C("pow", P(5), 0.5), C("pow", P(5), -1),
    C("pow", P(5), -1.5), C("pow", 2.0, F(5)), C("pow", N(5, 4), 2), C("pow", N(5, 4), 3),
    C("xlogy", K(0.0, 1.0, 2.0), P(3)), C("heaviside", F(5), F(5), constant=(0, 1)), C("ldexp", F(5), N(5, 5)),
    *(C(n, N(64, 6), N(64, 6)) for n in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *(C(n, B(6), B(6)) for n in ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor")),
    C("bitwise_left_shift", N(64, 6), N(5, 6)), C("bitwise_right_shift", N(64, 6, low=-64), N(5, 6)),
    C("isclose", K(1.0, 2.0, math.nan, math.inf), K(1.0 + 1e-6, 2.1, math.nan, math.inf)),
    C("isclose", K(1.0, math.nan), K(1.0, math.nan), equal_nan=True),
    # three
    C("where", B(3, 4), F(3, 4), F(4)), C("where", B(3), F(3), 0.0), C("masked_fill", F(3, 4), B(3, 4), 7.0),
    C("clamp", F(9), -0.5, 0.5), C("clamp", F(9), min=0.1), C("clamp", F(9), max=0.1), C("lerp", F(5), F(5), 0.3),
    C("lerp", F(5), F(5), P(5)), C("addcmul", F(4), F(4), F(4), value=0.5), C("addcdiv", F(4), F(4), P(4), value=2),
    C("sinc", U(0.5, 2.5, 3, 4)), C("sinc", K(0.0, 1.0, -2.0)), C("signbit", SPECIAL, constant=(0,)),
    *(C(n, SPECIAL) for n in ("isposinf", "isneginf")), C("isposinf", N(4, 5)), C("signbit", N(4, 5, low=-4)),
    C("logaddexp2", F(4), F(4)), C("float_power", P(4), F(4)), C("float_power", N(5, 4, low=1), 3),
    C("clamp_min", F(9), 0.1), C("clamp_max", F(9), 0.1), C("dist", F(3, 4), F(3, 4)), C("dist", F(4), F(4), 1),
    C("nansum", K(1.0, math.nan, 2.0)), C("nansum", F(3, 4), 1, True), C("nansum", N(5, 4)),
    C("nanmean", K(1.0, math.nan, 2.0)), C("nanmean", F(3, 4), 1, True),
    # reductions
    *(C(n, F(3, 4, 5)) for n in ("sum", "mean", "amax", "amin", "max", "min", "var", "std", "prod", "any", "all",
                                 "argmax", "argmin", "count_nonzero", "norm")),
    *(C(n, F(3, 4, 5), dim=d, keepdim=k) for n in ("sum", "mean", "amax", "amin", "logsumexp")
      for d, k in ((1, False), ((0, 2), True), (-1, False))),
    *(C(n, F(3, 4, 5), dim=d, keepdim=k) for n in ("max", "min", "argmax", "argmin", "prod", "any", "all")
      for d, k in ((1, False), (-1, True))),
    *(C(n, F(3, 4), dim=1, correction=c) for n in ("var", "std", "var_mean", "std_mean") for c in (0, 1)),
    # numbers as vectors of one element, one variable, nothing
    C("topk", F(), 1), C("topk", F(), 0, largest=False),
    C("index_select", F(), 0, N(1, 1)), C("index_select", F(), 0, N(1)), C("gather", F(), 0, N(1)),
    C("gather", F(), 0, N(1, 2)), C("gather", F(3), 0, N(3)), C("index_reduce", F(), 0, N(1), F(), "amax"),
    C("scatter_add", F(3), 0, N(3), F()), C("scatter", F(), 0, N(1), F()), C("take_along_dim", F(3), N(3, 1), 0),
    C(NN + "prelu", F(), P(1)), C("cov", F(1, 3)), C("corrcoef", F(1, 3), constant=(0,)), C("logsumexp", F(0, 3), 0),
    C("linalg.norm", F(0, 0), math.inf), C("linalg.matrix_norm", F(2, 0, 3), 2, slow=True),
    C("linalg.lu_solve", F(0, 0), K(dtype=np.int32), F(0, 3)), C("linalg.cond", F(0, 0), slow=True),
    C("linalg.matrix_rank", K([[1, 0], [0, 2]], [[1, 0], [0, 2]]), atol=np.array([0.5, 1.5], np.float32), slow=True),
    C("bincount", N(9, 7), None, 3), C("bincount", N(9, 7)), C(NN + "one_hot", N(5, 3)),
    C("var", F(3, 4), dim=1, correction=1.0), C("var", F(3, 4), dim=1, correction=0.5), C("diff", F(4), n=0),
    C("addmv", K(math.nan, math.nan), F(2, 3), F(3), beta=0, constant=(0,)),
    C("tensordot", F(1, 3), F(4, 2), ((0,), (0,))),
    C("aminmax", F(3, 4), dim=1), C("sum", N(9, 3, 4), 0), C("sum", B(7)), C("prod", N(4, 5, low=1)),
    C("count_nonzero", N(2, 3, 4), dim=0), C("logsumexp", F(3, 4), (0, 1)), C("max", N(9, 3, 4), 1),
    *(C("norm", F(3, 4), p, 1) for p in (1, 2, 3, 0.5, math.inf)), C("argmax", K(1, 3, 3, 2)),
    C("max", K(1.0, 3.0, 3.0), 0), C("norm", K(0.0, 0.0)),
    # shapes
    C("reshape", F(3, 4), (2, -1)), C("reshape", F(3, 4), (12,)), C("permute", F(2, 3, 4), (2, 0, 1)),
    C("transpose", F(2, 3, 4), 0, -1), C("t", F(2, 3)), C("movedim", F(2, 3, 4), 0, 2),
    C("movedim", F(2, 3, 4), (0, 1), (1, 2)), C("squeeze", F(2, 1, 3, 1)), C("squeeze", F(2, 1, 3, 1), 1),
    C("unsqueeze", F(2, 3), 1), C("unsqueeze", F(2, 3), -1), C("flatten", F(2, 3, 4)), C("flatten", F(2, 3, 4), 1),
    C("unflatten", F(2, 12), 1, (3, -1)), C("broadcast_to", F(3, 1), (2, 3, 4)),
    C("cat", [F(2, 3), F(1, 3)]), C("cat", [F(2, 3), F(2, 1)], dim=1), C("cat", [F(2), N(3, 2)]),
    C("stack", [F(2, 3), F(2, 3)]), C("stack", [F(2, 3), F(2, 3)], dim=-1), C("hstack", [F(2), F(3)]),
    C("hstack", [F(2, 3), F(2, 1)]), C("vstack", [F(3), F(3)]), C("chunk", F(7, 2), 3), C("split", F(7, 2), 3),
    C("split", F(2, 7), (2, 5), dim=1), C("unbind", F(3, 2)), C("select", F(3, 4), 1, -2),
    C("narrow", F(5, 4), 0, 1, 3), C("flip", F(3, 4), (0, 1)), C("flip", F(3, 4), (1,)), C("roll", F(3, 4), 2),
    C("roll", F(3, 4), (1, -1), (0, 1)), C("tile", F(2, 3), (2, 2)), C("tile", F(2), (3, 1)),
    C("repeat_interleave", F(2, 3), 2), C("repeat_interleave", F(2, 3), 2, 1), C("tril", F(4, 4)),
    C("tril", F(3, 5), 1), C("triu", F(4, 4)), C("triu", F(2, 5, 3), -1), C("broadcast_tensors", F(3, 1), F(4)),
    # indices
    C("index_select", F(4, 3), 0, N(4, 5)), C("index_select", F(4, 3), 1, N(3, 2)),
    C("gather", F(4, 3), 0, N(4, 2, 3)), C("gather", F(4, 3), 1, N(3, 4, 6)), C("gather", F(4, 3), 1, N(3, 2, 2)),
    C("take_along_dim", F(4, 3), N(4, 2, 3), 0), C("take_along_dim", F(4, 3), N(4, 1, 3), 0),
    C("take", F(4, 3), N(12, 5)), C("diag", F(4)), C("diag", F(4), 1), C("diag", F(4, 4)), C("diag", F(4, 5), -1),
    C("diagonal", F(4, 5)), C("diagonal", F(2, 4, 5), 1, 1, 2), C(NN + "one_hot", N(4, 5), 4),
    C(NN + "embedding", N(5, 3, 2), F(5, 4)),
    # products
    C("matmul", F(3, 4), F(4, 5)), C("matmul", F(4), F(4)), C("matmul", F(3, 4), F(4)), C("matmul", F(4), F(4, 3)),
    C("matmul", F(2, 3, 4), F(4, 5)), C("matmul", F(2, 3, 4), F(2, 4, 5)), C("matmul", F(2, 1, 3, 4), F(5, 4, 2)),
    C("matmul", F(4), F(2, 4, 3)), C("matmul", F(2, 3, 4), F(4)), C("mm", F(3, 4), F(4, 5)),
    C("bmm", F(2, 3, 4), F(2, 4, 5)), C("mv", F(3, 4), F(4)), C("dot", F(5), F(5)), C("vdot", F(5), F(5)),
    C("inner", F(3, 4), F(5, 4)), C("outer", F(3), F(4)), C("addmm", F(5), F(3, 4), F(4, 5), beta=0.5, alpha=2),
    C("baddbmm", F(2, 3, 5), F(2, 3, 4), F(2, 4, 5)), C("tensordot", F(2, 3, 4), F(3, 4, 5)),
    C("tensordot", F(2, 3, 4), F(4, 2), ((0, 2), (1, 0))), C("kron", F(2, 3), F(3, 2)), C("trace", F(4, 3)),
    C("einsum", "ij,jk->ik", F(2, 3), F(3, 4)), C("einsum", "bij,bkj->bik", F(2, 3, 4), F(2, 5, 4)),
    C("einsum", "ii->i", F(3, 3)), C("einsum", "ii", F(3, 3)), C("einsum", "...ij->...ji", F(2, 3, 4)),
    C("einsum", "i,j,k->kji", F(2), F(3), F(4)), C("einsum", "ij,jk,kl", F(2, 3), F(3, 4), F(4, 2)),
    C("einsum", "b...h,h->b...", F(2, 3, 4), F(4)), C("einsum", "ij->", F(2, 3)),
    # activations
    *(C(NN + n, F(3, 7)) for n in (
        "relu", "relu6", "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "logsigmoid",
        "softsign", "tanhshrink", "softshrink", "hardshrink", "hardtanh", "hardsigmoid", "hardswish", "sigmoid",
        "tanh")),
    C(NN + "leaky_relu", F(9), 0.2), C(NN + "elu", F(9), 0.5), C(NN + "gelu", F(9), approximate="tanh"),
    C(NN + "celu", F(9), 0.5), C(NN + "hardtanh", F(9), -0.5, 2.0), C(NN + "softplus", F(9), 2, 1),
    C(NN + "threshold", F(9), 0.1, 20.0), C(NN + "prelu", F(2, 3, 4), P(3)), C(NN + "glu", F(3, 4)),
    C(NN + "glu", F(4, 3), 0), C("selu", F(5)), C("celu", F(5)), C("threshold", F(5), 0.1, 0.0),
    C("softmax", F(3, 4), dim=1), C("softmax", F(3, 4), 0), C("log_softmax", F(3, 4), dim=-1),
    C(NN + "softmin", F(3, 4), dim=1), C("softmax", N(4, 3), dim=0, dtype="float32"),
    C(NN + "layer_norm", F(3, 4), (4,)), C(NN + "layer_norm", F(2, 3, 4), (3, 4), F(3, 4), F(3, 4), 1e-3),
    C(NN + "rms_norm", F(3, 4), (4,)), C(NN + "rms_norm", F(3, 4), (4,), F(4), 1e-3),
    C(NN + "normalize", F(3, 4)), C(NN + "normalize", F(3, 4), 1.0, 0), C(NN + "linear", F(3, 4), F(5, 4)),
    C(NN + "linear", F(2, 3, 4), F(5, 4), F(5)), C("cosine_similarity", F(3, 4), F(3, 4)),
    C("pairwise_distance", F(3, 4), F(3, 4)), C(NN + "pad", F(3, 4), (1, 2)),
    C(NN + "pad", F(3, 4), (1, 0, 0, 2), value=3.5), C(NN + "pad", F(3, 4), (-1, 2)),
    *(C(NN + "pad", F(2, 3, 4, 5), p, mode=m) for m in ("reflect", "replicate", "circular")
      for p in ((1, 2, 3, 1), (4, 4, 0, 0), (-1, 2, 1, -1))),
    C(NN + "relu", N(9, 5, low=-9)), C("cross", F(3, 3), F(3, 3)), C("cross", F(2, 3), F(2, 3)),
    C("round", U(-9, 9, 7), decimals=1, constant=(0,)), C("round", U(-99, 99, 7), decimals=-1, constant=(0,)),
    C("logit", U(0.01, 0.99, 9), 0.2), C("pow", B(5), 2), C("pow", B(5), 3), C("square", B(5)),
    # losses
    *(C(NN + n, F(3, 4), F(3, 4), reduction=r) for n in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
      for r in ("mean", "sum", "none")),
    C(NN + "huber_loss", F(9), F(9), delta=0.3), C(NN + "smooth_l1_loss", F(9), F(9), beta=0.3),
    *(C(NN + "cross_entropy", F(6, 4), N(4, 6), reduction=r) for r in ("mean", "sum", "none")),
    C(NN + "cross_entropy", F(4), N(4)), C(NN + "cross_entropy", F(2, 4, 3), N(4, 2, 3)),
    C(NN + "cross_entropy", F(6, 4), N(4, 6), P(4), constant=(2,)),
    C(NN + "cross_entropy", F(6, 4), N(4, 6), ignore_index=1),
    *(C(NN + "cross_entropy", F(4, 4), K(0, -100, 3, -100, dtype=np.int64), reduction=r) for r in ("mean", "none")),
    C(NN + "cross_entropy", F(2, 4), K(-100, -100, dtype=np.int64), reduction="sum"),
    C(NN + "cross_entropy", F(6, 4), N(4, 6), label_smoothing=0.1),
    C(NN + "cross_entropy", F(6, 4), D(6, 4)), C(NN + "cross_entropy", F(6, 4), D(6, 4), label_smoothing=0.2),
    *(C(NN + "nll_loss", F(6, 4), N(4, 6), reduction=r) for r in ("mean", "sum", "none")),
    C(NN + "nll_loss", F(6, 4), N(4, 6), P(4), constant=(2,)),
    C(NN + "binary_cross_entropy", U(0.1, 0.9, 5), U(0, 1, 5), constant=(1,)),
    C(NN + "binary_cross_entropy_with_logits", F(5), U(0, 1, 5)),
    C(NN + "binary_cross_entropy_with_logits", F(5), U(0, 1, 5), pos_weight=2.5, constant=(1,)),
    C(NN + "kl_div", F(3, 4), D(3, 4), reduction="batchmean"), C(NN + "kl_div", F(3, 4), F(3, 4), log_target=True),
    C(NN + "poisson_nll_loss", F(5), P(5), constant=(1,)),
    C(NN + "poisson_nll_loss", P(5), U(0, 5, 5), log_input=False, full=True, constant=(1,)),
    C(NN + "gaussian_nll_loss", F(5), F(5), P(5)), C(NN + "hinge_embedding_loss", F(5), S(5), constant=(1,)),
    C(NN + "margin_ranking_loss", F(5), F(5), S(5), margin=0.1, constant=(2,)),
    C(NN + "soft_margin_loss", F(5), S(5), constant=(1,)),
    C(NN + "cosine_embedding_loss", F(5, 3), F(5, 3), S(5), constant=(2,)),
    C(NN + "cosine_embedding_loss", F(5, 3), F(5, 3), K(1.0, -1.0, 0.0, 0.5, -2.0), constant=(2,)),
    C(NN + "triplet_margin_loss", F(5, 3), F(5, 3), F(5, 3)),
    *public_cases_indices.CASES, *public_cases_linalg.CASES, *public_cases_peers.CASES,
    *public_cases_special.CASES, *public_cases_operators.CASES,
    *public_cases_nn.CASES, *public_cases_windows.CASES, *public_cases_options.CASES,
]

NATIVE = 144
"""The default run makes native code of one case of so many: the operations' own is in test_meaning and test_reentry."""


def as_torch(x: Any, name: str = "") -> Any:
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x.copy())
    if isinstance(x, list):
        return [as_torch(v) for v in x]
    if name == "dtype":
        return getattr(torch, x)
    return torch.tensor(x) if name in ("pos_weight",) else x


def as_mlc(x: Any) -> Any:
    return mlc.tensor(x) if isinstance(x, np.ndarray) else [as_mlc(v) for v in x] if isinstance(x, list) else x


def close(ours: Any, theirs: Any) -> None:
    """The same structure, element types and shapes, and values within torch.testing's default tolerances."""
    ours = list(ours) if isinstance(ours, tuple) else [ours]
    theirs = list(theirs) if isinstance(theirs, tuple | list) else [theirs]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert str(a.dtype).removeprefix("mlc.") == str(b.dtype).removeprefix("torch.")
        assert a.shape == tuple(b.shape)
        torch.testing.assert_close(torch.from_numpy(np.array(a)), b.detach(), equal_nan=True)


@pytest.mark.parametrize("case", marked(CASES, 4), ids=str)
@pytest.mark.usefixtures("interpreted")
def test_values_and_gradients(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.slow] if i % NATIVE else []) for i, case in
                                  enumerate(CASES)], ids=str)
def test_values_and_gradients_in_native_code(case: Case) -> None:
    check(case)


def check(case: Case) -> None:
    """The value of a case, and its gradient in a random direction, are PyTorch's."""
    rng = np.random.default_rng(len(str(case)))
    args = [made(x, rng) for x in case.args]
    ours, theirs = look_up(mlc, case.name), torch_function(case.name)
    given = {n: made(x, rng) for n, x in case.keywords.items()}
    keywords, their_keywords = ({n: as_mlc(x) for n, x in given.items()}, {n: as_torch(x, n) for n, x in given.items()})
    expected = theirs(*[as_torch(x) for x in args], **their_keywords)
    close(ours(*[as_mlc(x) for x in args], **keywords), expected)

    places = [i for i, x in enumerate(args) if i not in case.constant and (
        (isinstance(x, np.ndarray) and x.dtype in (np.float32, np.complex64)) or isinstance(x, list))]
    outputs = list(expected) if isinstance(expected, tuple | list) else [expected]
    if not places or not any(map(_is_inexact, outputs)):
        return
    primals = [as_torch(x) for x in args]
    leaves = [x for i in places for x in (primals[i] if isinstance(primals[i], list) else [primals[i]])
              if _is_inexact(x)]
    for x in leaves:
        x.requires_grad_()
    outputs = theirs(*primals, **their_keywords)
    outputs = list(outputs) if isinstance(outputs, tuple | list) else [outputs]
    weights = [np.asarray(rng.normal(size=tuple(y.shape)), np.complex64 if y.is_complex() else np.float32)
               for y in outputs]
    roots = [(y, torch.from_numpy(w).to(y.dtype)) for y, w in zip(outputs, weights) if y.requires_grad]
    wanted = torch.autograd.grad([y for y, _ in roots], leaves, [w for _, w in roots],
                                 allow_unused=True) if roots else [None] * len(leaves)

    def f(*xs: Any) -> Any:
        full = [as_mlc(x) for x in args]
        for i, x in zip(places, xs):
            full[i] = x
        return ours(*full, **keywords)

    result, pullback = mlc.vjp(f, *[as_mlc(args[i]) for i in places])
    structure = tree.flatten(result)[1]
    found = tree.leaves(pullback(structure.unflatten([mlc.tensor(w) for w in weights])))
    assert len(found) == len(leaves)
    for a, b, x in zip(found, wanted, leaves):
        torch.testing.assert_close(torch.from_numpy(np.array(a)), torch.zeros_like(x) if b is None else b,
                                   equal_nan=True)


def _is_inexact(x: Any) -> bool:
    return bool(x.is_floating_point() or x.is_complex())


SMALLEST = [(dtype, np.array([np.iinfo(dtype).min] * 5 + [np.iinfo(dtype).max, 7, -7], dtype),
             np.array([3, 127, -1, -3, np.iinfo(dtype).min, -1, np.iinfo(dtype).min, 2], dtype))
            for dtype in ("int8", "int16", "int32", "int64")]


@pytest.mark.parametrize(("dtype", "a", "b"), SMALLEST, ids=[d for d, _, _ in SMALLEST])
def test_division_of_the_smallest_integers(dtype: str, a: Any, b: Any) -> None:
    """Quotients and remainders are Python's, modulo 2^bits, also where |a| and a / b overflow."""
    bits = np.iinfo(dtype).bits
    exact = [(int(x), int(y)) for x, y in zip(a, b)]
    floor, rest = [x // y for x, y in exact], [x % y for x, y in exact]
    cut = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in exact]
    left = [x - q * y for (x, y), q in zip(exact, cut)]
    for found, wanted in ((mlc.floor_divide(a, b), floor), (mlc.remainder(a, b), rest), (mlc.fmod(a, b), left),
                          (mlc.div(a, b, rounding_mode="trunc"), cut)):
        wrapped = [(v + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for v in wanted]
        assert found.numpy().tolist() == wrapped


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_powers_of_integers_wrap(dtype: str) -> None:
    """The exponent may have any bit."""
    bits, most = np.iinfo(dtype).bits, np.iinfo(dtype).max
    exponents = [0, 3, most, *(2**i for i in range(bits) if 2**i <= most)]
    for base in (2, 3, 1, 0, most):
        want = np.array([pow(int(base), int(e), 2**bits) for e in exponents], "uint64").astype(dtype)
        x = np.full(len(exponents), base, dtype)
        np.testing.assert_array_equal(mlc.compile(mlc.pow)(x, np.array(exponents, dtype)).numpy(), want)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("row", "value", "at"), [
    ([math.nan] * 3, math.nan, 2), ([math.nan, 1, math.nan], math.nan, 2), ([math.nan, math.nan, 1, 1], 1, 3),
    ([2, math.nan, 1], 1, 2),
])
def test_mode_takes_every_nan_for_the_same(row: list[float], value: float, at: int) -> None:
    values, indices = mlc.mode(np.array(row))
    np.testing.assert_equal([values.item(), indices.item()], [value, at])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_that_hold_nothing(mode: str) -> None:
    """They are 0 in code for one size and for all, and so is the derivative, a scatter of no rows."""
    def bags(at: Any, table: Any) -> Any:
        return mlc.nn.functional.embedding_bag(at, table, mode=mode)
    at, table = np.zeros((2, 0), np.int64), np.ones((5, 3))
    assert not bags(at, table).numpy().any()
    assert not mlc.compile(bags, dynamic=True)(at, table).numpy().any()
    assert not mlc.grad(lambda table: bags(at, table).sum())(table).numpy().any()


def test_limits_and_weights() -> None:
    """clamp promotes by both of its limits, and rms_norm takes weights of the shape that is normalised."""
    assert mlc.clamp(np.array([True]), mlc.tensor(0.5, dtype="bfloat16"), np.array(1.5)).dtype == mlc.float64
    with pytest.raises(ValueError, match=r"MLC0367.*the weight has shape \[1\], expected \[3\]"):
        mlc.nn.functional.rms_norm(np.ones((2, 3), np.float32), (3,), np.ones(1, np.float32))


@pytest.mark.parametrize("label", [-1, 3])
def test_one_hot_of_what_is_no_class(label: int) -> None:
    """An error, as in PyTorch, and no row of zeros; also in code for all sizes."""
    labels = np.array([0, label])
    with pytest.raises(IndexError, match="MLC0340"):
        mlc.nn.functional.one_hot(labels, 3)
    with pytest.raises(IndexError, match="MLC0340"):
        mlc.compile(lambda x: mlc.nn.functional.one_hot(x, 3), dynamic=True)(labels)


def test_there_are_at_least_100_functions() -> None:
    assert len({case.name.removeprefix(NN) for case in CASES}) >= 100


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("a", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("b", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_promotion(a: str, b: str) -> None:
    x, y = mlc.ones(2, dtype=a), mlc.ones(2, dtype=b)
    p, q = torch.ones(2, dtype=getattr(torch, a)), torch.ones(2, dtype=getattr(torch, b))
    close(x * y, p * q)
    close(x[0] * y, p[0] * q)
    for number in (2, 1.5):
        close(x * number, p * number)


FEW = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.mark.parametrize("run", [lambda f: f, mlc.compile, lambda f: mlc.compile(f, dynamic=True)], ids=[
    "eager", "compiled", "dynamic"])
@pytest.mark.parametrize(("f", "args", "code"), [
    (mlc.quantile, (FEW, 1.5), "MLC0612"), (mlc.quantile, (FEW, -0.1), "MLC0612"),
    (mlc.quantile, (FEW, math.nan), "MLC0612"), (mlc.nanquantile, (FEW, np.array([0.5, 2.0], np.float32)), "MLC0612"),
    (mlc.histc, (np.array([1.0, math.nan]),), "MLC0612"), (mlc.histc, (np.array([1.0, math.inf]),), "MLC0612"),
    (lambda x: mlc.histc(x, 3, 0, math.inf), (FEW,), "MLC0360"),
    (lambda i, w: mlc.nn.functional.embedding(i, w, padding_idx=5), (np.array([0]), np.ones((3, 2))), "MLC0356"),
    (lambda i, w: mlc.nn.functional.embedding_bag(i, w, padding_idx=-4), (np.array([[0]]), np.ones((3, 2))), "MLC0356"),
    (lambda i: mlc.unravel_index(i, (3, -4)), (np.array([1]),), "MLC0358"),
    (lambda i: mlc.unravel_index(i, (3, 4)), (FEW,), "MLC0354"),
])
def test_values_that_pytorch_refuses_too(f: Any, args: Any, code: str, run: Any) -> None:
    with pytest.raises(mlc.UserError, match=code):
        run(f)(*args)


def test_integers_divided_by_zero_are_zero() -> None:
    """As documented; PyTorch raises an error."""
    x = np.array([1, -3])
    for found in (mlc.floor_divide(x, 0), mlc.remainder(x, 0), mlc.fmod(x, 0), mlc.div(x, 0, rounding_mode="trunc")):
        assert found.tolist() == [0, 0]


def test_positions_beyond_a_shape_wrap_around() -> None:
    at = np.array([12, -1])
    for ours, theirs in zip(mlc.unravel_index(at, (3, 4)), torch.unravel_index(torch.from_numpy(at), (3, 4))):
        assert ours.tolist() == theirs.tolist()


def test_the_derivative_of_digamma_below_zero() -> None:
    """It is the trigamma function; PyTorch's has errors of several units there in float32, so float64 is compared."""
    x = np.array([-4.3, -3.9, -2.2, 0.3, 5])
    wanted = torch.polygamma(1, torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(mlc.grad(lambda x: mlc.digamma(x).sum())(x), wanted, 1e-9)
    np.testing.assert_allclose(mlc.polygamma(1, x), wanted, 1e-9)


def test_the_derivative_of_ctc_loss_behind_log_softmax() -> None:
    """PyTorch's own assumes that the probabilities add up to 1."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(6, 2, 4))
    labels, steps, spans = np.array([[1, 2, 2], [3, 1, 0]]), np.array([6, 5]), np.array([3, 2])
    x = torch.from_numpy(logits).requires_grad_()
    torch.nn.functional.ctc_loss(x.log_softmax(-1), *map(torch.from_numpy, (labels, steps, spans))).backward()
    found = mlc.grad(lambda x: mlc.nn.functional.ctc_loss(mlc.log_softmax(x, -1), labels, steps, spans))(logits)
    np.testing.assert_allclose(found, x.grad, 1e-9, 1e-12)


def test_a_spacing_of_small_integers_does_not_overflow() -> None:
    found, = mlc.gradient(mlc.tensor([1.0, 4.0, 9.0, 16.0]), spacing=mlc.tensor(64, dtype=mlc.int8))
    np.testing.assert_array_equal(found, np.gradient([1.0, 4.0, 9.0, 16.0], 64.0).astype(np.float32))


ELSEWHERE: dict[str, Set[str]] = {
    "linalg.eigh": {"UPLO"}, "linalg.eigvalsh": {"UPLO"},                       # test_linalg
    "linalg.lstsq": {"rcond", "driver"},                                      # the same
    "lu_unpack": {"unpack_data"},
    **dict.fromkeys(("linalg.lu", "linalg.lu_factor", "linalg.lu_factor_ex"), frozenset({"pivot"})),     # test_linalg
    "Tensor.scatter": {"reduce"}, "max": {"other"}, "min": {"other"},           # given by position, as something else
    "nn.functional.batch_norm": {"momentum"},                                   # test_nn: of buffers
    "nn.functional.embedding": {"norm_type"}, "nn.functional.linear_cross_entropy": {"options"},
    "nn.functional.triplet_margin_with_distance_loss": {"distance_function"},
    **dict.fromkeys(("nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.rrelu",
                     "nn.functional.scaled_dot_product_attention"),
                    frozenset({"p", "key", "training", "dropout_p", "dropout_key"})),   # random numbers: test_random
}
"""Parameters that no case gives, and why."""
COMMON = {"out", "dtype", "device", "layout", "requires_grad", "generator", "memory_format", "inplace", "sorted",
          "stable", "sparse"}
"""Parameters of many functions that do not change what is computed, or are tested for all of them."""


def test_cases_give_every_parameter() -> None:
    """Of all functions that have any: what no case gives can be wrong unseen."""
    given: dict[str, set[str]] = {}
    for case in CASES:
        bound = inspect.signature(look_up(mlc, case.name)).bind(*case.args, **case.keywords)
        given.setdefault(case.name, set()).update(bound.arguments)
    left = {name: missing for name, found in given.items() if (missing := {
        p.name for p in inspect.signature(look_up(mlc, name)).parameters.values()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)} - found - COMMON - ELSEWHERE.get(name, set()))}
    assert not left


@pytest.mark.parametrize("a", [1e16, 1e20, 1e28, 1e40, 1e300])
def test_incomplete_gamma_functions_of_large_numbers_are_those_of_a_normal_distribution(a: float) -> None:
    """Its mean and variance are both a. Neither function loses the digits in which x and a differ."""
    x = a + math.sqrt(a)
    normal = (1 + math.erf((x - a) / math.sqrt(2 * a))) / 2
    for at, wanted in ((a, 0.5), (x, normal)):
        lower, upper = (np.asarray(f(np.float64(a), np.float64(at))) for f in (mlc.igamma, mlc.igammac))
        np.testing.assert_allclose([lower, upper], [wanted, 1 - wanted], atol=1e-8)
