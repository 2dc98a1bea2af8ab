"""Complex tensors: arithmetic against numpy, promotion, views, gradients, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc.ir.types import ComplexType, c64, c128, f16, f32, from_numpy, to_numpy
from tests.execution import NATIVE

pytestmark = pytest.mark.usefixtures("execution")

RNG, INF = np.random.default_rng(0), math.inf


def numbers(*shape: int) -> Any:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


Z = numbers(3, 4)


def test_types() -> None:
    assert to_numpy(c64) == np.complex64 and from_numpy(np.dtype(np.complex128)) == c128 == ComplexType(c128.part)
    assert str(c64) == "complex<f32>" and c64.itemsize == 8 and c64.is_inexact and not c64.is_float
    assert mlc.complex64.is_complex and mlc.complex64.to_real() is mlc.float32
    assert mlc.cfloat is mlc.complex64 and mlc.float64.to_complex() is mlc.cdouble
    assert f32.is_inexact and not f16.is_complex


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("f", "numpy"), [
    ("exp", np.exp), ("log", np.log), ("log1p", np.log1p), ("expm1", np.expm1), ("sqrt", np.sqrt), ("sin", np.sin),
    ("cos", np.cos), ("tan", np.tan), ("sinh", np.sinh), ("cosh", np.cosh), ("tanh", np.tanh), ("asin", np.arcsin),
    ("acos", np.arccos), ("atan", np.arctan), ("asinh", np.arcsinh), ("acosh", np.arccosh), ("atanh", np.arctanh),
    ("abs", np.abs), ("angle", np.angle), ("conj", np.conj), ("reciprocal", lambda z: 1 / z), ("square", np.square)])
def test_functions(f: str, numpy: Any) -> None:
    """In all quadrants, on both axes and on both sides of the branch cuts."""
    parts = np.array([-2.0, -0.5, -0.0, 0.0, 0.5, 2.0])
    z = (parts[:, None] + 1j * np.zeros(6)) + 1j * parts
    z.imag[:] = parts
    z = z[(np.abs(z) > 0.1) & (np.abs(np.abs(z) - 1) > 0.1)]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.array(getattr(mlc, f)(mlc.tensor(z))), numpy(z), rtol=1e-12, atol=1e-12)


def test_no_overflow_on_the_way() -> None:
    z = np.array([3e38 + 1e38j, 1e-38 - 1e-38j, -2e38j], np.complex64)
    np.testing.assert_allclose(np.array(abs(mlc.tensor(z))), np.abs(z.astype(complex)), rtol=1e-6)
    np.testing.assert_allclose(np.array(mlc.tensor(z) / mlc.tensor(z)), np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(np.array(mlc.sqrt(mlc.tensor(z))), np.sqrt(z.astype(complex)), rtol=1e-6)


@pytest.mark.parametrize(("a", "b", "dtype"), [
    (mlc.ones(2), 1j, "complex64"), (mlc.ones(2, dtype=mlc.float64), 1j, "complex128"),
    (mlc.arange(2), 1j, "complex64"), (mlc.ones(2), mlc.tensor(1j, dtype=mlc.complex128), "complex64"),
    (mlc.tensor([1j]), 2.0, "complex64"),
    (mlc.tensor([1j]), mlc.ones(1, dtype=mlc.float64), "complex128"), (mlc.ones(2).half(), 1j, "complex64")])
@pytest.mark.usefixtures("interpreted")
def test_promotion(a: Any, b: Any, dtype: str) -> None:
    assert (a * b).dtype is (b * a).dtype is getattr(mlc, dtype)


@pytest.mark.usefixtures("interpreted")
def test_quotients_by_infinity() -> None:
    numerators, infinite = [1 + 1j, 1 - 2j, 0j], [complex(INF, 0), complex(3, -INF), complex(-INF, INF)]
    for dtype in (np.complex64, np.complex128):
        x, y = np.repeat(numerators, 3).astype(dtype), np.tile(infinite, 3).astype(dtype)
        for f in (lambda x, y: x / y, lambda x, y: mlc.reciprocal(y)):
            for found in (f(mlc.tensor(x), mlc.tensor(y)), mlc.compile(f)(x, y)):
                assert (found.numpy() == 0).all()


def test_python_and_numpy() -> None:
    x = mlc.tensor([1 + 2j, 3])
    assert x.dtype is mlc.complex64 and x.tolist() == [1 + 2j, 3 + 0j] and complex(x[0]) == x[0].item() == 1 + 2j
    assert repr(x) == "tensor([1.+2.j, 3.+0.j], dtype=mlc.complex64)"
    assert mlc.full((2,), 1j).dtype is mlc.complex64 and mlc.asarray(Z).dtype is mlc.complex128
    assert np.shares_memory(mlc.asarray(Z).numpy(), Z)
    assert x.is_complex() and not x.is_conj() and mlc.isreal(x).tolist() == [False, True]
    assert mlc.complex(mlc.tensor([1.0]), mlc.tensor([2.0])).item() == 1 + 2j
    assert mlc.polar(mlc.tensor([2.0]), mlc.tensor([math.pi])).real.item() == -2
    assert mlc.randn(4, dtype=mlc.complex64).dtype is mlc.complex64
    assert mlc.allclose(x, x + 1e-9j) and not mlc.allclose(x, x + 1j)
    assert mlc.tensor(Z).mH.tolist() == Z.conj().T.tolist() == mlc.tensor(Z).H.tolist()


@pytest.mark.usefixtures("interpreted")
def test_parts_share_memory() -> None:
    x = mlc.zeros(2, dtype=mlc.complex64)
    x.real[0] = 1
    x.imag += 2
    mlc.view_as_real(x)[1, 0] = 5
    assert x.tolist() == [1 + 2j, 5 + 2j]
    pairs = mlc.zeros(2, 2)
    mlc.view_as_complex(pairs)[0] = 3 - 1j
    assert pairs.tolist() == [[3, -1], [0, 0]]
    x.real = 0
    assert x.tolist() == [2j, 2j]


def _assigned(x: Any, at: Any, value: Any) -> Any:
    x[at] = value
    return x


def _written(x: Any) -> Any:
    y = x.clone()
    y.imag[0] = 7
    y.real *= 2
    return y


def test_compiled_as_eager() -> None:
    x = mlc.tensor(Z)
    for f in (_written, mlc.grad(lambda x: abs(x @ x.mH).sum()),
              lambda x: mlc.fori_loop(0, 3, lambda i, c: c * c + x, x),
              mlc.vmap(lambda row: row.conj() * row.sum()), lambda x: mlc.cumprod(x, 1) + mlc.prod(x)):
        np.testing.assert_allclose(np.array(mlc.compile(f)(x)), np.array(f(x)), rtol=1e-9)


LOSSES = [lambda x, F: (F.abs(x) ** 3).sum(), lambda x, F: (x * x).imag.sum(), lambda x, F: F.log(x).real.sum(),
          lambda x, F: F.abs(F.exp(x) / (x + 2)).sum(), lambda x, F: F.view_as_real(F.sqrt(x)).sum(),
          lambda x, F: F.abs(F.fft.fft(x)).sum(), lambda x, F: F.abs(x @ x.mH).sum(), lambda x, F: x.angle().sum(),
          lambda x, F: F.abs(F.asin(x)).sum(), lambda x, F: F.linalg.inv(x[:, :3]).real.sum()]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_pytorchs(loss: Any) -> None:
    """Recorded, and by `mlc.grad`."""
    t = torch.tensor(Z, requires_grad=True)
    loss(t, torch).backward()
    x = mlc.tensor(Z, requires_grad=True)
    loss(x, mlc).backward()
    of_function = mlc.grad(lambda x: loss(x, mlc))(mlc.tensor(Z))
    for found in (x.grad, of_function):
        np.testing.assert_allclose(np.array(found), t.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_a_step_of_an_optimizer() -> None:
    w = mlc.nn.Parameter(mlc.tensor([1 + 1j]))
    optimizer = mlc.optim.SGD([w], 0.5)
    (w.abs() ** 2).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(np.array(w.detach()), [0], atol=1e-6)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("call", "text"), [
    (lambda x: mlc.sort(x), "MLC0785"), (lambda x: x < x, "MLC0785"), (lambda x: mlc.floor(x), "MLC0785"),
    (lambda x: x.max(), "MLC0785"), (lambda x: mlc.linalg.qr(x), "MLC0785"), (lambda x: mlc.round(x), "MLC0785"),
    (lambda x: mlc.imag(x.real), "MLC0788"), (lambda x: mlc.view_as_complex(x.real), "MLC0364"),
    (lambda x: mlc.complex(x.real, x.real.float()), "MLC0789"), (lambda x: mlc.complex(x.real.half(), 1), "MLC07"),
    (lambda x: mlc.tensor([1j], dtype="float32"), "MLC0790"), (lambda x: mlc.ones(3).copy_(x), "MLC0790"),
    (lambda x: _assigned(mlc.ones(3), mlc.tensor([True, False, True]), x.reshape(-1)[:2]), "MLC0790"),
    (lambda x: _assigned(mlc.ones(3), [0, 1], x.reshape(-1)[:2]), "MLC0790"),
    (lambda x: mlc.compile(_assigned)(mlc.ones(3), mlc.tensor([True, False, True]), x.reshape(-1)[:2]), "MLC07"),
    (lambda x: mlc.grad(lambda y: y.sum())(x), "MLC0374"),
    (lambda x: x.requires_grad_().sum().backward(), "MLC0432"), (lambda x: x.real.add_(x), "MLC0439"),
    (lambda x: mlc.fft.rfft(x), "MLC0364")])
def test_refused(call: Any, text: str) -> None:
    with pytest.raises(mlc.Error, match=text):
        call(mlc.tensor(Z))


def test_compiled_functions_are_saved(tmp_path: Path) -> None:
    f = mlc.compile(lambda x: x.conj() * 2, args=[mlc.spec("N", 4, dtype="complex128")])
    mlc.save(f, tmp_path / "f.mlc")
    np.testing.assert_array_equal(np.array(mlc.load(tmp_path / "f.mlc")(mlc.tensor(Z))), Z.conj() * 2)


@NATIVE
def test_on_a_device(device: Any) -> None:
    z = Z.astype(np.complex64)
    x = mlc.tensor(z).cuda().requires_grad_()
    (abs(x) ** 2).sum().backward()
    assert x.grad.device == x.real.device == "cuda:0" and mlc.view_as_real(x).shape == (3, 4, 2)
    np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * z, rtol=1e-6)


def _filled(x: Any, value: Any) -> Any:
    return x.fill_(value)


@pytest.mark.parametrize("write", [
    lambda x, value: _assigned(x, 0, value), lambda x, value: _assigned(x, x == 0, value), _filled],
    ids=["element", "mask", "all"])
@pytest.mark.parametrize("through", [lambda f: f, mlc.compile], ids=["eager", "compiled"])
def test_numbers_without_an_imaginary_part_are_written_to_real_tensors(write: Any, through: Any) -> None:
    for number in (3 + 0j, np.complex128(3)):
        assert through(lambda number=number: write(mlc.zeros(2), number))()[0].item() == 3
    assert through(lambda: write(mlc.zeros(2, dtype=mlc.bool), 0 + 1j))()[0].item() is True
    with pytest.raises(mlc.UserError, match="MLC0790"):
        through(lambda: write(mlc.zeros(2), 3 + 1j))()


@pytest.mark.parametrize("real", [0.0, -0.0, 2.0, -2.0, INF, -INF, math.nan])
def test_roots_of_numbers_with_an_infinite_imaginary_part_are_infinite(real: float) -> None:
    got = mlc.sqrt(mlc.tensor([complex(real, INF), complex(real, -INF)], dtype=mlc.complex128))
    assert got.tolist() == [complex(INF, INF), complex(INF, -INF)]


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_inverse_functions_have_the_digits_of_both_parts(name: str) -> None:
    """Where one part is tiny, too, as sums with the other would lose it; on branch cuts, of both sides."""
    near = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 300.0, 1e-10, -1e-10]
    x = np.array([complex(a, b) for a in near for b in near if name in ("asin", "acos") or (a, b) != (0, 0)])
    got = getattr(mlc, name)(mlc.tensor(x)).numpy()
    with np.errstate(divide="ignore"):
        want = getattr(np, name.replace("a", "arc", 1))(x)
    ok = np.isfinite(want)
    for part in ("real", "imag"):
        np.testing.assert_allclose(getattr(got, part)[ok], getattr(want, part)[ok], rtol=1e-9)
        zero = ok & (getattr(want, part) == 0)
        np.testing.assert_array_equal(np.signbit(getattr(got, part)[zero]), np.signbit(getattr(want, part)[zero]))


def test_the_logarithm_of_a_tiny_number_plus_1_minus_1_is_finite() -> None:
    got = mlc.log1p(mlc.tensor([-1 + 1e-20j], dtype=mlc.complex128)).numpy()
    np.testing.assert_allclose(got, [np.log(1e-20j)], rtol=1e-12)


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh", "log1p", "sqrt"])
def test_gradients_of_inverse_functions_are_pytorchs(name: str) -> None:
    x = np.array([0.3 + 0.2j, -0.7 + 1e-3j, 2.0 - 0.5j, -3.0 + 4.0j, 0.5 + 0j, -0.99 + 1e-3j, 1j / 3])
    given = mlc.tensor(x, requires_grad=True)
    mlc.view_as_real(getattr(mlc, name)(given)).sum().backward()
    theirs = torch.tensor(x, requires_grad=True)
    torch.view_as_real(getattr(torch, name)(theirs)).sum().backward()
    np.testing.assert_allclose(given.grad.numpy(), theirs.grad.numpy(), rtol=1e-6, atol=1e-9)  # type: ignore[union-attr]
