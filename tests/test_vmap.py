"""vmap against Python loops: axes, containers, loops and conditions, nested with derivatives; Jacobians."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlc
from mlc.dialects import autodiff, func, tensor
from mlc.dialects.builtin import module as empty_module
from mlc.ir.core import Op, Value, at_end
from mlc.ir.diag import UserError
from mlc.ir.interp import Interpreter, bind_sizes
from mlc.ir.parser import parse_module
from mlc.ir.passes import find_pass
from mlc.ir.sizes import Dim, evaluate, sym
from mlc.ir.types import TensorType, f64
from mlc.ir.verify import verify
from mlc.tools.fuzzing import functions, programs
from tests.arrays import difference
from tests.public_case import thinned
from tests.timing import assert_linear, seconds_by_count

pytestmark = pytest.mark.usefixtures("interpreted")

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)
X, W = RNG.standard_normal((5, 3)), RNG.standard_normal((3, 3))
TRIP_COUNTS = np.array([0, 4, 1, 7, 2])


def element(x: Array, axis: int | None, i: int) -> Array:
    return x if axis is None else np.take(x, i, axis)


def looped(f: Callable[..., Any], args: tuple[Array, ...], axes: tuple[int | None, ...]) -> Array:
    """f of each batch element in a loop."""
    count = next(x.shape[a] for x, a in zip(args, axes) if a is not None)
    compiled = mlc.compile(f)
    return np.stack([compiled(*(element(x, a, i) for x, a in zip(args, axes))).numpy() for i in range(count)])


def check(f: Callable[..., Any], *args: Array, axes: tuple[int | None, ...] | None = None, rtol: float = 1e-12) -> None:
    """vmap of f is the loop, compiled, and in the interpreter before and after it is expanded."""
    axes = axes or (0,) * len(args)
    want = looped(f, args, axes)
    mapped = mlc.vmap(f, in_dims=axes)
    np.testing.assert_allclose(mlc.compile(mapped)(*args).numpy(), want, rtol=rtol, atol=1e-12)
    recorded = parse_module(mlc.lower(mapped, args, level="trace").to_text())
    for expanded in (False, True):
        if expanded:
            find_pass("grad").run(recorded)
            verify(recorded)
        got, = Interpreter(recorded).call("main", args)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-12)


# -- axes and containers ----------------------------------------------------------------------------------------------
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_axes(data: st.DataObject) -> None:
    """Every axis of every argument, from the front or from the end, and every place of the result's."""
    batch_size = data.draw(st.integers(0, 3))
    shapes = [tuple(data.draw(st.lists(st.integers(1, 3), max_size=2))) for _ in range(2)]
    shape = np.broadcast_shapes(*shapes) if _broadcast(shapes) else None
    if shape is None:
        shapes[1] = shapes[0]
    axes: list[int | None] = [data.draw(st.integers(-len(s) - 1, len(s))) for s in shapes]
    which = data.draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    axes = [a if own else None for a, own in zip(axes, which)]
    args = [RNG.standard_normal(s if a is None else np.insert(s, a % (len(s) + 1), batch_size).astype(int))
            for s, a in zip(shapes, axes)]
    out = data.draw(st.integers(-len(np.broadcast_shapes(*shapes)) - 1, len(np.broadcast_shapes(*shapes))))
    got = mlc.vmap(lambda x, y: x * y - y, in_dims=tuple(axes), out_dims=out)(*args).numpy()
    rows = [element(args[0], axes[0], i) * element(args[1], axes[1], i) - element(args[1], axes[1], i)
            for i in range(batch_size)]
    want = np.stack(rows, out) if rows else np.zeros(np.insert(np.broadcast_shapes(*shapes), out % (
        len(np.broadcast_shapes(*shapes)) + 1), 0).astype(int))
    np.testing.assert_array_equal(got, want)


def _broadcast(shapes: list[tuple[int, ...]]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def test_containers() -> None:
    """Axes for whole containers and for parts of them; keyword arguments, which all share; results in containers."""
    def f(params: dict[str, Any], x: Any, *, scale: Any) -> dict[str, Any]:
        y = x @ params["w"] + params["b"]
        return {"y": y * scale, "twice": (y, params["w"] * 2), "name": "f", "one": 1.0}

    params = {"w": W, "b": X}
    scale = np.arange(3.0)
    run: Any
    for run in (lambda g: g, mlc.compile):
        out = run(mlc.vmap(f, in_dims=({"w": None, "b": 0}, 0), out_dims={"y": 1, "twice": (0, None), "name": None,
                                                                         "one": 0}))(params, X, scale=scale)
        want = X @ W + X
        np.testing.assert_allclose(out["y"].numpy(), (want * scale).T, rtol=1e-12)
        np.testing.assert_allclose(out["twice"][0].numpy(), want, rtol=1e-12)
        np.testing.assert_array_equal(out["twice"][1].numpy(), W * 2)
        assert out["name"] == "f" and out["one"].tolist() == [1.0] * 5


def test_modules() -> None:
    """A module is an argument like others: shared by the batch elements, or batched."""
    model = mlc.nn.Linear(3, 2)
    x = X.astype(np.float32)
    got = mlc.vmap(lambda m, x: m(x), in_dims=(None, 0))(model, x)
    np.testing.assert_allclose(got.numpy(), model(x).numpy(), rtol=1e-6)
    many = mlc.frontend.tree.map(lambda p: mlc.stack([p * k for k in range(5)]), model)
    got = mlc.vmap(lambda m, x: m(x))(many, x)
    np.testing.assert_allclose(got.numpy(), model(x).numpy() * np.arange(5)[:, None], rtol=1e-5, atol=1e-6)
    per_example = mlc.vmap(mlc.grad(lambda m, x: (m(x) ** 2).sum()), in_dims=(None, 0))(model, x)
    assert per_example.weight.shape == (5, 2, 3)
    np.testing.assert_allclose(per_example.weight.numpy().sum(0),
                               mlc.grad(lambda m, x: (m(x) ** 2).sum())(model, x).weight.numpy(), rtol=1e-5)


def test_each_batch_element_draws_by_its_own_key() -> None:
    """Each batch element draws what its key draws alone, to the bit; a shared key gives all the same."""
    keys = mlc.random.split(mlc.random.key(3), 4)
    draws: list[Callable[[Any], Any]] = [
        lambda k: mlc.random.normal(k, (3, 2)), lambda k: mlc.random.bits(k, (5,), "uint64"),
        lambda k: mlc.random.uniform(mlc.random.fold_in(mlc.random.split(k)[1], 7), (2,))]
    for draw in draws:
        alone = np.stack([draw(k).numpy() for k in keys])
        np.testing.assert_array_equal(mlc.compile(mlc.vmap(draw))(keys).numpy(), alone)
    both = mlc.vmap(lambda x, k: x + mlc.random.uniform(k, ()), in_dims=(0, None))(np.zeros(3, np.float32), keys[0])
    assert len(set(both.tolist())) == 1


def test_sizes_are_symbols() -> None:
    """One compilation serves every batch size, 0 and 1 included."""
    f = mlc.compile(mlc.vmap(lambda x, n: mlc.fori_loop(0, n, lambda i, y: mlc.sin(y) + i, x).sum()),
                    args=[mlc.spec("B", "N", dtype="float64"), mlc.spec("B", dtype="int64")])
    for count in (0, 1, 5):
        want = [_iterated(X[i], TRIP_COUNTS[i]).sum() for i in range(count)]
        np.testing.assert_allclose(f(X[:count], TRIP_COUNTS[:count]).numpy(), want, rtol=1e-12)


def _iterated(x: Array, n: int) -> Array:
    for i in range(n):
        x = np.sin(x) + i
    return x


# -- loops and conditions ---------------------------------------------------------------------------------------------
def if_(x: Any, n: Any) -> Any:
    return mlc.cond(x.sum() > 0, lambda: mlc.sqrt(x.sum()) * x, lambda: x @ W - n)


def for_(x: Any, n: Any) -> Any:
    return mlc.fori_loop(0, n, lambda i, y: mlc.sin(y) @ W + i, x)


def while_(x: Any, n: Any) -> Any:
    return mlc.while_loop(lambda c: (c[0] * c[0]).sum() < 30, lambda c: (c[0] * 1.5 + x / (c[1] + 1), c[1] + 1),
                          (x, 0))[0]


def if_in_while(x: Any, n: Any) -> Any:
    while n > 0:
        if x.sum() > 0:
            x = x / 2 - mlc.tanh(x @ W)
        else:
            x = x * x + 0.1
        n = n - 1
    return x


def while_in_if_in_for(x: Any, n: Any) -> Any:
    def turn(i: Any, y: Any) -> Any:
        return mlc.cond(y.sum() > i, lambda: y / 3, lambda: mlc.while_loop(
            lambda z: z.sum() <= i, lambda z: z * z + 1, y))
    return mlc.fori_loop(0, n, turn, x)


def scan_(x: Any, n: Any) -> Any:
    def turn(carry: Any, row: Any) -> Any:
        carry = mlc.tanh(carry @ W + row * x)
        return carry, carry * n
    return mlc.scan(turn, x, mlc.tensor(X))[1]


CONTROL = [if_, for_, while_, if_in_while, while_in_if_in_for, scan_]
ids: dict[str, Any] = {"ids": lambda f: f.__name__.strip("_")}


@pytest.mark.parametrize("f", CONTROL, **ids)
def test_control(f: Callable[..., Any]) -> None:
    """Batch elements with different trip counts and branches."""
    check(f, X, TRIP_COUNTS)


@pytest.mark.parametrize("f", CONTROL, **ids)
def test_control_flow_with_a_batched_trip_count_only(f: Callable[..., Any]) -> None:
    check(f, X[1], TRIP_COUNTS, axes=(None, 0))


@pytest.mark.parametrize("f", CONTROL, **ids)
def test_nested_vmap(f: Callable[..., Any]) -> None:
    """vmap in vmap, each argument mapped by one of them: predicates of two axes."""
    want = np.stack([[mlc.compile(f)(x, n).numpy() for n in TRIP_COUNTS[:3]] for x in X[:2]])
    both = mlc.vmap(lambda x, n: mlc.vmap(lambda k: f(x, k))(n), in_dims=(0, None))
    np.testing.assert_allclose(mlc.compile(both)(X[:2], TRIP_COUNTS[:3]).numpy(), want, rtol=1e-11)


SMOOTH = [if_, for_, while_, if_in_while, scan_]


@pytest.mark.parametrize("f", SMOOTH, **ids)
def test_vmap_of_grad(f: Callable[..., Any]) -> None:
    check(mlc.grad(lambda x, n: (f(x, n) ** 2).sum()), X / 2, TRIP_COUNTS, rtol=1e-9)


@pytest.mark.parametrize("f", SMOOTH, **ids)
def test_grad_of_vmap(f: Callable[..., Any]) -> None:
    """Also with respect to shared operands."""
    def loss(x: Any, n: Any) -> Any:
        return (f(x, n) ** 2).sum()

    compiled = mlc.compile(mlc.grad(loss))
    rows = [compiled(x, n).numpy() for x, n in zip(X / 2, TRIP_COUNTS)]
    got = mlc.compile(mlc.grad(lambda x, n: mlc.vmap(loss)(x, n).sum()))(X / 2, TRIP_COUNTS)
    np.testing.assert_allclose(got.numpy(), rows, rtol=1e-9, atol=1e-12)
    shared = [compiled(X[1] / 2, n).numpy() for n in TRIP_COUNTS]
    got = mlc.compile(mlc.grad(lambda x, n: mlc.vmap(loss, in_dims=(None, 0))(x, n).sum()))(X[1] / 2, TRIP_COUNTS)
    np.testing.assert_allclose(got.numpy(), np.sum(shared, 0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("f", SMOOTH, **ids)
def test_vmap_and_jvp(f: Callable[..., Any]) -> None:
    def push(x: Any, n: Any) -> Any:
        return mlc.jvp(lambda z: f(z, n), (x,), (x * 0 + 1,))[1]

    check(push, X / 2, TRIP_COUNTS, rtol=1e-9)
    want = looped(push, (X / 2, TRIP_COUNTS), (0, 0))
    got = mlc.compile(lambda x, n: mlc.jvp(lambda z: mlc.vmap(f)(z, n), (x,), (np.ones_like(X),))[1])(
        X / 2, TRIP_COUNTS)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-12)


def test_a_stopped_batch_element_adds_no_nan_to_gradients() -> None:
    """Element 0 stops at x = 1, where sqrt(x - 1) has no finite derivative: it contributes nothing, rather than NaN."""
    def f(x: Any, n: Any) -> Any:
        return mlc.fori_loop(0, n, lambda i, y: mlc.sqrt(y - 1), x)

    x, n = np.array([2.0, 10.0]), np.array([1, 2])
    want = [0.5, 0.5 / 3 * 0.5 / np.sqrt(2)]
    for g in (mlc.vmap(mlc.grad(f)), mlc.grad(lambda x, n: mlc.vmap(f)(x, n).sum()),
              lambda x, n: mlc.jvp(lambda z: mlc.vmap(f)(z, n), (x,), (np.ones(2),))[1]):
        np.testing.assert_allclose(mlc.compile(g)(x, n).numpy(), want, rtol=1e-12)
    branch = mlc.vmap(mlc.grad(lambda x: mlc.cond(x > 0, lambda: mlc.sqrt(x), lambda: -x)))
    assert branch(np.array([4.0, 0.0, -1.0])).tolist() == [0.25, -1.0, -1.0]


def test_stopped_batch_elements_check_no_indices() -> None:
    """A position is out of range only in a batch element that uses it; one that is used is still reported."""
    table = mlc.tensor(X)

    def f(x: Any, n: Any) -> Any:
        return mlc.fori_loop(0, n, lambda i, y: y + table[i] * table[4 - i], x)

    check(f, X, np.array([5, 0, 3, 1, 2]))
    check(lambda x, i: mlc.cond(i < 5, lambda: x + table[i], lambda: -x), X, np.array([0, 9, 4, -1 + 6, 7]))
    with pytest.raises(mlc.Error, match="out of range"):
        mlc.vmap(f)(X, np.array([1, 6, 0, 0, 0]))


def test_dynamic_slices_with_batched_starts() -> None:
    def f(x: Any, n: Any) -> Any:
        return mlc.fori_loop(0, n, lambda i, y: mlc.dynamic_update_slice(y, y[:1] + n, [(i + n) % 3]), x)

    check(f, X, TRIP_COUNTS)
    check(mlc.grad(lambda x, n: (f(x, n) ** 2).sum()), X, TRIP_COUNTS)
    matrix = RNG.standard_normal((4, 5))
    check(lambda i, j: mlc.dynamic_slice(matrix, [i, j], [2, 3]), np.array([0, 2, 9]), np.array([1, -4, 1]))
    check(lambda i, u: mlc.dynamic_update_slice(matrix, u, [i, 1]), np.array([0, 3]), RNG.standard_normal((2, 2, 3)))


def rnn(w: Any, x: Any, n: Any) -> Any:
    return mlc.fori_loop(0, n, lambda i, h: mlc.tanh(h @ w["cell"] + w["table"][n - i]), x).sum()


def layers(w: Any, x: Any, n: Any) -> Any:
    """The same by modules in modules: calls of functions."""
    with mlc.nn.init.shapes_only():
        cell = mlc.nn.Sequential(mlc.nn.Linear(3, 3, bias=False), mlc.nn.Tanh())
    cell[0].weight = mlc.tensor(w["cell"]).T
    return mlc.fori_loop(0, n, lambda i, h: cell(h) + w["table"][n - i] * 0.1, x).sum()


@pytest.mark.parametrize("f", [rnn, layers], **ids)
def test_shared_weights_are_not_batched(f: Callable[..., Any]) -> None:
    """Neither what a batched loop computes nor what its derivative keeps has a matrix or a table per batch element."""
    def total(w: Any, x: Any, n: Any) -> Any:
        return mlc.vmap(f, in_dims=(None, 0, 0))(w, x, n).sum()

    w = {"cell": W, "table": RNG.standard_normal((8, 3))}
    for g in (total, mlc.grad(total)):
        text = mlc.lower(g, [w, X, TRIP_COUNTS], level="tensor").to_text()
        assert "5x3xf64" in text and not re.search(r"5x[38]x3xf64|5x3x[38]xf64", text)
    got = mlc.grad(total)(w, X, TRIP_COUNTS)
    each = [mlc.grad(f)(w, x, n) for x, n in zip(X, TRIP_COUNTS)]
    for name in w:
        np.testing.assert_allclose(got[name].numpy(), sum(e[name].numpy() for e in each), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("f", [if_, for_, while_, if_in_while], **ids)
def test_batches_of_one_and_none(f: Callable[..., Any]) -> None:
    check(f, X[:1], TRIP_COUNTS[1:2])
    loss = mlc.grad(lambda x, n: mlc.vmap(f)(x, n).sum())
    for g in (mlc.vmap(f), loss):
        assert g(X[:0], TRIP_COUNTS[:0]).shape == (0, 3)


@pytest.mark.parametrize("bounds", [lambda n: (5, n), lambda n: (n, -5), lambda n: (n, n + 2)])
def test_loop_bounds_without_active_batch_elements(bounds: Callable[[Any], Any]) -> None:
    """The greatest of no upper bounds, less the lower one, is not a large trip count."""
    def f(x: Any, n: Any) -> Any:
        low, high = bounds(n)
        chosen = mlc.cond(x.sum() > 100, lambda: mlc.fori_loop(low, high, lambda i, y: mlc.sin(y) + i, x), lambda: -x)
        return (chosen * mlc.fori_loop(low, high, lambda i, y: mlc.cos(y) + i, x)).sum()

    types = [mlc.spec("B", 3, dtype="float64"), mlc.spec("B", dtype="int64")]
    compiled = mlc.compile(mlc.vmap(mlc.grad(f)), args=types)
    for count in (0, 2, 5):
        got = compiled(X[:count], TRIP_COUNTS[:count] * 3 - 9).numpy()
        want = [mlc.grad(f)(x, n).numpy() for x, n in zip(X[:count], TRIP_COUNTS[:count] * 3 - 9)]
        np.testing.assert_allclose(got, np.reshape(want, (count, 3)), rtol=1e-10)


# -- Jacobians --------------------------------------------------------------------------------------------------------
def outputs(x: Any, w: Any) -> dict[str, Any]:
    return {"a": mlc.tanh(x @ w), "b": (x * x * x).sum()}


@pytest.mark.parametrize("jacobian", [mlc.jacrev, mlc.jacfwd])
def test_jacobians(jacobian: Callable[..., Any]) -> None:
    """Shapes (*result, *argument); against differences."""
    x, w = X[0], W
    run: Any
    for run in (lambda g: g, mlc.compile):
        found = run(jacobian(outputs, argnums=(0, 1)))(x, w)
        assert [d.shape for d in found["a"]] == [(3, 3), (3, 3, 3)] and [d.shape for d in found["b"]] == [(3,), (3, 3)]
    h = 1e-6
    for k in range(3):
        step = np.eye(3)[k] * h
        up, down = (outputs(mlc.tensor(x + s * step), mlc.tensor(w)) for s in (1, -1))
        for name in ("a", "b"):
            want = (up[name].numpy() - down[name].numpy()) / (2 * h)
            np.testing.assert_allclose(found[name][0].numpy()[..., k], want, rtol=1e-6, atol=1e-8)
    with pytest.raises(UserError) as error:
        jacobian(lambda n: n * 2.0)(np.arange(3)[0])
    assert error.value.message == "n is tensor<i64>, which has no derivative" and error.value.code == "MLC0373"
    with pytest.raises(UserError) as error:
        jacobian(lambda x: mlc.argsort(x))(x)
    assert error.value.message == "a result is tensor<3xi64>, which has no derivative"


def test_hessian() -> None:
    def f(x: Any) -> Any:
        while (x * x).sum() > 1:
            x = x * 0.6 + mlc.sin(x) * 0.1
        return (x ** 3).sum() * x[0]

    found = mlc.compile(mlc.hessian(f))(X[1]).numpy()
    columns = []
    for k in range(3):
        step = np.eye(3)[k] * 1e-5
        up, down = (mlc.grad(f)(X[1] + s * step).numpy() for s in (1, -1))
        columns.append((up - down) / 2e-5)
    np.testing.assert_allclose(found, np.stack(columns, 1), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(mlc.jacrev(mlc.jacfwd(f))(X[1]).numpy(), found, rtol=1e-10, atol=1e-12)
    tree = mlc.hessian(lambda p: (p["a"] * p["b"]).sum())({"a": X[0], "b": X[1]})
    np.testing.assert_array_equal(tree["a"]["b"].numpy(), np.eye(3))


# -- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("make", "code", "message"), [
    (lambda: mlc.vmap(lambda x, y: x + y)(X, X[:4]), "MLC0401",
     r"the mapped axes have different sizes: 5 \(axis 0 of x\), 4 \(axis 0 of y\)"),
    (lambda: mlc.vmap(lambda p: p["a"] + p["b"], in_dims=({"a": 1, "b": 0},))({"a": X, "b": X}), "MLC0401",
     r"3 \(axis 1 of p\['a'\]\), 5 \(axis 0 of p\['b'\]\)"),
    (lambda: mlc.vmap(lambda x, y: x + y)(X, 2.0), "MLC0400", "y has 0 dimensions, and is to be mapped over axis 0"),
    (lambda: mlc.vmap(lambda x: x, in_dims=2)(X), "MLC0400", "x has 2 dimensions, and is to be mapped over axis 2"),
    (lambda: mlc.vmap(lambda x: x, in_dims=None)(X), "MLC0400", "no argument is mapped over"),
    (lambda: mlc.vmap(lambda x, y: x, in_dims=(0,))(X, X), "MLC0400", "in_dims has 1 entries, but there are 2"),
    (lambda: mlc.vmap(lambda p: p["a"], in_dims=({"b": 0},))({"a": X}), "MLC0400", "in_dims for argument 0 is"),
    (lambda: mlc.vmap(lambda x: x, in_dims=("0",))(X), "MLC0400", "is no axis"),
    (lambda: mlc.vmap(lambda x: x, out_dims=3)(X), "MLC0400", "a result has 2 dimensions with that of vmap"),
    (lambda: mlc.vmap(lambda x: x, out_dims=None)(X), "MLC0139", "differs between batch elements"),
], ids=lambda v: v if isinstance(v, str) and v.startswith("MLC") else "")
def test_refused(make: Callable[[], Any], code: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        make()
    assert re.search(message, error.value.message) and error.value.code == code and error.value.loc.file == __file__


# -- random programs --------------------------------------------------------------------------------------------------
def check_program(program: programs.Program) -> None:
    """A random program batched over some of its arguments, once and twice, against loops."""
    rng, inside = np.random.default_rng(program.seed), program.module()
    one = next(f for f in func.functions(inside) if f.sym_name == "main")
    sizes: dict[str, int] = {}
    bind_sizes([a.type for a in one.args], program.arguments, sizes)
    sizes = {name: min(n, 5) for name, n in sizes.items()} | {"L": int(rng.integers(0, 3))}
    counts: list[Dim] = [sym("L"), int(rng.integers(1, 4))]
    for level, batch_size in enumerate(counts):
        batched = [i for i in range(len(one.args)) if rng.integers(2)] or [0]
        many = func.function(f"many_{level}", [a.type.with_shape((batch_size, *a.type.shape)) if i in batched
                                               else a.type
                                               for i, a in enumerate(one.args)])
        inside.body.block.insert(many)
        with at_end(many.block):
            func.Return(tuple(autodiff.vmap(one, many.args, batched, batch_size)))
        many.update_type()
        one = many
    verify(inside)
    args = [programs.random_array(rng, [evaluate(d, sizes) for d in a.type.shape], a.type.dtype) for a in one.args]
    wanted = Interpreter(inside).call("many_1", args)
    find_pass("grad").run(inside)
    verify(inside)
    for got, want in zip(Interpreter(inside).call("many_1", args), wanted, strict=True):
        assert difference(got, want, 1e-2 if want.dtype.kind not in "biu" else None) is None, program.seed


@pytest.mark.parametrize("seeds", thinned([range(i, i + 25) for i in range(0, 100, 25)], 4), ids=str)
def test_random_programs(seeds: range) -> None:
    for seed in seeds:
        for generate in (programs.generate, functions.generate):
            if (program := generate(seed)).arguments:
                check_program(program)


# -- operations without a rule, and deep modules ----------------------------------------------------------------------
class Twice(tensor.base.TensorOp, name="test.twice"):
    """result[i] = 2 * x[i] + y, with no batching rule"""

    x: Value
    y: Value
    checked_operand = None

    def infer(self) -> TensorType:
        return self.tensors()[0]

    def ref(self, x: Any, y: Any) -> Array:
        return np.asarray(2 * x + y.sum())


def test_an_operation_without_a_batching_rule_becomes_a_loop() -> None:
    inside, one = empty_module(), func.function("one", [TensorType((3,), f64), TensorType((2,), f64)])
    inside.body.block.insert(one)
    with at_end(one.block):
        func.Return((Twice(*one.args).result,))
    one.update_type()
    for batch_size in (4, 1, 0):
        many = func.function(f"many_{batch_size}", [TensorType((batch_size, 3), f64), TensorType((2,), f64)])
        inside.body.block.insert(many)
        with at_end(many.block):
            func.Return(tuple(autodiff.vmap(one, many.args, [0], batch_size)))
        many.update_type()
    find_pass("grad").run(inside)
    verify(inside)
    assert any(op.name == "scf.for" for op in inside.walk())
    for batch_size in (4, 1, 0):
        x, y = RNG.standard_normal((batch_size, 3)), RNG.standard_normal(2)
        np.testing.assert_array_equal(Interpreter(inside).call(f"many_{batch_size}", [x, y])[0], 2 * x + y.sum())


def nested_calls(depth: int) -> Op:
    """A chain of functions, each of which calls the next."""
    parts = ["func.func private @f0(%x: tensor<f32>) -> tensor<f32> {\n  func.return %x : tensor<f32>\n}\n"]
    parts += [f"func.func private @f{i}(%x: tensor<f32>) -> tensor<f32> {{\n  %0 = func.call @f{i - 1}(%x) : "
              "(tensor<f32>) -> tensor<f32>\n  %1 = tensor.add %0, %x : tensor<f32>\n  func.return %1 : tensor<f32>\n"
              "}\n" for i in range(1, depth)]
    parts.append(f"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n  %0 = autodiff.vmap @f{depth - 1}(%x) "
                 "batched [0] size 2 : tensor<2xf32>\n  func.return %0 : tensor<2xf32>\n}\n")
    return parse_module("".join(parts))


def test_calls_are_batched_without_recursion() -> None:
    inside = nested_calls(1200)
    find_pass("grad").run(inside)
    verify(inside)
    assert len(func.functions(inside)) == 2 * 1200 + 1


def test_batching_takes_linear_time() -> None:
    def module(length: int) -> Op:
        body = "".join(f"  %{i + 1} = tensor.add %{i}, %x : tensor<3xf32>\n" for i in range(length))
        return parse_module(f"func.func private @f(%x: tensor<3xf32>, %0: tensor<3xf32>) -> tensor<3xf32> {{\n{body}"
                            f"  func.return %{length} : tensor<3xf32>\n}}\n"
                            "func.func @main(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<2x3xf32> {\n"
                            "  %0 = autodiff.vmap @f(%x, %y) batched [0] size 2 : (tensor<2x3xf32>, tensor<3xf32>) -> "
                            "tensor<2x3xf32>\n  func.return %0 : tensor<2x3xf32>\n}\n")
    assert_linear(seconds_by_count(module, find_pass("grad").run, (100, 200, 400)))


def test_an_assert_is_checked_by_active_batch_elements_only() -> None:
    def f(x: Any) -> Any:
        if x < 100.0:
            assert x < 50.0, "too big"
            y = 2.0 * x
        else:
            y = x
        return y

    many = mlc.compile(mlc.vmap(f))
    assert many(np.array([1.0, 300.0, 3.0])).tolist() == [2.0, 300.0, 6.0]
    with pytest.raises(AssertionError, match="too big"):
        many(np.array([1.0, 300.0, 70.0]))


def test_pullbacks_made_outside_are_batched() -> None:
    a = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32)
    x, eye = mlc.tensor([0.5, -0.25]), np.eye(2, dtype=np.float32)

    def f(x: Any) -> Any:
        return mlc.tanh(mlc.tensor(a) @ x)

    wanted = mlc.jacrev(f)(x).numpy()
    np.testing.assert_array_equal(mlc.vmap(mlc.vjp(f, x)[1])(eye)[0].numpy(), wanted)
    np.testing.assert_array_equal(mlc.compile(mlc.vjp(f, x)[1])(eye[1])[0].numpy(), wanted[1])
    np.testing.assert_allclose(mlc.vmap(mlc.linearize(f, x)[1])(eye).numpy().T, wanted, rtol=1e-6)


def test_a_branch_takes_a_size_from_floats_that_are_not_batched() -> None:
    """y is no operand of the branch, which only has as many rows as it has elements."""
    def f(x: Any, y: Any) -> Any:
        return mlc.cond(x.sum() < 0, lambda: x.expand((y.shape[0], 2)).sum(0), lambda: x * 2)

    gradient = mlc.grad(lambda x, y: mlc.vmap(f, in_dims=(0, None))(x, y).sum())
    for size in (5, 3):
        found = mlc.compile(gradient, dynamic=True)(mlc.tensor([[1.0, 2.0], [-1.0, -2.0]]), mlc.zeros(size))
        assert found.tolist() == [[2, 2], [size, size]]


def test_assertions_of_single_examples() -> None:
    """A condition, or a number of steps, of each example by itself, around nothing but an assertion."""
    def branch(x: Any, y: Any) -> Any:
        if x > 0:
            assert y < 10, "too big"
        return x + y

    def steps(x: Any, n: Any) -> Any:
        for i in range(n):
            assert x[i] < 10, "too big"
        return x.sum()

    def within(x: Any, t: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            if y > t:
                assert y < 100, "too big"
            return y * 3
        return mlc.fori_loop(0, 5, step, x)

    rows = np.array([[1.0, 2, 50], [1, 2, 3]])
    at: Any
    for f, right, wrong in ((branch, ([1.0, -1.0], [1.0, 99.0]), ([1.0, -1.0], [11.0, 9.0])),
                            (steps, (rows, [2, 3]), (rows, [3, 3])),
                            (within, ([0.5, 1.0], [150.0, 100.0]), ([5.0, 1.0], [50.0, 50.0]))):
        for at in (mlc.compile(mlc.vmap(f)), mlc.compile(mlc.grad(lambda x, y, f=f: mlc.vmap(f)(x, y).sum()))):
            at(*map(np.asarray, right))
            with pytest.raises(AssertionError, match="too big"):
                at(*map(np.asarray, wrong))
