"""Kernels as GPU threads: results bit for bit as at higher levels, detection of undefined behaviour, and PTX."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.nn.functional as F
from mlc.backends.cuda import ptxas
from mlc.backends.cuda.ptx import check_legal, kernels, ptx
from mlc.backends.cuda.targets import TARGETS as GPUS
from mlc.dialects import gpu
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module, module
from mlc.dialects.func import Return
from mlc.dialects.func import function as func
from mlc.dialects.loop import Kernel
from mlc.ir.core import Op, Value, at_end
from mlc.ir.diag import BackendError, IRError
from mlc.ir.interp import Interpreter, run_function
from mlc.ir.machine import GPU
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Pipeline, Step
from mlc.ir.printer import to_text
from mlc.ir.types import i32
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.passes.schedule import gpu_transforms
from mlc.passes.schedule.transforms import tile
from tests import upstream
from tests.corpus import PROGRAMS, numbers
from tests.op_samples import SAMPLES, Sample, t
from tests.public_case import thinned
from tests.test_meaning import representative, same_bits

Array = np.ndarray[Any, Any]
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")


def check(module: Op, arguments: list[Any], products: str = "fma") -> None:
    """Lower a module for a GPU: once numbers are fixed every pass keeps every bit, down to instructions of threads."""
    wanted: list[Any] = []

    def after(step: Step, lowered: Op) -> None:
        name = step.transform.name
        if name == "fix_numerics":
            wanted[:] = run_function(lowered, "main", arguments)
        elif name in ("distribute", "dce", "gpu_to_nvvm"):    # dce cleans up after loop_to_gpu
            same_bits(run_function(lowered, "main", arguments), wanted, name)

    every = pipeline.steps("llvm", machine=GPU, products=products)
    own = [step.transform.name for step in every].index("distribute")
    Pipeline(every[:own]).run(module, Instruments(after=after))               # verified in tests/test_meaning.py
    Pipeline(every[own:]).run(module, Instruments(verify_each=True, after=after))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    check(*PROGRAMS[name]())


@pytest.mark.parametrize("sample", [s for s in representative(SAMPLES, 1) if s.op not in (
    "tensor.eigh", "tensor.matrix_exp", "tensor.pinv", "tensor.svd")], ids=str)
def test_operations(sample: Sample) -> None:
    check(sample.build()[0], sample.arguments())


def test_a_training_step_of_a_convolutional_network() -> None:
    """Convolution, norm, pooling, a linear layer, their derivatives and an update, on two images."""
    def loss(w: Any, b: Any, v: Any, x: Any, y: Any) -> Any:
        h = F.relu(F.batch_norm(F.conv2d(x, w, padding=1), None, None, b, b, training=True))
        return F.cross_entropy(F.max_pool2d(h, 2).flatten(1) @ v, y)

    def step(w: Any, b: Any, v: Any, x: Any, y: Any) -> Any:
        value, gradients = mlc.value_and_grad(loss, argnums=(0, 1, 2))(w, b, v, x, y)
        return [p - 0.1 * g for p, g in zip((w, b, v), gradients)], value

    rng = np.random.default_rng(0)
    shapes = (4, 1, 3, 3), (4,), (64, 10), (2, 1, 8, 8)
    arrays = [*(rng.standard_normal(s).astype("f4") for s in shapes), np.array([3, 9])]
    check(mlc.lower(step, arrays, level="trace").module, arrays)


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_sample(sample: Sample) -> None:
    check(sample.build()[0], sample.arguments())


def product(*types: str, axes: tuple[int, int] = (1, 0), batch: int = 0) -> Callable[[], tuple[Module, list[Any]]]:
    """A product of two matrices, of several side by side with `batch`, or a convolution, and something after it."""
    def body(a: Value, b: Value) -> Value:
        if a.type.rank == 4:
            return tn.Convolution(a, b, stride=(1, 1), low=(1, 1), high=(1, 1)).results[0]
        pairs = ((0, 0),) * batch
        out = tn.DotGeneral(a, b, pairs, (axes,)).result
        return tn.Relu(out).result if out.type.dtype != i32 else out

    def make() -> tuple[Module, list[Any]]:
        arguments = [t(x) for x in types]
        inside, main = module(), func("main", arguments)
        inside.body.block.insert(main)
        with at_end(main.block):
            Return((body(*main.args),))
        main.update_type()
        return inside, numbers(arguments)
    return make


PRODUCTS: dict[str, Callable[[], tuple[Module, list[Any]]]] = {
    "whole boxes": product("128x32xf32", "32x64xf32"), "odd": product("70x41xf32", "41x90xf32"),
    "lhs transposed": product("37x65xf32", "37x68xf32", axes=(0, 0)),
    "rhs transposed": product("33x300xf32", "48x300xf32", axes=(1, 1)),
    "symbolic": product("BxNxf32", "Nx40xf32"), "batched": product("3x33x20xf32", "3x20x36xf32", axes=(2, 1), batch=1),
    "one column": product("130x40xf32", "40x1xf32"), "one row": product("1x40xf32", "40x130xf32"),
    "no terms": product("20x0xf32", "0x20xf32"), "no rows": product("0x20xf32", "20x20xf32"),
    "f64": product("40x50xf64", "50x36xf64"), "i32": product("40x50xi32", "50x36xi32"),
    "bf16": product("40x48xbf16", "48x72xbf16"), "convolution": product("2x5x9x9xf32", "7x5x3x3xf32"),
    "narrow rows": product("9x70xf32", "70x200xf32")}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    check(*PRODUCTS[name]())


@pytest.mark.parametrize(("a", "b", "dtype"), [
    ((128, 2000, 96), (128, 96, 2), "float32"), ((128, 2, 96), (128, 96, 2000), "float32"),
    ((1000000, 64), (64, 4), "float64"), ((4000000, 16), (16, 3), "int32")])
def test_panels_of_many_rows_and_few_columns_fit_into_shared_memory(a: Any, b: Any, dtype: str) -> None:
    module = mlc.lower(lambda a, b: a @ b, [mlc.spec(*a, dtype=dtype), mlc.spec(*b, dtype=dtype)], level="trace").module
    pipeline.lower(module, "low", machine=GPU)


@pytest.mark.parametrize("schedule", thinned([(8, 1, 1, 8, 8), (8, 8, 2, 4, 16), (4, 4, 2, 4, 8), (2, 8, 4, 2, 16)], 4))
def test_tiles_of_sums(schedule: tuple[int, ...]) -> None:
    """Tiles that only large products have, on one with boxes that stick out."""
    rows, columns, high, wide, terms = schedule

    def distribute(kernel: Kernel) -> None:
        tile(kernel, 0, rows)
        tile(kernel, 1, columns, vector=True, lanes=min(columns, 4))
        gpu_transforms.cta_tile(kernel, (high, wide))
        gpu_transforms.stage(kernel, terms, 4)
        gpu_transforms.promote_to_shared(kernel, "lhs")
        gpu_transforms.promote_to_shared(kernel, "rhs")

    built, arguments = product("36x300xf32", "300x44xf32")()
    run_to(built, "coalesce_dimensions")
    wanted = run_function(built, "main", arguments)
    for kernel in built.inside(Kernel):
        distribute(kernel)
    verify(built)
    pipeline.resume(built, "low", machine=GPU)
    same_bits(run_function(built, "main", arguments), wanted, str(schedule))


def run_to(built: Module, name: str) -> None:
    """Bring a module down to after a pass."""
    steps_ = pipeline.remaining(built, "loop", machine=GPU)
    last = [s.transform.name for s in steps_].index(name)
    Pipeline(steps_[: last + 1]).run(built)


def test_an_index_out_of_range_is_reported_as_on_a_cpu() -> None:
    text = """func.func @main(%x: tensor<5xf32>, %i: tensor<300xi64>) -> tensor<300xf32> {
      %0 = tensor.take %x, %i {axis = 0} : (tensor<5xf32>, tensor<300xi64>) -> tensor<300xf32>
      func.return %0 : tensor<300xf32>
    }"""
    i = np.zeros(300, np.int64)
    i[[290, 17]] = 5
    with pytest.raises(IndexError, match=r"element 17 of the kernel"):
        run_function(pipeline.lower(parse_module(text), "low", machine=GPU), "main", [np.zeros(5, "f4"), i])


@pytest.mark.parametrize("f", [lambda x, i: x[i - 100].sum(1),
                               lambda x, i: i[:, :40].float() @ i[:, :40].float().T + x[i[:, :33] - 100]],
                         ids=["rows", "boxes"])
def test_points_beyond_the_end_have_no_index_out_of_range(f: Any) -> None:
    """Computed from an index that is not loaded there, which is 0."""
    arrays = [np.arange(10, dtype="f4"), np.arange(3300).reshape(33, 100) % 10 + 100]
    check(mlc.lower(f, arrays, level="trace").module, arrays)


# -- faults -----------------------------------------------------------------------------------------------------------
REVERSE = (Path(__file__).parent / "cases/gpu/threads.mlir").read_text()
UNEVEN = """%four = arith.constant 4 : index
      %few = arith.cmpi slt, %thread, %four : index
      scf.if %few {
        DO
      }"""
STORE = "memref.store %a, %row[%thread] : memref<64xf32, #gpu.address_space<workgroup>>"
FAULTS: dict[str, tuple[str, str, str]] = {
    "no barrier": ("gpu.barrier\n", "", "MLC0181.*reads what thread 63 of block 0 writes.*shared"),
    "a barrier for some": ("gpu.barrier", UNEVEN.replace("DO", "gpu.barrier"), "MLC0182.*thread 4 of block 0"),
    "a barrier in a loop of uneven length": (
        "gpu.barrier", "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
        "scf.for %i = %c0 to %thread step %c1 {\ngpu.barrier\n}", "MLC0182.*thread 0"),
    "past the end of shared memory": ("%row[%back]", "%row[%at]", "MLC0163.*index 64 .*thread 0 of block 1"),
    "before its start": ("arith.constant 63", "arith.constant 62", "MLC0163.*index -1 .*thread 63 of block 0"),
    "past the end of an argument": ("%x[%at]", "%x[%next]", "MLC0163.*index 128.*thread 63 of block 1"),
    "two threads write one element": ("%out[%at]", "%out[%block]", "MLC0181.*writes what thread 63 of block 0 writes"),
    "two blocks write one element": ("%out[%at]", "%out[%thread]", "MLC0181.*thread 0 of block [01] writes"),
    "one block reads what another writes": (
        "%a = memref.load %x[%at] : memref<?xf32>", "%a = memref.load %out[%thread] : memref<?xf32>",
        "MLC0181.*writes what others reads.*global"),
    "nobody wrote it": (STORE, UNEVEN.replace("DO", STORE), "MLC0181.*reads shared memory that no thread wrote"),
    "a shuffle of some": ("%c, %valid = gpu.shuffle xor %b, %offset, %width : f32",
                          UNEVEN.replace("DO", "%p, %q = gpu.shuffle xor %b, %offset, %width : f32")
                          + "\n%c = arith.constant 0.0 : f32\n%valid = arith.constant true",
                          "MLC0183.*thread 4 of block 0 does not take part"),
    "a vector at an odd place": ("%a = memref.load %x[%at] : memref<?xf32>",
                                 "%v = vector.load %x[%thread] {alignment = 8} : memref<?xf32>, vector<2xf32>\n"
                                 "%a = vector.extract %v[1] : f32 from vector<2xf32>", "MLC0163.*no multiple of 8"),
    "more threads than the kernel is made for": ("%size = arith.constant 64", "%size = arith.constant 65",
                                                 "MLC0180.*made for"),
}


def reverse(text: str) -> Array:
    """Result of the kernel of tests/cases/gpu for 128 numbers in two CTAs."""
    out = np.zeros(128, "f4")
    Interpreter(parse_module(text, "k.mlir")).call("main", [np.arange(128, dtype="f4"), out, 2])
    return out


def test_shuffles_exchange_values_between_threads() -> None:
    wanted = np.arange(128).reshape(2, 32, 2)[:, ::-1]              # reversed in blocks, then neighbours exchanged
    assert (reverse(REVERSE) == wanted.reshape(128)).all()


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(name: str) -> None:
    old, new, message = FAULTS[name]
    text = REVERSE.replace("%a = memref", "%one_more = arith.constant 1 : index\n"
                           "%next = arith.addi %at, %one_more : index\n%a = memref")
    faulty = text.replace(old, new)
    assert faulty != text
    with pytest.raises(IRError, match=message):
        reverse(faulty)


def test_atomic_and_other_writes_do_not_mix() -> None:
    text = """module {
      gpu.module @kernels {
        gpu.func @k(%x: memref<1xi64>) kernel {
          %zero = arith.constant 0 : index
          %thread = gpu.thread_id x
          %n = arith.index_cast %thread : index to i64
          %0 = memref.atomic_rmw addi %n, %x[%zero] : (i64, memref<1xi64>) -> i64
          ALSO
          gpu.return
        }
      }
      func.func @main(%x: memref<1xi64>) {
        %one = arith.constant 1 : index
        %many = arith.constant 100 : index
        gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%many, %one, %one)
          args(%x : memref<1xi64>)
        func.return
      }
    }"""
    x = np.zeros(1, np.int64)
    Interpreter(parse_module(text.replace("ALSO", ""))).call("main", [x])
    assert x[0] == 4950
    with pytest.raises(IRError, match=r"MLC0181.*reads what others writes"):
        Interpreter(parse_module(text.replace("ALSO", "%1 = memref.load %x[%zero] : memref<1xi64>"))).call("main", [x])


DYNAMIC = """module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<?xf32>)
        workgroup(%a : memref<3xf32, #gpu.address_space<workgroup>>,
                  %s : memref<64x256xf32, #gpu.address_space<workgroup>>)
        kernel attributes {known_block_size = [64, 1, 1]} {
      %last = arith.constant 63 : index
      %t = gpu.thread_id x
      %0 = memref.load %x[%t] : memref<?xf32>
      memref.store %0, %s[%t, %t] : memref<64x256xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %back = arith.subi %last, %t : index
      %1 = memref.load %s[%back, %back] : memref<64x256xf32, #gpu.address_space<workgroup>>
      memref.store %1, %x[%t] : memref<?xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<?xf32>) {
    %one = arith.constant 1 : index
    %many = arith.constant 64 : index
    %bytes = arith.constant 65552 : i32
    gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%many, %one, %one)
      dynamic_shared_memory_size %bytes args(%x : memref<?xf32>)
    func.return
  }
}"""


@pytest.mark.parametrize("level", ["low", "llvm"])
def test_large_shared_memory_is_requested_by_the_launch(level: str) -> None:
    module, x = parse_module(DYNAMIC), np.arange(64, dtype="f4")
    if level == "llvm":
        pipeline.resume(module, level, machine=GPU)
        upstream.verify_text(to_text(module, generic=True))
    Interpreter(module).call("main", [x])
    assert x.tolist() == [*range(63, -1, -1)]
    if level == "llvm":
        text = ptx(kernels(module), GPUS["cuda:sm_90"])
        assert ".extern .shared .align 16 .b8 k_dynamic[]" in text
        assembled(text, "sm_90")
        assert ptxas.table(kernels(module), ptxas.resources(text, GPUS["cuda:sm_90"])).split()[-2] == "65552"
        return
    with pytest.raises(IRError, match=r"MLC0180.*65551 bytes of dynamic shared memory.*shares 65552"):
        Interpreter(parse_module(DYNAMIC.replace("65552", "65551"))).call("main", [x])


def test_tensor_core_products_are_pipelined_in_large_shared_memory() -> None:
    module, _ = product("1024x1024xbf16", "1024x2048xbf16")()
    pipeline.lower(module, "low", machine=GPU, products="mma")
    launch = next(op for op in module.walk() if isinstance(op, gpu.Launch))
    kernel = launch.callee()
    assert isinstance(kernel, gpu.Func) and kernel.dynamic_bytes > 48 << 10
    asked = launch.dynamic_shared_memory_size
    assert asked is not None and asked.op is not None and asked.op.attrs["value"] == kernel.dynamic_bytes


# -- below threads ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", thinned(PROGRAMS, 2))
def test_upstream_reads_the_dumps(name: str) -> None:
    module, _ = PROGRAMS[name]()
    for level in ("low", "llvm"):
        pipeline.resume(module, level, machine=GPU)
        upstream.verify_text(to_text(module, generic=True, locations=True))
        for generic in (False, True):
            text = to_text(module, generic=generic)
            assert to_text(parse_module(text), generic=generic) == text


def assembled(text: str, architecture: str) -> None:
    """Have ptxas take PTX, of kernels that need no memory for registers.

    Without ptxas the test ends here, and says that it did less.
    """
    if ptxas.find() is None:
        pytest.skip("PTX is made, but not assembled: ptxas is not installed (pip install nvidia-cuda-nvcc==13.0.88)")
    found = ptxas.resources(text, GPUS[f"cuda:{architecture}"])
    assert len(found) == text.count(".visible .entry") and not any(r.spilled for r in found), found


@pytest.mark.parametrize("types", [("512x512xf32", "512x512xf32"), ("500x300xf32", "300x1000xf32"),
                                   ("512x512xf64", "512x512xf64"), ("4x32x28x28xf32", "64x32x3x3xf32"),
                                   ("512x512xbf16", "512x512xbf16")], ids=lambda t: " ".join(t))
def test_ptx_of_products(types: tuple[str, str]) -> None:
    check_ptx(lambda: product(*types)()[0], ("sm_80", "sm_90"))


def check_ptx(build: Callable[[], Module], architectures: tuple[str, ...]) -> None:
    """PTX of a program for each architecture, which ptxas accepts and needs no memory for registers for."""
    module = build()
    pipeline.lower(module, machine=GPU)
    made = {architecture: ptx(kernels(module), GPUS[f"cuda:{architecture}"]) for architecture in architectures}
    for architecture, text in made.items():
        assert f".target {architecture}" in text and ".visible .entry" in text
    for architecture, text in made.items():
        assembled(text, architecture)


@pytest.mark.parametrize("name", PROGRAMS)
def test_ptx_of_programs(name: str) -> None:
    """For the architectures in turn."""
    turn = list(PROGRAMS).index(name) % len(ARCHITECTURES)
    check_ptx(lambda: PROGRAMS[name]()[0], ARCHITECTURES[turn: turn + 1])


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_ptx_of_programs_for_every_architecture(name: str) -> None:
    check_ptx(lambda: PROGRAMS[name]()[0], ARCHITECTURES)


@pytest.mark.slow
@pytest.mark.parametrize("sample", representative(SAMPLES), ids=str)
def test_ptx_of_operations(sample: Sample) -> None:
    check_ptx(lambda: sample.build()[0], ("sm_75", "sm_90"))


@pytest.mark.skipif(ptxas.find() is None, reason="ptxas is not installed")
def test_ptx_that_the_assembler_refuses() -> None:
    with pytest.raises(BackendError, match=r"(?s)MLC0591.*rejects the PTX for cuda:sm_90.*line 1"):
        ptxas.resources("nonsense", GPUS["cuda:sm_90"])


def test_operations_without_gpu_instructions_never_reach_llvm() -> None:
    """LLVM would end the process at some of it."""
    module = parse_module("""gpu.module @kernels {
      llvm.func @k(%x: !llvm.ptr) {
        %0 = llvm.load %x : !llvm.ptr -> vector<8xf32>
        llvm.return
      }
      llvm.func @l(%x: vector<4xf32>) {
        %0 = llvm.intr.vector.reduce.fmaximum(%x) : (vector<4xf32>) -> f32
        llvm.return
      }
    }""", "k.mlir")
    with pytest.raises(BackendError, match=r"k\.mlir:3.*MLC0548.*longer than 128 bits"):
        check_legal(kernels(module), 90)
    kernels(module).body.block.ops[0].erase()
    with pytest.raises(BackendError, match=r"k\.mlir:7.*MLC0548.*llvm.intr.vector.reduce.fmaximum has no instruction"):
        check_legal(kernels(module), 90)
