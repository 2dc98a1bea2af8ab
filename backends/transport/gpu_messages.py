"""Messages from one GPU to another, by NCCL.

Each direction between two ranks has a communicator, a stream and a thread of its own: messages of one direction arrive
in the order in which they are sent, and wait for nothing of another one. The two ranks meet at the first message, in
that thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from mlc.backends.transport.errors import RankError
from mlc.backends.transport.nccl import Communicator, Span, Submitted, communicators
from mlc.backends.transport.pending import Handle, Worker
from mlc.backends.transport.transport import MEETING_TAGS

if TYPE_CHECKING:
    from mlc.backends.cuda.device import Device
    from mlc.backends.cuda.memory import DeviceArray
    from mlc.backends.transport.transport import Transport


class Direction:
    """The messages from one rank to another, on either of them.

    ranks   the source and the destination
    device  the GPU of this rank
    number  that of the next message
    """

    def __init__(self, transport: Transport, ranks: tuple[int, int], device: Device) -> None:
        self.ranks, self.device, self.number, self._transport = ranks, device, 0, transport
        device.activate()
        self._stream = device.new_stream()
        self._worker = Worker(f"messages from rank {ranks[0]} to rank {ranks[1]}")
        self._communicator: Communicator | None = None
        self._failed: BaseException | None = None

    def start(self, array: DeviceArray, name: str, timeout: float, ready: Callable[[], None] = lambda: None,
              around: Callable[[], AbstractContextManager[None]] = nullcontext) -> Handle[Submitted]:
        """Have an array be sent, or received into, after all that the device does so far.

        ready   waits until the message may begin, in the thread of the direction; after an error there are no more
        around  makes the context in which it begins
        """
        self.number += 1
        self.device.activate()
        computed = self.device.mark(self.device.stream)

        def begin() -> Submitted:
            if self._failed is not None:
                raise self._failed
            with around():
                return submit()

        def submit() -> Submitted:
            try:
                ready()
                communicator, span = self._known(array), Span(array.address, array.nbytes)
                sends = self.ranks[0] == self._transport.rank
                work = communicator.exchange([(1, span)], []) if sends else communicator.exchange([], [(0, span)])
                return communicator.submit(name, work, [array], timeout, computed)
            except BaseException as error:
                self._failed = error                       # what follows would be taken for this one
                raise

        handle = Handle(name, begin)
        self._worker.submit(handle)
        return handle

    def stop(self) -> None:
        """Begin what is to be sent, which somebody receives; what nobody waits for need not come."""
        if self.ranks[0] == self._transport.rank:
            self._worker.finish()
        self._worker.stop()

    def _known(self, array: DeviceArray) -> Communicator:
        if self._communicator is None:
            tag = MEETING_TAGS + (self.ranks[0] < self.ranks[1])
            self._communicator = communicators(self._transport).make(self.ranks, array.memory, self._stream,
                                                                       "messages", tag)
        return self._communicator


def direction(t: Transport, ranks: tuple[int, int], device: Device) -> Direction:
    """The messages of a rank to or from another one."""
    known = communicators(t).directions
    if ranks not in known:
        known[ranks] = Direction(t, ranks, device)
    if (there := known[ranks].device) is not device:
        raise RankError(f"an array is on cuda:{device.ordinal}, and this rank's part in the messages from rank "
                        f"{ranks[0]} to rank {ranks[1]} is that of cuda:{there.ordinal}", code="MLC0976", ranks=ranks,
                        hint="use one GPU for each rank")
    return known[ranks]
