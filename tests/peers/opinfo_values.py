"""Values of PyTorch's samples as those of mlc, and the comparison of results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import mlc
from mlc.ir.diag import Error, InternalError
from tests.peers import opinfo_sparse

Result = tuple[str, str]
"""A verdict, and what was found."""


def as_mlc(x: Any) -> Any:
    """A value of a sample, also in containers, as the value that a user of mlc would pass."""
    if isinstance(x, torch.Tensor) and x.layout is not torch.strided:
        return opinfo_sparse.as_mlc(x)
    if isinstance(x, torch.Tensor):
        if x.ndim > 64:                                    # more than numpy has
            return mlc.zeros(tuple(x.shape))
        x = x.detach().resolve_neg().resolve_conj()
        if any(n > 1 and s == 0 for n, s in zip(x.shape, x.stride())):     # several elements are the same memory
            once = tuple(slice(0, 1) if s == 0 else slice(None) for s in x.stride())
            return as_mlc(x[once]).expand(tuple(x.shape))
        if x.dtype == torch.bfloat16:
            return mlc.tensor(x.float().numpy()).to("bfloat16")
        return mlc.tensor(x.numpy())
    if isinstance(x, torch.dtype):
        return getattr(mlc, str(x).removeprefix("torch."), str(x))
    if isinstance(x, torch.device):
        return str(x)
    if isinstance(x, torch.layout | torch.memory_format):
        return getattr(mlc, str(x).removeprefix("torch."))
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, list | tuple):
        return type(x)(map(as_mlc, x))
    if isinstance(x, slice):
        return slice(as_mlc(x.start), as_mlc(x.stop), as_mlc(x.step))
    return {n: as_mlc(v) for n, v in x.items()} if isinstance(x, dict) else x


def leaves(x: Any) -> Iterator[Any]:
    """The tensors and numbers of nested lists, tuples and dicts."""
    if isinstance(x, list | tuple):
        for v in x:
            yield from leaves(v)
    elif isinstance(x, dict):
        yield from leaves(list(x.values()))
    else:
        yield x


def replaced(x: Any, new: Iterator[Any], wanted: Callable[[Any], bool]) -> Any:
    """The same structure, with the next of `new` in place of each wanted leaf."""
    if isinstance(x, list | tuple):
        return type(x)([replaced(v, new, wanted) for v in x])
    if isinstance(x, dict):
        return {n: replaced(v, new, wanted) for n, v in x.items()}
    return next(new) if wanted(x) else x


def shown(x: Any) -> str:
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided:
            return f"{opinfo_sparse.layout_of(x)} {str(x.dtype).removeprefix('torch.')}{list(x.shape)}"
        values = f" {x.tolist()}" if x.numel() < 4 and x.dtype != torch.bfloat16 else ""
        return f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}{values}"
    if isinstance(x, list | tuple):
        return f"[{', '.join(map(shown, x))}]"
    return repr(x)


def is_tensor(x: Any) -> bool:
    return isinstance(x, mlc.Tensor)


def differentiated(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.requires_grad


def compare(found: Any, wanted: Any, tolerance: tuple[float, float] | None, precise: Callable[[], Any],
            values: bool = True) -> Result:
    """Compare a result of mlc with PyTorch's; `precise` computes the latter in float64."""
    a, b = list(leaves(found)), list(leaves(wanted))
    if len(a) != len(b):
        return "wrong shape", f"{len(a)} results, expected {len(b)}"
    for i, (x, y) in enumerate(zip(a, b)):
        if not isinstance(y, torch.Tensor):
            if isinstance(x, mlc.Tensor) or (x != y and not (x != x and y != y)):
                return "wrong value", f"{x!r}, expected {y!r}"
            continue
        y = y.detach()
        dtype = str(getattr(x, "dtype", type(x).__name__)).removeprefix("mlc.").rstrip("_")
        if dtype != str(y.dtype).removeprefix("torch."):
            return "wrong dtype", f"{dtype}, expected {str(y.dtype).removeprefix('torch.')}"
        if tuple(x.shape) != tuple(y.shape):
            return "wrong shape", f"{list(x.shape)}, expected {list(y.shape)}"
        if opinfo_sparse.layout_of(x) != opinfo_sparse.layout_of(y):
            return "wrong layout", f"{x.layout}, expected {y.layout}"
        if y.layout is not torch.strided:
            x, y = x.to_dense(), y.to_dense()
        if values and (text := difference(_as_torch(x), y, tolerance, functools.partial(_result, precise, i))):
            return "wrong value", text
    return "pass", ""


def _result(f: Callable[[], Any], i: int) -> Any:
    found = list(leaves(f()))[i]
    return found.to_dense() if found.layout is not torch.strided else found


def _as_torch(x: Any) -> torch.Tensor:
    array = np.array(x)
    return torch.from_numpy(array.astype(np.float32) if array.dtype.name == "bfloat16" else array)


def difference(x: torch.Tensor, y: torch.Tensor, tolerance: tuple[float, float] | None,
                precise: Callable[[], torch.Tensor]) -> str:
    """Text of a difference beyond the tolerance; empty if there is none."""
    rtol, atol = tolerance or torch.testing._comparison.default_tolerances(x, y)
    y = y.to(x.dtype).resolve_conj().resolve_neg()
    if torch.allclose(x, y, rtol, atol, equal_nan=True):
        return ""
    if y.dtype in WIDE:                                    # PyTorch's own rounding error may be larger
        exact = precise().detach()
        wide = WIDE[y.dtype]
        scale = (y.to(wide) - exact).abs().nan_to_num(0, 0, 0)
        if torch.isclose(x.to(wide), exact, rtol, atol + 4 * float(scale.max()), equal_nan=True).all():
            return ""
    at = tuple(int(i) for i in torch.nonzero(~torch.isclose(x, y, rtol, atol, equal_nan=True))[0])
    return f"{x[at].item()!r} at {list(at)}, expected {y[at].item()!r}"


WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}
"""The dtypes in which errors of others are measured."""


def called(f: Callable[[], Any]) -> tuple[Result | None, Any]:
    """The result of a call of mlc, or the verdict on its exception."""
    try:
        return None, f()
    except InternalError as error:
        return ("crash", f"{error.code}: {error.message}"), None
    except Error as error:
        return ("refused", f"{error.code}: {error.message}"), None
    except Exception as error:                             # that is what is looked for
        return ("crash", f"{type(error).__name__}: {error}"), None


