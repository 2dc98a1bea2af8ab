"""Linear algebra where it is hard: the accuracy of LAPACK, numbers of any size, matrices that are singular or empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc.ir.diag import UserError
from tests.arrays import Array

pytestmark = pytest.mark.usefixtures("execution")


def rms(x: Any) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(x, np.float64)))))


def doubled(found: Any) -> list[Array]:
    return [np.asarray(x).astype(np.float64) for x in found]


def spread(n: int, dtype: Any, symmetric: bool) -> Array:
    """A matrix with singular values from 1 to 1e-4."""
    rng = np.random.default_rng(n)
    u, v = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    x = ((u * np.geomspace(1, 1e-4, n)) @ (u if symmetric else v).T).astype(dtype)
    return np.asarray((x + x.T) / 2 if symmetric else x)


def errors(name: str, where: Any, tensor: Any, dtype: str) -> list[float]:
    """Of one function: what factors multiply to, how orthonormal they are, and eigenvalues."""
    n = 50
    one, even, odd = np.eye(n), spread(n, dtype, True), spread(n, dtype, False)
    if name == "eigh":
        w, v = doubled(where.eigh(tensor(even)))
        return [rms(v * w @ v.T - even), rms(v.T @ v - one), rms(w - np.linalg.eigvalsh(even.astype(np.float64)))]
    if name == "svd":
        u, s, vh = doubled(where.svd(tensor(odd)))
        return [rms(u * s @ vh - odd), rms(u.T @ u - one), rms(vh @ vh.T - one),
                rms(s - np.linalg.svd(odd.astype(np.float64))[1])]
    if name == "qr":
        q, r = doubled(where.qr(tensor(odd)))
        return [rms(q @ r - odd), rms(q.T @ q - one)]
    x, = doubled([where.solve(tensor(odd), tensor(odd[:, :2]))])
    return [rms(odd @ x - odd[:, :2])]


@pytest.mark.parametrize("name, dtype", [
    ("solve", "float32"),
    *(pytest.param(*of, marks=pytest.mark.slow) for of in (
        *((n, "float32") for n in ("eigh", "qr", "svd")), *((n, "float64") for n in ("eigh", "svd", "qr", "solve"))))])
def test_as_accurate_as_lapack(name: str, dtype: str) -> None:
    """Against twice the error of LAPACK."""
    ours, theirs = (errors(name, where, tensor, dtype) for where, tensor in (
        (mlc.linalg, mlc.tensor), (torch.linalg, torch.from_numpy)))
    eps = float(np.finfo(dtype).eps)
    assert all(a <= 2 * b + eps / 2 for a, b in zip(ours, theirs)), list(zip(ours, theirs))


@pytest.mark.usefixtures("interpreted")
def test_singular_values_of_any_size() -> None:
    """Also where squares cannot be represented; each matrix of a batch by itself, beside those with infinities."""
    x = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)
    x[0] *= np.float32(1e-30)
    x[1] *= np.float32(1e30)
    special = [np.zeros((4, 2)), [[1, 2], [2, 4], [0, 0], [0, 0]], [[np.nan, 1]] + [[0, 1]] * 3, [[np.inf, 1]] * 4]
    got = np.array(mlc.linalg.svdvals(mlc.tensor(np.concatenate([x, np.array(special, np.float32)]))))
    np.testing.assert_allclose(got[:3], np.linalg.svd(x.astype(np.float64))[1], rtol=1e-6)
    np.testing.assert_allclose(got[3:5], [[0, 0], [5, 0]], rtol=1e-6, atol=1e-6)
    assert np.isnan(got[5:]).all()
    greatest = np.finfo(np.float32).max * np.array([1, 0.5], np.float32)
    assert (np.array(mlc.linalg.svdvals(mlc.tensor(np.diag(greatest)))) == greatest).all()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("upper", [False, True])
def test_one_triangle_counts(upper: bool) -> None:
    """Values are those of the triangle; derivatives reach both alike, as PyTorch's do for symmetric matrices."""
    x = np.array([[4.0, -1, 0.5], [1, 5, 2], [-2, 0.3, 6]])
    theirs = torch.from_numpy(x).requires_grad_()
    wanted = (torch.linalg.cholesky(theirs, upper=upper) * torch.arange(9.0).reshape(3, 3)).sum()
    wanted.backward()
    weights = mlc.arange(9, dtype="float64").reshape(3, 3)
    got, gradient = mlc.value_and_grad(lambda x: (mlc.linalg.cholesky(x, upper=upper) * weights).sum())(mlc.tensor(x))
    np.testing.assert_allclose(float(got), wanted.item(), rtol=1e-12)
    np.testing.assert_allclose(np.array(gradient), theirs.grad.numpy(), rtol=1e-10, atol=1e-12)
    values = mlc.linalg.eigvalsh(mlc.tensor(x), "U" if upper else "L")
    np.testing.assert_allclose(np.array(values), np.linalg.eigvalsh(x, "U" if upper else "L"))


@pytest.mark.usefixtures("interpreted")
def test_what_counts_as_zero() -> None:
    """An atol of 0 is as none: only a greater one takes the place of the default."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 2)) @ np.diag([3.0, 1]) @ rng.normal(size=(2, 3))
    theirs, ours = torch.from_numpy(x), mlc.tensor(x)
    tried: list[dict[str, Any]] = [{}, {"atol": 0.0}, {"atol": 3.0}, {"rtol": 0.5}, {"atol": 3.0, "rtol": 0.01}]
    for bounds in tried:
        rank = torch.linalg.matrix_rank(theirs, **bounds)
        assert int(mlc.linalg.matrix_rank(ours, **bounds)) == int(rank), bounds
    np.testing.assert_allclose(np.array(mlc.linalg.pinv(ours, atol=0.0)), torch.linalg.pinv(theirs, atol=0.0).numpy(),
                               rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("interpreted")
def test_least_squares_of_vectors() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5))
    got = mlc.linalg.lstsq(mlc.tensor(a), mlc.tensor(b))
    want = torch.linalg.lstsq(torch.from_numpy(a), torch.from_numpy(b), driver="gelsd")
    for x, y in zip(got[:2], want):
        assert x.shape == tuple(y.shape)
        np.testing.assert_allclose(np.array(x), y.numpy(), rtol=1e-9)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_rank_and_singular_values_of_least_squares(driver: str | None) -> None:
    """As PyTorch's, and for matrices that are not of full rank."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5, 1))
    if driver != "gels":                                   # which needs full rank
        a[1, :, 2] = a[1, :, 0] - 2 * a[1, :, 1]
    got = mlc.linalg.lstsq(mlc.tensor(a), mlc.tensor(b), driver=driver)
    want = torch.linalg.lstsq(torch.from_numpy(a), torch.from_numpy(b), driver=driver)
    assert got.rank.tolist() == want.rank.tolist() and got.rank.dtype == mlc.int64
    np.testing.assert_allclose(got.singular_values.numpy(), want.singular_values.numpy(), rtol=1e-9, atol=1e-14)
    assert mlc.linalg.lstsq(a[:, :0], b[:, :0], driver="gelsd").rank.tolist() == [0, 0]
    with pytest.raises(mlc.UserError, match="MLC0360"):
        mlc.linalg.lstsq(a, b, driver="svd")


@pytest.mark.usefixtures("interpreted")
def test_condition_of_singular_matrices() -> None:
    x = np.array([[[0.0, 0], [0, 0]], [[1, 0], [0, 0]], [[1, 0], [0, 4]], [[np.nan, 1], [1, 1]]])
    np.testing.assert_array_equal(np.array(mlc.linalg.cond(mlc.tensor(x), 1)), [np.inf, np.inf, 4, np.nan])


def test_factors_without_pivots_are_refused() -> None:
    for f in (mlc.linalg.lu, mlc.linalg.lu_factor):
        with pytest.raises(mlc.UserError, match="MLC0360"):
            f(mlc.eye(2), pivot=False)


@pytest.mark.parametrize("complex", [False, True])
@pytest.mark.parametrize(("m", "n"), [(3, 3), (4, 2), (2, 4), (1, 1)])
def test_factors_of_what_is_not_finite(m: int, n: int, complex: bool) -> None:
    """All NaN, whatever the order of the steps; a factorisation of others in the batch is what it is without them."""
    x = np.random.default_rng(0).standard_normal((5, m, n)) * (1 + 1j if complex else 1)
    want = x.copy()
    x[1, m - 1, 0], x[2, 0, n - 1], x[3, m // 2, n // 2] = np.inf, -np.inf, np.nan
    of_finite, of_all = (mlc.linalg.lu_factor(mlc.tensor(a)) for a in (want, x))
    factors = [tuple(of_finite), tuple(of_all)]
    np.testing.assert_array_equal(np.array(of_all.pivots)[1:4], [range(1, min(m, n) + 1)] * 3)
    if not complex:
        factors = [(*f, *mlc.linalg.qr(mlc.tensor(a))) for f, a in zip(factors, (want, x))]
    if m == n:
        factors = [(*f, mlc.linalg.inv(mlc.tensor(a))) for f, a in zip(factors, (want, x))]
    for of_finite, found in zip(*factors, strict=True):
        np.testing.assert_array_equal(np.array(found)[[0, 4]], np.array(of_finite)[[0, 4]])
    for found in (factors[1][0], *factors[1][2:]):
        bad = np.array(found)[1:4]
        assert np.isnan(bad[bad != 0]).all() and np.isnan(bad[:, 0]).all()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("p", [2, 3, 0.5, -1])
def test_the_norm_of_one_number_is_its_absolute_value(p: float, dynamic: bool) -> None:
    """As PyTorch's, where its power would overflow or underflow; and its derivative is the sign."""
    def f(x: Any) -> Any:
        return mlc.norm(x, p, 1), mlc.nn.functional.normalize(x, p)

    x = np.array([[1e300], [-1e-300], [-0.0], [-np.inf], [np.nan]])
    norm, normal = mlc.compile(f, dynamic=dynamic)(mlc.tensor(x))
    np.testing.assert_array_equal(np.array(norm), torch.norm(torch.tensor(x), p, 1).numpy())
    np.testing.assert_array_equal(np.array(normal), torch.nn.functional.normalize(torch.tensor(x), p).numpy())
    gradient = mlc.compile(mlc.grad(lambda x: mlc.norm(x, p, 1).sum()), dynamic=dynamic)(mlc.tensor(x))
    np.testing.assert_array_equal(np.array(gradient)[:4], [[1], [-1], [0], [-1]])


@pytest.mark.parametrize("triangle", ["L", "U"])
def test_one_triangle_of_a_matrix_is_read(triangle: Any) -> None:
    """The other one may hold anything."""
    a = np.random.default_rng(4).standard_normal((2, 3, 3))
    want = np.linalg.eigvalsh(a, triangle)
    np.testing.assert_allclose(mlc.linalg.eigvalsh(a, triangle).numpy(), want)
    np.testing.assert_allclose(mlc.linalg.eigh(a, triangle).eigenvalues.numpy(), want)
    a += 5 * np.eye(3)
    np.testing.assert_allclose(mlc.linalg.cholesky(a, upper=triangle == "U").numpy(),
                               torch.linalg.cholesky(torch.tensor(a), upper=triangle == "U").numpy())


@pytest.mark.parametrize("rcond", [None, 0.1, 0.9])
def test_singular_values_below_rcond_count_as_zero(rcond: float | None) -> None:
    a, b = np.diag([2.0, 1.0, 0.1]) + 0.01, np.arange(6.0).reshape(3, 2)
    want = np.linalg.lstsq(a, b, rcond)
    found = mlc.linalg.lstsq(a, b, rcond=rcond, driver="gelsd")
    np.testing.assert_allclose(found.solution.numpy(), want[0], atol=1e-12)
    assert int(found.rank) == want[2]
    np.testing.assert_allclose(found.singular_values.numpy(), want[3])


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", ["solve", "inv", "pinv", "cholesky", "matrix_exp", "upper", "lower", "adjoint"])
def test_complex_matrices(name: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in ((2, 3, 3), (2, 3, 2)))
    positive = a @ a.conj().swapaxes(1, 2) + 3 * np.eye(3)
    functions: dict[str, Any] = {
        "solve": lambda m, a, b, p: m.linalg.solve(a, b), "inv": lambda m, a, b, p: m.linalg.inv(a),
        "pinv": lambda m, a, b, p: m.linalg.pinv(b), "cholesky": lambda m, a, b, p: m.linalg.cholesky(p),
        "matrix_exp": lambda m, a, b, p: m.linalg.matrix_exp(a),
        "upper": lambda m, a, b, p: m.linalg.solve_triangular(a, b, upper=True),
        "lower": lambda m, a, b, p: m.linalg.solve_triangular(a, b, upper=False, unitriangular=True),
        "adjoint": lambda m, a, b, p: m.linalg.solve_triangular(a.mH, b, upper=False)}
    found, wanted = (functions[name](m, *map(m.tensor, (a, b, positive))).numpy() for m in (mlc, torch))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("x", "gradient"), [
    ([[1, 2], [2, 4]], [[4, -2], [-2, 1]]), ([[0, 0], [0, 0]], [[0, 0], [0, 0]]), ([[0]], [[1]]),
    ([[0, 1], [1, 0]], [[0, -1], [-1, 0]]), ([[1, 2, 3], [2, 4, 6], [3, 6, 9]], [[0] * 3] * 3),
    ([[1, 0, 0], [0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [0, 0, 1]]), ([[0, 1], [0, 2]], [[2, 0], [-1, 0]]),
    ([[0, 1, 2], [0, 3, 5], [0, 7, 1]], [[-32, 0, 0], [13, 0, 0], [-1, 0, 0]]), ([[0, 1], [0, 0]], [[0, 0], [-1, 0]])])
def test_cofactors_of_singular_matrices(x: Any, gradient: Any) -> None:
    value, found = mlc.value_and_grad(mlc.linalg.det)(mlc.tensor(x, dtype=mlc.float64))
    assert float(value) == pytest.approx(np.linalg.det(x))
    np.testing.assert_allclose(found.numpy(), gradient, atol=1e-12)


@pytest.mark.usefixtures("interpreted")
def test_second_derivatives_of_determinants_of_singular_matrices() -> None:
    found = mlc.func.hessian(mlc.linalg.det)(mlc.tensor([[1.0, 2], [2, 4]]))
    assert found.reshape(4, 4).tolist() == [[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]]


@pytest.mark.usefixtures("interpreted")
def test_where_a_matrix_is_not_positive_definite() -> None:
    """At the leading minor that LAPACK names; the columns before it are those of the factor."""
    rng = np.random.default_rng(0)
    near = rng.normal(size=(4, 4))
    near = near @ near.T + np.eye(4)
    x = np.stack([np.diag([1.0, 1, -1, 1]), np.diag([1.0, 0, 1, 1]), -np.eye(4), np.eye(4), near, near])
    x[4, 2, 2] = -3
    for upper in (False, True):
        got = mlc.linalg.cholesky_ex(mlc.tensor(x), upper=upper)
        want = torch.linalg.cholesky_ex(torch.from_numpy(x), upper=upper)
        assert got.info.tolist() == want.info.tolist() == [3, 2, 1, 0, 3, 0]
    factor = mlc.linalg.cholesky(mlc.tensor(x[4])).numpy()
    assert (np.isnan(factor) == [[False, False, True, True]] * 4).all()
    np.testing.assert_allclose(factor[:, :2], torch.linalg.cholesky_ex(torch.from_numpy(x[4])).L[:, :2].numpy())
    hermitian = np.array([[2.0, 1j, 0], [-1j, 2, 0], [0, 0, -1]])
    assert int(mlc.linalg.cholesky_ex(mlc.tensor(hermitian)).info) == 3
    wide = np.eye(40, dtype=np.float32)
    wide[37, 37] = -1
    assert int(mlc.linalg.cholesky_ex(mlc.tensor(wide)).info) == 38


@pytest.mark.usefixtures("interpreted")
def test_one_triangle_counts_for_the_rank() -> None:
    x = [[1.0, 5.0], [1.0, 1.0]]
    assert int(mlc.linalg.matrix_rank(mlc.tensor(x), hermitian=True)) == 1
    assert int(mlc.linalg.matrix_rank(mlc.tensor([[0.0, 1], [1, 0]]), hermitian=True)) == 2


@pytest.mark.usefixtures("interpreted")
def test_powers_of_integers_are_exact() -> None:
    for name in ("int8", "uint8", "int32"):
        got = mlc.linalg.vander(mlc.tensor([10, 3], dtype=name), N=12)
        want = torch.linalg.vander(torch.tensor([10, 3], dtype=getattr(torch, name)), N=12)
        assert got.dtype == mlc.int64 and got.tolist() == want.tolist()
    power = mlc.linalg.matrix_power(mlc.tensor([[1, 1], [1, 0]]), 60)
    assert power.tolist() == torch.linalg.matrix_power(torch.tensor([[1, 1], [1, 0]]), 60).tolist()


@pytest.mark.usefixtures("interpreted")
def test_signs_of_reflections_are_those_of_lapack() -> None:
    x = [[0.0, 1.0], [3.0, 2.0], [4.0, 5.0]]
    for got, want in zip(mlc.geqrf(mlc.tensor(x)), torch.geqrf(torch.tensor(x))):
        np.testing.assert_allclose(np.array(got), want.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("ord", ["fro", "nuc"])
def test_norms_of_matrices_are_none_of_vectors(ord: str) -> None:
    for name in ("norm", "vector_norm"):
        with pytest.raises((RuntimeError, TypeError, IndexError)):
            getattr(torch.linalg, name)(torch.tensor([3.0, 4.0]), ord)
        with pytest.raises(UserError, match="MLC0360"):
            getattr(mlc.linalg, name)(mlc.tensor([3.0, 4.0]), ord)


@pytest.mark.usefixtures("interpreted")
def test_norms_in_wider_floats() -> None:
    x = [[1.0, 0.5, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 1e-3]]
    calls: list[Any] = [
        lambda m: m.linalg.vector_norm(m.tensor(x), 2, dtype=m.float64),
        lambda m: m.norm(m.tensor(x), dtype=m.float64), lambda m: m.norm(m.tensor(x), "nuc", dtype=m.float64),
        lambda m: m.linalg.norm(m.tensor(x), dtype=m.float64),
        lambda m: m.linalg.matrix_norm(m.tensor(x), 1, dtype=m.float64)]
    for call in calls:
        got, want = call(mlc), call(torch)
        assert str(got.dtype).removeprefix("mlc.") == str(want.dtype).removeprefix("torch.")
        np.testing.assert_allclose(np.array(got), want.numpy(), rtol=1e-5, atol=1e-6)
    mistakes: list[Any] = [lambda m: m.linalg.vector_norm(m.tensor(x), dtype=m.float16),
                           lambda m: m.norm(m.tensor(x), dtype=m.float16), lambda m: m.norm(m.tensor([1, 2])),
                           lambda m: m.linalg.norm(m.tensor(x), dtype=m.int64),
                           lambda m: m.linalg.matrix_norm(m.tensor(x), dtype=m.complex64)]
    for mistake in mistakes:
        with pytest.raises(RuntimeError):
            mistake(torch)
        with pytest.raises(UserError, match="MLC0359"):
            mistake(mlc)


@pytest.mark.usefixtures("interpreted")
def test_the_derivative_of_the_space_of_equal_eigenvalues() -> None:
    """That of the projection, sum of v_i v_k^T (v_i^T dx v_k) / (w_i - w_k) both ways, where PyTorch gives NaN."""
    weights = np.random.default_rng(0).normal(size=(3, 3))

    def projection(x: Any) -> Any:
        v = mlc.linalg.eigh(x).eigenvectors[:, :2]
        return (v @ v.mT * mlc.tensor(weights)).sum()

    across = (weights + weights.T) / 2 / (1 - 3) * [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    found = mlc.grad(projection)(mlc.tensor(np.diag([1.0, 1, 3])))
    np.testing.assert_allclose(found.numpy(), across, atol=1e-12)


@pytest.mark.usefixtures("interpreted")
def test_older_and_rarer_parameters() -> None:
    x = [[1.0, 0.5, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 1e-3]]
    calls: list[Any] = [
        lambda m: m.linalg.matrix_rank(m.tensor(x), 1e-2), lambda m: m.linalg.matrix_rank(m.tensor(x), tol=1e-4),
        lambda m: m.linalg.matrix_rank(m.tensor(x), 1e-2, True), lambda m: m.linalg.pinv(m.tensor(x), 1e-2),
        lambda m: m.linalg.pinv(m.tensor(x), rcond=1e-2), lambda m: m.linalg.pinv(m.tensor(x), 1e-2, True),
        lambda m: m.linalg.svdvals(m.tensor(x), driver=None), lambda m: m.linalg.svd(m.tensor(x), driver=None).S]
    for call in calls:
        np.testing.assert_allclose(np.array(call(mlc)), call(torch).numpy(), rtol=1e-5, atol=1e-6)
    mistakes: list[tuple[str, Any]] = [
        ("MLC0360", lambda: mlc.linalg.svdvals(mlc.tensor(x), driver="other")),
        ("MLC0702", lambda: mlc.linalg.matrix_rank(mlc.tensor(x), 1e-2, atol=1.0)),
        ("MLC0702", lambda: mlc.linalg.pinv(mlc.tensor(x), 1e-2, rtol=1.0))]
    for code, mistake in mistakes:
        with pytest.raises(UserError, match=code):
            mistake()


@pytest.mark.usefixtures("interpreted")
def test_powers_of_matrices_keep_narrow_floats() -> None:
    x = mlc.eye(2, dtype=mlc.bfloat16) * 3
    for n in (0, 1, 2, 3):
        found = mlc.linalg.matrix_power(x, n)
        assert found.dtype is mlc.bfloat16 and found[0].tolist() == [3.0 ** n, 0.0]
    with mlc.autocast("cpu"):
        assert mlc.linalg.matrix_power(mlc.ones(2, 2), 3).dtype is mlc.bfloat16
    assert mlc.linalg.matrix_exp(x).dtype is mlc.bfloat16 and mlc.linalg.matrix_exp(x).tolist()[0] == [20.125, 0.0]
