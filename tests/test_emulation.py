"""Instructions that x86-64-v2 lacks: the same bits, everywhere."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from mlc.backends.cpu.targets import LEVELS
from mlc.backends.emulation import emulate
from mlc.backends.link import link
from mlc.backends.load import load
from mlc.backends.object_code import compile_object
from mlc.ir import exact

V2 = LEVELS["x86-64-v2"]
TYPES: dict[str, tuple[str, Any, Any]] = {
    "f32": ("float", np.float32, np.uint32), "f64": ("double", np.float64, np.uint64)}


def loop(kind: str, lanes: int) -> str:
    """r[i] = fma(a[i], b[i], c[i]) for i < n, `lanes` elements at a time."""
    scalar = TYPES[kind][0]
    type, prefix = (f"<{lanes} x {scalar}>", f"v{lanes}") if lanes > 1 else (scalar, "")
    loads = "\n".join(f"  %p{x} = getelementptr {scalar}, ptr %{x}, i64 %i\n  %v{x} = load {type}, ptr %p{x}, align 1"
                      for x in "abc")
    return f"""
define void @run(ptr %a, ptr %b, ptr %c, ptr %r, i64 %n) #0 {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
{loads}
  %x = call {type} @llvm.fma.{prefix}{kind}({type} %va, {type} %vb, {type} %vc)
  %pr = getelementptr {scalar}, ptr %r, i64 %i
  store {type} %x, ptr %pr, align 1
  %next = add i64 %i, {lanes}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %done
done:
  ret void
}}
declare {type} @llvm.fma.{prefix}{kind}({type}, {type}, {type})
attributes #0 = {{ nounwind }}
"""


def numbers(kind: str, count: int, seed: int) -> np.ndarray[Any, Any]:
    """Floats of every exponent, among them many of like size, simple ones and all special ones."""
    _, dtype, bits = TYPES[kind]
    rng = np.random.default_rng(seed)
    anything = rng.integers(0, 2 ** (np.dtype(bits).itemsize * 8), count, dtype=bits).view(dtype)
    near = rng.standard_normal(count).astype(dtype)
    simple = (rng.integers(-8, 8, count) * 2.0 ** rng.integers(-30, 30, count)).astype(dtype)
    tiny = (near * np.finfo(dtype).tiny).astype(dtype)
    special = rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, np.finfo(dtype).max,
                                   np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal], dtype), count)
    return np.choose(rng.integers(0, 5, count), [anything, near, simple, tiny, special])


@pytest.mark.parametrize("kind, lanes", [("f32", 1), ("f32", 4), ("f64", 1), ("f64", 2)])
def test_emulated_fma_has_the_bits_of_fma(kind: str, lanes: int) -> None:
    code = emulate(loop(kind, lanes), V2.features)
    assert "llvm.fma" not in code
    library = load(link(compile_object(code, V2), ["run"]))
    run = library.function("run", None, [ctypes.c_void_p] * 4 + [ctypes.c_int64])
    count = 200_000 if kind == "f32" else 60_000
    with np.errstate(all="ignore"):
        a, b, c = (numbers(kind, count, seed) for seed in range(3))
        c[::4] = -(a * b)[::4]                             # cancellation
        b[1::4] = c[1::4] / a[1::4]
    r = np.empty_like(a)
    run(*(x.ctypes.data for x in (a, b, c, r)), count)
    wanted = exact.fma(a, b, c)
    bits = TYPES[kind][2]
    same = (r.view(bits) == wanted.view(bits)) | (np.isnan(r) & np.isnan(wanted))
    assert same.all(), [(float(x[~same][0]).hex()) for x in (a, b, c, r, wanted)]


CAST = """
define void @run(ptr %x, ptr %r, i64 %n) #0 {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %px = getelementptr {source}, ptr %x, i64 %i
  %v = load <4 x {source}>, ptr %px, align 1
  %y = {cast} <4 x {source}> %v to <4 x {target}>
  %pr = getelementptr {target}, ptr %r, i64 %i
  store <4 x {target}> %y, ptr %pr, align 1
  %next = add i64 %i, 4
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %done
done:
  ret void
}
attributes #0 = { nounwind }
"""


@pytest.mark.parametrize("cast", ("fpext", "fptrunc"))
def test_f16_converts_as_numpy_does(cast: str) -> None:
    """All f16; f32 around every f16 and every number half way between two."""
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        exact_f32 = half.astype(np.float32)
        ways = exact_f32.view(np.uint32)[:, None] + np.array([-1, 0, 1, 0xFFF, 0x1000, 0x1001], np.int64)
        x, source, target, dtype = (half, "half", "float", np.float32) if cast == "fpext" else (
            ways.astype(np.uint32).ravel().view(np.float32), "float", "half", np.float16)
        wanted = x.astype(dtype)
    code = CAST.replace("{source}", source).replace("{target}", target).replace("{cast}", cast)
    library = load(link(compile_object(emulate(code, V2.features), V2), ["run"]))
    r = np.empty(len(x), dtype)
    library.function("run", None, [ctypes.c_void_p] * 2 + [ctypes.c_int64])(x.ctypes.data, r.ctypes.data, len(x))
    bits = f"u{r.itemsize}"
    assert ((r.view(bits) == wanted.view(bits)) | (np.isnan(r) & np.isnan(wanted))).all()
