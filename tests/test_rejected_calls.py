"""Calls that PyTorch rejects, found by its database of operators, are rejected with a code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlc
from mlc import nn
from mlc.ir.diag import Error

F = nn.functional
W = mlc.signal.windows
X, I = mlc.ones(2, 3), mlc.tensor([0, 1])
M: Any = mlc


def grouped(*given: int) -> Callable[[], Any]:
    return lambda: M.native_group_norm(mlc.ones(2, 4, 3), None, None, *given, 0.0)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "a window of integers": (lambda: W.hann(3, dtype=mlc.int64), "MLC0359"),
    "a window without coefficients": (lambda: W.general_cosine(3, a=[]), "MLC0360"),
    "a range away from its end": (lambda: mlc.arange(0, -3, 2), "MLC0360"),
    "a range between vectors": (lambda: mlc.linspace(mlc.ones(2), 3, 1), "MLC0364"),
    "float frequencies": (lambda: mlc.cov(mlc.ones(5), fweights=mlc.ones(5)), "MLC0354"),
    "weights of another length": (lambda: mlc.cov(mlc.ones(5), aweights=mlc.ones(1)), "MLC0367"),
    "negative weights": (lambda: mlc.cov(mlc.ones(5), aweights=-mlc.ones(5)), "negative"),
    "rows of a number": (lambda: mlc.flipud(mlc.tensor(1.0)), "MLC0364"),
    "a roll along no dimension": (lambda: mlc.roll(mlc.tensor(1.5), 3, 0), "MLC0364"),
    "a negative tolerance": (lambda: mlc.isclose(X, X, rtol=-0.4), "MLC0360"),
    "several numbers to fill with": (lambda: mlc.masked_fill(X, X > 0, mlc.ones(1)), "MLC0364"),
    "a mask of floats": (lambda: mlc.masked_scatter(X, X, X), "MLC0362"),
    "a wide bias": (lambda: F.conv1d(mlc.ones(1, 1, 4), mlc.ones(1, 1, 2), mlc.ones(1).double()), "MLC0420"),
    "a negative margin": (lambda: F.triplet_margin_loss(X, X, X, margin=-1.0), "MLC0360"),
    "a negative interval": (lambda: F.softshrink(X, -0.5), "MLC0360"),
    "limits in the wrong order": (lambda: F.hardtanh(X, 0.5, -0.5), "MLC0360"),
    "a start that is a bool": (lambda: M.narrow(X, 0, mlc.tensor(True), 1), "MLC0354"),
    "a source of another dtype": (lambda: mlc.scatter(X.double(), 0, I[:, None], X), "MLC0421"),
    "slices of another dtype": (lambda: mlc.index_add(X.double(), 0, I, X), "MLC0421"),
    "ignored probabilities": (lambda: F.linear_cross_entropy(X, X, mlc.ones(2, 2), ignore_index=0), "MLC0360"),
    "several targets without a batch": (lambda: F.linear_cross_entropy(X[0], mlc.ones(2, 4, 3), I), "MLC0364"),
    "pivots of other matrices": (lambda: mlc.lu_unpack(mlc.ones(2, 3, 3), mlc.ones(3, dtype="int32")), "MLC0367.*LU_p"),
    "pivots of floats": (lambda: mlc.lu_unpack(mlc.ones(3, 3), mlc.ones(3)), "MLC0354.*LU_pivots"),
    "a group norm of other images": (grouped(2, 4, 5, 2), "MLC0358.*HxW = 5"),
    "a group norm of more images": (grouped(3, 4, 3, 2), "MLC0358.*N = 3"),
    "a group norm of no groups": (grouped(2, 4, 3, 0), "MLC0358.*group = 0"),
    "a group norm of negative sizes": (grouped(-2, -4, 3, 2), "MLC0358.*N = -2"),
    "more cut off than there is": (lambda: mlc.constant_pad_nd(X, (-2, -2)), r"MLC0360.*\(-2, -2\) cuts 4 elements"),
    "an end cut off twice": (lambda: F.pad(X, (0, 0, -3, 2), mode="circular"), "MLC0360.*dimension 0, which has 2"),
    "repeats of another length": (lambda: mlc.repeat_interleave(X, I, 1), "MLC0367.* repeat_interleave: repeats has"),
    "a matrix of repeats": (lambda: mlc.repeat_interleave(X, mlc.ones(1, 3).long(), 1), "MLC0364.* repeat_interleave"),
    "another number of repeats": (lambda: mlc.repeat_interleave(X[0], I[1:], output_size=7), "MLC0360.*_size = 7"),
    "another number of repetitions": (lambda: mlc.repeat_interleave(X, 2, 1, output_size=7), "MLC0360.*_size = 7"),
    "out of another dtype": (lambda: M.gather(X, 1, I[:, None], out=mlc.zeros(2, 1).double()), "MLC0755"),
    "too many dimensions": (lambda: mlc.zeros([1] * 65), "MLC0364"),
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", CALLS)
def test_rejected(name: str) -> None:
    call, pattern = CALLS[name]
    with pytest.raises(Error, match=pattern):
        call()


def test_a_copy_of_a_piece_outside_is_rejected_by_code_for_all_sizes() -> None:
    for f in (mlc.narrow_copy, mlc.compile(lambda x, dim, start, length: mlc.narrow(x, dim, start, length),
                                           static=("dim", "start", "length"), dynamic=True)):
        assert f(X, 1, 3, 0).shape == (2, 0)
        with pytest.raises(Error, match="4 to 4 is not within a dimension"):
            f(X, 1, 4, 0)


def test_a_wider_out_is_written_to_where_pytorch_does() -> None:
    wide = mlc.zeros(2, 3).double()
    M.add(X, 1, out=wide)
    assert wide.tolist() == [[2, 2, 2], [2, 2, 2]]


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("f, code", [
    (lambda n: F.pad(mlc.ones(2, n), (-2, -2)), "MLC0360"),
    (lambda n: F.conv1d(mlc.ones(1, 2, n), mlc.ones(1, 2, 4)), "MLC0367"),
    (lambda n: F.max_pool1d(mlc.ones(1, 2, n), 4), "MLC0367"), (lambda n: mlc.ones(n).topk(4), "MLC0360"),
    (lambda n: mlc.ones(n).kthvalue(4), "MLC0360"),
    (lambda n: mlc.select_scatter(mlc.ones(n, 2), mlc.ones(2), 0, 4), "MLC0366")])
def test_sizes_that_code_for_all_sizes_is_not_for(f: Callable[[int], Any], code: str) -> None:
    """Whether the code is native or interpreted, the error is that of a first call."""
    for n in (7, 8):
        f(n)
    with pytest.raises(Error, match=code):
        f(3)
