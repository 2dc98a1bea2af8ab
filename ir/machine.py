"""Machine models: target parameters for the cost models of passes.

A schedule depends on parameters, never on the name of a processor. Each target has a model (`backends/target.py`),
which the pipeline passes to the passes with an option `machine`; without a target the defaults apply. A model of
another instruction set or device is `replace(CPU, vector_bits=1024)`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from mlc.ir.diag import UserError
from mlc.ir.types import ScalarType, bf16, i8, ui8

WARP = 32
"""Threads of a warp. It is not a parameter of the model: the semantics of shuffles and schedules depend on it."""


LINE = 64
"""Bytes of a line of cache."""


@dataclass(frozen=True)
class Machine:
    """Base class of machine models. Its text, in options of passes, lists the parameters that differ from their
    defaults: `vector_bits:256;vector_registers:16`.

    scratch_elements  elements of a reduction slice that stay in cache between the stages of a kernel
    scratches         most scratch buffers of a kernel
    bf16_dot          whether an instruction adds two products of bf16 to each of 16 lanes (AVX512_BF16)
    byte_dot          whether one adds four products of bytes to each 32-bit lane (AVX512_VNNI)
    """

    scratch_elements: int = 16384          # 64 KiB of float32: below the 256 KiB of L2 of processors with AVX2
    scratches: int = 4
    bf16_dot: bool = False                 # Cooper Lake, Sapphire Rapids [Intel], Zen 4 [AMD]
    byte_dot: bool = False                 # Cascade Lake, Ice Lake [Intel], Zen 4 [AMD]

    def __post_init__(self) -> None:
        kinds = {f.name: type(f.default) for f in fields(self)}
        for name, value in self.figures().items():
            if type(value) is not kinds[name] or value < (8 if name == "vector_bits" else 0):
                raise UserError(f"machine model: {name} = {value!r}", code="MLC0687",
                                hint="parameters are non-negative integers, and vectors have at least 8 bits")

    def __str__(self) -> str:
        defaults = type(self)().figures()
        return ";".join(f"{name}:{str(v).lower()}" for name, v in self.figures().items() if v != defaults[name])

    def figures(self) -> dict[str, int]:
        """Parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text form of a model; raises UserError if it is ill-formed."""
        kinds = {f.name: type(f.default) for f in fields(cls)}
        figures: dict[str, Any] = {}
        for item in filter(None, text.split(";")):
            name, _, value = item.partition(":")
            words = {"true": True, "false": False} if kinds.get(name) is bool else {}
            if name not in kinds or not (value in words or (value.isdecimal() and kinds[name] is int)):
                raise UserError(f"machine model: bad parameter {item!r}", code="MLC0687",
                                hint="write machine=NAME:NUMBER;NAME:NUMBER, with a name of " + ", ".join(kinds))
            figures[name] = words[value] if words else int(value)
        return cls(**figures)

    def narrow_types(self) -> frozenset[ScalarType]:
        """The types of which an instruction multiplies and adds several terms at a time, which share a word."""
        return frozenset((bf16,) * self.bf16_dot + (i8, ui8) * self.byte_dot)

    def of(self, kind: type[Machine]) -> Machine:
        """Restrict the model to the parameters of a more general kind."""
        return kind(**{f.name: getattr(self, f.name) for f in fields(kind)})


@dataclass(frozen=True)
class Cpu(Machine):
    """A CPU. The sources are Intel's 64 and IA-32 Architectures Optimization Reference Manual [Intel], AMD's
    Software Optimization Guides [AMD], and Agner Fog's instruction tables [Fog].

    order             name of the pass pipeline (passes/pipeline.py)
    to_llvm           pass from the low level to the llvm dialect
    vector_bits       width of the widest vector
    vector_registers  number of vector registers
    fma_in_flight     multiply-adds in flight in a core: latency times units
    l2_bytes          capacity of the L2 cache for a factor of a contraction
    l3_bytes          capacity of the share of a core in the last-level cache
    l1_ways           associativity of the L1 cache
    l1_way_bytes      bytes of each way: addresses at multiples of it share a set
    parts             parallel tasks per kernel to aim for
    handover_ns       nanoseconds of work that amortize handing it to a thread
    ps_...            picoseconds per byte accessed, and per 32-bit element of a vector operation
    scalar_factor     slowdown of operations that are not vectorized
    byte_pairs        whether an instruction adds two products of bytes in each 16-bit lane (SSSE3, AVX2, AVX512BW)
    bf16_tiles        whether tiles of bf16 are multiplied (AMX-BF16), which add in an order of their own
    byte_tiles        whether tiles of bytes are multiplied (AMX-INT8)
    """

    order: ClassVar[str] = "cpu"
    to_llvm: ClassVar[str] = "scf_to_llvm"
    vector_bits: int = 512
    vector_registers: int = 32             # of AVX-512; 16 of SSE and AVX
    fma_in_flight: int = 8                 # 4 cycles x 2 units, Skylake to Golden Cove and Zen 2 to Zen 4 [Fog]
    l2_bytes: int = 1 << 18                # of Haswell, the least with AVX2 [Intel]; Zen 2 has 512 KiB [AMD]
    l3_bytes: int = 1 << 22                # 32 MiB for 8 cores of Zen 4 [AMD]
    l1_ways: int = 8                       # Haswell to Skylake [Intel], Zen 2 to Zen 4 [AMD]; 12 since Ice Lake
    l1_way_bytes: int = 1 << 12            # Haswell to Golden Cove [Intel], Zen 2 to Zen 4 [AMD]
    parts: int = 32                        # a choice: several for each core of a small machine
    handover_ns: int = 10_000              # latency of a spinning thread 0.5 us, of a sleeping one 5 to 50
    ps_per_byte: int = 10                  # throughput of a typical core
    ps_simple: int = 30
    ps_division: int = 200
    ps_fma: int = 15
    ps_gather: int = 300
    scalar_factor: int = 16                # 32-bit lanes of 512 bits
    byte_pairs: bool = True                # all x86-64-v2
    bf16_tiles: bool = False               # Sapphire Rapids [Intel]
    byte_tiles: bool = False               # Sapphire Rapids [Intel]


@dataclass(frozen=True)
class Gpu(Machine):
    """A GPU. The sources are the technical specifications by compute capability in the CUDA C++ Programming Guide
    [CUDA], the PTX ISA [PTX], and NVIDIA's whitepapers on A100 and H100 [A100, H100].

    order, to_llvm      as of a CPU; the model of another vendor's GPU names a pass of its own
    vector_bits         widest memory access of a thread
    multiprocessors     number of multiprocessors; the following figures are per multiprocessor
    registers           32-bit registers
    threads             resident threads
    fma_per_cycle       float32 multiply-adds per cycle
    fma_latency         cycles between dependent multiply-adds
    mma_per_cycle       multiply-adds of 16-bit floats per cycle by tensor cores
    fill_per_cycle      32-bit words copied to shared memory per cycle
    tensor_cores        whether 16-bit floats and TF32 are multiplied by `mma.sync`
    warpgroup_mma       whether four warps multiply 16-bit floats together, from shared memory, by `wgmma`
    shared_bytes        shared memory of a CTA without opt-in
    shared_bytes_optin  shared memory of a CTA with opt-in, in kernels for tensor cores or on rows
    local_bytes         local memory of a thread
    """

    order: ClassVar[str] = "gpu"
    to_llvm: ClassVar[str] = "gpu_to_nvvm"
    vector_bits: int = 128                 # ld.global.v4.b32 [PTX]
    multiprocessors: int = 132             # [H100], SXM5
    registers: int = 1 << 16               # 7.5 to 12.0 [CUDA]
    threads: int = 2048                    # 8.0, 9.0 and 10.0 [CUDA]
    fma_per_cycle: int = 128               # 8.6 and later; 64 of 7.5 and 8.0 [CUDA]
    fma_latency: int = 12                  # a choice: the instruction's own 4, and part of the wait for shared memory
    mma_per_cycle: int = 1024              # [A100]; H100 has four times as many for wgmma
    fill_per_cycle: int = 16               # a choice: 64 bytes a cycle, from L2
    tensor_cores: bool = True              # 8.0 and later [PTX]
    warpgroup_mma: bool = False            # 9.0, in code for no other [PTX]
    shared_bytes: int = 48 << 10           # all [CUDA]
    shared_bytes_optin: int = 96 << 10     # of the 99 KiB of 8.6, 8.9 and 12.0, the least of those with mma.sync [CUDA]
    local_bytes: int = 16 << 10            # a choice, of 512 KiB [CUDA]: it is as slow as global memory

    @property
    def most_shared(self) -> int:
        """Most bytes of shared memory of a CTA: every architecture with tensor cores in use has the opt-in."""
        return self.shared_bytes_optin if self.tensor_cores else self.shared_bytes


Model = Cpu | Gpu
ANY = Machine()
"""Parameters assumed of every machine."""
CPU = Cpu()
"""A processor with AVX-512."""
GPU = Gpu()
"""A data-center GPU, of 9.0."""
HOPPER = Gpu(scratch_elements=52 << 10, warpgroup_mma=True, mma_per_cycle=4096, shared_bytes_optin=227 << 10)
"""The same, with the instructions that its successors do not have: 989 TFLOP/s of 132 SMs at 1830 MHz [H100], and the
227 KiB of 9.0 [CUDA], in which a row of a vocabulary of 50 thousand words stays in shared memory as f32."""


def x86_64(vector_bits: int, bf16_dot: bool = False, byte_dot: bool = False, bf16_tiles: bool = False,
           byte_tiles: bool = False) -> Cpu:
    """A processor with SSE, AVX2 or AVX-512, by vector width in bits, which may have AVX512_BF16, AVX512_VNNI, AMX-BF16
    and AMX-INT8."""
    return Cpu(vector_bits=vector_bits, vector_registers=32 if vector_bits >= 512 else 16, bf16_dot=bf16_dot,
               byte_dot=byte_dot, bf16_tiles=bf16_tiles, byte_tiles=byte_tiles)
