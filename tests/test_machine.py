"""Machine models: schedules depend on their figures, and the text of a pipeline has its machine options."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

import mlc
from mlc import frontend_compiler
from mlc.backends import target
from mlc.backends.cpu.targets import LEVELS
from mlc.backends.target import Target
from mlc.dialects.loop import Kernel, Schedule
from mlc.frontend import devices
from mlc.ir.diag import UserError
from mlc.ir.machine import ANY, CPU, GPU, Cpu, Gpu, Model, x86_64
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.passes import pipeline

AVX1024 = Target("avx1024", LEVELS["x86-64-v4"].triple, "x86-64-v4", LEVELS["x86-64-v4"].features,
                 replace(CPU, vector_bits=1024, vector_registers=64))
SMALL_GPU = replace(GPU, multiprocessors=4, registers=1 << 14, shared_bytes_optin=32 << 10)


def schedule(machine: Model, products: str = "fma", rows: int = 512) -> Schedule:
    module = mlc.lower(mlc.matmul, args=[mlc.spec(rows, 512), mlc.spec(512, 512)], level="tensor").module
    pipeline.lower(module, "loop", machine, products=products)
    return next(module.inside(Kernel)).schedule


def test_an_instruction_set_is_an_entry() -> None:
    wide, known = schedule(AVX1024.machine), schedule(LEVELS["x86-64-v4"].machine)
    assert (wide.lanes, known.lanes) == (32, 16)
    assert wide.tile[0] * wide.tile[1] > known.tile[0] * known.tile[1]
    assert '"prefer-vector-width"="1024"' in mlc_ir(AVX1024)


def mlc_ir(wanted: Target) -> str:
    from mlc.backends.emit_llvm import emit
    module = mlc.lower(mlc.add, args=[mlc.spec(100), mlc.spec(100)], level="tensor").module
    return emit(pipeline.lower(module, "llvm", wanted.machine), wanted)


@pytest.mark.parametrize("products", ["fma", "mma"])
def test_a_gpu_is_an_entry(products: str) -> None:
    small, large = (schedule(machine, products) for machine in (SMALL_GPU, GPU))
    assert small.tile != large.tile or small.threads_per_cta != large.threads_per_cta
    assert Target("toy", "nvptx64-nvidia-cuda", "sm_90", (), replace(GPU, tensor_cores=False)).products(None) == "fma"


def test_caches_and_costs_are_figures() -> None:
    assert "split_k" in str(schedule(CPU, rows=1).steps)
    assert "split_k" not in str(schedule(replace(CPU, l2_bytes=1 << 20), rows=1).steps)
    assert schedule(CPU).thread_dims and not schedule(replace(CPU, handover_ns=10**9)).thread_dims


def test_every_pass_is_told() -> None:
    """In text that is read again: what failed on one machine is replayed on another."""
    odd = replace(CPU, vector_bits=64, scratches=1)
    text = str(pipeline.build(machine=odd))
    assert [s for s in text.split(",") if "machine" in s] == [
        "fuse{machine=scratches:1}", "vectorize{machine=scratches:1;vector_bits:64}",
        "parallelize{machine=scratches:1;vector_bits:64}"]
    assert Pipeline(parse_pipeline(text)).steps == pipeline.build(machine=odd).steps
    assert "machine" not in str(pipeline.build(machine=GPU)) + str(pipeline.build(machine=CPU))
    text = str(pipeline.build(machine=SMALL_GPU))
    assert text.count("machine=multiprocessors:4;registers:16384;shared_bytes_optin:32768") == 2


@pytest.mark.parametrize("model", [ANY, CPU, GPU, x86_64(256), SMALL_GPU, replace(GPU, tensor_cores=False)])
def test_text(model: Model) -> None:
    assert type(model).parse(str(model)) == model


@pytest.mark.parametrize("kind, text", [
    (Cpu, "vector_bitz:3"), (Cpu, "parts:many"), (Cpu, "vector_bits:4"), (Cpu, "parts"), (Cpu, "multiprocessors:3"),
    (Gpu, "tensor_cores:1"), (Gpu, "registers:-1")])
def test_ill_formed(kind: type[Cpu | Gpu], text: str) -> None:
    with pytest.raises(UserError, match="MLC0687"):
        kind.parse(text)


def test_a_vendor_is_a_folder_and_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    vendors = (*target.VENDORS, "toy")

    class Toy(Gpu):
        to_llvm = "dce"

    toy = Target("toy:1", "toy-unknown-unknown", "toy1", (), Toy())
    folder: Any = ModuleType("mlc.backends.toy.targets")
    folder.TARGETS, folder.DEFAULT, folder.DLPACK = {"toy:1": toy}, "toy:1", 99
    monkeypatch.setitem(sys.modules, "mlc.backends.toy", ModuleType("mlc.backends.toy"))
    monkeypatch.setitem(sys.modules, folder.__name__, folder)
    for module in (target, frontend_compiler):
        monkeypatch.setattr(module, "VENDORS", vendors)
    assert Target.parse("toy:1") is Target.default("toy") is toy and toy.vendor == "toy" and toy.is_gpu
    assert devices.as_device("toy:3") == "toy:3" and devices.is_device("toy") and 99 in devices.Devices.dlpack_types()
    assert pipeline.order(toy.machine)[-1][1] == "dce"
    with pytest.raises(UserError, match='use "cpu" or "cuda" or "mesh" or "toy"'):
        devices.as_device("mps")
