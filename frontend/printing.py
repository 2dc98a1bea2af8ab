"""How tensors are shown: `set_printoptions`, and the text of an array with these options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.location import user_loc
from mlc.ir import html
from mlc.ir.diag import UserError

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor

PROFILES: dict[str, dict[str, Any]] = {
    "default": {}, "short": {"precision": 2, "threshold": 1000, "edgeitems": 2},
    "full": {"threshold": 1 << 62}}
_options: dict[str, Any] = {}


def set_printoptions(precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None,
                     linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None) -> None:
    """Set how tensors are shown. What is left out stays as it is; at first it is numpy's.

    Args:
        precision: Number of digits after the point.
        threshold: Number of elements above which a summary is shown.
        edgeitems: Number of elements at the beginning and the end of each dimension of a summary.
        linewidth: Number of characters in a line.
        profile: "default", "short" or "full": a set of these options, before the others.
        sci_mode: Whether floats are shown as in 1.5e+00; None to decide by their sizes.

    Raises:
        UserError: There is no such profile, or a number is negative, or that of characters is 0 (MLC0360).

    Example:
        >>> mlc.set_printoptions(precision=2)
        >>> mlc.tensor([1 / 3])
        tensor([0.33], dtype=mlc.float32)
        >>> mlc.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in PROFILES:
            raise UserError(f"profile = {profile!r}", code="MLC0360", loc=user_loc(),
                            hint="one of " + ", ".join(PROFILES))
        _options.clear()
        _options.update(PROFILES[profile])
    for name, least, value in (("precision", 0, precision), ("threshold", 0, threshold), ("edgeitems", 0, edgeitems),
                               ("linewidth", 1, linewidth)):
        if value is not None and value < least:
            raise UserError(f"{name} = {value}, expected at least {least}", code="MLC0360", loc=user_loc())
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "max_line_width": linewidth}
    _options.update({name: x for name, x in given.items() if x is not None})
    _options.pop("formatter", None)
    _options.pop("suppress_small", None)
    if sci_mode is False:
        _options["suppress_small"] = True
    elif sci_mode:
        digits = _options.get("precision", 4)
        _options["formatter"] = {"float_kind": lambda x: f"{x:.{digits}e}"}


BFLOAT16_DIGITS = 6
"""Digits after the point where no option says how many; float32, in which they are shown, has more."""


def shown(array: np.ndarray[Any, Any], prefix: str) -> str:
    """Text of the elements, for a line that begins with `prefix`."""
    options = _options
    if array.dtype.name == "bfloat16":                     # which numpy shows as ml_dtypes does, whatever the options
        array, options = array.astype(np.float32), {"precision": BFLOAT16_DIGITS, **_options}
    return np.array2string(array, separator=", ", prefix=prefix, **options)


MOST = 1 << 24
"""Elements above which a notebook shows no statistics, which would take long to compute."""


def as_html(x: Tensor) -> str:
    """A tensor as notebooks show it: its type, statistics of its elements, and these, folded if they are many."""
    text = repr(x)
    if text.startswith("tensor(<"):                        # donated
        return html.plain(text)
    head = f"{list(x.shape)} {x.dtype}, {x.numel() * x.element_size():,} bytes on {x.device}"
    if 1 < x.numel() <= MOST and not x.is_complex():
        numbers = np.asarray(x.array).astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        if finite.size:
            head += f"; {finite.min():.4g} to {finite.max():.4g}, mean {finite.mean():.4g}, std {finite.std():.4g}"
        if finite.size < numbers.size:
            head += f"; {int(np.isnan(numbers).sum())} NaN, {int(np.isinf(numbers).sum())} infinite"
    head += "; requires grad" * bool(x.requires_grad)
    return html.folded(head, html.plain(text), text.count("\n") < html.OPEN_LINES)
