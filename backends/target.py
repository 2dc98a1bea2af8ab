"""Targets of code generation: an LLVM processor name, an exact feature list and a machine model."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType

from mlc.ir.diag import BackendError
from mlc.ir.machine import Gpu, Model

VENDORS = ("cpu", "cuda", "mesh")
"""Vendors, each a folder named like its device prefix, with the modules `targets` and `toolchain`."""


def part_of(vendor: str, name: str) -> ModuleType:
    """Import a module of a vendor's folder lazily."""
    return importlib.import_module(f"mlc.backends.{vendor}.{name}")

@dataclass(frozen=True)
class Target:
    """A code generation target.

    name         name that users give: "host", a level such as "x86-64-v3", "aarch64", or a GPU such as "cuda:sm_90"
    triple       LLVM target triple
    cpu          LLVM processor name, which selects the scheduling model and implies features
    features     "+x" for features in use, "-x" for features implied by `cpu` that the machine lacks
    machine      machine model for cost models and schedules
    """

    name: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    machine: Model

    @property
    def vector_bits(self) -> int:
        """Width of the widest vector that the code generator forms."""
        return self.machine.vector_bits

    @property
    def feature_string(self) -> str:
        """Features in the form of LLVM's "target-features" attribute."""
        return ",".join(self.features)

    @property
    def is_gpu(self) -> bool:
        """Whether code for this target is launched on a GPU."""
        return isinstance(self.machine, Gpu)

    @property
    def vendor(self) -> str:
        """Vendor whose backend compiles for the target."""
        return self.name.partition(":")[0] if ":" in self.name else VENDORS[0]

    def products(self, precision: str | None) -> str:
        """Option `products` of passes/fix_numerics/__init__.py for a precision of matrix products.

        By default tensor cores multiply 16-bit floats where available, with "tf32" also float32; with "ieee" neither.
        """
        if not isinstance(self.machine, Gpu) or not self.machine.tensor_cores:
            return "fma"
        return {None: "mma", "ieee": "fma", "tf32": "tf32"}[precision]

    def has(self, feature: str) -> bool:
        """Whether code for this target may use an LLVM feature such as "avx512bf16"."""
        return "+" + feature in self.features

    def runs(self, other: Target) -> bool:
        """Whether this target can execute code compiled for `other`."""
        wanted = {feature for feature in other.features if feature.startswith("+")}
        return self.triple == other.triple and wanted <= set(self.features)

    @staticmethod
    def parse(text: str) -> Target:
        """Look up a target by name; raises BackendError with the valid names if there is none."""
        if text == "host":
            found: Target = part_of(VENDORS[0], "targets").host()
            return found
        if text in (by_name := targets()):
            return by_name[text]
        raise BackendError(f"unknown target {text!r}", code="MLC0501",
                           hint="valid targets: " + ", ".join(("host", *by_name)))

    @staticmethod
    def default(vendor: str) -> Target:
        """Default target of a vendor, for use without a device."""
        return Target.parse(part_of(vendor, "targets").DEFAULT)

    def __str__(self) -> str:
        return self.name


def targets() -> dict[str, Target]:
    """Targets of all vendors by name."""
    return {name: target for vendor in VENDORS for name, target in part_of(vendor, "targets").TARGETS.items()}
