"""shard, requests: collectives that are on their way while a rank computes.

Each collective has a start, which gives a request and waits for nobody, and `shard.wait` gives its result; the names
are those of MPI's requests (upstream's `mpi.wait`) and of XLA's pairs (all-reduce-start). As of MPI, the members of a
group begin their collectives in one order, whether they wait for them at once or later, and a request is waited for
once. The operand does not change until then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mlc.dialects.shard.collectives import AllGather, AllReduce, AllToAll, Collective, ReduceScatter, ranks_of
from mlc.dialects.shard.shift import Shift
from mlc.dialects.tensor.traits import HostOp
from mlc.ir.core import Op, Value
from mlc.ir.types import TYPE_READERS, TensorType, Type

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser


@dataclass(frozen=True, slots=True)
class RequestType(Type):
    """`!shard.request<tensor<4xf32>>`: a collective on its way, and the type of its result."""

    content: TensorType
    dialect: ClassVar[str] = "shard"

    def text(self, generic: bool = False) -> str:
        return f"!{'mlc.' if generic else ''}shard.request<{self.content.text(generic)}>"


def _read_request(parser: Parser) -> Type:
    parser.expect("<")
    at = parser.token
    content = parser.type()
    if not isinstance(content, TensorType):
        parser.fail(f"a request is for a tensor, not for {content}", "MLC0206", at)
    parser.expect(">")
    return RequestType(content)


TYPE_READERS["shard.request"] = _read_request


class Start(Collective, pure=False):
    """A collective that is begun: its result is a request, for which `shard.wait` waits."""

    format = "$x attr-dict `:` functional-type"

    def infer(self) -> Any:
        return RequestType(super().infer())  # type: ignore[arg-type]

    @property
    def content(self) -> TensorType:
        """The type of what the collective gives."""
        type = self.result.type
        assert isinstance(type, RequestType)
        return type.content

    def verify_op(self) -> None:
        users = self.result.users
        if len(users) != 1 or not isinstance(users[0], Wait) or users[0].parent is not self.parent:
            self.fail(f"its request is {'never waited for' if not users else 'not waited for once, in its block'}",
                      code="MLC0989", hint="write one shard.wait for each start of a collective")

    def interpret(self, frame: Frame) -> Any:
        return ranks_of(self, frame).start(self, frame[self.x])


class AllReduceStart(Start, AllReduce, name="shard.all_reduce_start", pure=False):
    """result = a request for the combination of x of all ranks

        %q = shard.all_reduce_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} :
            (tensor<3xf32>) -> !shard.request<tensor<3xf32>>
    """


class ReduceScatterStart(Start, ReduceScatter, name="shard.reduce_scatter_start", pure=False):
    """result = a request for the block at the rank's position, along `axis`, of the combination of x of all ranks

        %q = shard.reduce_scatter_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} :
            (tensor<4xf32>) -> !shard.request<tensor<2xf32>>
    """


class AllGatherStart(Start, AllGather, name="shard.all_gather_start", pure=False):
    """result = a request for the blocks x of all ranks, one after the other along `axis`

        %q = shard.all_gather_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} :
            (tensor<2xf32>) -> !shard.request<tensor<4xf32>>
    """


class AllToAllStart(Start, AllToAll, name="shard.all_to_all_start", pure=False):
    """result = a request for the blocks for this rank, along `split`, of x of all ranks, one after the other along
    `concat`

        %q = shard.all_to_all_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], split = 1,
            concat = 0} : (tensor<2x4xf32>) -> !shard.request<tensor<4x2xf32>>
    """


class ShiftStart(Start, Shift, name="shard.shift_start", pure=False):
    """result = a request for x of the rank `offset` positions before, around the ring of the group

        %q = shard.shift_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [3]>, axes = ["d"], offset = 1} :
            (tensor<2xf32>) -> !shard.request<tensor<2xf32>>
    """


class Wait(HostOp, name="shard.wait", pure=False):
    """result = what the collective of a request gives, once all ranks of its group have begun it

        %r = shard.wait %q : (!shard.request<tensor<3xf32>>) -> tensor<3xf32>
    """

    request: Value
    format = "$request attr-dict `:` functional-type"

    def infer(self) -> Type:
        type = self.request.type
        if not isinstance(type, RequestType):
            self.fail(f"{type} is no request", code="MLC0989", hint="it is what shard.all_reduce_start gives, say")
        return type.content

    @property
    def start(self) -> Start:
        """The operation that began the collective."""
        op = self.request.op
        assert isinstance(op, Start)
        return op

    def interpret(self, frame: Frame) -> Any:
        return ranks_of(self, frame).wait(self, frame[self.request])


STARTS: dict[type[Op], type[Start]] = {AllReduce: AllReduceStart, ReduceScatter: ReduceScatterStart,
                                       AllGather: AllGatherStart, AllToAll: AllToAllStart, Shift: ShiftStart}
"""The start of each collective that messages carry out."""
