"""The common parts of collectives: their tensors, the agreement of ranks, errors at their lines, the background."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from mlc.backends.cuda.memory import DeviceArray
from mlc.backends.transport import collectives
from mlc.backends.transport.errors import RankError, ranks_text
from mlc.backends.transport.transport import Array, Transport
from mlc.distributed.agreement import agree, begin
from mlc.distributed.groups import GroupMember, resolved
from mlc.distributed.places import OnGpu, OnHost, Place
from mlc.distributed.work import Work
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.in_place import check_writable, store
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor, wrap
from mlc.frontend.trace import state
from mlc.ir.diag import UserError, UserTypeError

R = TypeVar("R")


class Collective:
    """One call of a collective: its name with the types of its tensors, its line, group and place in the order.

    Made in the thread of the caller; its work may be done in another thread. A call that is refused takes no place.

    place  where its tensors are
    """

    def __init__(self, name: str, group: Any, details: str, *arrays: Any) -> None:
        if state.trace is not None:
            raise UserError(f"mlc.distributed.{name} is called while a function is recorded", code="MLC0976",
                            loc=user_loc(), hint="call it between compiled functions")
        on_gpu = bool(arrays) and isinstance(arrays[0], DeviceArray)
        check_together(name, arrays)
        self.group, self.text, self.loc = resolved(group), f"{name}({details})" + " on GPUs" * on_gpu, user_loc()
        self.transport: Transport = self.group.transport
        self.ranks = self.group.ranks
        self.timeout = self.group.timeout
        self.place: Place = OnGpu(self, arrays[0]) if on_gpu else OnHost(self)

    @cached_property
    def tag(self) -> int:
        """The place among the calls of the group, which it takes when nothing can refuse it any more."""
        return self.transport.next_tag(self.ranks)

    def all_reduce(self, x: Array, kind: str) -> Array:
        """The combination of the arrays of all ranks, which are sent while the ranks agree: one delay less."""
        with self.reported():
            ready = begin(self.group, self.text, self.loc, self.tag, self.timeout)
            return collectives.all_reduce(self.transport, self.ranks, x, kind, self.timeout, self.tag, ready)

    def run(self, work: Callable[[], R], finish: Callable[[R], Any], background: bool = False,
            agreed: bool = False) -> Work | None:
        """Have the ranks agree, do the work, and finish with its result; in the background, at `Work.wait`.

        agreed  whether the work has the ranks agree by itself

        NCCL does things in the order in which they are submitted, which is the same on all ranks only if calls do not
        overtake those in the background.
        """
        self.tag  # noqa: B018 - is taken in the order of the calls, whichever thread does the work
        if not agreed:
            work = partial(self.agreed, work)

        def joined(result: R) -> Any:
            self.place.join()
            return finish(result)

        if background:
            return Work(self.transport.start(self.text, work), joined, self.place)
        joined(self.transport.in_order(self.text, work) if isinstance(self.place, OnGpu) else work())
        return None

    def agreed(self, work: Callable[[], R]) -> R:
        """The result of the work that follows the agreement."""
        with self.reported():
            agree(self.group, self.text, self.loc, self.tag, self.timeout)
            return work()

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Context whose errors name the line of the call; what the other ranks would wait for ends them, too."""
        try:
            yield
        except RankError as error:
            where = f" at {self.loc}" if self.loc.file else ""
            if error.code == "MLC0973":
                self.transport.abort(f"{self.text}{where}: {error.message}")
            if error.code == "MLC0971":
                late = ranks_text(error.ranks)
                self.transport.abort(f"rank {self.transport.rank} has waited {self.timeout:g} s for {late} in "
                                     f"{self.text}{where}")
                error = RankError(f"{self.text}: {late} {'has' if len(error.ranks) == 1 else 'have'} not made this "
                                  f"call within {self.timeout:g} s", error.code, error.ranks, hint=error.hint)
            raise error.at(self.loc) from None


def member(name: str, group: Any) -> bool:
    """Whether this process is in a group; a warning if not, as in PyTorch."""
    if group is GroupMember.NON_GROUP_MEMBER:
        warnings.warn(f"{name}: this process is not in the group, and the call does nothing", stacklevel=3)
        return False
    return True


def position_of(collective: Collective, what: str, rank: int | None, position: int | None) -> int:
    """The position in the group of a rank that is given by its number in the job, or by that position."""
    ranks = collective.ranks
    if (rank is None) == (position is None):
        raise RankError(f"{collective.text}: give {what} or group_{what}", code="MLC0974", loc=user_loc())
    found = position if position is not None else ranks.index(rank) if rank in ranks else None
    if found is None or not 0 <= found < len(ranks):
        raise RankError(f"{collective.text}: {what} {rank if position is None else position} is not in the group of "
                        f"ranks {list(ranks)}", code="MLC0974", loc=user_loc())
    return found


# -- tensors ----------------------------------------------------------------------------------------------------------
def array_of(x: Any, name: str) -> Any:
    """The elements of a tensor in the CPU's memory or on a GPU."""
    if type(x) is not Tensor or x.composite:
        raise UserTypeError(f"{name}: a {type(x).__name__} is no dense tensor", code="MLC0976", loc=user_loc(),
                            hint="collectives take dense tensors in the CPU's memory, or on a GPU")
    if not isinstance(x._array, np.ndarray | DeviceArray):
        raise UserTypeError(f"{name}: the tensor is on {x.device}", code="MLC0976", loc=user_loc(),
                            hint='collectives take tensors in the CPU\'s memory, or on a GPU: x.to("cpu")')
    return x._array


def target(x: Any, name: str) -> Any:
    """The elements of a tensor that the collective will write to."""
    found = array_of(x, name)
    with GradMode(False):                                  # nothing is recorded: parameters may be written to
        check_writable(x)
    return found


def write_all(xs: Sequence[Tensor], found: Sequence[Any]) -> list[Tensor]:
    """Write the results of a collective to several tensors."""
    return [write(x, elements) for x, elements in zip(xs, found)]


def write(x: Tensor, elements: Any) -> Tensor:
    """Write the result of a collective to a tensor; nothing is recorded."""
    shaped = elements.reshaped(x.shape) if isinstance(elements, DeviceArray) else \
        np.ascontiguousarray(elements).reshape(x.shape)
    with GradMode(False):
        return store(x, wrap(shaped))


def type_text(x: Any) -> str:
    """Element type and shape, as `float32[2, 3]`."""
    return f"{x.dtype}{list(x.shape)}"


def types_text(xs: Sequence[Any]) -> str:
    """The types of several arrays, once if they are equal."""
    texts = [type_text(x) for x in xs]
    return f"{len(xs)} x {texts[0]}" if len(set(texts)) == 1 else ", ".join(texts)


def check_together(name: str, arrays: Sequence[Any]) -> None:
    """UserError unless the elements of all tensors are in one memory."""
    places = dict.fromkeys(x.device if isinstance(x, DeviceArray) else "cpu" for x in arrays)
    if len(places) > 1:
        raise UserError(f"{name}: the tensors are on {' and '.join(places)}", code="MLC0976", loc=user_loc(),
                        hint="bring them to one device")


def check_count(name: str, given: Sequence[Any], count: int) -> None:
    """RankError if there is not one tensor or object per rank of the group."""
    if len(given) != count:
        raise RankError(f"{name}: {len(given)} given, expected {count}: one per rank of the group", code="MLC0974",
                        loc=user_loc())


def check_like(name: str, given: Sequence[Any], wanted: Sequence[tuple[Any, tuple[int, ...]]]) -> None:
    """RankError if there are not as many tensors as expected, of these element types and shapes."""
    check_count(name, given, len(wanted))
    for i, (x, (dtype, shape)) in enumerate(zip(given, wanted)):
        if x.dtype != dtype or x.shape != shape:
            raise RankError(f"{name}: tensor {i} is {type_text(x)}, expected {np.dtype(dtype)}{list(shape)}",
                            code="MLC0974", loc=user_loc())
