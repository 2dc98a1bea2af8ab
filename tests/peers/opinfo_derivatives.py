"""Derivatives of PyTorch's samples: gradients, gradients of gradients, and tangents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

import mlc
from tests.peers.opinfo_entries import is_determined, theirs, tolerances
from tests.peers.opinfo_names import OTHER_DERIVATIVES, OTHER_GRADIENTS, without_defaults
from tests.peers.opinfo_values import WIDE, Result, as_mlc, called, compare, differentiated, is_tensor, leaves, replaced

KINDS = ("backward", "grad", "gradgrad", "jvp", "dual", "hvp")
FORWARD = ("jvp", "dual")
OTHER = {"dual": "jvp", "hvp": "gradgrad"}
"""The kinds that compute the same in another way."""
EXACT = (1e-6, 1e-7)
"""The tolerances of the kinds that are compared in float64."""
REJECTIONS = (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError, AttributeError)
"""The exceptions of PyTorch for a derivative that it does not have."""


def supported(entry: Any, kind: str) -> bool:
    """Whether the database says that PyTorch has the derivative."""
    return bool(entry.supports_autograd and {"gradgrad": entry.supports_gradgrad, "jvp": entry.supports_forward_ad,
                                             "dual": entry.supports_forward_ad, "hvp": entry.supports_gradgrad}.get(
        kind, True))


class Problem:
    """The differentiation of an entry for a sample: the same primals, cotangents and tangents for both frameworks."""

    def __init__(self, entry: Any, f: Callable[..., Any], sample: Any) -> None:
        self.entry, self.f, self.sample = entry, f, sample
        self.given = ((sample.input, *sample.args), sample.kwargs)
        self.rng = np.random.default_rng(0)
        self.weights: list[Any] = []
        self.directions: list[Any] = []
        holes = iter(lambda: _Hole(), None)
        constant = replaced((self.given[0], without_defaults(self.given[1])), holes, differentiated)
        self.prepared = as_mlc(constant)

    # PyTorch's side
    def primals(self, wide: bool = False) -> list[torch.Tensor]:
        return [x.detach().to(WIDE.get(x.dtype, x.dtype) if wide else x.dtype).requires_grad_()
                for x in filter(differentiated, leaves(self.given))]

    def outputs(self, primals: list[torch.Tensor]) -> list[torch.Tensor]:
        args, keywords = replaced(self.given, iter(primals), differentiated)
        found = [_dense(y) for y in leaves(theirs(self.entry)(*args, **keywords)) if isinstance(y, torch.Tensor)]
        self.weights += [_random(self.rng, y) for y in found[len(self.weights):]]
        return found

    def first(self, primals: list[torch.Tensor], again: bool = False) -> list[torch.Tensor]:
        """The gradient of the weighted sum of the results."""
        outputs = self.outputs(primals)
        roots = [(y, torch.from_numpy(w).to(y.dtype)) for y, w in zip(outputs, self.weights) if y.requires_grad]
        found = torch.autograd.grad([y for y, _ in roots], primals, [w for _, w in roots], allow_unused=True,
                                    create_graph=again)
        return [torch.zeros_like(x) if g is None else _dense(g) for x, g in zip(primals, found)]

    def second(self) -> list[torch.Tensor]:
        """The gradient of the weighted sum of the gradient."""
        primals = self.primals()
        first = self.first(primals, again=True)
        self.directions = [_random(self.rng, g) for g in first]
        roots = [(g, torch.from_numpy(v)) for g, v in zip(first, self.directions) if g.requires_grad]
        if not roots:
            return [torch.zeros_like(x) for x in primals]
        found = torch.autograd.grad([g for g, _ in roots], primals, [v for _, v in roots], allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for x, g in zip(primals, found)]

    def tangents(self) -> list[torch.Tensor]:
        """The results, and the tangents of those that have one."""
        primals = [x.detach() for x in self.primals()]
        self.directions = [_random(self.rng, x) for x in primals]
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(x, torch.from_numpy(v)) for x, v in zip(primals, self.directions)]
            pairs = [forward_ad.unpack_dual(y) for y in self.outputs(duals)]
            return [torch.zeros_like(y) if t is None else t.clone() for y, t in pairs
                    if y.is_floating_point() or y.is_complex()]

    # mlc's side
    def on_primals(self, *xs: Any) -> list[Any]:
        args, keywords = replaced(self.prepared, iter(xs), lambda x: isinstance(x, _Hole))
        return [_dense(y) for y in leaves(self.f(*args, **keywords)) if is_tensor(y)]

    def arguments(self) -> list[Any]:
        return [as_mlc(x) for x in filter(differentiated, leaves(self.given))]

    def by_vjp(self, *primals: Any) -> list[Any]:
        result, pullback = mlc.vjp(self.on_primals, *primals)
        return [_dense(g) for g in pullback([
            mlc.tensor(w) if y.is_floating_point() or y.is_complex() else mlc.zeros_like(y)
            for y, w in zip(result, self.weights)])]

    def by_backward(self, *primals: Any) -> list[Any]:
        primals = tuple(x.detach().requires_grad_() for x in primals)
        roots = self.roots(self.on_primals(*primals), self.weights)
        mlc.autograd.backward(*roots)
        return [mlc.zeros_like(x) if x.grad is None else x.grad for x in primals]

    def by_gradients(self, *primals: Any) -> list[Any]:
        primals = tuple(x.detach().requires_grad_() for x in primals)
        outputs, weights = self.roots(self.on_primals(*primals), self.weights)
        first = mlc.autograd.grad(outputs, primals, weights, create_graph=True, allow_unused=True)
        recorded, directions = self.roots([mlc.zeros_like(x) if g is None else g for x, g in zip(primals, first)],
                                          self.directions)
        if not recorded:
            return [mlc.zeros_like(x) for x in primals]
        found = mlc.autograd.grad(recorded, primals, directions, allow_unused=True)
        return [mlc.zeros_like(x) if g is None else g for x, g in zip(primals, found)]

    def by_jvp(self, *primals: Any) -> list[Any]:
        results, tangents = mlc.jvp(self.on_primals, primals, tuple(map(mlc.tensor, self.directions)))
        return [mlc.zeros_like(y) if t is None else t for y, t in zip(results, tangents)
                if y.is_floating_point() or y.is_complex()]

    def by_dual(self, *primals: Any) -> list[Any]:
        duals = mlc.autograd.forward_ad
        with duals.dual_level():
            xs = [duals.make_dual(x, mlc.tensor(v)) for x, v in zip(primals, self.directions)]
            pairs = [duals.unpack_dual(y) for y in self.on_primals(*xs)]
            return [mlc.zeros_like(y) if t is None else t for y, t in pairs
                    if y.is_floating_point() or y.is_complex()]

    def by_dual_gradients(self, *primals: Any) -> list[Any]:
        """Products of the Hessian, which is symmetric, by tangents of gradients."""
        duals = mlc.autograd.forward_ad
        primals = tuple(x.detach().requires_grad_() for x in primals)
        with duals.dual_level():
            xs = [duals.make_dual(x, mlc.tensor(v)) for x, v in zip(primals, self.directions)]
            outputs, weights = self.roots(self.on_primals(*xs), self.weights)
            found = mlc.autograd.grad(outputs, primals, weights, allow_unused=True)
            pairs = [None if g is None else duals.unpack_dual(g).tangent for g in found]
        return [mlc.zeros_like(x) if t is None else t for x, t in zip(primals, pairs)]

    @staticmethod
    def roots(outputs: list[Any], weights: list[Any]) -> tuple[list[Any], list[Any]]:
        """The tensors that have a history, and their cotangents."""
        pairs = [(y, mlc.tensor(w)) for y, w in zip(outputs, weights) if y.requires_grad]
        return [y for y, _ in pairs], [w for _, w in pairs]


def derivative(entry: Any, f: Callable[..., Any], sample: Any, mode: str, kind: str) -> Result | None:
    """The verdict on a derivative for a sample, None where PyTorch has none to compare: the gradient of a weighted sum
    of the results by mlc.vjp ("grad") or by the recorded graph ("backward"), the gradient of that gradient by the
    recorded graph ("gradgrad"), the tangents by mlc.jvp ("jvp") or of dual tensors ("dual"), or the tangents of the
    gradient by dual tensors ("hvp")."""
    problem = Problem(entry, f, sample)
    try:
        wanted = {"gradgrad": problem.second, "hvp": problem.second, "jvp": problem.tangents,
                  "dual": problem.tangents}.get(
            kind, lambda: problem.first(problem.primals()))()
    except REJECTIONS:
        return None
    own = {"gradgrad": problem.by_gradients, "jvp": problem.by_jvp, "backward": problem.by_backward,
           "dual": problem.by_dual, "hvp": problem.by_dual_gradients}.get(
        kind, problem.by_vjp)
    run = mlc.compile(own) if mode in ("compiled", "recorded") else own
    failed, found = called(lambda: run(*problem.arguments()))
    return failed or compare(found, wanted, EXACT if kind in ("gradgrad", "hvp", *FORWARD) else tolerances(entry),
                             lambda: problem.first(problem.primals(wide=True)),
                             is_determined(entry, sample) and entry.formatted_name not in OTHER_GRADIENTS
                             and (OTHER.get(kind, kind), entry.formatted_name) not in OTHER_DERIVATIVES)


def _dense(x: Any) -> Any:
    return x if x.layout in (torch.strided, mlc.strided) else x.to_dense()


def _random(rng: np.random.Generator, y: torch.Tensor) -> Any:
    """Random numbers of the shape of a tensor and, if it is of floats, of its dtype."""
    wide = y.dtype in (torch.float64, torch.complex128)
    real: Any = rng.normal(size=tuple(y.shape)).astype(np.float64 if wide else np.float32)
    if not y.is_complex():
        return real
    return (real + 1j * rng.normal(size=tuple(y.shape))).astype(np.complex128 if wide else np.complex64)


class _Hole:
    """Marks the place of a differentiated argument."""
