"""Attention in one kernel on a GPU with tensor cores: a block of keys at a time, without the matrix of all scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.nn.functional as F
from mlc.backends.cuda import ptxas
from mlc.backends.cuda.ptx import kernels, ptx
from mlc.backends.cuda.targets import TARGETS
from mlc.dialects import gpu, nvgpu, nvvm
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module, module
from mlc.dialects.func import Return
from mlc.dialects.func import function as func
from mlc.dialects.llvm import InlineAsm
from mlc.dialects.loop import For, Kernel, Load
from mlc.ir.core import Op, at_end
from mlc.ir.diag import IRError
from mlc.ir.interp import run_function
from mlc.ir.machine import GPU, HOPPER, Gpu
from mlc.ir.passes import Instruments, Pipeline, Step
from mlc.ir.verify import verify
from mlc.passes import pipeline
from tests.arrays import Array
from tests.corpus import numbers
from tests.fake_device import FakeDevice
from tests.op_samples import t

MACHINES = {"mma.sync": GPU, "wgmma": HOPPER}
ROUNDING = 2.0 ** -8
"""Of a weight or of a result in bf16, relative to the largest number."""


SAME = ("fix_numerics", "tensor_to_loop"), ("fix_numerics", "distribute"), ("loop_to_gpu", "gpu_to_nvvm")
"""Passes after which results are the same, to the bit."""


def attention(*types: str, causal: bool = False) -> tuple[Module, list[Array]]:
    """A module with attention of three operands, or with its derivative of five."""
    arguments = [t(x) for x in types]
    inside, main = module(), func("main", arguments)
    inside.body.block.insert(main)
    with at_end(main.block):
        q, k, v, *more = main.args
        op: Op = tn.AttentionGrad(q, k, v, more[0], more[1], None, 0.125, causal) if more else tn.Attention(
            q, k, v, None, 0.125, causal)
        Return(tuple(op.results))
    main.update_type()
    return inside, numbers(arguments)


def lowered(built: Module, arguments: list[Array], machine: Gpu) -> list[Array]:
    """The results of threads, which must be those of kernels but for the last bits of products, and those of
    instructions. Kernels must have the bits of the operations that they are made of."""
    found: dict[str, list[Array]] = {}

    def after(step: Step, now: Op) -> None:
        if (name := step.transform.name) in {name for pair in SAME for name in pair}:
            found[name] = [np.asarray(x) for x in run_function(now, "main", arguments)]

    steps = pipeline.steps("llvm", machine=machine, products="mma")
    Pipeline(steps).run(built, Instruments(verify_each=True, after=after))
    for one, other in SAME:
        assert [x.tobytes() for x in found[one]] == [x.tobytes() for x in found[other]], (one, other)
    for a, b in zip(found["loop_to_gpu"], found["distribute"]):
        assert apart(a, b) <= ROUNDING
    return found["loop_to_gpu"]


def apart(found: Any, wanted: Any) -> float:
    """The largest difference, relative to the largest number."""
    a, b = (np.asarray(x).astype(np.float64) for x in (found, wanted))
    return float(np.abs(a - b).max() / np.abs(b).max())


CASES: dict[str, tuple[tuple[str, str, str], bool]] = {
    "whole blocks": (("2x128x64xbf16", "2x128x64xbf16", "2x128x64xbf16"), False),
    "causal": (("2x150x64xbf16", "2x150x64xbf16", "2x150x64xbf16"), True),
    "more keys than queries": (("70x128xbf16", "200x128xbf16", "200x128xbf16"), True),
    "more queries than keys": (("90x64xbf16", "33x64xbf16", "33x128xbf16"), True),
    "heads that share keys": (("2x2x40x64xf16", "2x70x64xf16", "2x70x64xf16"), False),
    "few features": (("3x40x32xbf16", "3x70x32xbf16", "3x70x48xbf16"), True)}


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("name", CASES)
def test_threads_compute_attention(name: str, kind: str) -> None:
    types, causal = CASES[name]
    built, arguments = attention(*types, causal=causal)
    wanted = next(built.inside(tn.Attention)).ref(*(a.astype(np.float64) for a in arguments))
    found, = lowered(built, arguments, MACHINES[kind])
    assert apart(found, wanted) <= 4 * ROUNDING


GRADIENTS = {"whole blocks": (128, 128, 64, False), "causal": (70, 150, 64, True), "more queries": (80, 40, 128, True),
             "few features": (40, 70, 48, False)}


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("name", GRADIENTS)
def test_threads_compute_gradients(name: str, kind: str) -> None:
    queries, keys, features, causal = GRADIENTS[name]
    types = [f"2x{n}x{features}xbf16" for n in (queries, keys, keys, queries, queries)]
    built, arguments = attention(*types, causal=causal)
    wanted = next(built.inside(tn.AttentionGrad)).ref(*(a.astype(np.float64) for a in arguments))
    found = lowered(built, arguments, MACHINES[kind])
    assert max(map(apart, found, wanted)) <= 4 * ROUNDING


def test_warps_or_warpgroups_multiply() -> None:
    for kind, instruction in (("mma.sync", nvgpu.MmaSync), ("wgmma", InlineAsm)):
        built, _ = attention(*["2x128x64xbf16"] * 3)
        pipeline.lower(built, "low", machine=MACHINES[kind], products="mma")
        launched = [op for op in built.walk() if isinstance(op, gpu.Func)]
        assert len(launched) == 1 and any(isinstance(op, instruction) for op in launched[0].walk())
        assert any(isinstance(op, nvvm.WgmmaFence) for op in launched[0].walk()) == (kind == "wgmma")


@pytest.mark.parametrize("types", [("2x16x64xbf16", "2x64x64xbf16", "2x64x64xbf16"), ("2x64x64xf32",) * 3,
                                   ("2x64x36xbf16",) * 3, ("BxNx64xbf16",) * 3])
def test_what_has_no_kernel_is_computed_from_all_scores(types: tuple[str, str, str]) -> None:
    built, _ = attention(*types)
    Pipeline(pipeline.steps("loop", machine=HOPPER, products="mma")).run(built)
    assert not any(op.scores_dim >= 0 for op in built.walk() if op.name == "loop.kernel")  # type: ignore[attr-defined]


def special_rows(arguments: list[Array]) -> list[Array]:
    """Queries that are infinite, NaN and so large that an exponent has no fraction, and values that are infinite."""
    q, k, v = (a.copy() for a in arguments)
    q[0, 3, 0], q[0, 5, 1], q[0, 7], q[1, 9] = np.inf, np.nan, 1e4, 1e12
    v[1, 2, 4], v[0, -1, 4] = np.inf, np.inf
    return [q, k, v]


@pytest.mark.parametrize("keys, causal", [(64, True), (70, False)])
@pytest.mark.parametrize("kind", MACHINES)
def test_special_numbers(kind: str, keys: int, causal: bool) -> None:
    built, arguments = attention("2x64x64xbf16", f"2x{keys}x64xbf16", f"2x{keys}x64xbf16", causal=causal)
    arguments = special_rows(arguments)
    wanted = next(built.inside(tn.Attention)).ref(*arguments).astype(np.float64)
    Pipeline(pipeline.steps("low", machine=MACHINES[kind], products="mma")).run(built)
    found = np.asarray(run_function(built, "main", arguments)[0]).astype(np.float64)
    assert np.array_equal(np.isnan(found), np.isnan(wanted)) and np.array_equal(np.isinf(found), np.isinf(wanted))
    finite = np.isfinite(wanted)
    assert np.abs(found[finite] - wanted[finite]).max() <= 4 * ROUNDING * np.abs(wanted[finite]).max()


@pytest.mark.parametrize("kind, target, types", [
    ("mma.sync", "cuda:sm_80", ("8x1024x64xbf16",) * 5), ("mma.sync", "cuda:sm_80", ("8x1024x128xf16",) * 3),
    ("wgmma", "cuda:sm_90a", ("8x1024x64xf16",) * 3), ("wgmma", "cuda:sm_90a", ("8x1024x128xbf16",) * 5),
    ("wgmma", "cuda:sm_90a", ("64x1024x112xbf16",) * 3)])
def test_kernels_need_no_memory_for_registers(kind: str, target: str, types: tuple[str, ...]) -> None:
    built, _ = attention(*types, causal=True)
    pipeline.lower(built, "llvm", machine=MACHINES[kind], products="mma")
    text = ptx(kernels(built), TARGETS[target])
    if ptxas.find() is None:
        pytest.skip("PTX is made, but not assembled: ptxas is not installed (pip install nvidia-cuda-nvcc==13.0.88)")
    assert "ex2.approx.ftz.f32" in text
    assert not any(found.spilled for found in ptxas.resources(text, TARGETS[target]))


def test_blocks_that_are_left_out_must_change_nothing() -> None:
    built, arguments = attention(*["2x70x64xbf16"] * 3, causal=True)
    Pipeline(pipeline.steps("loop", machine=GPU, products="mma")).run(built)
    loop = next(op for op in built.walk() if isinstance(op, For) and op.until is not None)
    assert loop.until is not None
    loop.until = type(loop.until).get(loop.until.dims, [0])
    with pytest.raises(IRError, match="beyond `until`, but changes what is carried"):
        run_function(built, "main", arguments)


@pytest.mark.parametrize(("edit", "message"), [
    ({"tile": (1, 2, 16, 64, 32)}, "all of a score"), ({"tile": (1, 4, 16, 64, 64)}, "scores of 16 queries"),
    ({"size": 12}, "blocks of 12 keys"), ({"size": 8}, "blocks of 8 keys"),
    ({"size": 32}, "those of a tile")])
def test_blocks_that_warps_do_not_have_are_refused(edit: dict[str, Any], message: str) -> None:
    """They read outside of shared memory, or were an error of the compiler's own."""
    built, _ = attention(*["2x70x64xbf16"] * 3, causal=True)
    steps = pipeline.steps("low", machine=GPU, products="mma")
    cut = next(i for i, step in enumerate(steps) if step.transform.name == "loop_to_gpu")
    Pipeline(steps[:cut]).run(built)
    kernel = next(built.inside(Kernel))
    if "size" in edit:
        next(op for op in kernel.inside(For) if op.dim == kernel.scores_dim).size = edit["size"]
    else:
        kernel.reschedule(**edit)
    with pytest.raises(IRError, match=f"MLC0171.*{message}"):
        Pipeline(steps[cut:]).run(built)


def test_values_that_a_query_does_not_see_may_be_infinite() -> None:
    built, arguments = attention(*["2x150x64xbf16"] * 3, causal=True)
    q, k, v = (a.copy() for a in arguments)
    v[1, 140, 4] = np.inf
    Pipeline(pipeline.steps("loop", machine=GPU, products="mma")).run(built)
    found = np.asarray(run_function(built, "main", [q, k, v])[0])
    assert not np.isfinite(found[1, :, 4]).any() and np.isfinite(np.delete(found[1], 4, -1)).all()
    assert np.isfinite(found[0]).all()


def test_attention_of_a_model_on_a_device(device: FakeDevice) -> None:
    """The kernel reads queries, keys and values where they lie, before axes of heads and positions are swapped."""
    def f(x: mlc.Tensor, w: mlc.Tensor) -> mlc.Tensor:
        q, k, v = (part.reshape((2, 48, 2, 32)).transpose(1, 2) for part in mlc.split(x, 64, -1))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).reshape((2, 48, 64)) @ w

    rng = np.random.default_rng(0)
    x, w = (mlc.tensor(rng.standard_normal(shape, np.float32)).bfloat16() for shape in ((2, 48, 192), (64, 64)))
    compiled = mlc.compile(f, target="cuda")
    wanted, found = mlc.compile(f)(x, w).float().numpy(), compiled(x, w).float().numpy()
    assert np.abs(found - wanted).max() <= 4 * ROUNDING * np.abs(wanted).max()
    module = compiled.lower(x, w, level="loop").module
    kernel = next(op for op in module.walk() if isinstance(op, Kernel) and op.scores_dim >= 0)
    read = [op.buffer.type.shape for op in kernel.walk() if isinstance(op, Load)]
    assert read == [(2, 48, 2, 32)] * 3


def random(rng: np.random.Generator, *shape: int) -> mlc.Tensor:
    return mlc.tensor(rng.standard_normal(shape, np.float32)).bfloat16()


def heads(x: mlc.Tensor) -> mlc.Tensor:
    return x.transpose(1, 2)


def rotated(x: mlc.Tensor, cos: mlc.Tensor, sin: mlc.Tensor) -> mlc.Tensor:
    a, b = mlc.chunk(x, 2, -1)
    return mlc.cat((a * cos - b * sin, a * sin + b * cos), -1)


OPERANDS: dict[str, tuple[Callable[..., tuple[mlc.Tensor, ...]], tuple[tuple[int, ...], ...]]] = {
    "computed, then moved": (lambda q, k, v, b: (heads(q + b), heads(k + b), heads(v + b)),
                             ((1, 40, 2, 32), (1, 70, 2, 32), (1, 70, 2, 32), (32,))),
    "converted, then moved": (lambda *xs: tuple(heads(x.float().bfloat16()) for x in xs),
                              ((1, 40, 2, 32), (1, 70, 2, 32), (1, 70, 2, 32))),
    "rotated": (lambda q, k, v, c, s: (heads(rotated(q, c, s)), heads(rotated(k, c, s)), heads(v)),
                ((1, 40, 2, 32), (1, 40, 2, 32), (1, 40, 2, 32), (40, 1, 16), (40, 1, 16))),
    "one row for all": (lambda q, k, v: (q.expand((2, 40, 64)), k.expand((2, 70, 64)), v.expand((2, 70, 64))),
                        ((2, 1, 64), (2, 1, 64), (64,))),
    "one row of heads": (lambda q, k, v: (q, k.expand((70, 2, 64)).transpose(0, 1), v),
                         ((2, 40, 64), (1, 2, 64), (2, 70, 64))),
    "one element of rows": (lambda q, k, v: (q.expand((2, 40, 64)), k, v.expand((2, 70, 64))),
                            ((2, 40, 1), (2, 70, 64), (2, 70, 1))),
    "constants": (lambda k: (mlc.ones(2, 40, 64).bfloat16(), k, mlc.ones(2, 70, 64).bfloat16()), ((2, 70, 64),)),
    "heads of keys alone": (lambda q, k, v: (q, k, v), ((2, 1, 40, 64), (1, 2, 70, 64), (2, 2, 70, 64))),
    "keys that batches share": (lambda q, k, v: (q, k.expand((2, 70, 64)), v), ((2, 40, 64), (70, 64), (2, 70, 64)))}


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_that_are_computed_or_broadcast(name: str, device: FakeDevice) -> None:
    """Operands that cannot be copied from memory in pieces are stored there first; moving pieces is part of it."""
    make, shapes = OPERANDS[name]
    rng = np.random.default_rng(0)
    arguments = [random(rng, *shape) for shape in shapes]

    def f(*xs: mlc.Tensor) -> mlc.Tensor:
        q, k, v = make(*xs)
        return F.scaled_dot_product_attention(q, k, v)

    compiled, wanted = mlc.compile(f, target="cuda"), mlc.compile(f)(*arguments).float().numpy()
    found = compiled(*arguments).numpy().astype(np.float32)
    assert np.abs(found - wanted).max() <= 4 * ROUNDING * np.abs(wanted).max()
    module = compiled.lower(*arguments, level="loop").module
    assert any(op.scores_dim >= 0 for op in module.walk() if isinstance(op, Kernel))


def test_blocks_that_a_tree_does_not_halve_are_refused() -> None:
    """The block is that of the loop, where it is not the tile."""
    built, _ = attention(*["2x70x64xbf16"] * 3)
    Pipeline(pipeline.steps("loop", machine=GPU, products="mma")).run(built)
    kernel = next(built.inside(Kernel))
    next(op for op in kernel.inside(For) if op.dim == kernel.scores_dim).size = 7
    with pytest.raises(IRError, match=r"MLC0151.*blocks of 7 points of d3 are not a power of two"):
        verify(built)
