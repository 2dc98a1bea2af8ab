"""The operations of CHLO: functions beyond the specification, with numpy's broadcasting in some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.frontend.stablehlo import elementwise
from mlc.frontend.stablehlo.elementwise import full
from mlc.frontend.stablehlo.table import TABLE, plain, row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step

plain(chlo_acos=O["acos"], chlo_acosh=O["acosh"], chlo_asin=O["asin"], chlo_asinh=O["asinh"], chlo_atan=O["atan"],
      chlo_atanh=O["atanh"], chlo_cosh=O["cosh"], chlo_sinh=O["sinh"], chlo_tan=O["tan"],
      chlo_erf=O["erf"], chlo_erfc=O["erfc"], chlo_erf_inv=O["erfinv"], chlo_lgamma=O["lgamma"],
      chlo_digamma=O["digamma"], chlo_next_after=O["nextafter"], chlo_square=O["square"],
      chlo_is_inf=O["isinf"], chlo_is_neg_inf=O["isneginf"], chlo_is_pos_inf=O["isposinf"], chlo_conj=O["conj"])


@row("chlo.bessel_i1e")
def bessel(step: Step, x: Any) -> Any:
    return O["special.i1e"](x) if "special.i1e" in O else O["i1e"](x)


@row("chlo.zeta")
def zeta(step: Step, x: Any, q: Any) -> Any:
    return (O.get("special.zeta") or O["zeta"])(x, q)


@row("chlo.polygamma")
def polygamma(step: Step, n: Any, x: Any) -> Any:
    """n! zeta(n + 1, x) with the sign of (-1)^(n + 1); the digamma function for n of 0."""
    one = full(1, n)
    factorial = O["exp"](O["lgamma"](O["add"](n, one)))
    odd = O["eq"](O["fmod"](n, full(2, n)), one)
    size = O["mul"](factorial, zeta(step, O["add"](n, one), x))
    return O["where"](O["eq"](n, full(0, n)), O["digamma"](x), O["where"](odd, size, O["neg"](size)))


@row("chlo.constant_like")
def constant_like(step: Step, x: Any) -> Any:
    return O["broadcast_to"](full(step.op.need("value"), x), x.shape)


@row("chlo.mulhi")
def high_product(step: Step, x: Any, y: Any) -> Any:
    """The upper half of the bits of the product, by products of halves."""
    bits = elementwise.width(x)
    signed = not elementwise.is_unsigned(x)
    if bits < 64:
        wide = f"{'' if signed else 'u'}int{2 * bits}"
        found = O["mul"](O["cast"](x, wide), O["cast"](y, wide))
        return O["cast"](O["bitwise_right_shift"](found, full(bits, found)), x.dtype)
    a, b = elementwise.unsigned(x), elementwise.unsigned(y)
    half, mask = full(32, a), full((1 << 32) - 1, a)
    (al, ah), (bl, bh) = ((O["bitwise_and"](z, mask), O["bitwise_right_shift"](z, half)) for z in (a, b))
    low = O["bitwise_right_shift"](O["mul"](al, bl), half)
    cross = O["add"](O["mul"](ah, bl), low)
    other = O["add"](O["mul"](al, bh), O["bitwise_and"](cross, mask))
    found = O["add"](O["add"](O["mul"](ah, bh), O["bitwise_right_shift"](cross, half)),
                     O["bitwise_right_shift"](other, half))
    if signed:                                             # as unsigned numbers, negative ones are 2^64 too large
        zero = full(0, a)
        found = O["sub"](found, O["where"](O["lt"](x, full(0, x)), b, zero))
        found = O["sub"](found, O["where"](O["lt"](y, full(0, y)), a, zero))
    return O["cast"](found, x.dtype)


@row("chlo.top_k")
def top_k(step: Step, x: Any) -> tuple[Any, ...]:
    """The largest elements of the last dimension in the total order of floats, the first of equal ones first."""
    k = step.op.need("k")
    if not isinstance(k, int) or not x.shape or k < 0 or (isinstance(x.shape[-1], int) and k > x.shape[-1]):
        step.op.wrong(f"there are no {k} largest elements")
    keys = O["cast"](x, "uint8") if x.dtype.name == "bool" else elementwise.ordered(x) \
        if elementwise.is_float(x) else x
    order = O["argsort"](keys, -1, descending=True, stable=True)[..., :k]
    return O["gather"](x, -1, order), O["cast"](order, "int32")


@row("chlo.ragged_dot")
def ragged_dot(step: Step, x: Any, y: Any, counts: Any) -> Any:
    step.op.refuse("products of ragged groups")


def _broadcasting(name: str) -> Any:
    """A binary operation with numpy's broadcasting."""
    def made(step: Step, x: Any, y: Any) -> Any:
        if step.op.get("broadcast_dimensions") is not None:
            small, large = (x, y) if len(x.shape) < len(y.shape) else (y, x)
            axes = step.op.ints("broadcast_dimensions")
            shape: list[Any] = [1] * len(large.shape)
            for axis, n in zip(axes, small.shape):
                shape[axis] = n
            small = O["reshape"](small, tuple(shape))
            x, y = (small, large) if len(x.shape) < len(y.shape) else (large, small)
        shape = list(O["broadcast_shapes"](x.shape, y.shape)) if "broadcast_shapes" in O else _shape(x, y)
        x, y = (O["broadcast_to"](z, tuple(shape)) for z in (x, y))
        return TABLE[name](step, x, y)
    return made


def _shape(x: Any, y: Any) -> list[Any]:
    rank = max(len(x.shape), len(y.shape))
    shapes = [[1] * (rank - len(z.shape)) + list(z.shape) for z in (x, y)]
    return [n if isinstance(m, int) and m == 1 else m for m, n in zip(*shapes)]


for _name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder", "and", "or", "xor",
              "compare", "atan2", "shift_left", "shift_right_arithmetic", "shift_right_logical", "complex"):
    TABLE[f"chlo.broadcast_{_name}"] = _broadcasting(f"stablehlo.{_name}")
TABLE["chlo.broadcast_next_after"] = _broadcasting("chlo.next_after")
TABLE["chlo.broadcast_zeta"] = _broadcasting("chlo.zeta")
TABLE["chlo.broadcast_polygamma"] = _broadcasting("chlo.polygamma")
