"""Messages from one GPU to another, by NCCL.

Each direction between two ranks has a communicator, a stream and a thread of its own: messages of one direction arrive
in their order, and wait for nothing of another one. The two ranks meet at the first message, in that thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mlc.backends.transport.nccl import Communicator, Span, communicators
from mlc.backends.transport.pending import Handle, Worker

if TYPE_CHECKING:
    from mlc.backends.cuda.device import Device
    from mlc.backends.cuda.memory import DeviceArray
    from mlc.backends.transport.transport import Transport


class Direction:
    """The messages from one rank to another, on either of them.

    ranks   the source and the destination
    stream  the stream of the GPU on which they are
    """

    def __init__(self, transport: Transport, ranks: tuple[int, int], device: Device) -> None:
        self.ranks, self._transport, self._device = ranks, transport, device
        device.activate()
        self.stream = device.new_stream()
        self._worker = Worker(f"messages from rank {ranks[0]} to rank {ranks[1]}")
        self._communicator: Communicator | None = None

    def start(self, array: DeviceArray, name: str, timeout: float, ready: Callable[[], None] = lambda: None,
              meet: Callable[[], None] = lambda: None) -> Handle[None]:
        """Have an array be sent, or received into, after all that the device does so far.

        ready  waits until the message may begin, in the thread of the direction; it raises if it may not
        meet   waits until the other rank comes to its first message, in a program in which it may not
        """
        self._device.activate()
        self._device.publish(self.stream)

        def begin() -> None:
            ready()
            if self._communicator is None:
                meet()
                self._communicator = communicators(self._transport).make(self.ranks, array.memory, self.stream)
            communicator, span = self._communicator, Span(array.address, array.nbytes)
            sent, received = [(1, span)], [(0, span)]
            work = communicator.exchange(sent, []) if self.ranks[0] == self._transport.rank else \
                communicator.exchange([], received)
            communicator.submit(name, work, [array], timeout)

        handle = Handle(name, begin)
        self._worker.submit(handle)
        return handle

    def join(self) -> None:
        """Have later work of the device come after the messages that have begun."""
        assert self._communicator is not None, "no message has begun"
        self._communicator.join()


def direction(t: Transport, ranks: tuple[int, int], device: Device) -> Direction:
    """The messages of a rank to or from another one."""
    known = communicators(t).directions
    if ranks not in known:
        known[ranks] = Direction(t, ranks, device)
    return known[ranks]
