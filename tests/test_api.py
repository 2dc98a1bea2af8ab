"""compile, grad, lower, spec: containers, specialisation, donation, threads, and which arrays are taken."""
from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend import functions
from mlc.frontend.tensor import OPERATIONS
from mlc.ir.diag import Error, UserError, UserTypeError

ROOT = Path(__file__).parent.parent
X = np.arange(12, dtype=np.float32).reshape(3, 4)


# -- arguments and results --------------------------------------------------------------------------------------------
def test_nested_containers() -> None:
    @mlc.compile
    def f(p: dict[str, Any], xs: list[Any], *, scale: float = 1.0) -> Any:
        return {"y": p["w"] * xs[0] * scale, "n": None, "t": (xs[1], "text", 3)}

    out = f({"w": mlc.tensor([1.0, 2.0])}, [X[0, :2], X[1]], scale=3.0)
    assert out["y"].tolist() == [0, 6] and out["n"] is None and out["t"][1:] == ("text", 3)
    assert out["t"][0].tolist() == [4, 5, 6, 7] and isinstance(out["t"][0], mlc.Tensor)


def test_one_compilation_for_each_kind_of_arguments() -> None:
    @mlc.compile
    def f(x: Any, n: Any = 1, mode: str = "a") -> Any:
        return x * n

    made = []
    for args in ((X,), (X,), (X + 1, 5), (X, 6), (X, 2.5), (X, 2.5, "b"), (X[:2],), (X.astype(np.float64),)):
        f(*args)
        made.append(f.report().count("  (tensor"))
    assert made == [1, 1, 2, 2, 3, 4, 5, 6]               # without n, int n, float n, mode, shape, dtype
    assert f(X, 2.5).dtype is mlc.float32


def test_python_numbers_and_0d_arrays_are_compiled_separately() -> None:
    """A number takes the type of what it meets; an array has one."""
    f, x = mlc.compile(lambda x, y: x * y), np.array([1, 2], np.int32)
    assert f(x, 1.5).dtype == mlc.float32 and f(x, np.array(1.5)).dtype == mlc.float64
    assert f(x, np.array(1.5)).dtype == mlc.float64 and f(x, 1.5).dtype == mlc.float32
@pytest.mark.parametrize("dim", [(), (0, 1), None], ids=str)
def test_a_static_container_is_one_argument(dim: Any) -> None:
    f = mlc.compile(lambda dim, a, b: mlc.sum(a + b, dim=dim), static="dim", donate="b", dynamic=True)
    for n in (2, 3):
        a, b = mlc.ones(n, 3), mlc.ones(n, 3)
        assert f(dim, a, b).item() == 6 * n and a.shape == (n, 3)
        with pytest.raises(UserError, match="donated"):
            b.numpy()


def test_static_parameters() -> None:
    f = mlc.compile(lambda x, n: x.reshape(n, -1), static="n")
    assert f(X, 2).shape == (2, 6) and f(X, 6).shape == (6, 2) and f(x=X, n=3).shape == (3, 4)
    g = mlc.compile(lambda x, n: x.reshape(n[0], -1))      # which Python asks for
    assert g(X, (2,)).shape == (2, 6)
    with pytest.raises(UserError, match="MLC0350"):
        g(X, [2])


def test_static_numbers_that_are_equal_and_not_the_same() -> None:
    f = mlc.compile(lambda x, n: x * n, static="n")
    found = [f(mlc.tensor([1, 2]), n) for n in (1, 1.0, True, 0.0, -0.0, float("nan"), float("nan"))]
    assert [y.dtype.name for y in found] == ["int64", "float32", "int64", *["float32"] * 4]
    assert [bool(np.signbit(y.numpy()[0])) for y in found[3:5]] == [False, True] and len(f.signatures) == 6


def test_bools_are_compile_time_constants() -> None:
    f = mlc.compile(lambda x, double: x * 2 if double else x)
    assert f(X, True).tolist() == (2 * X).tolist() and f(X, False).tolist() == X.tolist()


def test_a_function_without_arguments() -> None:
    assert mlc.compile(lambda: mlc.ones(2, 2))().tolist() == [[1, 1], [1, 1]]
    assert mlc.compile(lambda: 3)() == 3


def test_results_that_are_arguments_or_repeated() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        return x, y, y, x

    out = mlc.compile(f)(X)
    assert [o.tolist() for o in out] == [X.tolist(), (X + 1).tolist(), (X + 1).tolist(), X.tolist()]
    assert len({o.numpy().__array_interface__["data"][0] for o in out} | {X.__array_interface__["data"][0]}) == 4
    assert out[1] is out[2]


def test_methods_and_modules() -> None:
    class Scale:
        @mlc.compile
        def times(self, x: Any) -> Any:
            return x * 3

    assert Scale().times(X).tolist() == (3 * X).tolist()
    model = nn.Linear(4, 2)
    compiled = mlc.compile(model)
    before = compiled(X).numpy()
    np.testing.assert_allclose(before, model(X).numpy(), rtol=1e-6)
    model.weight = model.weight * 2                       # a parameter is an argument, not a constant
    np.testing.assert_allclose(compiled(X).numpy(), model(X).numpy(), rtol=1e-6)


def test_compiled_functions_call_each_other() -> None:
    inner = mlc.compile(lambda x: x * x)
    assert mlc.compile(lambda x: inner(x) + 1)(X).tolist() == (X * X + 1).tolist()
    assert mlc.grad(lambda x: inner(x).sum())(mlc.tensor(X)).tolist() == (2 * X).tolist()


@pytest.mark.parametrize("array", [
    X.T, X[::-1, ::2], np.asfortranarray(X), X.astype(">f4"), np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:]
    .view(np.float32).reshape(3, 4), X[:0], np.float32(3), np.broadcast_to(X[0], (3, 4)), X[1:2, 1:2],
], ids=["transposed", "strided", "fortran", "byte-swapped", "misaligned", "empty", "0-d", "broadcast", "1x1"])
def test_arrays_of_any_layout_are_accepted(array: Any) -> None:
    array = np.asarray(array)
    assert (mlc.tensor(array) + 1).tolist() == (array + 1).tolist()
    assert (mlc.asarray(array) + 1).tolist() == (array + 1).tolist()
    assert mlc.compile(lambda x: x + 1)(array).tolist() == (array + 1).tolist()


def test_other_libraries_and_zero_copy() -> None:
    torch = pytest.importorskip("torch")
    t = torch.arange(6.0).reshape(2, 3)
    assert mlc.compile(lambda x: x * 2)(t).tolist() == (t * 2).tolist()
    assert mlc.asarray(t).numpy().__array_interface__["data"][0] == t.data_ptr()
    x = mlc.ones(3)
    assert torch.from_dlpack(x).data_ptr() == x.numpy().__array_interface__["data"][0]
    assert (mlc.ones(3) + torch.ones(3, requires_grad=True)).tolist() == [2, 2, 2]
    mlc.compile(lambda x: x.add_(1), check=True)(t)
    assert t.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert (mlc.ones(2) * torch.ones(2, dtype=torch.bfloat16)).dtype is mlc.float32
    assert np.asarray(x) is x.numpy() or np.shares_memory(np.asarray(x), x.numpy())
    assert (X[0, :3] + x).tolist() == [1, 2, 3]           # numpy on the left


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([None])], ids=str)
def test_unsupported_arrays_are_refused(value: Any) -> None:
    for f in (mlc.tensor, mlc.compile(lambda x: x), mlc.exp):
        with pytest.raises(Error, match=r"MLC0345|MLC0347|MLC0110"):
            f(value)


def test_an_unhashable_argument_is_an_error() -> None:
    with pytest.raises(UserTypeError, match="options is a set"):
        mlc.compile(lambda x, options: x)(X, {1, 2})


# -- specifications ---------------------------------------------------------------------------------------------------
def test_symbolic_sizes_share_one_compilation() -> None:
    f = mlc.compile(lambda x, w: mlc.softmax(x @ w, dim=1), args=[mlc.spec("B", 4), mlc.spec(4, 3)])
    w = np.ones((4, 3), np.float32)
    for n in (1, 2, 5, 0):
        assert f(np.ones((n, 4), np.float32), w).shape == (n, 3)
    assert len(f.entries) == 1
    with pytest.raises(UserError, match=r"argument x has size 5 on axis 1, expected 4"):
        f(np.ones((2, 5), np.float32), w)
    with pytest.raises(UserError, match=r"argument x has dtype float64, expected float32"):
        f(np.ones((2, 4)), w)


def test_specifications_by_annotation_and_in_containers() -> None:
    def f(x: mlc.spec("B", 2), p: Any) -> Any:  # type: ignore[valid-type]
        return x + p["b"]
    f.__annotations__["x"] = mlc.spec("B", 2)
    g = mlc.compile(f)
    h = mlc.compile(lambda p, x: x + p["b"], args=[{"b": mlc.spec("N")}, mlc.spec("N")])
    for n in (2, 3):
        g(np.zeros((n, 2), np.float32), {"b": np.zeros(2, np.float32)})
        h({"b": np.zeros(n, np.float32)}, np.zeros(n, np.float32))
    assert len(g.entries) == len(h.entries) == 1


@pytest.mark.parametrize("make", [lambda: mlc.spec(-1), lambda: mlc.spec("2*"), lambda: mlc.spec(1.5),  # type: ignore[arg-type]

                                  lambda: mlc.spec(2, dtype="string")])
def test_bad_specifications(make: Any) -> None:
    with pytest.raises(UserError):
        make()


# -- donation ---------------------------------------------------------------------------------------------------------
def address(x: Any) -> int:
    return int((x if isinstance(x, np.ndarray) else x.backing_array).__array_interface__["data"][0])


def test_results_reuse_the_memory_of_donated_tensors() -> None:
    for f in (mlc.compile(lambda x, y: x + y, donate="x"), mlc.compile(lambda x, y: [x + y], donate=0)):
        for _ in range(2):                                # by the slow path, and by the fast one where there is one
            x = mlc.tensor(X)
            old = address(x)
            out = f(x, mlc.ones(3, 4))
            out = out[0] if isinstance(out, list) else out
            assert address(out) == old and out.tolist() == (X + 1).tolist()
            with pytest.raises(UserError, match="donated to"):
                x + 1
            assert "donated" in repr(x)


def test_donated_trees() -> None:
    def step(state: Any, x: Any) -> Any:
        return {"a": state["a"] + x, "b": [state["b"][0] * 2]}

    f = mlc.compile(step, donate=("state",))
    state: Any = {"a": mlc.zeros(3, 4), "b": [mlc.ones(5)]}
    pointers = address(state["a"]), address(state["b"][0])
    for _ in range(5):
        state = f(state, X)
    assert (address(state["a"]), address(state["b"][0])) == pointers and state["b"][0].tolist() == [32] * 5


def test_invalid_donations_are_refused() -> None:
    f = mlc.compile(lambda x, y: x + y, donate="x")
    read_only = X.copy()
    read_only.flags.writeable = False
    shared = mlc.tensor(X)
    cases = [(read_only, X, "read-only"), (np.asfortranarray(X), X, "contiguous"), (shared, shared, "shares memory")]
    for x, y, text in cases:
        with pytest.raises(UserError, match=text):
            f(x, y)
    assert (shared + 0).tolist() == X.tolist()            # a refused call takes nothing
    with pytest.raises(UserError, match="donate names 'z'"):
        mlc.compile(lambda x: x, donate="z")
    with pytest.raises(UserError, match="both donated and static"):
        mlc.compile(lambda x: x, donate="x", static="x")


# -- derivatives ------------------------------------------------------------------------------------------------------
def test_derivatives_nest_and_compile() -> None:
    cube = mlc.grad(lambda x: x ** 3)
    second = mlc.grad(cube)
    assert cube(2.0).item() == 12 and second(2.0).item() == 12 and mlc.grad(second)(2.0).item() == 6
    assert mlc.compile(second)(3.0).item() == 18
    hessian_product = mlc.compile(lambda x, v: mlc.grad(lambda z: (mlc.grad(lambda w: (w ** 3).sum())(z) * v).sum())(x))
    assert hessian_product(X, np.ones_like(X)).tolist() == (6 * X).tolist()


def test_value_and_grad() -> None:
    def f(p: dict[str, Any], x: Any, y: float) -> Any:
        return (p["w"] * x * y).sum(), {"twice": x * 2}

    x, w = mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 4.0])
    run: Any
    for run in (lambda g: g, mlc.compile):
        (value, aux), (gp, gx) = run(mlc.value_and_grad(f, argnums=(0, 1), has_aux=True))({"w": w}, x, 2.0)
        assert value.item() == 22 and aux["twice"].tolist() == [2, 4]
        assert gp["w"].tolist() == [2, 4] and gx.tolist() == [6, 8]
    gradient, aux = mlc.grad(f, argnums=-1, has_aux=True)({"w": w}, x, 2.0)
    assert gradient.item() == 11 and gradient.dtype is mlc.float32


def test_vjp() -> None:
    def f(x: Any, n: Any) -> Any:
        return {"a": mlc.exp(x), "b": x.sum(), "c": n * 2}

    def run(x: Any, n: Any) -> Any:
        out, pullback = mlc.vjp(f, x, n)
        return out, pullback({"a": mlc.ones_like(x), "b": 3.0, "c": None})

    for g in (run, mlc.compile(run)):
        out, (gx, gn) = g(mlc.zeros(2), mlc.tensor([1, 2]))
        assert out["c"].tolist() == [2, 4] and gx.tolist() == [4, 4] and gn is None
    with pytest.raises(UserError, match="MLC0375"):
        mlc.vjp(lambda x: x * 2, mlc.zeros(2))[1](mlc.zeros(3))


def test_captured_values_are_read_at_recording() -> None:
    """Outside compile it is read at every call; compile reads it when it records."""
    w = mlc.tensor([2.0])
    gradient = mlc.grad(lambda x: (x * w).sum())
    assert gradient(mlc.ones(1)).tolist() == [2]
    w = mlc.tensor([5.0])
    assert gradient(mlc.ones(1)).tolist() == [5]

    def outer(x: Any, y: Any) -> Any:
        return mlc.grad(lambda z: (z * y * w).sum())(x)   # y is a value of the enclosing function

    assert mlc.compile(outer)(mlc.ones(1), mlc.tensor([3.0])).tolist() == [15]


def test_no_gradient_through_detach_and_integers() -> None:
    assert mlc.grad(lambda x: (x.detach() * x).sum())(mlc.tensor([3.0])).tolist() == [3]
    assert mlc.grad(lambda x: mlc.from_dlpack(x * x).sum())(mlc.tensor([3.0])).tolist() == [6]
    assert mlc.grad(lambda x: mlc.floor(x).sum())(mlc.ones(2)).tolist() == [0, 0]


@pytest.mark.parametrize("f, args, text", [
    (mlc.grad(lambda x: x * 2), (X,), "returned tensor<3x4xf32>"),
    (mlc.grad(lambda x: x.sum()), (np.arange(3),), "x is tensor<3xi64>, which has no derivative"),
    (mlc.grad(lambda x: x, argnums=1), (1.0,), "argnums = 1, but the function is called with 1"),
    (mlc.value_and_grad(lambda x: x.sum(), has_aux=True), (X,), "must return (value, anything else)"),
    (mlc.grad(lambda p: p["a"].sum()), ({"a": X, "b": "text"},), "p['b'] is str, which has no derivative"),
])
def test_mistakes_in_derivatives(f: Any, args: Any, text: str) -> None:
    with pytest.raises(UserError) as info:
        f(*args)
    assert text in str(info.value) and info.value.loc.file == __file__


# -- indexing ---------------------------------------------------------------------------------------------------------
KEYS: list[Any] = [
    0, -1, slice(1, 3), slice(None, None, -1), slice(None, None, 2), slice(-2, None), slice(5, 1, -2), slice(4, 2),
    None, ..., (0, 1), (slice(None), 0), (..., 0), (0, ..., None), (None, slice(1, 2), None), (slice(0, 0),),
    [0, 2], np.array([1, -1]), np.array([[0, 1], [2, 2]]), (slice(None), np.array([3, 0])), (np.array([0, 1]), 1),
    (np.array([0, 2]), np.array([1, -1])), (np.array([[0], [2]]), slice(None), np.array([1, 0])),
    (slice(None), np.array([0, 1]), np.array([2, 3])), (np.array([0, 1]), slice(1, 3)), (1, np.array([0, 1])),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_as_numpy(key: Any) -> None:
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    run: Any
    for run in (lambda f: f, mlc.compile):
        out = run(lambda t: t[key])(mlc.tensor(x))
        assert out.shape == x[key].shape
        np.testing.assert_array_equal(out.numpy(), x[key])


def test_each_index_of_a_pair_is_checked_against_its_own_dimension() -> None:
    for i, j in ((0, 4), (3, 0), (-4, 0), (0, -5), (3, -4)):
        with pytest.raises(IndexError):
            mlc.tensor(X)[mlc.tensor([i]), mlc.tensor([j])]


# -- the rest ---------------------------------------------------------------------------------------------------------
def test_levels() -> None:
    f = mlc.compile(lambda x: mlc.softmax(x, dim=1))
    texts = {level: f.lower(mlc.spec("B", 8), level=level).to_text() for level in ("trace", "tensor", "loop", "low",
                                                                                   "llvm")}
    assert "tensor.softmax" in texts["trace"] and "tensor.softmax" in texts["tensor"]
    assert "loop.kernel" in texts["loop"] and "scf.for" in texts["low"] and "llvm.func" in texts["llvm"]
    assert '"mlc.tensor.softmax"' in mlc.lower(f, [mlc.spec(2, 8)], "trace").to_text(generic=True)
    derivative = mlc.grad(lambda x: mlc.exp(x).sum())
    traced, differentiated = (mlc.lower(derivative, [mlc.spec("B")], level).to_text() for level in ("trace", "tensor"))
    assert "autodiff.grad" in traced and "autodiff" not in differentiated and "func.call" not in differentiated
    with pytest.raises(UserError, match="MLC0334"):
        mlc.lower(f, [mlc.spec(2, 8)], "assembly")
    with pytest.raises(UserError, match="lower: args is Spec"):
        mlc.lower(f, mlc.spec(2, 8))  # type: ignore[arg-type]


def test_threads_share_a_compiled_function() -> None:
    f = mlc.compile(lambda x: (x * 2).sum(1))
    wrong = []

    def work(k: int) -> None:
        x = np.full((50, 40), k, np.float32)
        for _ in range(100):
            if (f(x).numpy() != 80 * k).any():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not wrong and len(f.entries) == 1


def test_one_native_entry_per_call() -> None:
    f = mlc.compile(lambda p: {"y": p["x"] * 2})
    f({"x": X})
    before = mlc.native_entries()
    for _ in range(10):
        f({"x": X})
    assert mlc.native_entries() - before == 10


def test_tensor_protocol() -> None:
    x = mlc.tensor(X)
    assert x.shape == (3, 4) and x.ndim == 2 and len(x) == 3 and x.dtype is mlc.float32 and x.device == "cpu"
    assert x.T.shape == (4, 3) and x.numel() == 12 and [r.tolist() for r in x] == X.tolist()
    assert mlc.tensor(3).item() == 3 and int(mlc.tensor(3)) == 3 and float(mlc.tensor(2.5)) == 2.5
    assert [10, 20][mlc.tensor(1)] == 20 and bool(mlc.tensor(True)) and f"{mlc.tensor(0.25):.1%}" == "25.0%"
    assert repr(mlc.tensor([1.0, 2.0])) == "tensor([1., 2.], dtype=mlc.float32)"
    assert mlc.tensor([1, 2]).dtype is mlc.int64 and mlc.tensor([True]).dtype is mlc.bool_ is mlc.bool
    assert np.zeros(2, mlc.float16).dtype == np.float16 and len({x, x}) == 1
    with pytest.raises(TypeError):
        x + "text"
    with pytest.raises(TypeError):
        len(mlc.tensor(1.0))


def test_bfloat16() -> None:
    x = mlc.tensor([1.0, 2.0, 3.0], dtype="bfloat16")
    assert (x * x).dtype is mlc.bfloat16 and (x * x).float().tolist() == [1, 4, 9]
    assert mlc.compile(lambda a: a.sum())(x).item() == 6


def test_public_names() -> None:
    for name in mlc.__all__:
        assert getattr(mlc, name) is not None, name
    missing = {n for n, f in OPERATIONS.items() if getattr(mlc.nn.functional, n, None) is not f} - set(mlc.__all__)
    missing -= {f"Tensor.{n}" for n in dir(mlc.Tensor)}
    spaces = (mlc.fft, mlc.linalg, mlc.masked, mlc.models.quantized, mlc.quantization, mlc.random, mlc.signal.windows,
              mlc.sparse, mlc.special)
    missing -= {n for n, f in OPERATIONS.items() for m in spaces
                if getattr(m, n.split(".")[-1], None) is f}
    missing = {n for n in missing if not n.startswith("_sparse")}
    assert missing <= {"getitem", "_getitem", "_copied", "_repeat_interleave", "recurrent", "recurrent_cell",
                       "moved_statistics", "_atleast", "batch_norm", "instance_norm"}, missing
    assert set(dir(mlc)) >= set(mlc.__all__)
    with pytest.raises(AttributeError):
        mlc.nothing  # noqa: B018
    assert all(f.__doc__ for f in OPERATIONS.values()) and (
        {".".join(f.__module__.split(".")[:4]) for f in OPERATIONS.values()} - {"mlc.frontend.functions.quantized"}
        == {m.__name__ for m in functions.MODULES})            # those of quantised tensors are called by modules


def test_size_mismatches_name_both_arguments() -> None:
    def f(x: Any) -> Any:
        return x[5:] * 2

    with pytest.raises(UserError, match=r"MLC0328.*where N = 3") as caught:
        mlc.compile(f, args=[mlc.spec("N")])(np.ones(3, np.float32))
    line = f.__code__.co_firstlineno
    assert caught.value.loc.line > line + 1 and any(f":{line + 1}:" in note for note in caught.value.notes)


@pytest.mark.parametrize("module", [mlc, mlc.nn, mlc.nn.functional, mlc.nn.init, mlc.optim, mlc.linalg, mlc.fft,
                                    mlc.random, mlc.signal.windows, mlc.special, mlc.utils.data],
                         ids=lambda m: m.__name__)
def test_public_names_are_explained(module: Any) -> None:
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    public = {n: x for n in names if callable(x := getattr(module, n))}
    assert public and not [n for n, x in public.items() if not x.__doc__]


def test_the_class_of_tensors_may_be_the_first_name_that_is_used() -> None:
    code = "import mlc, numpy as np; print((mlc.Tensor(np.ones(2)) + 1).tolist())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout == "[2.0, 2.0]\n"


def test_language_models_import_what_they_need() -> None:
    code = ("import sys, gc, mlc; mlc.models; print(gc.isenabled(), [m for m in ('mlc.nn.recurrent', 'mlc.nn.utils', "
            "'mlc.models.constraints.network', 'tokenizers', 'jinja2', 'lark') if m in sys.modules])")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout == "True []\n"


def test_import_is_light() -> None:
    code = ("import sys, mlc; print([m for m in ('numpy', 'llvmlite', 'lark', 'torch', 'ml_dtypes') if m in "
            "sys.modules]); mlc.compile; print('llvmlite' in sys.modules, 'torch' in sys.modules)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout.split("\n")[:2] == ["[]", "False False"]
