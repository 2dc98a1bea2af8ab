"""Sequences of different lengths, padded to one length or packed: the functions of torch.nn.utils.rnn.

A padded batch is a tensor with a length for each sequence; a packed one has the elements of all sequences in a tensor,
step by step, so that a recurrent layer computes nothing for padding.

Example:
    >>> a, b = mlc.tensor([1.0, 2.0]), mlc.tensor([3.0])
    >>> nn.utils.rnn.pad_sequence([a, b], batch_first=True)
    tensor([[1., 2.],
            [3., 0.]], dtype=mlc.float32)
    >>> nn.utils.rnn.pack_sequence([a, b]).data
    tensor([1., 3., 2.], dtype=mlc.float32)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from mlc.frontend.arguments import coded
from mlc.frontend.functions import create, index
from mlc.frontend.functions import shape as S
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor, wrap
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError, UserTypeError

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
           "pad_sequence", "unpack_sequence", "unpad_sequence"]


class _Fields(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(_Fields):
    """Sequences of different lengths without padding: the elements of step 0 of all of them, then those of step 1.

    The sequences are in order of decreasing length. It is an input and a result of `nn.RNN`, `nn.LSTM` and `nn.GRU`;
    `pack_padded_sequence` and `pack_sequence` make it. It is a named tuple, whose fields are the arguments.

    Args:
        data: Tensor of shape (elements, ...).
        batch_sizes: Number of sequences that have an element, for each step, int64 in the CPU's memory.
        sorted_indices: Positions of the sequences before they were sorted; None if they were sorted.
        unsorted_indices: The inverse of that permutation; None to compute it.

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([mlc.tensor([1.0, 2.0]), mlc.tensor([3.0])])
        >>> packed.data, packed.batch_sizes
        (tensor([1., 3., 2.], dtype=mlc.float32), tensor([2, 1], dtype=mlc.int64))
    """

    __slots__ = ()

    def __new__(cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None,
                unsorted_indices: Any = None) -> Self:
        if unsorted_indices is None and type(sorted_indices) is Tensor:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **keywords: Any) -> PackedSequence:
        """The sequences with the data in another dtype or on another device: `Tensor.to`.

        Args:
            args: Arguments of `Tensor.to`.
            keywords: Its keyword arguments.

        Returns:
            A packed sequence.
        """
        return self._replace(data=self.data.to(*args, **keywords))

    def cpu(self) -> PackedSequence:
        """The sequences with the data in the CPU's memory, as `Tensor.cpu`.

        Returns:
            A packed sequence.

        Example:
            >>> p = nn.utils.rnn.pack_sequence([mlc.tensor([1, 2]), mlc.tensor([3])])
            >>> p.cpu().data.device == "cpu"
            True
        """
        return self.to("cpu")

    def cuda(self) -> PackedSequence:
        """The sequences with the data on a GPU, as `Tensor.cuda`; the lengths stay where they are.

        Returns:
            A packed sequence.

        Raises:
            BackendError: There is no GPU that can be used (MLC0580 to MLC0582).
        """
        return self.to("cuda")

    def float(self) -> PackedSequence:
        """The sequences with data of float32, as `Tensor.float`.

        Returns:
            A packed sequence.

        Example:
            >>> nn.utils.rnn.pack_sequence([mlc.tensor([1, 2]), mlc.tensor([3])]).float().data
            tensor([1., 3., 2.], dtype=mlc.float32)
        """
        return self.to("float32")

    def double(self) -> PackedSequence:
        """The sequences with data of float64, as `Tensor.double`.

        Returns:
            A packed sequence.

        Example:
            >>> nn.utils.rnn.pack_sequence([mlc.tensor([1, 2]), mlc.tensor([3])]).double().data
            tensor([1., 3., 2.], dtype=mlc.float64)
        """
        return self.to("float64")

    def half(self) -> PackedSequence:
        """The sequences with data of float16, as `Tensor.half`.

        Returns:
            A packed sequence.

        Example:
            >>> nn.utils.rnn.pack_sequence([mlc.tensor([1, 2]), mlc.tensor([3])]).half().data
            tensor([1., 3., 2.], dtype=mlc.float16)
        """
        return self.to("float16")

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a GPU.

        Example:
            >>> nn.utils.rnn.pack_sequence([mlc.tensor([1, 2]), mlc.tensor([3])]).is_cuda
            False
        """
        found: bool = self.data.is_cuda
        return found


@coded
def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Compute the inverse of a permutation.

    Args:
        permutation: Tensor of the integers from 0 to n - 1 in any order, or None.

    Returns:
        Tensor of int64, whose element permutation[i] is i; None for None.

    Example:
        >>> nn.utils.rnn.invert_permutation(mlc.tensor([2, 0, 1]))
        tensor([1, 2, 0], dtype=mlc.int64)
    """
    return None if permutation is None else _indices(np.argsort(_numbers(permutation, "permutation")))


@coded
def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """Pack padded sequences: drop the elements behind the end of each.

    Args:
        input: Tensor of shape (steps, n, ...), or (n, steps, ...) with `batch_first`.
        lengths: The lengths, a list or a tensor of integers, known when this is called.
        batch_first: Whether the batch is the first dimension.
        enforce_sorted: Whether the lengths have to be in decreasing order; otherwise the sequences are sorted.

    Returns:
        A packed sequence.

    Raises:
        UserError: A length is below 1 or above the number of steps, their number is not that of the sequences, or they
            are not sorted (MLC0739), or `input` has fewer than 2 dimensions (MLC0364).
        UserTypeError: The lengths are computed within a recorded function (MLC0740).

    Example:
        >>> padded = mlc.tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
        >>> packed = nn.utils.rnn.pack_padded_sequence(padded, [2, 3], batch_first=True, enforce_sorted=False)
        >>> packed.data
        tensor([3., 1., 4., 2., 5.], dtype=mlc.float32)
    """
    counts = _numbers(lengths, "lengths")
    n, steps = _batch_and_steps(input, batch_first)
    if counts.size != n or counts.min(initial=1) < 1 or counts.max(initial=0) > steps:
        raise UserError(f"lengths {counts.tolist()} for {n} sequences of at most {steps} steps", code="MLC0739",
                        loc=user_loc())
    order = None
    if not enforce_sorted:
        order = np.argsort(-counts, kind="stable")
        counts = counts[order]
    elif (np.diff(counts) > 0).any():
        raise UserError(f"lengths {counts.tolist()} are not in decreasing order", code="MLC0739", loc=user_loc(),
                        hint="pass enforce_sorted=False")
    place = np.arange(counts.size) if order is None else order
    active = np.arange(counts.max(initial=0))[:, None] < counts
    rows = [place * steps + t if batch_first else t * counts.size + place for t in range(active.shape[0])]
    wanted = np.concatenate([row[on] for row, on in zip(rows, active)]) if rows else np.zeros(0, np.int64)
    data = index.index_select(S.flatten(input, 0, 1), 0, _indices(wanted))
    sorted_indices = None if order is None else _indices(order)
    return PackedSequence(data, _indices(active.sum(1)), sorted_indices, invert_permutation(sorted_indices))


@coded
def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Pad packed sequences to one length.

    The inverse of `pack_padded_sequence`: what recurrent layers return for packed sequences becomes a tensor again,
    with `padding_value` behind the end of each sequence.

    Args:
        sequence: Packed sequence.
        batch_first: Whether the batch is to be the first dimension.
        padding_value: Elements behind the end of a sequence.
        total_length: Number of steps of the result; None for the length of the longest sequence.

    Returns:
        Pair of a tensor of shape (steps, n, ...), or (n, steps, ...), and of the lengths, int64; both in the order that
        the sequences had before they were packed.

    Raises:
        UserError: `total_length` is below the length of a sequence (MLC0739).
        UserTypeError: It is no packed sequence, or its sizes are computed within a recorded function (MLC0740).

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([mlc.tensor([1.0, 2.0]), mlc.tensor([3.0])])
        >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0)[0]
        tensor([[ 1.,  2.],
                [ 3., -1.]], dtype=mlc.float32)
    """
    if not isinstance(sequence, PackedSequence):
        raise UserTypeError(f"pad_packed_sequence takes a PackedSequence, found {type(sequence).__name__}",
                            code="MLC0740", loc=user_loc())
    rows, lengths = rows_of_padded(sequence)
    if total_length is not None:
        if total_length < len(rows):
            raise UserError(f"total_length = {total_length} is below the length {len(rows)} of a sequence",
                            code="MLC0739", loc=user_loc())
        rows = np.pad(rows, ((0, total_length - len(rows)), (0, 0)), constant_values=-1)
    if sequence.unsorted_indices is not None:
        order = _numbers(sequence.unsorted_indices, "unsorted_indices")
        rows, lengths = rows[:, order], lengths[order]
    data, count = sequence.data, sequence.data.shape[0]
    if (rows < 0).any():
        data = S.cat([data, create.full((1, *data.shape[1:]), padding_value, dtype=data.dtype)])
    rows = np.where(rows < 0, count, rows)
    return taken(data, rows.T if batch_first else rows), _indices(lengths)


def rows_of_padded(sequence: PackedSequence) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The position in `data` of each element of the padded sequences, [steps, n], -1 for padding; and the lengths."""
    sizes = _numbers(sequence.batch_sizes, "batch_sizes")
    column = np.arange(sizes.max(initial=0))
    starts = np.cumsum(sizes) - sizes
    rows = np.where(column < sizes[:, None], starts[:, None] + column, -1)
    return rows, (sizes[:, None] > column).sum(0)


def taken(x: Tensor, rows: np.ndarray[Any, Any]) -> Tensor:
    """The rows of x at these positions, in the shape of `rows`."""
    return S.unflatten(index.index_select(x, 0, _indices(rows.ravel())), 0, rows.shape)


@coded
def pad_sequence(sequences: Tensor | Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Stack sequences of different lengths, with padding behind or in front of the shorter ones.

    Args:
        sequences: Tensors of shape (length, ...).
        batch_first: Whether the batch is to be the first dimension.
        padding_value: Elements of the padding.
        padding_side: "right" or "left".

    Returns:
        Tensor of shape (steps, n, ...), or (n, steps, ...).

    Raises:
        UserError: There is no sequence (MLC0739), one has no dimensions (MLC0364), or `padding_side` is another string
            (MLC0360).

    Example:
        >>> nn.utils.rnn.pad_sequence([mlc.tensor([1, 2]), mlc.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]], dtype=mlc.int64)
    """
    given = list(sequences)
    if not given:
        raise UserError("pad_sequence is given no sequence", code="MLC0739", loc=user_loc())
    if padding_side not in ("right", "left"):
        raise UserError(f"padding_side = {padding_side!r}, expected 'right' or 'left'", code="MLC0360", loc=user_loc())
    if any(not x.ndim for x in given):
        raise UserError("a sequence is a tensor without dimensions", code="MLC0364", loc=user_loc())
    lengths = [x.shape[0] for x in given]
    steps, right = max(lengths), padding_side == "right"
    if all(type(x) is Tensor and not x.requires_grad and not x.is_cuda for x in given):  # no kernel per set of lengths
        out = np.full((len(given), steps, *given[0].shape[1:]), padding_value, given[0].numpy().dtype)
        for row, x, length in zip(out, given, lengths):
            row[slice(0, length) if right else slice(steps - length, steps)] = x.numpy()
        return wrap(out if batch_first else np.ascontiguousarray(out.swapaxes(0, 1)))
    ends = np.cumsum(lengths)
    rows = np.full((len(given), steps), ends[-1])
    for row, end, length in zip(rows, ends, lengths):
        row[slice(0, length) if right else slice(steps - length, steps)] = np.arange(end - length, end)
    padding = create.full((1, *given[0].shape[1:]), padding_value, dtype=given[0].dtype)
    return taken(S.cat([*given, padding]), rows if batch_first else rows.T)


@coded
def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """Take padded sequences apart: the inverse of `pad_sequence`.

    Args:
        padded_sequences: Tensor of shape (steps, n, ...), or (n, steps, ...) with `batch_first`.
        lengths: The lengths, known when this is called.
        batch_first: Whether the batch is the first dimension.

    Returns:
        List of tensors of shape (length, ...).

    Raises:
        UserError: A length is negative or above the number of steps, or their number is not that of the sequences
            (MLC0739), or there are fewer than 2 dimensions (MLC0364).
        UserTypeError: The lengths are computed within a recorded function (MLC0740).

    Example:
        >>> nn.utils.rnn.unpad_sequence(mlc.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
        [tensor([1, 2], dtype=mlc.int64), tensor([3], dtype=mlc.int64)]
    """
    counts = _numbers(lengths, "lengths")
    n, steps = _batch_and_steps(padded_sequences, batch_first)
    if counts.size != n or counts.min(initial=0) < 0 or counts.max(initial=0) > steps:
        raise UserError(f"lengths {counts.tolist()} for {n} sequences of at most {steps} steps", code="MLC0739",
                        loc=user_loc())
    flat = S.flatten(padded_sequences, 0, 1)
    rows = [i * steps + np.arange(count) if batch_first else np.arange(count) * n + i for i, count in enumerate(counts)]
    return [index.index_select(flat, 0, _indices(row)) for row in rows]


@coded
def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths.

    Elements are in order of time: the first step of all sequences, then the second of those that have one, and so on,
    so that a recurrent layer computes no step of padding.

    Args:
        sequences: Tensors of shape (length, ...).
        enforce_sorted: Whether the lengths have to be in decreasing order; otherwise the sequences are sorted.

    Returns:
        A packed sequence.

    Raises:
        UserError: A sequence is empty, or they are not sorted (MLC0739), or one has no dimensions (MLC0364).

    Example:
        >>> nn.utils.rnn.pack_sequence([mlc.tensor([1, 2]), mlc.tensor([3])]).data
        tensor([1, 3, 2], dtype=mlc.int64)
    """
    return pack_padded_sequence(pad_sequence(sequences), [len(x) for x in sequences], enforce_sorted=enforce_sorted)


@coded
def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Take packed sequences apart: the inverse of `pack_sequence`.

    Args:
        packed_sequences: Packed sequence.

    Returns:
        List of tensors of shape (length, ...).

    Raises:
        UserTypeError: It is no packed sequence, or its sizes are computed within a recorded function (MLC0740).

    Example:
        >>> nn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence([mlc.tensor([1, 2]), mlc.tensor([3])]))
        [tensor([1, 2], dtype=mlc.int64), tensor([3], dtype=mlc.int64)]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def _batch_and_steps(x: Tensor, batch_first: bool) -> tuple[int, int]:
    """The number of padded sequences, and that of their steps."""
    if x.ndim < 2:
        raise UserError(f"padded sequences have at least 2 dimensions, found a tensor of shape {list(x.shape)}",
                        code="MLC0364", loc=user_loc())
    return (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])


def _numbers(x: Any, what: str) -> np.ndarray[Any, Any]:
    """Integers that decide on shapes."""
    if isinstance(x, Tracer):
        raise UserTypeError(f"{what} of packed sequences are computed in a recorded function, or an argument of it, "
                            "and shapes depend on them", code="MLC0740", loc=user_loc(),
                            hint="pass them as a list of integers, or pack the sequences outside of it")
    return np.asarray(x.numpy() if isinstance(x, Tensor) else [int(n) for n in x], np.int64)


def _indices(x: np.ndarray[Any, Any]) -> Tensor:
    return wrap(np.ascontiguousarray(x, np.int64))
