"""The cross-entropy of a linear map."""

from __future__ import annotations

from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.functions.create import asarray
from mlc.frontend.functions.losses.classification import cross_entropy
from mlc.frontend.functions.neural import linear
from mlc.frontend.functions.shape import flatten, unflatten
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


@coded
def linear_cross_entropy(input: Operand, linear_weight: Operand, target: Operand, *, linear_bias: Operand = None,
                         weight: Operand = None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: Any = None) -> Tensor:
    """The cross-entropy of linear(input) and the target.

    Args:
        input: Tensor of shape (n, features), or (features,).
        linear_weight: Tensor of shape (classes, features), or (classes, ..., features) for several targets of a sample.
        target: Classes, integers of shape (n, ...), or probabilities, floats of shape (n, classes, ...).
        linear_bias: Tensor of the shape of `linear_weight` without the features; None for 0.
        weight: Tensor of one number for each class; None for 1.
        reduction: "mean" or "sum" of the losses, or "none" for each of them.
        ignore_index: A target that does not count, nor gets a gradient; None for -100.
        label_smoothing: Part of each target that is spread evenly over all classes.
        options: Accepted for PyTorch's sake: how the batch is split is left to the compiler.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string, `label_smoothing` out of range or `ignore_index` given for
            probabilities (MLC0360), shapes do not fit (MLC0367, MLC0364), a class is out of range (MLC0340, an
            IndexError), or the operands have different float dtypes (MLC0420).

    Example:
        >>> nn.functional.linear_cross_entropy(mlc.ones(1, 2), mlc.zeros(4, 2), mlc.tensor([0]))
        tensor(1.3862944, dtype=mlc.float32)
    """
    x, w, wanted = asarray(input), asarray(linear_weight), asarray(target)
    classes = tuple(w.shape[:-1])
    if len(classes) > 1 and x.ndim < 2:
        raise UserError(f"several targets of a sample need a batch, found an input of shape {list(x.shape)}",
                        code="MLC0364", hint="input[None] is a batch of one")
    rows = w if w.ndim == 2 else flatten(w, 0, -2)
    bias = None if linear_bias is None else flatten(asarray(linear_bias))
    logits = linear(x, rows, bias)
    if len(classes) > 1:
        logits = unflatten(logits, -1, classes)
    if ignore_index is not None and wanted.is_floating_point():
        raise UserError("ignore_index goes with classes, and the target has probabilities", code="MLC0360")
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, wanted, weight, ignored, reduction, label_smoothing)
