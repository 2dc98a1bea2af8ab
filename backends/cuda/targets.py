"""Targets for NVIDIA GPUs."""

from __future__ import annotations

from mlc.backends.target import Target
from mlc.ir.machine import HOPPER, Gpu

TRIPLE = "nvptx64-nvidia-cuda"
# The oldest version of PTX that supports an architecture, but at least 8.0 (CUDA 12.0): drivers accept older versions.
_PTX = {"sm_75": 80, "sm_80": 80, "sm_86": 80, "sm_89": 80, "sm_90": 80, "sm_90a": 80, "sm_100": 86, "sm_120": 87}
TARGETS = {f"cuda:{name}": Target(f"cuda:{name}", TRIPLE, name, (f"+ptx{version}",),
                                  HOPPER if name == "sm_90a" else Gpu(tensor_cores=name != "sm_75"))
        for name, version in _PTX.items()}
"""Targets of this vendor by name. Code for sm_90a runs on devices of compute capability 9.0 alone."""
DEFAULT = "cuda:sm_90"
"""Default target without a device."""
DLPACK = 2
"""Device type of CUDA in DLPack."""


def architecture(target: Target) -> int:
    """Ten times the compute capability of a target: 90 for cuda:sm_90."""
    return int(target.cpu.removeprefix("sm_").removesuffix("a"))


def runs_on(target: Target, architecture_of_device: int) -> bool:
    """Whether a device of an architecture runs code for a target."""
    specific, made_for = target.cpu.endswith("a"), architecture(target)
    return made_for == architecture_of_device if specific else made_for <= architecture_of_device
