"""Machine models: what passes ask of the machine that they make code for.

A model holds figures, not names: a schedule never asks which processor it is for. Targets carry one
(`backends/target.py`), the pipeline hands it to the passes that have an option `machine`, and the defaults are what
schedules take for given where nobody says more. An instruction set or a device with other figures is
`replace(CPU, vector_bits=1024)`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Self

from mlc.ir.diag import UserError

WARP = 32
"""Threads of a warp. It is no figure of a model: shuffles and schedules of the dialects mean this number."""


@dataclass(frozen=True)
class Machine:
    """Common base of machines of every kind. As text, in the options of passes, it is the figures that differ from the
    default of its class: `vector_bits:256;vector_registers:16`.

    scratch_elements  of a row that a kernel goes through several times, those that stay near between two stages
    scratches         how many such rows a kernel has at most
    """

    scratch_elements: int = 16384          # 64 KiB of float32: below the 256 KiB of L2 that processors with AVX2 have
    scratches: int = 4

    def __post_init__(self) -> None:
        kinds = {f.name: type(f.default) for f in fields(self)}
        for name, value in self.figures().items():
            if type(value) is not kinds[name] or value < (8 if name == "vector_bits" else 0):
                raise UserError(f"machine model: {name} = {value!r}", code="MLC0687",
                                hint="figures are whole numbers that are not negative, and vectors have 8 bits or more")

    def __str__(self) -> str:
        defaults = type(self)().figures()
        return ";".join(f"{name}:{str(v).lower()}" for name, v in self.figures().items() if v != defaults[name])

    def figures(self) -> dict[str, int]:
        """All figures by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def parse(cls, text: str) -> Self:
        """The model of a text that `str` made; UserError if it is none."""
        kinds = {f.name: type(f.default) for f in fields(cls)}
        figures: dict[str, int] = {}
        for item in filter(None, text.split(";")):
            name, _, value = item.partition(":")
            words = {"true": True, "false": False} if kinds.get(name) is bool else {}
            if name not in kinds or not (value in words or (value.isdecimal() and kinds[name] is int)):
                raise UserError(f"machine model: there is no figure {item!r}", code="MLC0687",
                                hint="write machine=FIGURE:NUMBER;FIGURE:NUMBER, of " + ", ".join(kinds))
            figures[name] = words[value] if words else int(value)
        return cls(**figures)

    def of(self, kind: type[Machine]) -> Machine:
        """The figures of this model that a more general kind has."""
        return kind(**{f.name: getattr(self, f.name) for f in fields(kind)})


@dataclass(frozen=True)
class Cpu(Machine):
    """A processor. The sources are Intel's 64 and IA-32 Architectures Optimization Reference Manual [Intel], AMD's
    Software Optimization Guides [AMD], and Agner Fog's instruction tables [Fog].

    order             the order of passes that leads to such a machine, as of passes/pipeline.py
    to_llvm           the pass from the low level to the llvm dialect
    vector_bits       of the widest vector
    vector_registers  how many vectors there are registers for
    fma_in_flight     multiply-adds under way in a core: latency times units
    l2_bytes          what of a factor stays in the second level of cache
    l3_bytes          what of a factor stays in one core's part of the last level
    l1_ways           lines at distances of a power of two that the first level holds
    parts             into how many parts work is cut, within reason, for threads to share
    handover_ns       nanoseconds of work that are worth a thread
    ps_...            picoseconds per byte accessed, and per 32-bit element of an operation in vectors
    scalar_factor     how much longer operations take without vectors
    """

    order: ClassVar[str] = "cpu"
    to_llvm: ClassVar[str] = "scf_to_llvm"
    vector_bits: int = 512
    vector_registers: int = 32             # of AVX-512; 16 of SSE and AVX
    fma_in_flight: int = 8                 # 4 cycles x 2 units, Skylake to Golden Cove and Zen 2 to Zen 4 [Fog]
    l2_bytes: int = 1 << 18                # of Haswell, the least with AVX2 [Intel]; Zen 2 has 512 KiB [AMD]
    l3_bytes: int = 1 << 22                # 32 MiB for 8 cores of Zen 4 [AMD]
    l1_ways: int = 8                       # Haswell to Skylake [Intel], Zen 2 to Zen 4 [AMD]; 12 since Ice Lake
    parts: int = 32                        # a choice: several for each core of a small machine
    handover_ns: int = 10_000              # a waiting thread takes over in 0.5 us, one that sleeps in 5 to 50
    ps_per_byte: int = 10                  # rates that an ordinary core reaches
    ps_simple: int = 30
    ps_division: int = 200
    ps_fma: int = 15
    ps_gather: int = 300
    scalar_factor: int = 16                # 32-bit lanes of 512 bits


@dataclass(frozen=True)
class Gpu(Machine):
    """A GPU. The sources are the technical specifications by compute capability in the CUDA C++ Programming Guide
    [CUDA], the PTX ISA [PTX], and NVIDIA's whitepapers on A100 and H100 [A100, H100].

    order, to_llvm      as of a processor; the model of another vendor's GPU names a pass of its own
    vector_bits         that a thread accesses at once
    multiprocessors     how many there are; the others are of each
    registers           of 32 bits
    threads             how many are resident
    fma_per_cycle       multiply-adds of float32
    fma_latency         cycles until a term of a sum is there for the next one
    mma_per_cycle       multiply-adds of 16-bit floats by tensor instructions
    fill_per_cycle      32-bit words that are copied to shared memory
    tensor_cores        whether matrices of 16-bit floats and TF32 are multiplied by `mma.sync`
    shared_bytes        memory that a block shares without asking for more
    shared_bytes_optin  the same where it asks, in kernels for tensor cores
    local_bytes         memory of a thread of its own
    """

    order: ClassVar[str] = "gpu"
    to_llvm: ClassVar[str] = "gpu_to_nvvm"
    vector_bits: int = 128                 # ld.global.v4.b32 [PTX]
    multiprocessors: int = 132             # [H100], SXM5
    registers: int = 1 << 16               # 7.5 to 12.0 [CUDA]
    threads: int = 2048                    # 8.0, 9.0 and 10.0 [CUDA]
    fma_per_cycle: int = 128               # 8.6 and later; 64 of 7.5 and 8.0 [CUDA]
    fma_latency: int = 12                  # a choice: the instruction's own 4, and part of the wait for shared memory
    mma_per_cycle: int = 1024              # [A100]; H100 has more only for wgmma, which code here does not use
    fill_per_cycle: int = 16               # a choice: 64 bytes a cycle, from L2
    tensor_cores: bool = True              # 8.0 and later [PTX]
    shared_bytes: int = 48 << 10           # all [CUDA]
    shared_bytes_optin: int = 96 << 10     # of the 99 KiB of 8.6, 8.9 and 12.0, the least of those with mma.sync [CUDA]
    local_bytes: int = 16 << 10            # a choice, of 512 KiB [CUDA]: it is as slow as global memory


Model = Cpu | Gpu
ANY = Machine()
"""Generic machine: the properties that every machine is assumed to have."""
CPU = Cpu()
"""A processor with AVX-512."""
GPU = Gpu()
"""A data-center GPU, of 9.0."""


def x86_64(vector_bits: int) -> Cpu:
    """A processor with SSE, AVX2 or AVX-512, by the bits of its vectors."""
    return Cpu(vector_bits=vector_bits, vector_registers=32 if vector_bits >= 512 else 16)
