"""Names of size symbols, in functions and in kernels."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.ir import sizes
from mlc.ir.affine_syntax import is_positional
from mlc.ir.diag import IRError
from mlc.ir.sizes import Size
from mlc.ir.types import TensorType


def symbols_of(types: Sequence[TensorType]) -> list[str]:
    """Size symbols of argument types in order of appearance; each must be a whole dimension of an argument."""
    out = list(dict.fromkeys(str(d) for t in types for d in t.shape if isinstance(d, Size) and str(d).isidentifier()))
    for t in types:
        for d in t.shape:
            if missing := sizes.symbols(d) - set(out):
                raise IRError(f"the size {', '.join(sorted(missing))} cannot be read off any argument: it stands only "
                              f"in {t}", code="MLC0163")
    return out


def kernel_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of the size symbols in kernels, where `d0` and `t0` are coordinates and index tiles."""
    taken = set(names)
    out = []
    for name in names:
        inside = name
        while is_positional(name) and inside in taken:
            inside += "_"
        taken.add(inside)
        out.append(inside)
    return tuple(out)
