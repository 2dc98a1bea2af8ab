"""Operators that move elements: shapes, joins, pieces, padding."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import axis_of, ints, number, refuse, shape_of
from mlc.frontend.operands import need
from mlc.frontend.tensor import OPERATIONS as O
from mlc.ir.sizes import Size, product


@row("Reshape", since=5, known=("shape",))
def reshape(x: Any, shape: Any, *, allowzero: int = 0) -> Any:
    wanted = ints(shape)
    kept = [x.shape[k] if isinstance(n, int) and n == 0 and not allowzero else n for k, n in enumerate(wanted)]
    return O["reshape"](x, tuple(kept))


@row("Reshape")
def reshape_by_attribute(x: Any, *, shape: Sequence[int], consumed_inputs: Any = None) -> Any:
    return reshape(x, np.array(shape))


@row("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    axis = x.ndim if axis == x.ndim else axis_of(axis, x.ndim)
    return O["reshape"](x, (product(x.shape[:axis]), product(x.shape[axis:])))


@row("Transpose")
def transpose(x: Any, *, perm: Sequence[int] | None = None) -> Any:
    return O["permute"](x, tuple(reversed(range(x.ndim))) if perm is None else tuple(perm))


@row("Squeeze", since=13, known=("axes",))
def squeeze(x: Any, axes: Any = None) -> Any:
    over = [k for k, n in enumerate(x.shape) if isinstance(n, int) and n == 1] if axes is None else [
        axis_of(a, x.ndim) for a in ints(axes)]
    if any(isinstance(x.shape[a], int) and x.shape[a] != 1 for a in over):
        refuse(f"axes {over} of the sizes {list(x.shape)} are not all of size 1")
    for n in x.shape if axes is None else ():
        if isinstance(n, Size):                            # n * (n - 2) is negative for 1 alone
            need(n * (n - 2), f"Squeeze without axes, in a model that keeps an axis of {n}, which may not be 1")
    return O["reshape"](x, tuple(n for k, n in enumerate(x.shape) if k not in over))


@row("Squeeze")
def squeeze_by_attribute(x: Any, *, axes: Sequence[int] | None = None) -> Any:
    return squeeze(x, None if axes is None else np.array(axes))


@row("Unsqueeze", since=13, known=("axes",))
def unsqueeze(x: Any, axes: Any) -> Any:
    rank = x.ndim + len(ints(axes))
    new = {axis_of(a, rank) for a in ints(axes)}
    if len(new) < len(ints(axes)):
        refuse(f"an axis occurs twice among {ints(axes)}")
    given = iter(x.shape)
    return O["reshape"](x, tuple(1 if k in new else next(given) for k in range(rank)))


@row("Unsqueeze")
def unsqueeze_by_attribute(x: Any, *, axes: Sequence[int]) -> Any:
    return unsqueeze(x, np.array(axes))


@row("Expand", known=("shape",))
def expand(x: Any, shape: Any) -> Any:
    """Sizes broadcast in both directions."""
    wanted = ints(shape)
    rank = max(len(wanted), x.ndim)
    ours, theirs = [1] * (rank - x.ndim) + list(x.shape), [1] * (rank - len(wanted)) + wanted
    return O["broadcast_to"](x, tuple(n if isinstance(m, int) and m == 1 else m for n, m in zip(ours, theirs)))


@row("Tile", since=6, known=("repeats",))
def tile(x: Any, repeats: Any) -> Any:
    return O["tile"](x, tuple(ints(repeats)))


@row("Concat", since=4)
def concat(*xs: Any, axis: int) -> Any:
    return O["cat"](xs, axis)


@row("Concat")
def concat_before_4(*xs: Any, axis: int = 1) -> Any:
    return O["cat"](xs, axis)


@row("Split", since=13, known=("split",))
def split(x: Any, split: Any = None, *, axis: int = 0, num_outputs: int | None = None, outputs: int) -> Any:
    if split is not None:
        return tuple(O["split"](x, ints(split), axis))
    total, count = x.shape[axis], num_outputs or outputs
    if isinstance(total, Size):
        refuse("an axis of a symbolic size is split")
    each = -(-total // count)
    return tuple(O["split"](x, [max(0, min(each, total - k * each)) for k in range(count)], axis))


@row("Split")
def split_by_attribute(x: Any, given: Any = None, *, axis: int = 0, split: Sequence[int] | None = None,
                       outputs: int) -> Any:
    sizes = list(split) if split is not None else None if given is None else ints(given.numpy())
    if sizes is None:
        sizes = [x.shape[axis] // outputs] * outputs
    return tuple(O["split"](x, sizes, axis))


@row("Slice", since=10, known=("starts", "ends", "axes", "steps"))
def piece(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    first, last = ints(starts), ints(ends)
    over = list(range(len(first))) if axes is None else ints(axes)
    by = [1] * len(first) if steps is None else ints(steps)
    if not len(first) == len(last) == len(over) == len(by):
        refuse(f"{len(first)} starts, {len(last)} ends, {len(over)} axes and {len(by)} steps")
    for start, end, axis, step in zip(first, last, over, by):
        x = _slice(x, axis_of(axis, x.ndim), start, end, step)
    return x


def _slice(x: Any, axis: int, start: Any, end: Any, step: int) -> Any:
    """A slice of an axis; a step backward is one forward of the reversed axis."""
    total = x.shape[axis]
    if step < 0:
        if isinstance(total, Size) or isinstance(start, Size) or isinstance(end, Size):
            refuse("a slice backward of an axis of a symbolic size")
        found = range(total)[builtins.slice(start, None if end < -total else end, step)]
        if not len(found):
            return x[(builtins.slice(None),) * axis + (builtins.slice(0, 0),)]
        x = O["flip"](x, (axis,))
        start, end, step = total - 1 - found[0], total - found[-1], -step
    elif isinstance(end, int) and end >= 2**31 - 1:
        end = None
    return x[(builtins.slice(None),) * axis + (builtins.slice(start, end, step),)]


@row("Slice")
def piece_by_attributes(x: Any, *, starts: Sequence[int], ends: Sequence[int],
                        axes: Sequence[int] | None = None) -> Any:
    return piece(x, np.array(starts), np.array(ends), None if axes is None else np.array(axes))


MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def padded(x: Any, pads: Sequence[Any], mode: str = "constant", value: Any = 0) -> Any:
    """x with pads, those at the starts of all axes first; negative ones crop."""
    rank = x.ndim
    if len(pads) != 2 * rank:
        refuse(f"{len(pads)} pads of {rank} axes")
    if mode not in MODES:
        refuse(f"padding of the mode {mode!r}")
    for axis in range(rank):
        before, after = pads[axis], pads[axis + rank]
        if any(isinstance(n, int) and n < 0 for n in (before, after)):
            end = x.shape[axis] + (min(after, 0) if isinstance(after, int) else 0)
            x = _slice(x, axis, -min(before, 0) if isinstance(before, int) else 0, end, 1)
    pads = [max(n, 0) if isinstance(n, int) else n for n in pads]
    if mode == "constant":
        flat = [n for axis in reversed(range(rank)) for n in (pads[axis], pads[axis + rank])]
        return O["pad"](x, flat, "constant", value)
    for axis in range(rank):                               # one after the other is the same as all at once
        before, after = pads[axis], pads[axis + rank]
        if before or after:
            x = O["index_select"](x, axis, _positions(x.shape[axis], before, after, mode))
    return x


def _positions(n: Any, before: Any, after: Any, mode: str) -> Any:
    """Positions of the elements of a padded axis."""
    if not all(isinstance(k, int) for k in (n, before, after)):
        refuse(f"padding of the mode {mode!r} of an axis of a symbolic size")
    return np.pad(np.arange(n), (before, after), mode)  # type: ignore[call-overload]


@row("Pad", since=11, known=("pads", "axes"), values=("value",))
def pad(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    wanted = ints(pads)
    if axes is not None:
        over = [axis_of(a, x.ndim) for a in ints(axes)]
        full: list[Any] = [0] * (2 * x.ndim)
        for k, axis in enumerate(over):
            full[axis], full[axis + x.ndim] = wanted[k], wanted[k + len(over)]
        wanted = full
    from mlc.frontend.onnx.values import known
    return padded(x, wanted, mode, 0 if value is None else number(known(value, "value")))


@row("Pad", since=2)
def pad_by_attributes(x: Any, *, pads: Sequence[int], mode: str = "constant", value: float = 0.0) -> Any:
    return padded(x, pads, mode, value)


@row("Pad")
def pad_before_2(x: Any, *, paddings: Sequence[int], mode: str = "constant", value: float = 0.0) -> Any:
    return padded(x, paddings, mode, value)


@row("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = shape_of(x)
    b, rest = blocksize, c // blocksize**2
    if mode == "DCR":
        parts = O["permute"](O["reshape"](x, (n, b, b, rest, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = O["permute"](O["reshape"](x, (n, rest, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return O["reshape"](parts, (n, rest, h * b, w * b))


@row("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = shape_of(x)
    b = blocksize
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    parts = O["permute"](O["reshape"](x, (n, c, h // b, b, w // b, b)), order)
    return O["reshape"](parts, (n, c * b * b, h // b, w // b))


@row("Trilu", known=("k",))
def trilu(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    return O["triu" if upper else "tril"](x, 0 if k is None else number(k))
