"""Targets of code generation: an LLVM processor name, an exact feature list and a machine model."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType

from mlc.ir.diag import BackendError
from mlc.ir.machine import Gpu, Model

VENDORS = ("cpu", "cuda")
"""The folders beside this module, each called as the names of its devices begin: `targets` holds the machines it makes
code for, `toolchain` makes and loads it."""


def part_of(vendor: str, name: str) -> ModuleType:
    """A module of a vendor's folder, imported when it is asked for."""
    return importlib.import_module(f"mlc.backends.{vendor}.{name}")

@dataclass(frozen=True)
class Target:
    """A code generation target.

    name         what the user wrote: "host", a level such as "x86-64-v3", "aarch64", or a GPU such as "cuda:sm_90"
    triple       LLVM target triple
    cpu          LLVM processor name: chooses the scheduling model, implies features
    features     "+x" for features the code may use, "-x" for those that `cpu` might imply and the machine lacks
    machine      the model that schedules are made for
    """

    name: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    machine: Model

    @property
    def vector_bits(self) -> int:
        """The widest vector that the code generator should form."""
        return self.machine.vector_bits

    @property
    def feature_string(self) -> str:
        """The features as LLVM takes them, in a target machine or in a "target-features" attribute."""
        return ",".join(self.features)

    @property
    def is_gpu(self) -> bool:
        """Whether code for this target is launched on a device of its own."""
        return isinstance(self.machine, Gpu)

    @property
    def vendor(self) -> str:
        """Whose folder makes code for it."""
        return self.name.partition(":")[0] if ":" in self.name else VENDORS[0]

    def products(self, precision: str | None) -> str:
        """How matrices are multiplied, as passes/fix_numerics.py has it, where a user asks for this precision.

        None and "tf32" mean tensor cores where there are such, for 16-bit floats and for float32 too; "ieee" none.
        """
        if not isinstance(self.machine, Gpu) or not self.machine.tensor_cores:
            return "fma"
        return {None: "mma", "ieee": "fma", "tf32": "tf32"}[precision]

    def has(self, feature: str) -> bool:
        """Whether code for this target may use `feature`, spelled as LLVM does ("avx512bf16")."""
        return "+" + feature in self.features

    def runs(self, other: Target) -> bool:
        """Whether a machine of this target can execute code made for `other`."""
        wanted = {feature for feature in other.features if feature.startswith("+")}
        return self.triple == other.triple and wanted <= set(self.features)

    @staticmethod
    def parse(text: str) -> Target:
        """The target named `text`; BackendError with the list of valid names if there is none."""
        if text == "host":
            found: Target = part_of(VENDORS[0], "targets").host()
            return found
        if text in (known := targets()):
            return known[text]
        raise BackendError(f"unknown target {text!r}", code="MLC0501",
                           hint="valid targets: " + ", ".join(("host", *known)))

    @staticmethod
    def default(vendor: str) -> Target:
        """Default target for a vendor's devices, if none is at hand."""
        return Target.parse(part_of(vendor, "targets").DEFAULT)

    def __str__(self) -> str:
        return self.name


def targets() -> dict[str, Target]:
    """The targets of all vendors, by name."""
    return {name: target for vendor in VENDORS for name, target in part_of(vendor, "targets").TARGETS.items()}
