"""Pass split_joint on random programs, and what it is for: backward of compiled functions reads what forward has left.

tests/cases/split_joint has what is saved.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.dialects import func
from mlc.dialects.autodiff import has_cotangent
from mlc.dialects.tensor.composite import Composite
from mlc.dispatch_cache import Code, Specialization
from mlc.frontend.autograd import function_modules
from mlc.frontend.autograd.function_node import Split
from mlc.ir.compilation_lock import compiling
from mlc.ir.diag import Error
from mlc.ir.interp import bind_sizes, run_function
from mlc.ir.sizes import evaluate
from mlc.ir.verify import verify
from mlc.passes import decompose, pipeline, split_joint
from mlc.tools.fuzzing import functions, programs
from tests.arrays import difference
from tests.test_captured_inputs import fast_calls

COUNT = 30


def joint_of(seed: int) -> tuple[Any, list[Any]] | None:
    """A random program with its pullback as a joint function, and arguments; None if nothing in it has a derivative."""
    program = (programs if seed % 2 else functions).generate(seed)
    module = program.module()
    main = next(f for f in func.functions(module) if f.sym_name == "main")
    inputs, results = main.function_type.inputs, main.function_type.results
    wrt = [i for i, t in enumerate(inputs) if has_cotangent(t)]
    present = [i for i, t in enumerate(results) if has_cotangent(t)]
    numbers: dict[str, int] = {}
    bind_sizes([a.type for a in main.args], program.arguments, numbers)
    if not wrt or not present:
        return None
    try:
        joint = function_modules.pullback(module, wrt, present[seed % 3:] or present, keeps_results=True)
        pipeline.build("tensor").run(joint)
        decompose.expand(joint, lambda op: not (isinstance(op, Composite) and op.of_elements))    # of other rounding
    except mlc.UserError as error:                         # no derivative, or a size that depends on data
        assert error.code in ("MLC0130", "MLC0132", "MLC0134"), error
        return None
    main = next(f for f in func.functions(joint) if f.sym_name == "main")
    rng = np.random.default_rng(seed)
    more = [programs.random_array(rng, [evaluate(d, numbers) for d in a.type.shape], a.type.dtype)
            for a in main.args[len(inputs):]]
    return joint, [*program.arguments, *more]


def check(seed: int) -> bool:
    """A joint function means the same when it is split, and both halves do as modules by themselves; whether it was."""
    found = joint_of(seed)
    if found is None:
        return False
    joint, arguments = found
    before = run_function(joint, "main", [np.array(a) for a in arguments])
    split_joint.run(joint)
    verify(joint)
    after = run_function(joint, "main", [np.array(a) for a in arguments])
    for x, y in zip(before, after, strict=True):
        assert not (message := difference(np.asarray(y), np.asarray(x), "bits")), message
    for name in ("main_forward", "main_backward"):
        if any(f.sym_name == name for f in func.functions(joint)):
            half = function_modules.alone(joint, name)
            verify(pipeline.lower(half, "loop"))
    return any(f.sym_name == "main_forward" for f in func.functions(joint))


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part: int) -> None:
    assert sum(check(seed) for seed in range(part * COUNT, (part + 1) * COUNT)) > COUNT // 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_random_programs(part: int) -> None:
    for seed in range(1000 + part * 300, 1300 + part * 300):
        check(seed)


# -- at run time ------------------------------------------------------------------------------------------------------
def split_of(f: Any) -> Split:
    """The two functions of the calls of a compiled function that have been recorded for backward."""
    direct = f.compiled.direct or f.compiled
    found = [split for code in direct.cache.all() for saving in code.saving.values() if saving is not None
             for split in [saving.split]]
    assert len(found) == 1 and found[0] is not None
    split: Split = found[0]
    return split


def count(module: Any, name: str) -> int:
    return sum(op.name == name for op in module.walk())


def test_backward_computes_no_product_again() -> None:
    f = mlc.compile(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    f(mlc.ones(2, 4)).sum().backward()
    split = split_of(f)
    assert (count(split.forward, "tensor.dot_general"), count(split.backward, "tensor.dot_general")) == (2, 3)
    assert count(split.backward, "tensor.relu") == 0


def test_what_is_left_is_reused_and_not_shared() -> None:
    m = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))
    f, x = mlc.compile(m), mlc.sin(mlc.arange(640.0)).reshape(10, 64)
    places = list[Any]()
    for _ in range(4):
        y = f(x)
        places.append([a.__array_interface__["data"][0] for a in y.grad_fn.kept])
        y.sum().backward()
    assert places[2] == places[3]
    y = f(x)
    held = [(a, a.copy()) for a in y.grad_fn.kept]         # which nobody writes to
    y.sum().backward()
    one, two = f(x), f(-x)                                 # both at once
    assert all(np.array_equal(a, b) for a, b in held)
    alone = [mlc.autograd.grad(m(a).sum(), m[0].weight)[0] for a in (x, -x)]
    for y, expected in ((two, alone[1]), (one, alone[0])):
        assert mlc.allclose(mlc.autograd.grad(y.sum(), m[0].weight)[0], expected, atol=1e-5)


def test_calls_without_backward_leave_nothing() -> None:
    f = mlc.compile(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)))
    f(mlc.ones(2, 4)).sum().backward()
    with mlc.no_grad():
        for _ in range(2):
            f(mlc.ones(2, 4))
        before = fast_calls(f)
        assert not f(mlc.ones(2, 4)).requires_grad and fast_calls(f) == before + 1
    assert [s.partition(" -> ")[2] for s in f.compiled.signatures] == ["tensor<2x3xf32>"]


def test_a_function_with_derivatives_leaves_nothing() -> None:
    """Such as a training step, whose parameters require gradients: it would leave as much again as it computes."""
    def f(w: Any, x: Any) -> Any:
        return mlc.grad(lambda w: mlc.sin(x @ w).sum())(w)

    w, x = mlc.randn(3, 2).requires_grad_(), mlc.randn(4, 3)
    found = mlc.compile(f)(w, x)
    assert found.grad_fn.kept is None
    assert mlc.allclose(mlc.autograd.grad(found.sum(), w)[0], mlc.autograd.grad(f(w, x).sum(), w)[0], atol=1e-5)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "two results": lambda x, w: (mlc.tanh(x @ w), (x @ w).exp()),
    "a result that is read": lambda x, w: (x @ w).exp(),
    "an index": lambda x, w: (x @ w)[[2, 0, 2]],
    "a maximum": lambda x, w: (x @ w).max(0).values,
    "a softmax": lambda x, w: ((x @ w).softmax(-1), x * x),
    "attention": lambda x, w: nn.functional.scaled_dot_product_attention(x @ w, x, x @ w),
    "a loop": lambda x, w: mlc.fori_loop(0, 3, lambda i, y: mlc.sin(y @ w), x),
    "a branch": lambda x, w: mlc.cond(x.sum() > 0, lambda: (x @ w).exp(), lambda: x @ w),
    "a checkpoint": lambda x, w: mlc.checkpoint(lambda a: mlc.sin(a @ w).exp())(x) @ w,
    "a norm": lambda x, w: nn.functional.layer_norm(x @ w, (4,)) @ w,
    "bfloat16": lambda x, w: nn.functional.gelu(x.bfloat16() @ w.bfloat16()).float(),
    "a view": lambda x, w: (x @ w).T.reshape(2, 8)[:, 1::2],
    "a size that depends on data": lambda x, w: (x @ w)[(x > 0).nonzero()[:, 0]].sum(0),
    "a new result and an argument": lambda x, w: (x, x @ w),
}


USED = {"first": (0,), "last": (-1,), "all": (0, -1)}
CASES = [pytest.param(name, USED[used], dynamic, id=f"{name}-{used}-{'dynamic' if dynamic else 'static'}",
                      marks=[] if used == "all" and (not dynamic or i % 4 == 0) else pytest.mark.slow)
         for i, name in enumerate(FUNCTIONS) for used in USED for dynamic in (False, True)]


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize(("name", "used", "dynamic"), CASES)
def test_gradients_are_those_of_the_function(name: str, used: tuple[int, ...], dynamic: bool) -> None:
    f = FUNCTIONS[name]
    compiled = mlc.compile(f, dynamic=dynamic)

    def gradients(f: Callable[..., Any], wanted: tuple[bool, bool], twice: bool) -> list[Any]:
        x, w = (mlc.sin(mlc.arange(16.0) + k).reshape(4, 4).requires_grad_(want) for k, want in enumerate(wanted))
        out = f(x, w)
        outs = [out] if isinstance(out, mlc.Tensor) else list(out)
        roots = [(outs[i] * (i + 2)).sum() for i in used if outs[i].requires_grad]
        leaves = [t for t in (x, w) if t.requires_grad]
        if not roots:
            return []
        first = mlc.autograd.grad(roots, leaves, retain_graph=True, create_graph=twice, allow_unused=True)
        if not twice:
            again = mlc.autograd.grad(roots, leaves, allow_unused=True)
            assert all((a is None and b is None) or mlc.equal(a, b) for a, b in zip(first, again))
            return [*first]
        moved = [(g * g).sum() for g in first if g is not None and g.requires_grad]
        second = mlc.autograd.grad(moved, leaves, allow_unused=True)
        return [mlc.zeros(4, 4) if g is None else g for g in second]

    for wanted, twice in (((True, True), False), ((True, True), True), ((False, True), False), ((True, True), False),
                          ((True, False), False)):
        for got, want in zip(gradients(compiled, wanted, twice), gradients(f, wanted, twice), strict=True):
            assert (got is None) == (want is None)
            if want is not None:
                assert mlc.allclose(got, want, rtol=1e-4, atol=1e-4), (wanted, twice)


def test_results_that_are_changed_do_not_change_the_gradient() -> None:
    w = mlc.ones(3, requires_grad=True)
    f = mlc.compile(lambda x: (x * w).sin().exp())
    for _ in range(3):
        y = f(mlc.arange(3.0))
        expected = (mlc.arange(3.0) * mlc.arange(3.0).cos() * y.detach()).clone()
        total = y.sum()
        with mlc.no_grad():
            y.mul_(0)
        gradient, = mlc.autograd.grad(total, w)
        assert mlc.allclose(gradient, expected)


def test_hooks_see_what_is_left() -> None:
    m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    f, x = mlc.compile(m), mlc.ones(2, 4)
    for _ in range(3):
        f(x).sum().backward()
    wanted = [p.grad / 3 for p in m.parameters() if p.grad is not None]
    m.zero_grad()
    packed: list[Any] = []

    def pack(t: mlc.Tensor) -> mlc.Tensor:
        packed.append(t.shape)
        return t.clone()

    with mlc.autograd.graph.saved_tensors_hooks(pack, lambda t: t.clone()):
        y = f(x)
    y.sum().backward()
    assert packed.count((2, 8)) == 2                       # the activations, and their mask
    f(x)                                                   # which does not write to what hooks have made
    assert all(mlc.allclose(p.grad, g) for p, g in zip(m.parameters(), wanted, strict=True))


def test_what_is_left_is_dropped_after_backward() -> None:
    f = mlc.compile(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)))
    for _ in range(3):
        f(mlc.ones(2, 4))
    y = f(mlc.ones(2, 4))
    y.sum().backward()
    with pytest.raises(mlc.UserError, match="MLC0431"):
        y.sum().backward()


def test_hooks_may_keep_what_they_are_given() -> None:
    w = mlc.ones(3, requires_grad=True)
    f = mlc.compile(lambda x: (x * w).exp())
    with mlc.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = f(mlc.arange(3.0))
    total, expected = y.sum(), (mlc.arange(3.0) * y.detach()).clone()
    with mlc.no_grad():
        y.mul_(0)
    gradient, = mlc.autograd.grad(total, w)
    assert mlc.allclose(gradient, expected)


def test_checkpoints_of_compiled_modules() -> None:
    m = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    f, x = mlc.compile(m), mlc.sin(mlc.arange(30.0)).reshape(5, 6)
    for _ in range(3):
        f(x)
    a, b = (x.clone().requires_grad_() for _ in range(2))
    for _ in range(2):
        mlc.utils.checkpoint.checkpoint(f, a, use_reentrant=False).sum().backward()
        m(b).sum().backward()
    assert mlc.allclose(a.grad, b.grad, atol=1e-5)


def test_a_function_without_a_derivative_can_be_called() -> None:
    f = mlc.compile(lambda a: mlc.linalg.qr(a, mode="complete")[0])
    y = f(mlc.sin(mlc.arange(15.0)).reshape(5, 3).requires_grad_())
    with pytest.raises(Error, match="MLC0130"):
        y.sum().backward()


def test_complex_results_are_complex() -> None:
    f = mlc.compile(lambda a: mlc.fft.fft(a @ a))
    x = mlc.ones(4, 4, requires_grad=True)
    for _ in range(3):
        y = f(x)
        assert y.dtype == mlc.complex64 and y.shape == (4, 4)
    gradient, = mlc.autograd.grad(y.abs().sum(), x)
    expected, = mlc.autograd.grad(mlc.fft.fft(x @ x).abs().sum(), x)
    assert mlc.allclose(gradient, expected, atol=1e-4)


def test_each_set_of_arguments_that_require_gradients_has_its_code() -> None:
    f = mlc.compile(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)))
    for wanted in (True, False, True, False, False, True, True, False):
        y = f(mlc.ones(2, 4).requires_grad_(wanted))
        assert y.grad_fn.split is not None
    before = fast_calls(f)
    for wanted in (True, False):
        f(mlc.ones(2, 4).requires_grad_(wanted))
    assert fast_calls(f) == before + 2


def test_code_is_made_under_one_lock() -> None:
    """A thread that compiles asks for code, while another one waits to compile."""
    one, two = (Specialization(mock.Mock()) for _ in range(2))
    done = threading.Event()

    def compiles() -> None:
        with compiling:
            threading.Thread(target=lambda: one.code, daemon=True).start()
            time.sleep(0.1)                                # until it waits
            assert two.code == Code()
        done.set()

    threading.Thread(target=compiles, daemon=True).start()
    assert done.wait(20)
