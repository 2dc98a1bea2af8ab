"""shard, messages: a tensor goes from one rank to another along an axis of the mesh.

They are in programs that differ among the ranks of that axis, as those of a pipeline. A message is sent without waiting
for its receiver; the numbers of messages are those of MPI's tags, and differ within a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.dialects.shard.collectives import ranks_of
from mlc.dialects.shard.mesh import Axes, Mesh
from mlc.dialects.tensor.traits import HostOp
from mlc.ir.core import ResultType, Value
from mlc.ir.diag import UserError
from mlc.ir.types import TensorType

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


class Message(HostOp, pure=False):
    """One end of a message between the rank and the one at another position along `axes`."""

    mesh: Mesh
    axes: Axes
    tag: int

    @property
    def peer(self) -> int:
        """The position of the other rank."""
        raise NotImplementedError

    @property
    def content(self) -> TensorType:
        """The type of what is sent."""
        raise NotImplementedError

    def peer_of(self, rank: int) -> int:
        """The number of the other rank."""
        return self.mesh.group(rank, self.axes)[self.peer]

    def bytes_sent(self) -> int:
        """The bytes of the message."""
        type, out = self.content, self.content.dtype.itemsize
        for n in type.shape:
            assert isinstance(n, int), "shards have static shapes"
            out *= n
        return int(out)

    def _check(self) -> None:
        try:
            ranks = self.mesh.size(self.axes)
        except UserError as error:
            self.fail(error.message, code=error.code, hint=error.hint)
        if not 0 <= self.peer < ranks:
            self.fail(f"there is no position {self.peer} among {ranks} along {', '.join(self.axes)}", code="MLC0962")


class Send(Message, name="shard.send", pure=False):
    """x is sent to the rank at position `destination` along `axes`

        shard.send %x {mesh = #shard.mesh<axes = ["s"], sizes = [2]>, axes = ["s"], tag = 0, destination = 1} :
            (tensor<3xf32>) -> ()
    """

    x: Value
    destination: int

    @property
    def peer(self) -> int:
        return self.destination

    @property
    def content(self) -> TensorType:
        type = self.x.type
        assert isinstance(type, TensorType)
        return type

    def verify_op(self) -> None:
        self._check()

    def interpret(self, frame: Frame) -> list[Any]:
        ranks_of(self, frame).send(self, frame[self.x])
        return []


class Recv(Message, name="shard.recv", pure=False):
    """result = what the rank at position `source` along `axes` sends with this tag

        %r = shard.recv {mesh = #shard.mesh<axes = ["s"], sizes = [2]>, axes = ["s"], tag = 0, source = 0} :
            () -> tensor<3xf32>
    """

    source: int
    type: ResultType
    format = "attr-dict `:` functional-type"

    @property
    def peer(self) -> int:
        return self.source

    @property
    def content(self) -> TensorType:
        type = self.results[0].type
        assert isinstance(type, TensorType)
        return type

    def verify_op(self) -> None:
        self._check()

    def interpret(self, frame: Frame) -> Any:
        return ranks_of(self, frame).receive(self)

