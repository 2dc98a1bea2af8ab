"""A device whose kernels are PTX, run on this process's memory by an emulator that is not ours.

    MLC_PTX_EMULATOR=.../libptxemulator.so pytest tests/test_ptx_emulator.py

tests/ptx_emulator/README.md says how it is built, and instructions.py there what it knows. An access that leaves
memory, or is not aligned, ends the launch as it would on hardware.
"""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mlc.backends.cuda import ptx
from mlc.backends.cuda.device import PTX, Fill, Step
from mlc.backends.target import Target
from mlc.ir.core import Op
from mlc.ir.diag import BackendError
from tests.fake_device import FakeDevice
from tests.ptx_emulator.instructions import adapt

VARIABLE = "MLC_PTX_EMULATOR"
WARP = 32


@cache
def library() -> ctypes.CDLL:
    """The emulator."""
    found = ctypes.CDLL(os.environ[VARIABLE])
    found.emulator_load.restype = found.emulator_launch.restype = ctypes.c_char_p
    return found


@cache
def loaded(text: str) -> ctypes.c_void_p:
    """The emulator's handle of a kernel, which stays for as long as the process."""
    out = ctypes.c_void_p()
    if said := library().emulator_load(adapt(text).encode(), ctypes.byref(out)):
        raise BackendError(f"the emulator refuses PTX: {said.decode().strip().splitlines()[-1]}", code="MLC0584")
    return out


@dataclass(frozen=True)
class EmulatedKernel:
    """One kernel with the head of the module it is of."""

    name: str
    text: str

    @property
    def words(self) -> int:
        return self.text.partition("{")[0].count(".param ")


class EmulatedDevice(FakeDevice):
    """One device.

    seed    of the order in which threads go on and copies arrive; 0: one warp after the other, copies at once
    lanes   how many threads go in step: a warp, or 1
    """

    form = PTX

    def __init__(self, architecture: int = 90, seed: int = 0, lanes: int = WARP) -> None:
        super().__init__(architecture=architecture, capacity=1 << 28)
        self.name, self.seed, self.lanes = "an emulated device", seed, lanes

    def assemble(self, module: Op, target: Target) -> bytes:
        return ptx.assemble(module, target)

    def load(self, code: bytes) -> dict[str, EmulatedKernel]:
        """Every kernel by its name."""
        head, *kernels = re.split(r"^(?=\.(?:visible \.entry|extern \.shared) )", code.decode(), flags=re.M)
        out, outside = {}, ""
        for text in kernels:
            if text.startswith(".extern"):
                outside += text
                continue
            found = re.match(r"\.visible \.entry (\w+)", text)
            assert found is not None
            mine = "".join(line for line in outside.splitlines(True) if f" {found[1]}_dynamic[" in line)
            out[found[1]] = EmulatedKernel(found[1], head + mine + text)
        return out

    def kernel(self, library: Any, name: str) -> Any:
        return library[name]

    def words(self, kernel: Any) -> int:
        return int(kernel.words)

    def run(self, step: Step) -> None:
        if isinstance(step, Fill):
            return super().run(step)
        self.launches.append(step.name)
        assert step.block[1:] == (1, 1), "instructions.py knows blocks of one dimension"
        count, handle = self.words(step.kernel), loaded(step.kernel.text)
        places = (ctypes.c_uint64 * count).from_address(step.parameters)
        values = (ctypes.c_uint64 * count)(*(ctypes.c_uint64.from_address(p).value for p in places))
        pieces = np.array([(a, a + m.size) for a, m in sorted(self.memory.items())], np.uint64)
        said = library().emulator_launch(
            handle, count, values, (ctypes.c_int * 6)(*step.block, *step.grid), step.shared, len(pieces),
            pieces.ctypes.data_as(ctypes.c_void_p), self.seed, self.lanes)
        if said:
            raise BackendError(f"launching {step.name}: {said.decode()}", code="MLC0587")
        return None

