"""Where the tensors of a collective are, and how they are sent from there: the CPU's memory, or a GPU's.

Each method of `Place` takes arrays of one place and gives the work of a collective: a function that carries it out,
perhaps in another thread, and returns its result there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mlc.backends.transport import collectives, rooted
from mlc.backends.transport.nccl import Span, Submitted, Work, communicators
from mlc.backends.transport.transport import Array
from mlc.distributed.reduction import ReduceOp
from mlc.distributed.work import Ending

if TYPE_CHECKING:
    from mlc.backends.cuda.memory import DeviceArray
    from mlc.distributed.calls import Collective

Shape = tuple[int, ...]


class Place(Ending, Protocol):
    """The memory that the arrays of a call are in."""

    def all_reduce(self, x: Any, op: ReduceOp) -> Callable[[], Any]:
        """The combination of the arrays of all ranks; the work has the ranks agree by itself."""

    def all_gather(self, x: Any) -> Callable[[], list[Any]]:
        """The arrays of all ranks, by position."""

    def all_gather_stacked(self, x: Any) -> Callable[[], Any]:
        """The same as one array."""

    def reduce_scatter(self, xs: Sequence[Any], op: ReduceOp) -> Callable[[], Any]:
        """The combination of the arrays that all ranks have for this position."""

    def reduce_scatter_rows(self, x: Any, shape: Shape, op: ReduceOp) -> Callable[[], Any]:
        """The same of one array for each rank, of this shape; they lie one after another in `x`."""

    def all_to_all(self, xs: Sequence[Any], shapes: Sequence[Shape]) -> Callable[[], list[Any]]:
        """The arrays that all positions have for this one, of these shapes."""

    def all_to_all_rows(self, x: Any, sent: Sequence[int], received: Sequence[int]) -> Callable[[], Any]:
        """Give each position some rows of an array, in order; those that come from each, one after another."""

    def broadcast(self, xs: Sequence[Any], root: int) -> Callable[[], list[Any]]:
        """The arrays of the root, of one element type."""

    def reduce(self, x: Any, op: ReduceOp, root: int) -> Callable[[], Any]:
        """The combination of the arrays of all ranks, at the root; None elsewhere."""

    def gather(self, x: Any, root: int) -> Callable[[], list[Any]]:
        """The arrays of all ranks, at the root; an empty list elsewhere."""

    def scatter(self, xs: Sequence[Any], into: Any, root: int) -> Callable[[], Any]:
        """The array that the root has for this position, one like `into`."""

    def join(self) -> None:
        """Have what this thread computes from now on see the result."""


class OnHost:
    """Arrays in the CPU's memory, which the transport of the job sends."""

    def __init__(self, call: Collective) -> None:
        self._call = call
        self._at = call.transport, call.ranks

    def all_reduce(self, x: Array, op: ReduceOp) -> Callable[[], Array]:
        return lambda: self._call.all_reduce(x, op.kind)

    def all_gather(self, x: Array) -> Callable[[], list[Array]]:
        return lambda: collectives.all_gather(*self._at, x, *self._order)

    def all_gather_stacked(self, x: Array) -> Callable[[], Array]:
        return lambda: np.stack(self.all_gather(x)())

    def reduce_scatter(self, xs: Sequence[Array], op: ReduceOp) -> Callable[[], Array]:
        return lambda: collectives.reduce_scatter(*self._at, xs, op.kind, *self._order)

    def reduce_scatter_rows(self, x: Array, shape: Shape, op: ReduceOp) -> Callable[[], Array]:
        return self.reduce_scatter(list(np.ascontiguousarray(x).reshape(len(self._call.ranks), *shape)), op)

    def all_to_all(self, xs: Sequence[Array], shapes: Sequence[Shape]) -> Callable[[], list[Array]]:
        return lambda: collectives.all_to_all(*self._at, xs, *self._order, shapes)

    def all_to_all_rows(self, x: Array, sent: Sequence[int], received: Sequence[int]) -> Callable[[], Array]:
        pieces = np.split(x, list(accumulate(sent))[:-1])
        exchanged = self.all_to_all(pieces, [(n, *x.shape[1:]) for n in received])
        return lambda: np.concatenate(exchanged())

    def broadcast(self, xs: Sequence[Array], root: int) -> Callable[[], list[Array]]:
        def work() -> list[Array]:
            flat = xs[0] if len(xs) == 1 else np.concatenate([x.reshape(-1) for x in xs])
            found = collectives.broadcast(*self._at, flat, root, *self._order).reshape(-1)
            return [part.reshape(x.shape) for x, part in zip(xs, np.split(found, list(accumulate(
                x.size for x in xs))[:-1]))]
        return work

    def reduce(self, x: Array, op: ReduceOp, root: int) -> Callable[[], Array | None]:
        return lambda: rooted.reduce(*self._at, x, op.kind, root, *self._order)

    def gather(self, x: Array, root: int) -> Callable[[], list[Array]]:
        return lambda: rooted.gather(*self._at, x, root, *self._order)

    def scatter(self, xs: Sequence[Array], into: Array, root: int) -> Callable[[], Array]:
        return lambda: rooted.scatter(*self._at, xs, into, root, *self._order)

    def join(self) -> None:
        """Nothing to do: the work has ended."""

    def is_done(self) -> bool:
        return True

    def seen(self) -> None:
        """Nothing to do."""

    @property
    def _order(self) -> tuple[float, int]:
        return self._call.timeout, self._call.tag


class OnGpu:
    """Arrays on this rank's GPU, which NCCL sends.

    The work runs on a stream beside that of the device. Results are allocated here, in the order of the device's own
    work: what that still does with the memory they get comes before the communication, as does what it computes.
    """

    def __init__(self, call: Collective, like: DeviceArray) -> None:
        self._call, self._memory, self._device = call, like.memory, like.memory.device
        known, agree = communicators(call.transport), partial(call.agreed, lambda: None)
        with call.reported():
            self._nccl = known.collective(call.ranks, like.memory, agree)
        self._submitted: Submitted | None = None

    def all_reduce(self, x: DeviceArray, op: ReduceOp) -> Callable[[], DeviceArray]:
        out = self._like(x)
        work = self._work(self._nccl.all_reduce(x, out, op.kind), out, [x, out])
        return lambda: self._call.agreed(work)

    def all_gather(self, x: DeviceArray) -> Callable[[], list[DeviceArray]]:
        outs = [self._like(x) for _ in self._call.ranks]
        return self._exchange([(p, _span(x)) for p, _ in enumerate(outs)], outs, [x])

    def all_gather_stacked(self, x: DeviceArray) -> Callable[[], DeviceArray]:
        out = self._memory.empty((len(self._call.ranks), *x.shape), x.dtype)
        return self._work(self._nccl.all_gather(x, out), out, [x, out])

    def reduce_scatter(self, xs: Sequence[DeviceArray], op: ReduceOp) -> Callable[[], DeviceArray]:
        whole = self._memory.empty((len(xs), *xs[0].shape), xs[0].dtype)
        self._device.activate()
        for p, x in enumerate(xs):
            self._device.copy(whole.address + p * x.nbytes, x.address, x.nbytes)
        return self.reduce_scatter_rows(whole, xs[0].shape, op)

    def reduce_scatter_rows(self, x: DeviceArray, shape: Shape, op: ReduceOp) -> Callable[[], DeviceArray]:
        out = self._memory.empty(shape, x.dtype)
        return self._work(self._nccl.reduce_scatter(x, out, op.kind), out, [x, out])

    def all_to_all(self, xs: Sequence[DeviceArray], shapes: Sequence[Shape]) -> Callable[[], list[DeviceArray]]:
        outs = [self._memory.empty(shape, xs[0].dtype) for shape in shapes]
        return self._exchange([(p, _span(x)) for p, x in enumerate(xs)], outs, xs)

    def all_to_all_rows(self, x: DeviceArray, sent: Sequence[int], received: Sequence[int]
                        ) -> Callable[[], DeviceArray]:
        out = self._memory.empty((sum(received), *x.shape[1:]), x.dtype)
        row = prod(x.shape[1:]) * x.dtype.itemsize
        work = self._nccl.exchange(_rows(x.address, sent, row), _rows(out.address, received, row))
        return self._work(work, out, [x, out])

    def broadcast(self, xs: Sequence[DeviceArray], root: int) -> Callable[[], list[DeviceArray]]:
        outs = list(xs) if self._nccl.position == root else [self._like(x) for x in xs]
        return self._work(self._nccl.broadcast(xs, outs, root), outs, [*xs, *outs])

    def reduce(self, x: DeviceArray, op: ReduceOp, root: int) -> Callable[[], DeviceArray | None]:
        out = self._like(x)
        result = out if self._nccl.position == root else None
        return self._work(self._nccl.reduce(x, out, op.kind, root), result, [x, out])

    def gather(self, x: DeviceArray, root: int) -> Callable[[], list[DeviceArray]]:
        outs = [self._like(x) for _ in self._call.ranks] if self._nccl.position == root else []
        return self._exchange([(root, _span(x))], outs, [x])

    def scatter(self, xs: Sequence[DeviceArray], into: DeviceArray, root: int) -> Callable[[], DeviceArray]:
        out = self._like(into)
        work = self._nccl.exchange([(p, _span(x)) for p, x in enumerate(xs)], [(root, _span(out))])
        return self._work(work, out, [*xs, out])

    def join(self) -> None:
        assert self._submitted is not None, "the work has been submitted"
        self._submitted.join()

    def is_done(self) -> bool:
        return self._submitted is not None and self._submitted.done()

    def seen(self) -> None:
        communicators(self._call.transport).told = True

    def _like(self, x: DeviceArray) -> DeviceArray:
        return self._memory.empty(x.shape, x.dtype)

    def _exchange(self, sent: Sequence[tuple[int, Span]], outs: list[DeviceArray], xs: Sequence[DeviceArray]
                  ) -> Callable[[], list[DeviceArray]]:
        """Send pieces of memory; each position sends one of the arrays of the result, if there are any."""
        received = [(p, _span(out)) for p, out in enumerate(outs)]
        return self._work(self._nccl.exchange(sent, received), outs, [*xs, *outs])

    def _work(self, work: Work, result: Any, arrays: Sequence[DeviceArray]) -> Callable[[], Any]:
        """Submit work that reads and writes arrays, after all that the device does so far."""
        self._device.activate()
        computed = self._device.mark(self._device.stream)

        def submit() -> Any:
            self._submitted = self._nccl.submit(self._call.text, work, arrays, self._call.timeout, computed)
            return result

        return submit


def _span(x: DeviceArray) -> Span:
    return Span(x.address, x.nbytes)


def _rows(address: int, counts: Sequence[int], row: int) -> list[tuple[int, Span]]:
    """Rows of so many bytes, by position: as many for each as its count says, one after another."""
    ends = list(accumulate(counts, initial=0))
    return [(p, Span(address + start * row, (end - start) * row)) for p, (start, end) in enumerate(zip(ends, ends[1:]))]
