"""Common divisors and multiples of integers."""

from __future__ import annotations

from mlc.frontend.control import while_loop
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.operands import broadcast_shapes, broadcast_to, integer, together
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor


@operation()
def gcd(input: Operand, other: Operand) -> Tensor:
    """The greatest common divisor, elementwise, by Euclid's algorithm; gcd(0, 0) is 0.

    The result is not negative, except that the least integer of a signed dtype has no absolute value.

    Args:
        input: Tensor of integers, or a Python integer.
        other: One whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        UserError: elements are no integers (MLC0354), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.gcd(mlc.tensor([12, 5, 0]), mlc.tensor([18, 10, -3]))
        tensor([6, 5, 3], dtype=mlc.int64)
    """
    a, b = together(input, other)
    shape = broadcast_shapes(a.shape, b.shape)
    start = [E.abs(broadcast_to(integer(x, name), shape)) for x, name in ((a, "input"), (b, "other"))]
    found, _ = while_loop(lambda pair: R.any(pair[1] != 0),
                          lambda pair: (E.where(pair[1] == 0, pair[0], pair[1]),
                                        E.where(pair[1] == 0, 0, E.fmod(pair[0], pair[1]))), tuple(start))
    return E.abs(found)


@operation()
def lcm(input: Operand, other: Operand) -> Tensor:
    """The least common multiple, elementwise: |input * other| / gcd(input, other), and 0 where one is 0.

    Args:
        input: Tensor of integers, or a Python integer.
        other: One whose shape broadcasts with that of `input`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype, in which it may overflow.

    Raises:
        UserError: elements are no integers (MLC0354), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.lcm(mlc.tensor([4, 5, 0]), mlc.tensor([6, 10, 3]))
        tensor([12, 10,  0], dtype=mlc.int64)
    """
    a, b = together(input, other)
    common = gcd(a, b)
    return E.abs(E.div(a, E.where(common == 0, 1, common), rounding_mode="trunc") * b)
