"""Averages of gradients over the ranks of a group, in buckets that travel while backward goes on.

Parameters are divided among buckets in the reverse of their order, which is about that in which their gradients are
complete. A gradient that is complete is copied into its bucket, and a full bucket is sent at once, in the order of the
buckets, which is the same on all ranks. At the end of backward the averages replace the gradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from mlc.backends.cuda.device import Device
from mlc.backends.cuda.memory import DeviceArray
from mlc.backends.transport import collectives
from mlc.backends.transport.errors import RankError
from mlc.backends.transport.transport import Array
from mlc.distributed.calls import Collective, type_text, write
from mlc.distributed.groups import ProcessGroup
from mlc.distributed.reduction import ReduceOp
from mlc.distributed.work import Work
from mlc.frontend.autograd.engine import queue_callback
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor

ALIGNMENT = 16
"""Elements that the place of each gradient in its bucket is a multiple of."""


class Bucket(ABC):
    """Gradients of one dtype that are sent together.

    parameters  numbers of their parameters
    shapes      theirs, by number
    starts      where each begins in `flat`, in elements
    flat        memory of what is sent
    missing     parameters whose gradients are not there yet
    op          the operation that combines what the ranks send
    """

    op: ReduceOp

    def __init__(self, parameters: Sequence[int], arrays: Sequence[Any]) -> None:
        self.parameters, self.starts, end = list(parameters), dict[int, int](), 0
        for i, array in zip(parameters, arrays):
            self.starts[i] = end
            end += -(-array.size // ALIGNMENT) * ALIGNMENT
        self.flat = self.allocate(arrays[0], end)
        self.shapes = {i: array.shape for i, array in zip(parameters, arrays)}
        self.missing = set(self.parameters)
        self.work: Work | None = None
        self.average: Any = None

    @abstractmethod
    def allocate(self, like: Any, size: int) -> Any:
        """Zeros where an array is, of its element type."""

    @abstractmethod
    def put(self, parameter: int, gradient: Any, ranks: int) -> None:
        """Have the gradient of a parameter be sent, one of so many."""

    @abstractmethod
    def clear(self, parameter: int) -> None:
        """Have zeros be sent for a parameter."""

    @abstractmethod
    def part(self, flat: Any, parameter: int) -> Any:
        """The elements of one gradient."""


class HostBucket(Bucket):
    """Gradients in the CPU's memory. Each rank sends its share of the average."""

    op = ReduceOp.SUM

    def allocate(self, like: Array, size: int) -> Array:
        return np.zeros(size, like.dtype)

    def put(self, parameter: int, gradient: Array, ranks: int) -> None:
        np.multiply(gradient, self.flat.dtype.type(1 / ranks), out=self.part(self.flat, parameter))

    def clear(self, parameter: int) -> None:
        self.part(self.flat, parameter)[...] = 0

    def part(self, flat: Array, parameter: int) -> Array:
        start, shape = self.starts[parameter], self.shapes[parameter]
        return flat[start:start + prod(shape)].reshape(shape)


class GpuBucket(Bucket):
    """Gradients on a GPU, which are copied there, and divided by NCCL."""

    op = ReduceOp.AVG

    def allocate(self, like: DeviceArray, size: int) -> DeviceArray:
        return like.memory.array(np.zeros(size, like.dtype))

    def put(self, parameter: int, gradient: DeviceArray, ranks: int) -> None:
        self._device(gradient).copy(self._address(self.flat, parameter), gradient.address, gradient.nbytes)

    def clear(self, parameter: int) -> None:
        self.put(parameter, self._zeros.reshaped(self.shapes[parameter]), 1)

    @cached_property
    def _zeros(self) -> DeviceArray:
        """As many zeros as the longest gradient has elements."""
        return self.allocate(self.flat, max(map(prod, self.shapes.values())))

    def part(self, flat: DeviceArray, parameter: int) -> DeviceArray:
        out = flat.memory.empty(self.shapes[parameter], flat.dtype)
        self._device(flat).copy(out.address, self._address(flat, parameter), out.nbytes)
        return out

    def _device(self, array: DeviceArray) -> Device:
        array.memory.device.activate()
        return array.memory.device

    def _address(self, flat: DeviceArray, parameter: int) -> int:
        return flat.address + self.starts[parameter] * flat.dtype.itemsize


def divide(arrays: Sequence[Any], first: int, cap: int) -> list[Bucket]:
    """The buckets of parameters: the first of at most `first` bytes, the others of `cap`, or of one parameter."""
    buckets, waiting, sizes = list[Bucket](), dict[Any, list[int]](), dict[Any, int]()

    def close(dtype: Any) -> None:
        numbers = waiting.pop(dtype)
        kind = GpuBucket if isinstance(arrays[0], DeviceArray) else HostBucket
        buckets.append(kind(numbers, [arrays[i] for i in numbers]))
        sizes.pop(dtype)

    for i in reversed(range(len(arrays))):
        dtype, size = arrays[i].dtype, arrays[i].nbytes
        if dtype in waiting and sizes[dtype] + size > (cap if buckets else first):
            close(dtype)
        waiting.setdefault(dtype, []).append(i)
        sizes[dtype] = sizes.get(dtype, 0) + size
    for dtype in list(waiting):
        close(dtype)
    return buckets


class Reducer:
    """Averages the gradients of some parameters after each backward that it expects.

    names   of the parameters
    unused  whether parameters may have no gradient, on some ranks or on all
    """

    def __init__(self, names: Sequence[str], parameters: Sequence[Tensor], group: ProcessGroup, cap: int,
                 unused: bool) -> None:
        self.names, self.parameters, self.group, self.unused = list(names), list(parameters), group, unused
        self.buckets = divide([p._array for p in parameters], min(cap, 1 << 20), cap)
        self.bucket_of = {i: bucket for bucket in self.buckets for i in bucket.parameters}
        self.expecting = self.started = False
        self.next = 0
        self.used = set[int]()                             # since gradients were last averaged, without sync too
        self.handles = [p.register_post_accumulate_grad_hook(partial(self.ready, i)) for i, p in enumerate(parameters)]

    def expect(self, expecting: bool) -> None:
        """Average the gradients of the passes backward from now on, or leave them alone."""
        self.expecting = expecting
        for bucket in self.buckets:
            if bucket.work is not None:                    # the last backward has failed: what it sent is on its way
                bucket.work.wait()
        self._reset()

    def _reset(self) -> None:
        self.started, self.next = False, 0
        for bucket in self.buckets:
            bucket.missing, bucket.work, bucket.average = set(bucket.parameters), None, None

    def ready(self, number: int, parameter: Tensor) -> None:
        """Take the gradient of a parameter, and send the buckets whose turn it is."""
        self.used.add(number)
        if not self.expecting:
            return
        if not self.started:
            self.started = True
            queue_callback(self.finish)
        self._take(number)
        self._send()

    def _take(self, number: int) -> None:
        """Have the gradient that a parameter has be sent; zeros for one that has none."""
        bucket, gradient = self.bucket_of[number], self.parameters[number].grad
        if gradient is None:
            bucket.clear(number)
        elif gradient.composite:
            self._fail(f"the gradient of {self.names[number]} is sparse", "make the layer with sparse=False")
        else:
            bucket.put(number, gradient._array, self.group.size())
        bucket.missing.discard(number)

    def _send(self) -> None:
        while self.next < len(self.buckets) and not self.buckets[self.next].missing:
            bucket = self.buckets[self.next]
            call = Collective("DistributedDataParallel", self.group,
                              f"bucket {self.next} of {len(self.buckets)}, {type_text(bucket.flat)}", bucket.flat)
            self.next += 1
            more = self.next < len(self.buckets)           # backward has nothing left to do beside the last one
            bucket.work = call.run(call.place.all_reduce(bucket.flat, bucket.op), partial(setattr, bucket, "average"),
                                   more, agreed=True)

    def finish(self) -> None:
        """Send what is left, and replace the gradients by the averages."""
        missing = sorted(i for bucket in self.buckets for i in bucket.missing)
        if missing and not self.unused:
            names = ", ".join(self.names[i] for i in missing[:5]) + ", ..." * (len(missing) > 5)
            self._fail(f"{len(missing)} of {len(self.names)} parameters have no gradient: {names}",
                       "have the loss depend on all of them, freeze them (requires_grad_(False)) before the model is "
                       "wrapped, or give find_unused_parameters=True")
        for i in missing:                                  # it may have one of passes before, not averaged
            self._take(i)
        self._send()
        used = self._used_anywhere() if self.unused else range(len(self.names))
        for bucket in self.buckets:
            if bucket.work is not None:
                bucket.work.wait()
            assert bucket.average is not None
            for i in bucket.parameters:
                if i in used:
                    self._put(self.parameters[i], bucket.part(bucket.average, i))
        self._reset()
        self.used = set()

    def _put(self, parameter: Tensor, average: Any) -> None:
        if parameter.grad is None:                         # other ranks have one
            parameter.grad = Tensor(np.zeros(parameter.shape, average.dtype)).to(parameter.device)
        write(parameter.grad, average)

    def _used_anywhere(self) -> set[int]:
        """The parameters that any rank has used since gradients were last averaged."""
        mine = np.zeros(len(self.names), np.bool_)
        mine[list(self.used)] = True
        found = list[Array]()
        call = Collective("DistributedDataParallel", self.group, "used parameters")
        call.run(lambda: collectives.all_reduce(call.transport, call.ranks, mine, "or", call.timeout, call.tag),
                 found.append)
        return set(np.flatnonzero(found[0]).tolist())

    def _fail(self, what: str, hint: str) -> None:
        """End the pass on all ranks: others wait for what this one cannot send."""
        rank = self.group.transport.rank
        self.group.transport.abort(f"DistributedDataParallel on rank {rank}: {what}")
        raise RankError(f"DistributedDataParallel: {what}", code="MLC0979", ranks=[rank], loc=user_loc(), hint=hint)
