"""Powers, products and the exponential of matrices."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions import contract
from mlc.frontend.functions.linalg.matrices import as_square, identity_like, known_size
from mlc.frontend.functions.linalg.solving import inv
from mlc.frontend.operands import broadcast_to, cast, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError, UserTypeError


@operation(name="linalg.matrix_power", autocast="lower_precision")
def matrix_power(A: Operand, n: int) -> Tensor:
    """A @ A @ ... @ A, n times; for a negative n, the power of the inverse; for 0, the identity.

    It takes about log2(n) products, by repeated squaring.

    Args:
        A: Tensor of shape (..., m, m); integers become float32 for a negative n, and bools for any.
        n: Python integer.

    Returns:
        Tensor of the shape of `A`.

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367), or `n` is no integer (MLC0355).

    Example:
        >>> mlc.linalg.matrix_power(mlc.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]], dtype=mlc.float32)
    """
    given, a, power = tracer(A), as_square(A, complex=True), plain_int(n, "n")
    if power >= 0 and not given.type.dtype.is_bool:
        a = given                                          # products need no wider floats
    if power == 0:
        return broadcast_to(identity_like(a.shape[-1], a), a.shape)
    base: Tensor = a if power > 0 else inv(a)
    result, left = None, abs(power)
    while left:
        if left & 1:
            result = base if result is None else contract.matmul(result, base)
        left >>= 1
        base = contract.matmul(base, base) if left else base
    assert result is not None
    return result


@operation(name="linalg.multi_dot", autocast="lower_precision")
def multi_dot(tensors: Sequence[Operand]) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications.

    The order is found by dynamic programming (Cormen, Leiserson, Rivest and Stein, matrix-chain multiplication).

    Args:
        tensors: At least two matrices of known sizes; the first may be a row and the last a column, as vectors.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        UserError: there are fewer than two (MLC0353), one is no matrix (MLC0364), a size is symbolic (MLC0365), inner
            sizes differ (MLC0367), or the operands have different float dtypes (MLC0420).

    Example:
        >>> mlc.linalg.multi_dot([mlc.ones(2, 3), mlc.ones(3, 4), mlc.ones(4, 1)])
        tensor([[12.],
                [12.]], dtype=mlc.float32)
    """
    xs = [tracer(x) for x in tensors]
    if len(xs) < 2:
        raise UserError(f"multi_dot of {len(xs)} tensors, expected at least 2", code="MLC0353")
    for i, x in enumerate(xs):
        if x.ndim != 2 and not (x.ndim == 1 and i in (0, len(xs) - 1)):
            raise UserError(f"operand {i} has {x.ndim} dimensions, expected a matrix", code="MLC0364")
    first, last = xs[0].ndim == 1, xs[-1].ndim == 1
    xs[0] = reshape(xs[0], [1, *xs[0].shape]) if first else xs[0]
    xs[-1] = reshape(xs[-1], [*xs[-1].shape, 1]) if last else xs[-1]
    sides = [known_size(d, "a size") for d in (xs[0].shape[0], *(x.shape[-1] for x in xs))]
    out = _product(xs, sides, _best_splits(sides), 0, len(xs) - 1)
    shape = tracer(out).shape
    return reshape(tracer(out), [*(() if first else shape[:1]), *(() if last else shape[1:])])


def _best_splits(sides: Sequence[int]) -> dict[tuple[int, int], int]:
    """Optimal split of each product of matrices i to j (matrix chain order); sides[i] is the row count of matrix i."""
    n = len(sides) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            work = {k: cost[i, k] + cost[k + 1, j] + sides[i] * sides[k + 1] * sides[j + 1] for k in range(i, j)}
            split[i, j] = min(work, key=lambda k: work[k])
            cost[i, j] = work[split[i, j]]
    return split


def _product(xs: Sequence[Tracer], sides: Sequence[int], split: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return xs[i]
    k = split[i, j]
    return contract.matmul(_product(xs, sides, split, i, k), _product(xs, sides, split, k + 1, j))


@operation(autocast="lower_precision")
def chain_matmul(*matrices: Operand) -> Tensor:
    """matrices[0] @ matrices[1] @ ..., in the order that takes the fewest multiplications.

    The order is found by dynamic programming, as in `mlc.linalg.multi_dot`.

    Args:
        matrices: Tensors of shapes (n0, n1), (n1, n2) and so on.

    Returns:
        Tensor of shape (n0, n_last) in the promoted dtype.

    Raises:
        UserError: there is no matrix (MLC0353), inner sizes differ (MLC0367), the operands have different float dtypes
            (MLC0420), or an operand is neither a matrix nor, at an end, a vector (MLC0364).

    Example:
        >>> mlc.chain_matmul(mlc.ones(2, 3), mlc.ones(3, 4), mlc.ones(4, 1))
        tensor([[12.],
                [12.]], dtype=mlc.float32)
    """
    if not matrices:
        raise UserTypeError("expected a matrix, found none", code="MLC0353")
    return tracer(matrices[0]) if len(matrices) == 1 else multi_dot(matrices)


@operation(name="linalg.matrix_exp")
def matrix_exp(A: Operand) -> Tensor:
    """The matrix exponential: 1 + A + A A / 2! + A A A / 3! + ...

    Args:
        A: Tensor of floats of shape (..., n, n).

    Returns:
        Tensor of the shape and the dtype of `A`; of float32, if that is of integers.

    Raises:
        UserError: `A` is no matrix (MLC0364) or not square (MLC0367).

    Example:
        >>> mlc.linalg.matrix_exp(mlc.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]], dtype=mlc.float32)
    """
    given, out = tracer(A).type.dtype, emit(T.MatrixExp, as_square(A, complex=True))
    return cast(out, given) if given.is_inexact else out   # 16-bit floats are computed in f32
