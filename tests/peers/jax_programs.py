"""mlc judged by JAX, by programs of StableHLO in both directions.

    python -m tests.peers.jax_programs [--only REGEX] [--interpreted]

In: twenty programs of JAX, with gradients, loops, sorts and layers, as `jax.jit(f).lower(...)` and `jax.export` write
them, are loaded and called, and give JAX's numbers. Out: every program of `tests/corpus.py`, and functions of mlc's,
are written, are verified by jaxlib, run under XLA, and give mlc's numbers; those of symbolic sizes are refined to
several sizes, and read again. It needs jax.
"""

from __future__ import annotations

import argparse
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import mlc
from mlc import nn
from mlc.ir.interp import run_function
from mlc.ir.sizes import evaluate
from mlc.ir.types import to_numpy
from mlc.stablehlo.writing import module_text
from mlc.tools.fuzzing.interpreted import interpreted
from tests.corpus import PROGRAMS, SIZES

RNG = np.random.default_rng(0)
IN: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
"""Programs of JAX and their arguments."""
OUT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
"""Functions of mlc's and their arguments."""


SIZED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
"""Functions of mlc's and the types of their arguments, whose sizes are symbols."""
AT = ({"B": 3, "N": 4}, {"B": 6, "N": 3}, {"B": 2, "N": 7})
"""Sizes."""


def normal(*shape: int) -> Any:
    """Numbers of a normal distribution."""
    return RNG.normal(size=shape).astype(np.float32)


def into(*args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a program of JAX."""
    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        IN[f.__name__] = f, args
        return f
    return register


def out(*args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function of mlc's."""
    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        OUT[f.__name__] = f, args
        return f
    return register


# -- programs of JAX --------------------------------------------------------------------------------------------------
@into(normal(4, 8), normal(8), normal(8, 3), normal(5, 4), np.array([0, 1, 2, 0, 1], np.int32))
def mlp_gradient(w1: Any, b1: Any, w2: Any, x: Any, y: Any) -> Any:
    def loss(w1: Any, b1: Any, w2: Any) -> Any:
        z = jax.nn.relu(x @ w1 + b1) @ w2
        return -jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1).mean()
    return jax.value_and_grad(loss, (0, 1, 2))(w1, b1, w2)


@into(normal(2, 8, 8, 3), normal(3, 3, 3, 4), normal(4))
def convolution_gradient(x: Any, w: Any, b: Any) -> Any:
    def loss(w: Any, b: Any) -> Any:
        y = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b
        return jnp.sum(jax.nn.gelu(y) ** 2)
    return jax.value_and_grad(loss, (0, 1))(w, b)


@into(normal(2, 8, 8, 3))
def pooling_gradient(x: Any) -> Any:
    def loss(x: Any) -> Any:
        pooled = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        mean = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9
        return jnp.sum(pooled ** 2) + jnp.sum(mean ** 3)
    return jax.value_and_grad(loss)(x)


@into(normal(6, 4), normal(4, 5), normal(5, 5), normal(5))
def recurrent_scan(xs: Any, wx: Any, wh: Any, h: Any) -> Any:
    def loss(wx: Any, wh: Any) -> Any:
        last, hs = lax.scan(lambda h, x: (jnp.tanh(x @ wx + h @ wh),) * 2, h, xs)
        return last.sum() + (hs ** 2).mean()
    return jax.value_and_grad(loss, (0, 1))(wx, wh)


@into(np.float32(40.0))
def newton_while(a: Any) -> Any:
    return lax.while_loop(lambda s: jnp.abs(s[0] * s[0] - a) > 1e-3, lambda s: ((s[0] + a / s[0]) / 2, s[1] + 1),
                          (a, 0))


@into(normal(3, 4, 5), normal(3, 5, 2))
def batched_by_vmap(x: Any, y: Any) -> Any:
    return jax.vmap(lambda a, b: jnp.linalg.norm(a @ b, axis=0))(x, y)


@into(normal(2, 6, 8), normal(8, 24), normal(8, 8))
def attention(x: Any, qkv: Any, out: Any) -> Any:
    def heads(z: Any) -> Any:
        return z.reshape(2, 6, 2, 4).transpose(0, 2, 1, 3)
    q, k, v = (heads(z) for z in jnp.split(x @ qkv, 3, -1))
    mask = jnp.tril(jnp.ones((6, 6), bool))
    scores = jnp.where(mask, q @ k.swapaxes(-1, -2) / 2, -jnp.inf)
    return (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(2, 6, 8) @ out


@into(normal(7, 5))
def sorts(x: Any) -> Any:
    return jnp.sort(x, 0), jnp.argsort(x, 1), lax.top_k(x, 3), jnp.median(x)


@into(normal(9), np.array([1, 1, 0, 3, 7, 3], np.int32), normal(6))
def scatters(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].add(u), x.at[i].max(u), x.at[i].multiply(u), x[i], jax.ops.segment_sum(u, i, 9)


@into(normal(10, 4), np.array([[1, 2, 9], [0, 0, 3]], np.int32))
def embedding_gradient(table: Any, tokens: Any) -> Any:
    return jax.grad(lambda t: (t[tokens] ** 2).sum())(table)


@into(normal(16))
def fourier(x: Any) -> Any:
    z = jnp.fft.fft(x)
    return jnp.abs(z), jnp.fft.irfft(jnp.fft.rfft(x) * 2), jnp.angle(z[:5])


@into(normal(5, 5))
def linear_systems(x: Any) -> Any:
    a = x @ x.T + 5 * jnp.eye(5)
    factor = jnp.linalg.cholesky(a)
    q, r = jnp.linalg.qr(x)
    return factor, jax.scipy.linalg.solve_triangular(factor, x, lower=True), q @ r, jnp.linalg.solve(a, x), \
        jnp.linalg.eigvalsh(a), jnp.linalg.svd(x, compute_uv=False), jnp.linalg.det(a)


@into(np.array([3, 4], np.uint32))
def random_numbers(key: Any) -> Any:
    a, b = jax.random.split(jax.random.wrap_key_data(key))
    return jax.random.normal(a, (4, 3)), jax.random.randint(b, (5,), 0, 100), jax.random.permutation(a, 8)


@into(np.int32(2), normal(4))
def branches(i: Any, x: Any) -> Any:
    return lax.switch(i, [lambda x: x + 1, lambda x: x * 2, lambda x: -x], x), lax.cond(i > 1, jnp.sin, jnp.cos, x)


@into(normal(4, 6))
def cumulative(x: Any) -> Any:
    return jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 1), lax.cumlogsumexp(x, 0)


@into(normal(3, 4))
def second_derivatives(x: Any) -> Any:
    def f(x: Any) -> Any:
        return jnp.sum(jnp.tanh(x) ** 3)
    return jax.hessian(f)(x), jax.jvp(jax.grad(f), (x,), (x,))


@into(np.arange(12, dtype=np.int32).reshape(3, 4), np.array([1, 2, 3, 4], np.int32))
def integers(x: Any, y: Any) -> Any:
    return x // y, x % y, x << 2, lax.population_count(x), jnp.bitwise_xor(x, y), lax.clz(x), -x // y


@into(normal(5).astype(jnp.bfloat16), normal(5).astype(np.float16))
def narrow_floats(x: Any, y: Any) -> Any:
    return jnp.exp(x) * 2, jax.nn.sigmoid(y), (x.astype(jnp.float32) + y.astype(jnp.float32)).astype(jnp.bfloat16)


def _flax_classifier() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    from flax import linen

    class Classifier(linen.Module):  # type: ignore[misc]
        @linen.compact  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> Any:
            x = linen.Conv(4, (3, 3))(x)
            x = linen.relu(linen.GroupNorm(2)(x))
            x = linen.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
            return linen.Dense(3)(linen.LayerNorm()(x))

    model, x = Classifier(), normal(2, 6, 6, 3)
    parameters = model.init(jax.random.key(0), x)
    return jax.value_and_grad(lambda p, x: (model.apply(p, x) ** 2).mean()), (parameters, x)


def _flax_transformer() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    from flax import linen

    class Layer(linen.Module):  # type: ignore[misc]
        @linen.compact  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> Any:
            x = x + linen.SelfAttention(2)(linen.LayerNorm()(x))
            return x + linen.Dense(8)(linen.gelu(linen.Dense(16)(linen.LayerNorm()(x))))

    model, x = Layer(), normal(2, 5, 8)
    return model.apply, (model.init(jax.random.key(1), x), x)


# -- functions of mlc's -----------------------------------------------------------------------------------------------
@out(normal(3, 4), normal(4, 5))
def matmul_softmax(x: Any, w: Any) -> Any:
    return mlc.softmax(x @ w, -1), mlc.log_softmax(x @ w, 0)


@out(normal(2, 3, 8, 8), normal(4, 3, 3, 3))
def convolved(x: Any, w: Any) -> Any:
    return mlc.grad(lambda w: mlc.nn.functional.max_pool2d(mlc.conv2d(x, w, padding=1), 2).square().sum())(w)


@out(normal(6, 4))
def sorted_rows(x: Any) -> Any:
    return mlc.sort(x, 0), mlc.topk(x, 2), mlc.cumsum(x, 1), mlc.argmax(x, 1)


@out(normal(6, 4), np.array([0, 5, 5], np.int64))
def picked(x: Any, i: Any) -> Any:
    normal_rows = mlc.grad(lambda x: mlc.nn.functional.layer_norm(x, (4,)).square().sum())(x)
    return x[i], mlc.index_add(x, 0, i, x[:3]), normal_rows


@out(normal(5))
def functions(x: Any) -> Any:
    return (mlc.erf(x), mlc.nn.functional.gelu(x), mlc.atan(x), mlc.log10(mlc.abs(x)), mlc.exp2(x), mlc.hypot(x, -x),
            mlc.sinh(x), mlc.round(x), mlc.sign(x), mlc.pow(mlc.abs(x), 1.5), mlc.erfinv(x / 5))


@out(np.array([7, -7, 3], np.int32), np.array([2, 2, -2], np.int32))
def whole_numbers(x: Any, y: Any) -> Any:
    return x // y, x % y, mlc.fmod(x, y), x << 1, x >> 1, x & y


@out(normal(3))
def loops(x: Any) -> Any:
    grown = mlc.while_loop(lambda x: x.sum() < 50, lambda x: x * x + 2, x)
    return mlc.fori_loop(0, 5, lambda i, x: x * 1.5 + i, x), grown, mlc.cond(x.sum() > 0, lambda x: x, lambda x: -x, x)


@out(np.array([3, 9], np.uint32))
def bits(key: Any) -> Any:
    return mlc.random.normal(key, (4,)), mlc.random.bits(key, (3,))


@out(normal(4, 4))
def factors(x: Any) -> Any:
    a = x @ x.mT + 4 * mlc.eye(4)
    return mlc.linalg.cholesky(a), mlc.linalg.solve(a, x), mlc.abs(mlc.fft.fft(x))


def sized(*types: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function of mlc's for all sizes."""
    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        SIZED[f.__name__] = f, types
        return f
    return register


@sized(mlc.spec("B", "N"), mlc.spec("N"))
def rows(x: Any, y: Any) -> Any:
    return x + y, mlc.softmax(x, -1), x.reshape(-1), x @ y


@sized(mlc.spec("B", "N"))
def parts(x: Any) -> Any:
    return x[::2], x[1:, :-1], mlc.cat([x, x[:2]], 0), mlc.flip(x, 1)


@sized(mlc.spec("B", "N"))
def along_rows(x: Any) -> Any:
    return mlc.cumsum(x, 0), mlc.cumprod(x, 1), mlc.arange(x.shape[0]), mlc.zeros(x.shape[1])


@sized(mlc.spec("B", "N"), mlc.spec(3, dtype="int64"))
def at_indices(x: Any, i: Any) -> Any:
    return x[i], mlc.index_add(x, 0, i, x[i])


@sized(mlc.spec("B", 4), mlc.spec(4, 2))
def gradient(x: Any, w: Any) -> Any:
    return mlc.value_and_grad(lambda w: mlc.tanh(x @ w).square().mean())(w)


@sized(mlc.spec("B", "N"))
def repeated(x: Any) -> Any:
    return mlc.fori_loop(0, 3, lambda i, x: x * 1.5 + i, x), mlc.cond(x.sum() > 0, lambda x: x, lambda x: -x, x)


def _layer() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    mlc.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)).eval()
    return mlc.compile(model), (normal(3, 4),)


# -- comparisons ------------------------------------------------------------------------------------------------------
def refined(text: str, arrays: list[Any]) -> str:
    """A program of symbolic sizes for the sizes of arrays: called by a main of those, and refined by XLA."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    head = next(line for line in text.splitlines() if "func.func public @main(" in line)
    given, results = (re.findall(r"tensor<[^>]*(?:<[^>]*>)?>", part) for part in head.split("->"))
    types = [f"tensor<{re.sub(r'^(?:[0-9?]+x)*', ''.join(f'{n}x' for n in np.shape(a)), t[7:-1])}>"
             for a, t in zip(arrays, given, strict=True)]
    names = ", ".join(f"%c{i}" for i in range(len(types)))
    bound = f"%r:{len(results)} = " if results else ""
    out = ", ".join(f"%r#{i}" for i in range(len(results)))
    main = [f"func.func public @main({', '.join(f'%a{i}: {t}' for i, t in enumerate(types))}) -> "
            f"({', '.join(results)}) {{",
            *(f'%c{i} = "stablehlo.convert"(%a{i}) : ({a}) -> {b}' for i, (a, b) in enumerate(zip(types, given))),
            f'{bound}"func.call"({names}) <{{callee = @inner}}> : ({", ".join(given)}) -> ({", ".join(results)})',
            f'"func.return"({out}) : ({", ".join(results)}) -> ()', "}"]
    first, rest = text.replace("func.func public @main(", "func.func private @inner(").split("\n", 1)
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse("\n".join([first, *main, rest]))
        assert module.operation.verify()
        return str(mlir.refine_polymorphic_shapes(module))


def xla(text: str, arrays: list[Any]) -> list[Any]:
    """The results of a program under XLA; jaxlib verifies it first, and refines symbolic sizes."""
    if "jax.uses_shape_polymorphism" in text:
        text = refined(text, arrays)
    from jax._src import xla_bridge
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        backend = xla_bridge.get_backend("cpu")
        devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
        program = backend.compile_and_load(module, devices, xla_client.CompileOptions())
    given = [jax.device_put(a, backend.local_devices()[0]) for a in arrays]
    return [np.asarray(x[0]) for x in program.execute_sharded(given).disassemble_into_single_device_arrays()]


def compare(found: Any, wanted: Any) -> str:
    """The first difference; "" if there is none."""
    a, b = [np.asarray(x) for x in jax.tree.leaves(found)], [np.asarray(x) for x in jax.tree.leaves(wanted)]
    if len(a) != len(b):
        return f"{len(a)} results in place of {len(b)}"
    for i, (x, y) in enumerate(zip(a, b)):
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"result {i} is {x.dtype}{x.shape} in place of {y.dtype}{y.shape}"
        loose = 2e-2 if x.dtype.itemsize == 2 else 1e-4
        wide: list[Any] = [z.astype(np.complex128 if np.iscomplexobj(z) else np.float64) for z in (x, y)]
        if not np.allclose(wide[0], wide[1], rtol=loose, atol=loose / 10, equal_nan=True):
            return f"result {i} differs by {np.abs(wide[0] - wide[1]).max()}"
    return ""


def in_once(f: Callable[..., Any], args: tuple[Any, ...], exported: bool) -> str:
    """The first difference between a program of JAX and its import."""
    compiled = jax.jit(f)
    text = jax.export.export(compiled)(*args).mlir_module() if exported else compiled.lower(*args).as_text()
    found = mlc.stablehlo.load(text)(*(np.asarray(x) for x in jax.tree.leaves(args)))
    return compare(_arrays(found), compiled(*args))


def _arrays(x: Any) -> Any:
    return mlc.tree.map(lambda y: y.numpy() if hasattr(y, "numpy") else np.asarray(y), x)


def out_once(f: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """The first difference between a function and its export, under XLA."""
    given = [mlc.tensor(a) for a in args]
    text = mlc.stablehlo.text(f, given)
    wanted = mlc.tree.leaves(_arrays((mlc.compile(f) if not hasattr(f, "lower") else f)(*given)))
    captured = [np.asarray(p.numpy()) for p in _parameters(f)]
    return compare(xla(text, [*captured, *args]), wanted)


def _parameters(f: Any) -> list[Any]:
    return [] if not hasattr(f, "parameters") else list(f.parameters())


def corpus_once(name: str) -> str:
    """The first difference between a program of the corpus and its export, under XLA."""
    module, arrays = PROGRAMS[name]()
    wanted = run_function(module, "main", [np.array(a) for a in arrays])
    return compare(xla(module_text(module.clone(env=SIZES)), arrays), list(wanted))


def symbolic_once(name: str) -> str:
    """The first difference between a program of the corpus for all sizes and its export, under XLA."""
    module, arrays = PROGRAMS[name]()
    wanted = run_function(module, "main", [np.array(a) for a in arrays])
    return compare(xla(module_text(module.clone()), arrays), list(wanted))


def is_symbolic(name: str) -> bool:
    """Whether an argument of a program of the corpus has a size that is no number."""
    main: Any = next(f for f in PROGRAMS[name]()[0].walk() if f.attrs.get("sym_name") == "main")
    return any(not t.is_static for t in main.function_type.inputs)


def sized_once(f: Callable[..., Any], types: tuple[Any, ...], sizes: Sequence[dict[str, int]], again: bool) -> str:
    """The first difference, at several sizes, between a function and its export under XLA, or read again."""
    text = mlc.stablehlo.text(f, list(types))
    loaded = mlc.stablehlo.load(text) if again else None
    for env in sizes:
        arrays = numbers([t.type for t in types], env)
        found = _arrays(loaded(*arrays)) if loaded is not None else xla(text, arrays)
        if different := compare(found, _arrays(f(*map(mlc.tensor, arrays)))):
            return f"{env}: {different}"
    return ""


def numbers(types: Sequence[Any], env: dict[str, int]) -> list[Any]:
    """Arrays of types, at sizes."""
    shapes = [[evaluate(d, env) for d in t.shape] for t in types]
    return [normal(*shape) if t.dtype.is_float else np.zeros(shape, to_numpy(t.dtype)) + 1
            for t, shape in zip(types, shapes)]


def _made(once: Callable[..., str], make: Callable[[], Any], *more: Any) -> str:
    return once(*make(), *more)


def main() -> int:
    """Run the programs, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression of names")
    parser.add_argument("--interpreted", action="store_true", help="without machine code")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    tests: list[tuple[str, Callable[[], str]]] = []
    for name, (f, args) in IN.items():
        tests.append((f"in/{name}", partial(in_once, f, args, False)))
    for name, make in (("flax_classifier", _flax_classifier), ("flax_transformer", _flax_transformer)):
        tests.append((f"in/{name}", partial(_made, in_once, make, False)))
    tests.append(("in/exported_mlp", partial(in_once, *IN["mlp_gradient"], True)))
    tests.append(("in/exported_scan", partial(in_once, *IN["recurrent_scan"], True)))
    for name, (f, args) in OUT.items():
        tests.append((f"out/{name}", partial(out_once, f, args)))
    tests.append(("out/layer", partial(_made, out_once, _layer)))
    tests += [(f"corpus/{name}", partial(corpus_once, name)) for name in PROGRAMS]
    tests += [(f"symbolic/{name}", partial(symbolic_once, name)) for name in PROGRAMS if is_symbolic(name)]
    for name, (f, types) in SIZED.items():
        for kind, again in (("sized", False), ("again", True)):
            tests.append((f"{kind}/{name}", partial(sized_once, f, types, AT, again)))
    right: dict[str, int] = {}
    count: dict[str, int] = {}
    for name, once in tests:
        if re.search(options.only, name):
            kind = name.partition("/")[0]
            try:
                with interpreted() if options.interpreted else nullcontext():
                    found = once()
            except Exception as error:                     # the judge reports what a program does
                found = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
            count[kind], right[kind] = count.get(kind, 0) + 1, right.get(kind, 0) + (not found)
            print(name, found or "right", flush=True)
    print(", ".join(f"{k}: {right[k]} of {n} right" for k, n in count.items()))
    return 0 if right == count else 1


if __name__ == "__main__":
    sys.exit(main())
