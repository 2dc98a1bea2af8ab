"""NVIDIA's assembler ptxas, which validates PTX and reports the resource usage of kernels.

Execution does not depend on it: the driver has its own assembler.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlc.backends.target import Target
from mlc.dialects import gpu
from mlc.ir.core import Op
from mlc.ir.diag import BackendError
from mlc.passes.gpu_to_nvvm import DYNAMIC


@dataclass(frozen=True)
class Resources:
    """Resource usage of a kernel: registers per thread, bytes of static shared memory per block, and bytes that a
    thread spills to memory because it has too few registers."""

    name: str
    registers: int
    shared: int
    spilled: int


def find() -> str | None:
    """The path of the assembler: the first one on PATH, or that of the wheel nvidia-cuda-nvcc."""
    if (found := shutil.which("ptxas")) is not None:
        return found
    package = importlib.util.find_spec("nvidia")
    places = package.submodule_search_locations if package is not None else None
    return next((str(p) for place in places or () for p in sorted(Path(place).glob("*/bin/ptxas"))), None)


def resources(ptx: str, target: Target) -> list[Resources]:
    """Resource usage of each kernel in PTX, by name; BackendError if there is no assembler, or it rejects the PTX."""
    if (command := find()) is None:
        raise BackendError("ptxas, which reports the resources of kernels, is not installed", code="MLC0590",
                           hint="pip install nvidia-cuda-nvcc")
    done = subprocess.run([command, f"-arch={target.cpu}", "-v", "-o", "/dev/null", "/dev/stdin"], input=ptx,
                          capture_output=True, text=True)
    if done.returncode:
        raise BackendError(f"ptxas rejects the PTX for {target}", code="MLC0591",
                           notes=tuple(done.stderr.splitlines()[:20]), hint="report it, with the PTX")
    return sorted(_read(done.stderr), key=lambda r: r.name)


def _read(said: str) -> list[Resources]:
    """Parse the output of `ptxas -v`, which gives every kernel a heading."""
    out = []
    for part in re.split(r"Compiling entry function ", said)[1:]:
        name = re.match(r"'(\w+)'", part)
        stores, registers = re.search(r"(\d+) bytes spill stores", part), re.search(r"Used (\d+) registers", part)
        shared = re.search(r"(\d+) bytes smem", part)
        assert name and stores and registers, part
        out.append(Resources(name[1], int(registers[1]), int(shared[1]) if shared else 0, int(stores[1])))
    return out


def table(module: gpu.GPUModule, found: Sequence[Resources]) -> str:
    """Resource usage as a table, with the threads per block of each kernel."""
    kernels = [op for op in module.body.block if "nvvm.maxntid" in op.attrs]
    threads = {str(op.attrs["sym_name"]): _threads(op) for op in kernels}
    dynamic = {str(op.attrs["sym_name"]): op.attrs.get(DYNAMIC, 0) for op in kernels}
    width = max((len(r.name) for r in found), default=0)
    rows = [f"{'kernel':{width}}  threads  registers  shared bytes  spilled bytes"]
    rows += [f"{r.name:{width}}  {threads.get(r.name, 0):7}  {r.registers:9}  {r.shared + dynamic.get(r.name, 0):12}  "
             f"{r.spilled:13}"
             for r in found]
    return "\n".join(rows) + "\n"


def _threads(kernel: Op) -> int:
    x, y, z = kernel.attrs["nvvm.maxntid"]
    return int(x * y * z)
