"""Complex tensors: elementary functions on branch cuts, products, and their derivatives."""

import numpy as np

import mlc


def elementary(z):
    return [f(z) for f in (mlc.sqrt, mlc.exp, mlc.log, mlc.sin, mlc.tanh, mlc.asin, mlc.acosh, mlc.atan, mlc.abs,
                           mlc.angle)]


def products(a, b):
    return a @ b, a * b.T, a.prod(1), a.cumprod(0), (a.sum(0) / b[:, 0]).conj(), mlc.reciprocal(a)


def energy(re, im):
    z = mlc.complex(re, im)
    return ((z @ z).exp() * z.sqrt()).abs().sum()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    parts = (-2.0, -0.5, -0.0, 0.0, 0.5, 3.0)
    z = np.array([complex(a, b) for a in parts for b in parts])
    mlc.compile(elementary)(z)
    mlc.compile(elementary)(z[::2].astype(np.complex64))
    a, b = (rng.standard_normal((5, 5)) + 1j * rng.standard_normal((5, 5)) for _ in range(2))
    mlc.compile(products)(a, b)
    mlc.compile(products)(a[:3, :3].astype(np.complex64), b[:3, :3].astype(np.complex64))
    mlc.compile(mlc.grad(energy, argnums=(0, 1)))(*rng.uniform(0.1, 0.5, (2, 3, 3)))
