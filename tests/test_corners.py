"""Values and derivatives at corners, where formulas break: against PyTorch, or with a reason for each difference.

A corner is a zero of either sign, an infinity, NaN, a denormal, the greatest numbers, a kink, a bound, a tie. Each
case is recorded, differentiated, made into arithmetic (fix_numerics: from there on every pass keeps every bit) and
interpreted. `DIFFERENCES` says at which points of which function results are not PyTorch's, and why: an entry
that no longer differs anywhere fails, too.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontend import tree
from mlc.frontend.functions import ALIASES, elementwise, trigonometry
from mlc.ir.interp import Interpreter
from mlc.ir.passes import Pipeline, parse_pipeline
from tests.public_case import NN, look_up, torch_function

torch = pytest.importorskip("torch")
Array = np.ndarray[Any, Any]
inf, nan = math.inf, math.nan


@dataclass(frozen=True)
class Corner:
    """f(*arrays, *more, **keywords), here and in torch; `name` may end in a remark, after a space."""

    name: str
    arrays: tuple[Array, ...]
    more: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()
    pick: int | None = None                             # of several results, the one that is compared
    before: bool = False                                # whether `more` stands before the arrays

    def function(self, module: Any, find: Callable[[Any, str], Any], made: Callable[[Any], Any]) -> Callable[..., Any]:
        f = find(module, self.name.split(" ")[0])
        more, keywords = [made(v) for v in self.more], {k: made(v) for k, v in self.keywords}

        def run(*xs: Any) -> Any:
            out = f(*more, *xs, **keywords) if self.before else f(*xs, *more, **keywords)
            return out if self.pick is None else out[self.pick]
        return run


def A(*values: Any) -> Array:
    return np.array(values, np.float32)


def C(name: str, *args: Any, pick: int | None = None, **keywords: Any) -> Corner:
    """A case whose float arrays are differentiated; they stand first, or last."""
    arrays = tuple(a for a in args if isinstance(a, np.ndarray) and a.dtype == np.float32)
    more = tuple(a for a in args if not any(a is b for b in arrays))
    return Corner(name, arrays, more, tuple(keywords.items()), pick, bool(more) and args[0] is more[0])


ONE = A(0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 6, inf, -inf, nan, 1e-40, -1e-40, 1e30, -1e30, 20, -20, 100, -100,
        88.8, 0.999999, 1.000001, 1e-20, 2.5, 3.5, -3.5, 3.4e38)
_TWO = A(0.0, -0.0, 1, -1, 0.5, -0.5, 2, -3, inf, -inf, nan, 1e30, -1e30, 1e-40)
FIRST, SECOND = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(_TWO, _TWO))
POWERS = A(0, -0.0, 1, -1, inf, -inf, 2, nan)
SIGNS = np.array([1, -1, -1], np.float32)               # a target: `K` hides it from differentiation


def K(x: Array) -> Array:
    """An argument that is not differentiated."""
    return x.astype(np.float64).astype(np.int64)


def of_one_tensor(f: Callable[..., Any]) -> bool:
    """Whether a public function takes a tensor and nothing that it cannot do without."""
    first, *rest = inspect.signature(f).parameters.values()
    return first.name == "input" and all(p.default is not p.empty for p in rest)


OF_BOTH = {n for n in mlc.__all__ if hasattr(torch, n) and n not in ALIASES}
NO_CASES = "clamp", "frexp", "logical_not", "bitwise_not", "imag", "view_as_complex", "view_as_real"
UNARY = sorted({"erfinv", "relu"} | {n for n in OF_BOTH if n not in NO_CASES and any(
    getattr(module, n, None) is getattr(mlc, n) and of_one_tensor(getattr(mlc, n))
    for module in (elementwise, trigonometry))})
ACTIVATIONS = ("relu relu6 leaky_relu elu selu celu gelu silu mish softplus logsigmoid softsign tanhshrink softshrink "
               "hardshrink hardtanh hardsigmoid hardswish").split()
BINARY = ("add sub mul div remainder fmod pow maximum minimum fmax fmin logaddexp logaddexp2 xlogy copysign atan2 "
          "hypot eq ne lt le gt ge ldexp").split()
NORMS = (0, 0.5, 1, 1.5, 2, 3, 4, inf, -inf, -1, -2)
TIES, SAME, ROWS = A(2, 1, 2, 1), np.ones((2, 3), np.float32), np.array([[1, 2, 3], [0, 2, 3], [0, 0, 3]], np.float32)
POOLED = A(1, 1, 2, 2).reshape(1, 1, 4)

CASES = [
    *(C(n, ONE) for n in UNARY), *(C(NN + n, ONE) for n in ACTIVATIONS), *(C(n, FIRST, SECOND) for n in BINARY),
    C(NN + "gelu tanh", ONE, approximate="tanh"), C(NN + "elu of 2", ONE, 2.0), C(NN + "celu of 2", ONE, 2.0),
    C(NN + "hardtanh of -0.5 to 2", ONE, -0.5, 2.0), C(NN + "threshold of 0", ONE, 0.0, 1.0),
    C("logit of 0.1", ONE, 0.1),
    C(NN + "softplus of 2", A(10, 10.1, -inf, inf, -100, 0), 2, 20), C(NN + "prelu", A(0, -0.0, 1, -1), A(0.25)),
    C(NN + "glu", A(0, inf, -inf, 100)), C("lerp", A(0, 1, 2), A(1, 1, 3), A(0, 0.5, 1)),
    *(C(f"clamp {low} {high}", A(-1, 0, -0.0, 0.5, 1, 2, nan, inf, -inf), min=low, max=high)
      for low, high in ((0, 1), (None, 1), (0, None), (1, 0))),
    C("clamp by tensors", A(-1, 0, 0.5, 1, 2, nan, 1, 1, 0.5), A(0, 0, 0, 0, 0, 0, nan, 0, 1),
      A(1, 1, 1, 1, 1, 1, 1, nan, 0)),
    *(C(f"pow to {e}", POWERS, e) for e in (0, 1, 2, 3, 4, 0.5, 1.5, -1, -2, -0.5, 0.3)),
    *(C(f"pow of {e}", e, POWERS) for e in (0.0, 1.0, 2.0, -1.0)),
    # reductions
    C("std of equals", A(2, 2, 2)), C("std of one", A(2)), C("var of equals", A(2, 2, 2)),
    *(C(f"linalg.vector_norm {p} of {what}", x, p) for p in NORMS
      for what, x in (("zeros", A(0, 0, 0)), ("a zero", A(0, 1, -2)))),
    *(C(f"linalg.vector_norm {p} of ties", A(2, 2, -2), p) for p in (inf, -inf)), C("norm of zeros", A(0, 0)),
    C("dist of equals", A(1, 2), A(1, 2)), *(C(f"cdist {p}", SAME, SAME + ROWS[:2], p) for p in (1.0, 2.0, 3.0, inf)),
    C("pairwise_distance of equals", SAME, SAME + 0, eps=0.0), C("cosine_similarity of zero", A(0, 0), A(1, 2), dim=0),
    C(NN + "normalize of zero", A(0, 0), dim=0),
    *(C(f"{n} of ties", A(1, 3, 3, 1)) for n in ("amax", "amin", "max", "min")),
    *(C(f"{n} of ties in a row", A(1, 3, 3, 1), 0, pick=0) for n in ("max", "min", "cummax", "cummin", "median")),
    C("aminmax of ties", A(1, 3, 3), pick=1), C("amax of infinities", A(-inf, -inf)), C("amax of zeros", A(0.0, -0.0)),
    C("amax of NaN", A(1, nan, 3)), C("cummax of NaN", A(1, nan, 3, 2), 0, pick=0),
    C("sort of ties", TIES, stable=True, pick=0), C("sort down of ties", TIES, stable=True, descending=True, pick=0),
    C("sort of NaN", A(nan, 1, inf, -inf), pick=0), C("kthvalue of ties", TIES, 2, pick=0),
    C("topk of ties", A(3, 1, 3, 3), 2, pick=0), C("median", TIES), C("nanmedian", A(2, nan, 2, 1)),
    C("median of NaN", A(2, nan, 2)), C("quantile in the middle", TIES, 0.5), C("quantile", TIES, 0.3),
    C("quantile of inf", A(2, 1, inf), 0.5), C("prod with a zero", A(2, 0, 3)), C("prod with zeros", A(2, 0, 0, 3)),
    C("prod of rows", ROWS, 1), C("prod of inf", A(2, inf)), C("cumprod with a zero", A(2, 0, 3, 4), 0),
    C("cumprod with zeros", A(2, 0, 3, 0, 4), 0), C("logcumsumexp of -inf", A(-inf, -inf, 1, 2), 0),
    C("logcumsumexp of inf", A(0, inf, 1, -inf), 0), C("logcumsumexp of a zero", A(-0.0), 0),
    C("logsumexp of -inf", A(-inf, -inf), 0),
    C("logsumexp with -inf", A(-inf, 1), 0), C("logsumexp of inf", A(inf, 1), 0),
    *(C(f"{n} of {x}", A(x, 1), 0) for n in ("softmax", "log_softmax") for x in (-inf, inf)),
    C("softmax of nothing", A(-inf, -inf), 0), C("nansum", A(0, nan, 1)), C("nanmean", A(0, nan, 1)),
    C(NN + "layer_norm of equals", A(2, 2, 2), (3,)), C(NN + "rms_norm of zeros", A(0, 0, 0), (3,), eps=1e-6),
    C("logit of bounds that cross", A(0.1, 0.3, 0.5, 0.7, 0.9), eps=0.6), C(NN + "max_pool1d of ties", POOLED, 2),
    C(NN + "max_pool1d of ties in two windows", POOLED, 2, 1),
    C(NN + "max_pool1d of NaN in two windows", A(1, nan, 2, 3, 4).reshape(1, 1, 5), 3, 1),
    *(C(NN + f"max_pool1d beside padding, stride {s}", A(-inf, -inf, -inf, 1, -inf).reshape(1, 1, 5), 3, s, 1)
      for s in (1, 2, 3)),
    C(NN + "adaptive_max_pool1d of ties", POOLED, 2),
    # losses
    *(C(NN + n, A(0, 1, -1, 2), A(0, 0, 0, 0)) for n in ("huber_loss", "smooth_l1_loss", "l1_loss", "mse_loss")),
    C(NN + "smooth_l1_loss of beta 0", A(0, 1, -1, 2), A(0, 0, 0, 0), beta=0.0),
    C(NN + "binary_cross_entropy", A(0, 1, 0, 1, 0.5), target=K(A(0, 1, 1, 0, 1)).astype(np.float32)),
    C(NN + "binary_cross_entropy_with_logits", A(0, 100, -100, 1, 0.5), A(0, 1, 1, 0, 0.5)),
    C(NN + "kl_div", A(-1, -2, -3), A(0, 1, 0.5), reduction="sum"),
    C(NN + "hinge_embedding_loss", A(0, 1, 0), K(SIGNS)),
    C(NN + "margin_ranking_loss", A(0, 1, 0), A(0, 1, 1), K(SIGNS)),
    C(NN + "soft_margin_loss", A(0, 100, -100), target=SIGNS),
    C(NN + "poisson_nll_loss", A(0, 1, -1, 2), A(0, 1, 2, 0)),
    C(NN + "gaussian_nll_loss", A(0, 1, -1), A(0, 1, 2), A(0, 1e-6, 1)),
    C(NN + "triplet_margin_loss of equals", SAME, SAME + 0, SAME * 1),
    C("linalg.det of rank 1", np.array([[1, 2], [2, 4]], np.float32)),
]


@dataclass(frozen=True)
class Difference:
    """Why results at points where `where` holds, of the arguments, are not PyTorch's, and what they are, if it is one
    number."""

    why: str
    where: Callable[..., Any] = lambda *xs: np.ones(xs[0].shape, bool)
    value: float | None = None


OVERFLOW = "PyTorch squares on the way, which overflows or underflows"
DOMAIN = "outside of its domain the value is NaN, and so is the derivative"
LIMIT = "the limit, where PyTorch has infinity over infinity"
ZERO = "signs of zeros: max(-0, +0) is +0 and min(-0, +0) is -0, as IEEE 754-2019 has it"
TAIL = "PyTorch rounds e^-100 or e^100 to 0 or infinity on the way"
HUGE = Difference(OVERFLOW, lambda x: np.abs(x) > 1e19)
ENDS = Difference(TAIL, lambda x: np.abs(x) >= 88)
DIFFERENCES: dict[str, Difference] = {
    "acosh/0": Difference(f"{DOMAIN}; {OVERFLOW}", lambda x: (x < 1) | (x > 1e19)), "asinh/0": HUGE,
    "expm1/0": Difference("e^x; PyTorch has expm1(x) + 1, without the digits of e^-20", lambda x: x == -20),
    "relu": Difference(ZERO, lambda x: x == 0), NN + "relu": Difference(ZERO, lambda x: x == 0),
    NN + "relu6": Difference(ZERO, lambda x: x == 0),
    "sinc/0": Difference("the series, and the true value of large x; PyTorch loses both to rounding",
                         lambda x: (np.abs(x) < 1e-10) | (np.abs(x) > 1e10)),
    NN + "gelu": Difference("x erfc(-x / sqrt 2) / 2; PyTorch loses the digits of 1 + erf below 0",
                            lambda x: (x < -2) | (x == inf)),
    NN + "silu": Difference(f"{LIMIT}; {TAIL}", lambda x: x < -88), NN + "silu/0": ENDS, NN + "mish/0": ENDS,
    NN + "hardswish": Difference(f"{LIMIT}, and zero without a sign", lambda x: x <= -3),
    "div/1": Difference("-(1 / y) (x / y), of which the first is infinite", lambda x, y: np.abs(y) < 1e-38),
    "remainder": Difference("a zero has the sign of the divisor, as in Python; PyTorch takes a denormal divisor for 0",
                            lambda x, y: (np.fmod(x, y) == 0) | (np.abs(y) < 1e-38)),
    "fmod": Difference("PyTorch takes a denormal divisor for 0", lambda x, y: np.abs(y) < 1e-38),
    "maximum": Difference(ZERO, lambda x, y: (x == 0) & (y == 0)),
    "minimum": Difference(ZERO, lambda x, y: (x == 0) & (y == 0)),
    **{f"{n}/{i}": Difference(LIMIT, lambda x, y: np.isinf(x) & (x == y))
       for n in ("logaddexp", "logaddexp2") for i in (0, 1)},
    "logaddexp2": Difference("PyTorch's is off by its own rounding next to 0", lambda x, y: (x == -1) & (y == -1)),
    "xlogy": Difference("0 log y has the sign of the product", lambda x, y: x == 0),
    "xlogy/1": Difference("0 log 0 is 0 whatever y does", lambda x, y: (x == 0) & (y == 0), 0.0),
    "copysign/0": Difference("PyTorch's derivative is a quotient of infinities", lambda x, y: np.isinf(x)),
    **{f"atan2/{i}": Difference(OVERFLOW, lambda x, y: np.isin(np.maximum(np.abs(x), np.abs(y)), A(1e30, 1e-40)))
       for i in (0, 1)},
    "hypot/0": Difference("0, as of the norm of two zeros", lambda x, y: (x == 0) & (y == 0), 0.0),
    "hypot/1": Difference("0, as of the norm of two zeros", lambda x, y: (x == 0) & (y == 0), 0.0),
    "pow to 1.5/0": Difference("1.5 pow(x, 0.5), which C says is inf; PyTorch takes the root", lambda x: x == -inf),
    "pow to -0.5": Difference("C says 0; PyTorch takes the root", lambda x: x == -inf, 0.0),
    "topk of ties/0": Difference("the first of equal ones; PyTorch says it is any"),
    "logcumsumexp of -inf/0": Difference("no probability has no weight: 0", lambda x: x == -inf, 0.0),
    "logsumexp of -inf/0": Difference("no probability has no weight: 0", value=0.0),
    NN + "kl_div/1": Difference("without log 0, which is infinite", lambda x, y: y == 0),
    NN + "soft_margin_loss/0": Difference(TAIL, lambda x: x == 100),
    "linalg.det of rank 1/0": Difference("the cofactors; PyTorch's 0 is not the derivative"),
}


def interpreted(f: Callable[..., Any], arrays: tuple[Array, ...]) -> list[Array]:
    """The arrays that f gives, by the meaning of what is compiled."""
    inside = mlc.lower(f, arrays, level="tensor").module
    Pipeline(parse_pipeline("decompose,canonicalize,fix_numerics")).run(inside)
    return [np.asarray(x) for x in Interpreter(inside).call("main", [x.copy() for x in arrays])]


def ours(case: Corner) -> tuple[Array, list[Array]]:
    """The value and, if it is of floats, the derivatives of its sum."""
    f = case.function(mlc, look_up, lambda v: mlc.tensor(v) if isinstance(v, np.ndarray) else v)
    value, = interpreted(f, case.arrays)
    if value.dtype != np.float32:
        return value, []

    def gradients(*xs: Any) -> Any:
        y, pullback = mlc.vjp(f, *xs)
        return tree.leaves(pullback(mlc.ones_like(y)))
    return value, interpreted(gradients, case.arrays)


def theirs(case: Corner) -> tuple[Array, list[Array]]:
    f = case.function(torch, lambda module, name: torch_function(name),
                      lambda v: torch.from_numpy(v) if isinstance(v, np.ndarray) else v)
    leaves = [torch.from_numpy(x.copy()).requires_grad_() for x in case.arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                    # of setting flags
        with torch.backends.mkldnn.flags(enabled=False):   # it drops signs of zeros
            value = f(*leaves)
    if not value.requires_grad:
        return value.numpy(), [np.zeros_like(x) for x in case.arrays]
    gradients = torch.autograd.grad(value.sum(), leaves, allow_unused=True)
    return value.detach().numpy(), [np.zeros(x.shape, np.float32) if g is None else g.numpy(force=True)
                                    for g, x in zip(gradients, leaves)]


def same(a: Array, b: Array, signs: bool) -> Array:
    """Where numbers agree but for rounding; zeros by their signs, too."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(all="ignore"):
        out = (np.isnan(a) & np.isnan(b)) | (a == b) | (np.abs(a - b) <= (4e-6 if signs else 2e-4) * np.abs(b) + 1e-43)
    return np.asarray(out & ~((a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))) if signs else out)


def check(case: Corner, facet: str, found: Array, agree: Array) -> None:
    difference = DIFFERENCES.get(case.name + facet)
    if difference is None:
        allowed = np.zeros(agree.shape, bool)
    else:
        with np.errstate(all="ignore"):
            allowed = np.broadcast_to(difference.where(*case.arrays), agree.shape)
        assert not np.all(agree | ~allowed), f"{case.name}{facet} is PyTorch's now: {difference.why}"
        own = found[allowed & ~agree]
        assert difference.value is None or np.all(own == difference.value), f"{case.name}{facet} is {own}"
    wrong = np.flatnonzero(~(agree | allowed))
    pointwise = agree.shape == case.arrays[0].shape
    points = [tuple(float(x.ravel()[i]) for x in case.arrays) if pointwise else i for i in wrong]
    assert not points, f"{case.name}{facet} differs from PyTorch's at {points}"


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name.replace(" ", "-"))
def test_corner(case: Corner) -> None:
    value, gradients = ours(case)
    their_value, their_gradients = theirs(case)
    assert value.shape == their_value.shape
    check(case, "", value, same(value, their_value, True))
    undefined = np.isnan(value) & np.isnan(their_value)
    for i, (a, b) in enumerate(zip(gradients, their_gradients)):
        skipped = undefined if undefined.shape == a.shape else undefined.all()
        check(case, f"/{i}", a, same(a, b, False) | skipped)


OWN_TABLES = {
    "cast": "conversions", "add": "", "where": "a choice", "masked_fill": "a choice", "isclose": "no derivative",
    "floor_divide": "PyTorch has no derivative of it", "rsub": "sub", "heaviside": "PyTorch has no derivative of it",
    "float_power": "pow in float64", "addcmul": "products and sums", "addcdiv": "products and sums",
    "frexp": "two results, tested on all of float16", "nextafter": "tested on all of float16", "clamp_min": "clamp",
    "clamp_max": "clamp", "clamp": "", "logical_not": "bool",
    **dict.fromkeys(("complex", "polar", "imag", "view_as_complex", "view_as_real"), "tests/test_complex.py"),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift",
                     "bitwise_right_shift", "logical_and", "logical_or", "logical_xor"), "integers and bools"),
}
"""Elementwise functions that need no corners, and why."""


def test_every_elementwise_function_is_there() -> None:
    """A new function of `elementwise` or `trigonometry` joins the table, or has a reason not to."""
    names = {name for module in (elementwise, trigonometry) for name, f in inspect.getmembers(module, callable)
             if getattr(f, "__module__", "").startswith(module.__name__) and name in OF_BOTH}
    tested = {case.name.split(" ")[0] for case in CASES}
    assert len(names) > 60 and names - tested - set(OWN_TABLES) == set()


HUGE_AND_TINY = [s * 10.0**e for e in (38, 25, 19, 5, 2, -2, -19, -25, -37) for s in (1, -1)]


@pytest.mark.usefixtures("execution")
def test_derivatives_of_huge_and_tiny_numbers() -> None:
    """Those of float32 numbers are those of the same float64 numbers, where a float32 holds them: no square on the way
    to one overflows."""
    pairs = np.array(np.meshgrid(HUGE_AND_TINY, HUGE_AND_TINY), np.float32).reshape(2, -1)
    for name in ("abs", "sin", "tan", "tanh", "sigmoid", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "reciprocal",
                 "square", "asinh", "atan", "erf", "sinh", "cosh", "acosh", "atanh", "log2", "exp2", NN + "softplus",
                 NN + "logsigmoid", NN + "gelu", NN + "silu", NN + "mish", "atan2", "hypot", "div", "mul", "logaddexp",
                 "pow", "copysign", "maximum", "fmod", "remainder", "xlogy"):
        f = look_up(mlc, name)
        arrays = pairs[: 1 + (len(inspect.signature(f).parameters) > 1 and not name.startswith(NN))]
        found, want = ([np.asarray(g, np.float64) for g in mlc.grad(
            lambda *xs, f=f: f(*xs).sum(), argnums=tuple(range(len(arrays))))(*arrays.astype(dtype))]
            for dtype in (np.float32, np.float64))
        for a, b in zip(found, want):
            with np.errstate(over="ignore"):
                b = b.astype(np.float32).astype(np.float64)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-42, err_msg=name)


def test_a_cosine_embedding_of_tiny_vectors_is_that_of_pytorch() -> None:
    a, b = [[1e-6, 0.0]], [[1e-6, 1e-6]]
    theirs = torch.nn.functional.cosine_embedding_loss(torch.tensor(a), torch.tensor(b), torch.tensor([1]))
    ours = mlc.nn.functional.cosine_embedding_loss(mlc.tensor(a), mlc.tensor(b), mlc.tensor([1]))
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)
