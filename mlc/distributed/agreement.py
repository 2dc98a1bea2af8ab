"""All ranks of a group make the same call, or each has an error that names the calls and lines of all.

Before its data, a collective exchanges a message of fixed size with the name, types and place of the call. So a rank
that calls something else, or the same with another shape, is found out before anybody waits for data that never comes.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mlc.backends.transport.errors import RankError, ranks_text
from mlc.backends.transport.transport import CALL_BYTES, NumberedRanks, wait_all
from mlc.ir.diag import Loc

if TYPE_CHECKING:
    from mlc.distributed.groups import ProcessGroup


def agree(group: ProcessGroup, call: str, loc: Loc, tag: int, timeout: float | None = None) -> None:
    """Wait for the call of each rank of the group; RankError if they differ (MLC0972) or one is missing (MLC0971)."""
    begin(group, call, loc, tag, timeout)()


def begin(group: ProcessGroup, call: str, loc: Loc, tag: int, timeout: float | None = None) -> Callable[[], None]:
    """Tell the other ranks of this call; the function that waits for theirs, and raises as `agree` does.

    Data may be sent meanwhile, but is to be received after it: no message of a rank that differs is taken for data.
    """
    number = f" in group {group.ranks.number}" if isinstance(group.ranks, NumberedRanks) else ""
    t, mine = group.transport, described(call + number, loc)
    others = [rank for rank in group.ranks if rank != t.rank]
    calls = {rank: np.empty(CALL_BYTES, np.uint8) if rank != t.rank else mine for rank in group.ranks}
    received = {rank: t.receive(rank, tag, calls[rank]) for rank in others}
    sent = {rank: t.send(rank, tag, mine) for rank in others}
    deadline = t.deadline(group.timeout if timeout is None else timeout)

    def finish() -> None:
        wait_all(call, received, deadline)
        wait_all(call, sent, deadline)
        t.traffic.add("agreement", mine.nbytes * len(others))
        check(calls, t.rank)

    return finish


def described(call: str, loc: Loc) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """A call and its place, as a message; of one that is too long the beginning, and a checksum of all."""
    message = np.zeros(CALL_BYTES, np.uint8)
    name = call.encode()
    if len(name) > CALL_BYTES - 2:
        rest = f"... ({zlib.crc32(name):08x})".encode()
        name = name[:CALL_BYTES - 2 - len(rest)] + rest
    place = (str(loc) if loc.file else "").encode()
    place = place[max(0, len(place) + len(name) + 2 - CALL_BYTES):]        # the end of a long path says more
    text = np.frombuffer(name + b"\0" + place, np.uint8)
    message[:len(text)] = text
    return message


def check(calls: dict[int, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]], rank: int) -> None:
    """RankError if the calls of the ranks are not the same."""
    found, places = defaultdict[str, list[int]](list), dict[int, str]()
    for other, message in calls.items():
        name, place, *_ = message.tobytes().split(b"\0")
        found[name.decode("utf-8", "replace")].append(other)
        places[other] = place.decode("utf-8", "replace")
    if len(found) == 1:
        return
    text = ", ".join(f"{ranks_text(ranks)} {'calls' if len(ranks) == 1 else 'call'} {name}"
                     for name, ranks in found.items())
    notes = tuple(f"{ranks_text(ranks)}: {name}" + f" at {places[ranks[0]]}" * bool(places[ranks[0]])
                  for name, ranks in found.items())
    others = [r for name, ranks in found.items() if rank not in ranks for r in ranks]
    raise RankError(f"the ranks call different collectives: {text}", code="MLC0972", ranks=others, notes=notes,
                    hint="all ranks of a group make the same calls, in the same order, with tensors of one shape and "
                         "dtype")
