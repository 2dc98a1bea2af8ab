"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.frontend.element_types import iinfo
from mlc.frontend.onnx import integer_products
from mlc.frontend.onnx.moving import padded
from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import Array, StepsOf, ints, refuse, shape_of
from mlc.frontend.tensor import OPERATIONS as O
from mlc.ir.sizes import Size


def automatic(x: Any, auto_pad: str, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
              pads: Sequence[int] | None) -> list[int]:
    """The pads, those at the starts first: as given, or by `auto_pad`."""
    rank = len(kernel)
    if auto_pad == "VALID" or (auto_pad == "NOTSET" and pads is None):
        return [0] * (2 * rank)
    if auto_pad == "NOTSET" and pads is not None:
        if len(pads) != 2 * rank:
            refuse(f"{len(pads)} pads of {rank} axes")
        return list(pads)
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        refuse(f"padding by {auto_pad!r}")
    before, after = list[int](), list[int]()
    for n, k, s, d in zip(x.shape[2:], kernel, strides, dilations):
        if isinstance(n, Size) and s != 1:
            refuse(f"padding by {auto_pad!r} of a symbolic size")
        total = (k - 1) * d if isinstance(n, Size) else max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
        small, large = total // 2, total - total // 2
        before.append(small if auto_pad == "SAME_UPPER" else large)
        after.append(large if auto_pad == "SAME_UPPER" else small)
    return before + after


def _ones(given: Sequence[int] | None, rank: int) -> list[int]:
    found = [1] * rank if given is None else list(given)
    if len(found) != rank:
        refuse(f"{len(found)} numbers for {rank} axes")
    return found


def _rank(w: Any, kernel_shape: Sequence[int] | None) -> int:
    """The number of axes that a convolution with weights w goes over."""
    if not 3 <= w.ndim <= 5:
        refuse(f"a convolution of {w.ndim - 2} dimensions")
    if kernel_shape is not None and (len(kernel_shape) != w.ndim - 2 or any(
            isinstance(n, int) and n != k for n, k in zip(w.shape[2:], kernel_shape))):
        refuse(f"a kernel_shape of {list(kernel_shape)}, with weights of {list(w.shape[2:])}")
    return int(w.ndim - 2)


@row("Conv")
def conv(x: Any, w: Any, bias: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
         kernel_shape: Any = None, pads: Any = None, strides: Any = None, steps_of: StepsOf | None = None) -> Any:
    rank = _rank(w, kernel_shape)
    strides, dilations = _ones(strides, rank), _ones(dilations, rank)
    pads = automatic(x, auto_pad, w.shape[2:], strides, dilations, pads)
    if steps_of is not None and pads[:rank] == pads[rank:] and min(pads) >= 0:
        out = integer_products.convolution(x, w, bias, strides, pads[:rank], dilations, group, steps_of)
        if out is not None:
            return out
    if pads[:rank] != pads[rank:] or min(pads) < 0:
        x, pads = padded(x, [0, 0, *pads[:rank], 0, 0, *pads[rank:]]), [0] * (2 * rank)
    return O[f"conv{rank}d"](x, w, bias, tuple(strides), tuple(pads[:rank]), tuple(dilations), group)


@row("ConvTranspose")
def conv_transpose(x: Any, w: Any, bias: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
                   kernel_shape: Any = None, output_padding: Any = None, output_shape: Any = None, pads: Any = None,
                   strides: Any = None) -> Any:
    """The whole result of the transposed convolution, of which the pads are cut off."""
    rank = _rank(w, kernel_shape)
    strides, dilations = _ones(strides, rank), _ones(dilations, rank)
    extra = [0] * rank if output_padding is None else list(output_padding)
    if any(n < 0 for n in (*extra, *(pads or ()), *(output_shape or ()))):
        refuse("pads, output_padding or output_shape less than 0")
    out = O[f"conv_transpose{rank}d"](x, w, None, tuple(strides), 0, 0, group, tuple(dilations))
    pads = [0] * (2 * rank) if pads is None else list(pads)
    whole = [n + extra[k] for k, n in enumerate(out.shape[2:])]
    if output_shape is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        output_shape = [n * s for n, s in zip(x.shape[2:], strides)]
    if output_shape is not None:
        for k in range(rank):
            total = whole[k] - output_shape[len(output_shape) - rank + k]
            small, large = (total // 2, total - total // 2) if total >= 0 else (0, total)
            pads[k], pads[k + rank] = (large, small) if auto_pad == "SAME_LOWER" else (small, large)
            if auto_pad == "NOTSET" and total >= 0:
                pads[k], pads[k + rank] = total - total // 2, total // 2
    elif auto_pad == "VALID":
        pads = [0] * (2 * rank)
    cut = [0, 0, *(-n for n in pads[:rank]), 0, 0, *(extra[k] - pads[k + rank] for k in range(rank))]
    out = padded(out, cut)
    return out if bias is None else out + O["reshape"](bias, (1, -1, *(1,) * rank))


class Windows:
    """Windows of a pooling: a kernel, strides, dilations, pads, and what is added at the ends to round sizes up."""

    def __init__(self, x: Any, auto_pad: str, ceil_mode: int, kernel: Sequence[int], strides: Any, dilations: Any,
                 pads: Any) -> None:
        self.rank, self.kernel = len(kernel), list(kernel)
        if x.ndim != self.rank + 2:
            refuse(f"windows of {self.rank} axes over a tensor of {x.ndim}")
        self.strides, self.dilations = _ones(strides, self.rank), _ones(dilations, self.rank)
        if min(*self.strides, *self.dilations, *self.kernel) < 1:
            refuse("a window, stride or dilation less than 1")
        self.pads = automatic(x, auto_pad, self.kernel, self.strides, self.dilations, pads)
        self.more = [0] * self.rank
        if ceil_mode and auto_pad == "NOTSET":
            for k, n in enumerate(x.shape[2:]):
                if isinstance(n, Size):
                    refuse("windows of a symbolic size are rounded up")
                before, after, span = self.pads[k], self.pads[k + self.rank], (self.kernel[k] - 1) * self.dilations[k]
                count = -(-(n + before + after - span - 1) // self.strides[k]) + 1
                if (count - 1) * self.strides[k] >= n + before:
                    count -= 1                             # the last window starts in the padding
                self.more[k] = max(0, (count - 1) * self.strides[k] + span + 1 - n - before - after)

    def around(self, x: Any, value: Any, more: bool = True) -> Any:
        """x with its padding."""
        after = [p + (m if more else 0) for p, m in zip(self.pads[self.rank:], self.more)]
        every = [0, 0, *self.pads[:self.rank], 0, 0, *after]
        return padded(x, every, "constant", value) if any(every) else x

    def first_inside(self, axis: int, count: int) -> Array:
        """Where each of so many windows along an axis has its first element that is not of the padding."""
        start, step = np.arange(count) * self.strides[axis] - self.pads[axis], self.dilations[axis]
        return np.asarray(start + np.maximum(0, -(start // step)) * step)

    def sums(self, x: Any) -> Any:
        """The sums over windows of what has its padding."""
        n, c, *spatial = shape_of(x)
        one = O["reshape"](x, (n * c, 1, *spatial))
        kernel = O["ones"]((1, 1, *self.kernel), dtype=x.dtype)
        out = O[f"conv{self.rank}d"](one, kernel, None, tuple(self.strides), 0, tuple(self.dilations))
        return O["reshape"](out, (n, c, *out.shape[2:]))


@row("AveragePool")
def average_pool(x: Any, *, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0,
                 dilations: Any = None, pads: Any = None, strides: Any = None) -> Any:
    w = Windows(x, auto_pad, ceil_mode, kernel_shape, strides, dilations, pads)
    ones = O["ones"]((1, 1, *x.shape[2:]), dtype=x.dtype)
    counted = padded(ones, [0, 0, *w.pads[:w.rank], 0, 0, *w.pads[w.rank:]], "constant", 1) if count_include_pad else \
        w.around(ones, 0, more=False)
    counted = padded(counted, [0] * (w.rank + 4) + w.more) if any(w.more) else counted
    return w.sums(w.around(x, 0)) / w.sums(counted)


@row("LpPool")
def lp_pool(x: Any, *, kernel_shape: Any, p: int = 2, auto_pad: str = "NOTSET", ceil_mode: int = 0,
            dilations: Any = None, pads: Any = None, strides: Any = None) -> Any:
    w = Windows(x, auto_pad, ceil_mode, kernel_shape, strides, dilations, pads)
    return O["pow"](w.sums(w.around(O["pow"](O["abs"](x), p), 0)), 1 / p)


@row("MaxPool")
def max_pool(x: Any, *, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = None,
             pads: Any = None, storage_order: int = 0, strides: Any = None, outputs: int) -> Any:
    """Indices are those of the elements of the whole tensor, in rows or, by `storage_order`, in columns."""
    w = Windows(x, auto_pad, ceil_mode, kernel_shape, strides, dilations, pads)
    if not 1 <= w.rank <= 3:
        refuse(f"windows of {w.rank} axes")
    least: Any = float("-inf") if x.dtype.is_floating_point else iinfo(x.dtype).min
    around = w.around(x, least)
    settings = (tuple(w.kernel), tuple(w.strides), 0, tuple(w.dilations), False)
    if outputs < 2:
        return O[f"max_pool{w.rank}d"](around, *settings)
    values, at = O[f"max_pool{w.rank}d"](around, *settings, True)
    if any(isinstance(n, Size) for n in x.shape):
        refuse("the positions of maxima in a tensor of a symbolic size")
    positions = np.arange(int(np.prod(x.shape))).reshape(x.shape)
    if storage_order:
        order = (0, 1, *reversed(range(2, x.ndim)))
        flat = np.arange(int(np.prod(x.shape))).reshape([x.shape[k] for k in order])
        positions = flat.transpose(np.argsort(order))
    spread = np.pad(positions, [(0, 0), (0, 0), *((b, a + m) for b, a, m in zip(w.pads[:w.rank], w.pads[w.rank:],
                                                                                  w.more))], constant_values=-1)
    n, c = x.shape[:2]
    found = O["reshape"](O["gather"](spread.reshape(n, c, -1), 2, O["reshape"](at, (n, c, -1))), values.shape)
    if not any(w.pads[:w.rank]):
        return values, found
    # where an element is the least number of its type, the padding before it is a maximum, too
    first = positions[np.ix_(np.arange(n), np.arange(c), *(
        w.first_inside(k, m) for k, m in enumerate(values.shape[2:])))]
    return values, O["where"](O["lt"](found, 0), first, found)


@row("MaxUnpool", known=("output_shape",))
def max_unpool(x: Any, at: Any, output_shape: Any = None, *, kernel_shape: Any, pads: Any = None,
               strides: Any = None) -> Any:
    rank = len(kernel_shape)
    strides, pads = _ones(strides, rank), [0] * (2 * rank) if pads is None else pads
    plain = [*x.shape[:2], *((n - 1) * s - pads[k] - pads[k + rank] + m for k, (n, s, m) in enumerate(
        zip(x.shape[2:], strides, kernel_shape)))]
    # indices are those of the tensor that was pooled, whose sizes are `plain`
    flat = O["zeros"]((int(np.prod(plain)),), dtype=x.dtype)
    out = O["reshape"](O["scatter"](flat, 0, O["reshape"](at, (-1,)), O["reshape"](x, (-1,))), tuple(plain))
    if output_shape is None:
        return out
    wanted = ints(output_shape)
    return padded(out, [0] * len(plain) + [m - n for n, m in zip(plain, wanted)])


def _spatial(x: Any) -> tuple[int, ...]:
    """The axes after those of examples and channels."""
    if x.ndim < 3:
        refuse(f"a pooling over all positions of a tensor of {x.ndim} axes")
    return tuple(range(2, x.ndim))


@row("GlobalAveragePool")
def global_average_pool(x: Any) -> Any:
    return O["mean"](x, _spatial(x), True)


@row("GlobalMaxPool")
def global_max_pool(x: Any) -> Any:
    return O["amax"](x, _spatial(x), True)


@row("GlobalLpPool")
def global_lp_pool(x: Any, *, p: int = 2) -> Any:
    return O["pow"](O["sum"](O["pow"](O["abs"](x), p), _spatial(x), True), 1 / p)


@row("Col2Im", known=("image_shape", "block_shape"))
def col2im(x: Any, image_shape: Any, block_shape: Any, *, dilations: Any = None, pads: Any = None,
           strides: Any = None) -> Any:
    """Each element of a block is added where it is in the image with its padding, whose border is cut off."""
    size, kernel = ints(image_shape), ints(block_shape)
    rank = len(size)
    strides, dilations = _ones(strides, rank), _ones(dilations, rank)
    pads = [0] * (2 * rank) if pads is None else list(pads)
    whole = [n + pads[k] + pads[k + rank] for k, n in enumerate(size)]
    starts = [np.arange((n - (k - 1) * d - 1) // s + 1) * s for n, k, d, s in zip(whole, kernel, dilations, strides)]
    within = [np.arange(k) * d for k, d in zip(kernel, dilations)]
    grid = np.meshgrid(*within, *starts, indexing="ij")
    at = np.ravel_multi_index([grid[k] + grid[k + rank] for k in range(rank)], whole).ravel()
    n, c = x.shape[0], x.shape[1] // int(np.prod(kernel))
    flat = O["index_add"](O["zeros"]((n, c, int(np.prod(whole))), dtype=x.dtype), 2, at,
                          O["reshape"](x, (n, c, at.size)))
    return padded(O["reshape"](flat, (n, c, *whole)), [0, 0, *(-p for p in pads[:rank]), 0, 0,
                                                      *(-p for p in pads[rank:])])

