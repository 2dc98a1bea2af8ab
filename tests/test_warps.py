"""Warp-level operations as PTX defines them: matrix products of fragments, and asynchronous copies."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlc.backends.cuda.ptx import kernels, ptx
from mlc.backends.cuda.targets import TARGETS as GPUS
from mlc.dialects.builtin import Module
from mlc.dialects.loop import Kernel
from mlc.ir.core import Op
from mlc.ir.diag import BackendError, IRError
from mlc.ir.interp import Interpreter, run_function
from mlc.ir.machine import GPU
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Step
from mlc.ir.printer import to_text
from mlc.passes import pipeline
from tests import upstream
from tests.test_gpu import assembled
from tests.test_gpu import product as made
from tests.test_meaning import same_bits

Array = np.ndarray[Any, Any]
PRODUCT, TF32 = ((Path(__file__).parent / f"cases/nvgpu/{name}.mlir").read_text() for name in ("product", "tf32"))
WORDS = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}


def product(text: str, dtype: str, level: str = "low") -> tuple[Array, Array]:
    """Result of the kernel of tests/cases/nvgpu for two matrices, and the expected one."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(WORDS[dtype]) for shape in ((16, 16), (16, 8)))
    module, out = parse_module(text.replace("bf16", dtype), "k.mlir"), np.zeros((16, 8), "f4")
    if level == "llvm":
        pipeline.resume(module, level, machine=GPU)
    Interpreter(module).call("main", [a, b, out])
    total = np.zeros((16, 8))
    for k in range(16):
        total += np.outer(a[:, k].astype("f8"), b[k].astype("f8"))
    return out, (1 + total).astype("f4")


@pytest.mark.parametrize("level", ["low", "llvm"])
@pytest.mark.parametrize("dtype", WORDS)
def test_a_warp_multiplies(dtype: str, level: str) -> None:
    found, wanted = product(PRODUCT, dtype, level)
    assert found.tobytes() == wanted.tobytes()


def test_tf32_leaves_bits_out() -> None:
    """The whole of A and B equal: what is added up is 8 times a product of numbers with 10 bits after the point."""
    for level in ("low", "llvm"):
        module, out = parse_module(TF32), np.zeros((32, 4), "f4")
        if level == "llvm":
            pipeline.resume(module, level, machine=GPU)
        Interpreter(module).call("main", [np.float32(1 + 2**-10 + 2**-20), out])
        assert (out[:, 0] == np.float32(0.5 + 8 * (1 + 2**-10) ** 2)).all()


FAULTS = {
    "not waited for": ("nvgpu.device_async_wait %second {numGroups = 0 : i32}\n", "",
                       r"k\.mlir:33.*MLC0185.*reads what thread 15 of block 0 copies and has not waited for"),
    "waits for too few": ("%second {numGroups = 0", "%second {numGroups = 1",
                          "MLC0185.*reads what thread 15 of block 0"),
    "no barrier after it": ("gpu.barrier\n      %y", "%y", "MLC0181.*no barrier"),
    "a row at an odd place": ("nvgpu.ldmatrix %l[%row, %column]", "nvgpu.ldmatrix %l[%row, %half]",
                              "MLC0163.*no multiple of 16"),
    "a copy of what is not there": ("%a[%row, %column], %l", "%a[%row, %lane], %l", "MLC0163.*outside of size 16"),
    "two copies to one place": ("%b[%back, %zero], %r[%back, %zero]", "%b[%row, %zero], %r[%zero, %zero]",
                                "MLC0181.*writes what thread 15 of block 0 writes"),
    "half a warp": ("%x = nvgpu.ldmatrix %l[%row, %column]", "%v = scf.if %upper -> vector<4x2xbf16> {\n"
                    "%u = nvgpu.ldmatrix %l[%row, %column] {transpose = false, numTiles = 4} : memref<16x16xbf16, "
                    "#gpu.address_space<workgroup>> -> vector<4x2xbf16>\nscf.yield %u : vector<4x2xbf16>\n} else {\n"
                    "%w = arith.constant dense<0.0> : vector<4x2xbf16>\nscf.yield %w : vector<4x2xbf16>\n}\n"
                    "%x = nvgpu.ldmatrix %l[%row, %column]", "MLC0183.*thread 16 of block 0 does not take part")}


@pytest.mark.parametrize("level", ["low", "llvm"])
@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(name: str, level: str) -> None:
    old, new, message = FAULTS[name]
    assert old in PRODUCT
    if level == "llvm" and "outside of size" in message:
        message = "MLC0163.*leaves the memory|MLC0185"
    with pytest.raises(IRError, match=message):
        product(PRODUCT.replace(old, new, 1), "bf16", level)


@pytest.mark.parametrize("dtype", WORDS)
def test_ptx_and_upstream(dtype: str) -> None:
    module = parse_module(PRODUCT.replace("bf16", dtype), "k.mlir")
    upstream.verify_text(to_text(module, generic=True))
    pipeline.resume(module, "llvm", machine=GPU)
    upstream.verify_text(to_text(module, generic=True))
    text = ptx(kernels(module), GPUS["cuda:sm_80"])
    for word in (f"mma.sync.aligned.m16n8k16.row.col.f32.{dtype}.{dtype}.f32", "ldmatrix.sync.aligned.m8n8.x4.shared",
                 "ldmatrix.sync.aligned.m8n8.x2.trans.shared", "cp.async.cg.shared.global", "cp.async.wait_group"):
        assert word in text
    for architecture in ("sm_80", "sm_90"):
        assembled(ptx(kernels(module), GPUS[f"cuda:{architecture}"]), architecture)


def test_instructions_that_are_newer_than_the_target_never_reach_llvm() -> None:
    """LLVM would end the process."""
    module = pipeline.resume(parse_module(PRODUCT, "k.mlir"), "llvm", machine=GPU)
    with pytest.raises(BackendError, match=r"k\.mlir:\d+.*MLC0548.*no instruction on sm_75: there is one since sm_80"):
        ptx(kernels(module), GPUS["cuda:sm_75"])


# -- products of programs ---------------------------------------------------------------------------------------------
PRODUCTS = {"rest": made("40x48xbf16", "48x72xbf16"), "rhs transposed": made("33x64xf16", "50x64xf16", axes=(1, 1)),
            "lhs transposed": made("32x33xbf16", "32x50xbf16", axes=(0, 0)), "tiny": made("5x32xbf16", "32x3xbf16"),
            "one row": made("1x32xbf16", "32x40xbf16"), "convolution": made("2x16x9x9xbf16", "16x16x3x3xbf16"),
            "batched": made("3x33x48xbf16", "3x48x36xbf16", axes=(2, 1), batch=1),
            "many stages": made("64x160xbf16", "160x64xbf16"),
            "tf32": made("40x40xf32", "40x72xf32"), "tf32, rhs transposed": made("33x64xf32", "50x64xf32", axes=(1, 1)),
            "tf32, lhs transposed": made("24x36xf32", "24x52xf32", axes=(0, 0)),
            "tf32, tiny": made("5x8xf32", "8x3xf32"),
            "tf32, one row": made("1x32xf32", "32x40xf32"), "tf32, convolution": made("2x8x9x9xf32", "16x8x3x3xf32"),
            "tf32, batched": made("3x33x48xf32", "3x48x36xf32", axes=(2, 1), batch=1),
            "tf32, many stages": made("64x80xf32", "64x80xf32", axes=(1, 1))}


@pytest.mark.parametrize("name", PRODUCTS)
def test_tensor_cores_keep_the_order_that_asks_for_them(name: str) -> None:
    module, arguments = PRODUCTS[name]()
    wanted: list[Any] = []

    def after(step: Step, lowered: Op) -> None:
        if step.transform.name == "fix_numerics":
            wanted[:] = run_function(lowered, "main", arguments)
        elif step.transform.name in ("distribute", "loop_to_gpu", "dce", "gpu_to_nvvm"):
            same_bits(run_function(lowered, "main", arguments), wanted, step.transform.name)
        if step.transform.name == "distribute":
            assert any(k.schedule.threads_per_warp for k in lowered.inside(Kernel)) == ("one row" not in name)
        if step.transform.name in ("loop_to_gpu", "gpu_to_nvvm"):
            upstream.verify_text(to_text(lowered, generic=True))

    passes = pipeline.build(machine=GPU, products="tf32" if "tf32" in name else "mma")
    passes.run(module, Instruments(verify_each=True, after=after))
    assert "mma" in to_text(module) or "one row" in name


@pytest.mark.parametrize("shape", [("1024x1024xbf16", "1024x1024xbf16"), ("500x256xf16", "256x1000xf16"),
                                   ("8x64x56x56xbf16", "64x64x3x3xbf16"), ("1024x1024xf32", "1024x1024xf32"),
                                   ("500x256xf32", "256x1000xf32")], ids=" ".join)
def test_ptx_of_tensor_cores(shape: tuple[str, str]) -> None:
    module: Module = made(*shape)()[0]
    pipeline.lower(module, machine=GPU, products="tf32")
    for architecture in ("sm_80", "sm_90"):
        text = ptx(kernels(module), GPUS[f"cuda:{architecture}"])
        assert "mma.sync" in text
        assembled(text, architecture)
