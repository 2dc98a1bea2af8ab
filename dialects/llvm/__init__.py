"""llvm: one operation per LLVM instruction or intrinsic, with upstream's names, attributes and semantics.

In the interpreter an integer or float is a numpy scalar, a vector an array, a struct a tuple and a pointer a `Pointer`
into bytes; memory is exact to the byte, alignments included.
"""

from mlc.dialects import arith, math
from mlc.dialects.llvm.aggregates import *  # noqa: F403
from mlc.dialects.llvm.arithmetic import *  # noqa: F403
from mlc.dialects.llvm.control import *  # noqa: F403
from mlc.dialects.llvm.globals import *  # noqa: F403
from mlc.dialects.llvm.intrinsics import *  # noqa: F403
from mlc.dialects.llvm.memory import *  # noqa: F403
from mlc.dialects.llvm.types import *  # noqa: F403
from mlc.ir.core import REGISTRY, Op

INSTRUCTIONS: dict[type[Op], type[Op]] = {
    base: cls for name, cls in REGISTRY.items() if name.startswith("llvm.") for base in cls.__bases__
    if issubclass(base, Op) and base.__module__.startswith((arith.__name__, math.__name__))}
"""The arith and math operations that are a single instruction or intrinsic, to the llvm class derived from each."""
