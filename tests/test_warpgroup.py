"""Products of warpgroups (wgmma): from the schedule to PTX, and the faults that the interpreter finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends.cuda import ptxas
from mlc.backends.cuda.ptx import kernels, ptx
from mlc.backends.cuda.targets import TARGETS
from mlc.dialects.builtin import Module
from mlc.ir.diag import BackendError, IRError
from mlc.ir.interp import run_function
from mlc.ir.machine import HOPPER
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from mlc.passes import pipeline
from tests import upstream

Array = np.ndarray[Any, Any]
TARGET = TARGETS["cuda:sm_90a"]
FORMS: dict[str, Any] = {"a b": lambda a, b: a @ b, "a b'": lambda a, b: a @ b.T, "a' b": lambda a, b: a.T @ b,
                         "a' b'": lambda a, b: a.T @ b.T}


def product(form: str, m: int, n: int, k: int, dtype: str = "bfloat16") -> tuple[Module, list[Array]]:
    """A product with a sum and a factor after it, recorded, and its arguments."""
    rng = np.random.default_rng(0)
    shapes = (k, m) if "a'" in form else (m, k), (n, k) if "b'" in form else (k, n)
    args = [mlc.tensor(rng.standard_normal(s, np.float32)).to(dtype) for s in shapes]
    made = mlc.compile(lambda a, b: FORMS[form](a, b).float() * 2 + 1).lower(*args, level="tensor")
    assert isinstance(made.module, Module)
    return made.module, [a.numpy() for a in args]


def lowered(module: Module, level: str) -> Module:
    pipeline.lower(module, level, machine=HOPPER, products="mma")
    return module


@pytest.mark.parametrize(("form", "sizes", "dtype"), [
    ("a b", (64, 64, 64), "bfloat16"), ("a b'", (96, 72, 128), "float16"), ("a' b", (136, 64, 192), "bfloat16"),
    ("a' b'", (64, 264, 320), "bfloat16"), ("a b", (130, 136, 257), "bfloat16")], ids=str)
def test_products_have_the_numbers_of_every_level(form: str, sizes: tuple[int, int, int], dtype: str) -> None:
    module, args = product(form, *sizes, dtype)
    exact = FORMS[form](*(a.astype(np.float64) for a in args)) * 2 + 1
    wanted: list[Any] = []

    def after(step: Any, module: Any) -> None:
        if step.transform.name in ("distribute", "dce", "gpu_to_nvvm"):
            found, = run_function(module, "main", args)
            wanted.append(found)
            assert np.array_equal(found, wanted[0]), step.transform.name

    pipeline.lower(module, "llvm", HOPPER, Instruments(after=after, verify_each=True), products="mma")
    assert "wgmma.mma_async" in to_text(module) and len(wanted) == 3
    rounding = 2.0 ** -7 if dtype == "bfloat16" else 2.0 ** -10
    assert np.abs(wanted[0] - exact).max() < rounding * np.abs(exact).max()


def test_upstream_reads_the_dumps_and_ptxas_their_ptx() -> None:
    module, _ = product("a b", 4096, 4096, 4096)
    for level in ("low", "llvm"):
        pipeline.resume(module, level, machine=HOPPER) if level == "llvm" else lowered(module, level)
        upstream.verify_text(to_text(module, generic=True))
        assert to_text(parse_module(to_text(module))) == to_text(module)
    text = ptx(kernels(module), TARGET)
    assert text.count("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16") == 4
    if ptxas.find() is None:
        pytest.skip("the PTX is not assembled: ptxas is not installed (pip install nvidia-cuda-nvcc==13.0.88)")
    found, = ptxas.resources(text, TARGET)
    assert not found.spilled


@pytest.mark.parametrize(("old", "new", "message"), [
    ("nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}", "",
     "no nvvm.fence.proxy of that thread in between"),
    ("nvvm.wgmma.wait.group.sync.aligned 1", "nvvm.wgmma.wait.group.sync.aligned 3",
     "writes what a product of a warpgroup reads that has not been waited for"),
    ("nvgpu.device_async_wait %{{group}} {numGroups = 1 : i32}", "", "copies and has not waited for"),
    ("gpu.barrier", "", "no barrier orders the two accesses to shared memory")])
def test_faults_are_found(old: str, new: str, message: str) -> None:
    module, args = product("a b", 64, 64, 512)
    text = to_text(lowered(module, "low"))
    if "{{group}}" in old:
        line = next(line for line in text.splitlines() if "nvgpu.device_async_wait" in line)
        old = line.strip()
    assert old in text
    with pytest.raises(IRError, match=message):
        run_function(parse_module(text.replace(old, new)), "main", args)


@pytest.mark.parametrize(("old", "new"), [
    ("tile = [2, ", "tile = [4, "), ("threads_per_cta = [64, 4]", "threads_per_cta = [32, 8]"),
    ("mma_warps = 4", "mma_warps = 2"), ("lanes = 2", "lanes = 4")])
def test_schedules_that_warpgroups_cannot_carry_out_are_refused(old: str, new: str) -> None:
    module, _ = product("a b", 4096, 4096, 64)
    text = to_text(lowered(module, "loop"))
    assert "mma_warps = 4" in text and old in text
    with pytest.raises(IRError, match="mma_warps = "):
        verify(parse_module(text.replace(old, new)))


def test_factors_that_cannot_be_copied_in_pieces_are_multiplied_by_single_warps() -> None:
    for form, sizes in (("a b", (64, 65, 64)), ("a b'", (64, 64, 80))):
        text = to_text(lowered(product(form, *sizes)[0], "loop"))
        assert "threads_per_warp = [8, 4]" in text and "mma_warps" not in text


@pytest.mark.parametrize(("old", "new"), [
    ("swizzle = 128", "swizzle = 0"), ("mma_warps = 4, ", ""), ("stages = 4", "stages = 2"),
    ("{dim = 2, size = 16}", "{dim = 2, size = 32}"), (", 64], vector", ", 96], vector")])
def test_edited_dumps_that_warpgroups_cannot_carry_out_are_refused(old: str, new: str) -> None:
    text = to_text(lowered(product("a b'", 64, 64, 256)[0], "loop"))
    pipeline.resume(parse_module(text), "low", machine=HOPPER)      # as it is, it can be lowered
    assert old in text
    with pytest.raises(IRError, match=r"MLC0(151|171|150)"):
        module = parse_module(text.replace(old, new))
        verify(module)
        pipeline.resume(module, "low", machine=HOPPER)


@pytest.mark.parametrize("form", FORMS)
def test_a_stage_may_have_several_rows_of_the_pattern(form: str) -> None:
    built, args = product(form, 64, 64, 256)
    text, found = to_text(lowered(built, "loop")), []
    for edited in (text, text.replace(", 64], vector", ", 128], vector")):
        module = pipeline.resume(parse_module(edited), "low", machine=HOPPER)
        found.append(np.asarray(run_function(module, "main", args)[0]))
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize(("target", "old", "new"), [
    ("cuda:sm_90", "", ""), ("cuda:sm_100", "", ""), ("cuda:sm_90a", "1, 1, 1, 0, 1;", "1, 1, 1, 0, 2;"),
    ("cuda:sm_90a", "{$0, $1, ", "{$1, $0, "), ("cuda:sm_90a", " has_side_effects", "")])
def test_instructions_that_a_target_has_not_never_reach_llvm(target: str, old: str, new: str) -> None:
    text = to_text(lowered(product("a b", 64, 64, 64)[0], "llvm"))
    assert old in text and ptx(kernels(parse_module(text)), TARGET)
    with pytest.raises(BackendError, match="MLC0548"):
        ptx(kernels(parse_module(text.replace(old, new) if old else text)), TARGETS[target])
