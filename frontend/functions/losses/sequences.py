"""The loss of connectionist temporal classification."""

from __future__ import annotations

import math
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.control import scan
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.index import gather, take
from mlc.frontend.functions.losses.regression import reduced
from mlc.frontend.functions.scan import cumsum
from mlc.frontend.functions.shape import cat, sliced, stack
from mlc.frontend.operands import broadcast_to, cast, full, integer, reals, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i64

IMPOSSIBLE = -1e30
"""Logarithm of a probability of 0: finite, so that derivatives are 0 and not NaN."""


@operation(literal=("input_lengths", "target_lengths"), autocast="fp32")
def ctc_loss(log_probs: Operand, targets: Operand, input_lengths: Operand, target_lengths: Operand, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    """-ln of the probability of a sequence of labels, summed over its alignments (Graves et al. 2006).

    As in PyTorch, the derivative is that by what is in front of the `log_softmax` that `log_probs` come from.

    Args:
        log_probs: Logarithms of probabilities, of shape (steps, n, classes), or (steps, classes).
        targets: Integers of shape (n, labels), or all sequences one behind the other in a vector. Those behind the
            `target_lengths` of a row may be any number.
        input_lengths: Number of steps of each sequence, of shape (n,), or 0-d for one.
        target_lengths: Number of labels of each sequence, likewise.
        blank: The class that stands for no label.
        reduction: "mean" of the losses divided by the numbers of labels, their "sum", or "none" for each of them.
        zero_infinity: Whether the loss of a sequence that has no alignment is 0, rather than infinite.

    Returns:
        0-d tensor of floats; for "none", the losses.

    Raises:
        UserError: `reduction` is another string (MLC0360), a number of dimensions is wrong (MLC0364), lengths are no
            integers (MLC0354), their number or that of the rows of `targets` differs from that of the sequences
            (MLC0367), or a length is above what there is or a label no class (MLC0340, an IndexError).

    Example:
        >>> even = mlc.log(mlc.full((2, 1, 2), 0.5))
        >>> nn.functional.ctc_loss(even, mlc.tensor([[1]]), mlc.tensor([2]), mlc.tensor([1]))
        tensor(0.28768212, dtype=mlc.float32)
    """
    x, labels = reals(log_probs)[0], cast(integer(targets, "targets"), i64)
    single = x.ndim == 2
    x = reshape(x, [x.shape[0], 1, x.shape[1]]) if single else x
    if x.ndim != 3 or labels.ndim not in (1, 2):
        raise UserError(f"log_probs has {x.ndim} dimensions and targets {labels.ndim}, expected 2 or 3, and 1 or 2",
                        code="MLC0364")
    steps, spans = (_lengths(v, what, x.shape[1]) for v, what in ((input_lengths, "input_lengths"),
                                                                 (target_lengths, "target_lengths")))
    if labels.ndim == 2 and not sizes.is_equal(labels.shape[0], x.shape[1]):
        raise UserError(f"targets of shape {list(labels.shape)} for {x.shape[1]} sequences", code="MLC0367")
    steps, spans = _within(steps, x.shape[0]), _within(spans, labels.shape[-1])
    places = _path(_by_sequence(labels, spans, x.shape[1]), blank)
    losses = -_log_likelihood(x, places, blank, steps, spans)
    losses = losses + _normalization(x, steps)
    losses = E.where(losses > -0.5 * IMPOSSIBLE, 0.0 if zero_infinity else math.inf, losses)
    if reduction == "mean":
        losses = losses / cast(tracer(E.clamp_min(spans, 1)), x.type.dtype)
    return reduced(reshape(tracer(losses), []) if single else losses, reduction)


def _normalization(x: Tracer, steps: Tracer) -> Tensor:
    """Zeros with the derivative of the sums of the probabilities of all steps, which `log_softmax` keeps at 1."""
    count, n, _ = x.shape
    total = E.exp(x).sum(2)
    active = emit(T.Iota, (count, 1), 0, i64) < reshape(steps, [1, n])
    out: Tensor = E.where(active, total - E.detach(total), 0.0).sum(0)
    return out


def _lengths(given: Any, what: str, n: Any) -> Tracer:
    value = stack(list(given)) if isinstance(given, tuple | list) else given
    found = cast(integer(value, what), i64)
    found = found if found.ndim else reshape(found, [1])
    if found.ndim != 1 or not sizes.is_equal(found.shape[0], n):
        raise UserError(f"{what} of shape {list(found.shape)} for {n} sequences", code="MLC0367")
    return found


def _within(lengths: Tracer, most: Any) -> Tracer:
    """The lengths themselves, looked up, so that one that is negative or above `most` is an index out of range."""
    return take(emit(T.Iota, (most + 1,), 0, i64), E.where(lengths < 0, tracer(most) + 1, lengths), 0)


def _by_sequence(labels: Tracer, spans: Tracer, n: Any) -> Tracer:
    """Labels with a row for each sequence."""
    if labels.ndim == 2 or labels.shape[0] == 0:
        return labels if labels.ndim == 2 else reshape(labels, [n, 0])
    count = labels.shape[0]
    starts = reshape(tracer(cumsum(spans, 0) - spans), [n, 1])
    index = starts + emit(T.Iota, (1, count), 1, i64)
    return take(labels, E.clamp(index, 0, tracer(count) - 1), 0)


def _path(labels: Tracer, blank: int) -> Tracer:
    """Labels with a blank before, between and behind them."""
    n, count = labels.shape
    blanks = full(blank, labels, [n, count])
    pairs = reshape(tracer(stack([blanks, labels], -1)), [n, 2 * count])
    return tracer(cat([pairs, full(blank, labels, [n, 1])], 1))


def _log_likelihood(x: Tracer, places: Tracer, blank: int, steps: Tracer, spans: Tracer) -> Tensor:
    """ln of the probability of each path, by the forward recurrence."""
    count, n, _ = x.shape
    width = places.shape[1]
    column = emit(T.Iota, (1, width), 1, i64)
    counts = column < reshape(spans, [n, 1]) * 2           # what is behind a sequence may be any number
    at = tracer(E.where(counts, E.where(places < 0, x.shape[2], places), blank))
    known = gather(x, 2, broadcast_to(reshape(at, [1, n, width]), [count, n, width]))
    known = E.clamp_min(known, IMPOSSIBLE)
    behind = _shifted(places, 2, -1)
    skips = (places != blank) & (places != behind)
    first = E.where((column == 0) | ((column == 1) & (reshape(spans, [n, 1]) > 0)), known[0], IMPOSSIBLE)

    def step(alpha: Any, now: Any) -> Any:
        found, t = now
        before = _shifted(alpha, 1, IMPOSSIBLE)
        jump = E.where(skips, _shifted(alpha, 2, IMPOSSIBLE), IMPOSSIBLE)
        most = E.detach(E.maximum(E.maximum(alpha, before), jump))
        total = E.log(E.exp(alpha - most) + E.exp(before - most) + E.exp(jump - most)) + most
        onward = E.clamp_min(total + found, IMPOSSIBLE)
        return E.where(reshape(tracer(t < steps), [n, 1]), onward, alpha), 0

    rest = sliced(tracer(known), 0, 1, count)
    last, _ = scan(step, first, (rest, emit(T.Iota, (count - 1,), 0, i64) + 1))
    end = reshape(tracer(spans * 2), [n, 1])
    final = gather(last, 1, end)
    label = E.where(end > 0, gather(last, 1, E.clamp_min(end - 1, 0)), IMPOSSIBLE)
    return reshape(tracer(E.logaddexp(final, label)), [n])


def _shifted(x: Any, by: int, value: float) -> Tensor:
    """x moved to later columns, with a value in the first ones."""
    row = tracer(x)
    n, width = row.shape
    if isinstance(width, int) and width <= by:
        return full(value, row, [n, width])
    return cat([full(value, row, [n, by]), sliced(row, 1, 0, width - by)], 1)
