"""The keys of a subscript: integers, slices, None, Ellipsis, arrays of integers and masks, in normal form."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from mlc.frontend.functions import elementwise as E
from mlc.frontend.location import user_loc
from mlc.frontend.operands import is_tensor
from mlc.frontend.tensor import OPERATIONS, Tensor, as_array
from mlc.frontend.trace import state
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserIndexError, UserTypeError
from mlc.ir.sizes import Size


def keys_of(key: Any) -> tuple[Any, ...]:
    """The indices of a subscript: arrays in place of lists, and numbers in place of tensors of one."""
    return tuple(_number_of(_as_mask(_listed(k))) for k in (key if isinstance(key, tuple) else (key,)))


def parts_of(input: Tensor, keys: tuple[Any, ...]) -> list[Any]:
    """One key per dimension, and None for each new one. A mask beside other arrays is positions, where these are known:
    as many as the others have."""
    parts = expanded(keys, input.ndim)
    if state.trace is not None or sum(map(is_tensor, parts)) < 2:
        return parts
    out, at = list[Any](), 0
    for k in parts:
        covered = k.ndim if is_mask(k) else int(k is not None)
        fits = is_mask(k) and tuple(k.shape) == tuple(input.shape[at:at + covered])
        out += np.nonzero(as_array(k)) if fits else (k,)
        at += covered
    return out


def _as_mask(k: Any) -> Any:
    """An index of uint8, which is a mask in PyTorch, as one of bool."""
    return E.ne(k, 0) if is_tensor(k) and "uint8" in str(k.dtype) else k


def _number_of(k: Any) -> Any:
    """An index that is a tensor of one number as that number."""
    if type(k) is int and not -2**63 <= k < 2**63:
        raise UserIndexError(f"index {k} is out of range for any dimension"[-200:], code="MLC0366", loc=user_loc())
    return k.item() if isinstance(k, Tensor) and not isinstance(k, Tracer) and not k.shape and not is_mask(k) else k


def _listed(k: Any) -> Any:
    """A list or a range of integers is an array of them, one of numbers that are computed a tensor."""
    if isinstance(k, list) and any(isinstance(n, Tracer) and not n.shape for n in k):
        return OPERATIONS["stack"]([n if is_tensor(n) else OPERATIONS["tensor"](n) for n in k])
    if not isinstance(k, list | range):
        return k
    found = as_array([*k])
    return found if found.size else found.astype(np.int64)


def expanded(keys: tuple[Any, ...], rank: int) -> list[Any]:
    """One key per dimension, and None for each new one."""
    for k in keys:
        if is_truth(k):
            raise UserTypeError("one truth value is no index beside others", code="MLC0369",
                                hint="use mlc.where(condition, a, b)")
        if not (k is None or k is Ellipsis or isinstance(k, slice | Size) or is_tensor(k) or hasattr(k, "__index__")):
            raise UserTypeError(f"{type(k).__name__} is no index", code="MLC0369")
    used = sum(k.ndim if is_mask(k) else 1 for k in keys if k is not None and not isinstance(k, EllipsisType))
    dots = sum(1 for k in keys if isinstance(k, EllipsisType))
    if used > rank or dots > 1:
        what = f"{used} indices for {rank} dimensions" if used > rank else "more than one ... in an index"
        raise UserIndexError(what, code="MLC0366")
    rest = [slice(None)] * (rank - used)
    if not dots:
        return [*keys, *rest]
    out: list[Any] = []
    for k in keys:
        out += rest if isinstance(k, EllipsisType) else [k]
    return out


def is_mask(k: Any) -> bool:
    return is_tensor(k) and "bool" in str(k.dtype)


def is_truth(k: Any) -> bool:
    """Whether an index is one truth value: as an only index, it picks all of the array or nothing."""
    return isinstance(k, bool | np.bool_) or (is_mask(k) and not k.ndim)


def row_of(k: Any) -> Any:
    """A truth value as a mask of one element."""
    return OPERATIONS["reshape"](k, (1,)) if isinstance(k, Tensor) else np.asarray(k).reshape(1)


def is_number(k: Any) -> bool:
    """Whether an index that is a tensor is one integer."""
    return not k.ndim and not is_mask(k)
