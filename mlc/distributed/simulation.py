"""The ranks of a program at work, simulated: what each computes and sends in its order, and waits for.

Ranks at equal positions have equal programs and are at work at equal times, so one of each position stands for all.
Where the ranks of a host outnumber its processors, each stays on one: those on the same that are not waiting share
evenly what the others leave, also while another processor has nothing to do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlc.distributed.time_model import Machine, Timing
from mlc.ir.diag import Loc
from mlc.passes.analysis.segment_cost import SegmentCost


@dataclass(frozen=True)
class Communication:
    """One collective of the program of a rank, or a message of a pipeline.

    Args:
        kind: Name of the operation, such as "all_reduce".
        axes: Axes of the mesh whose ranks take part.
        bytes: Bytes that a rank sends, the most of all where parts are uneven.
        place: Line of the program that it comes from.
        ranks: Number of ranks that take part together.
        tag: Number of the message of a pipeline; -1 of a collective.
        messages: Number of messages that a rank sends.
        request: Number of the request that it begins, if segments run while it is on its way; -1 if none do.

    Example:
        >>> mlc.distributed.Communication("all_reduce", ("data",), 96, None, 4).bytes
        96
    """

    kind: str
    axes: tuple[str, ...]
    bytes: int
    place: Loc | None
    ranks: int
    tag: int = -1
    messages: int = 1
    request: int = -1


@dataclass(frozen=True)
class Waiting:
    """The place where a rank waits for a collective that it has begun: `request` is its number."""

    request: int


Work = SegmentCost | Communication | Waiting
"""A part of the program of a rank."""


@dataclass
class _Position:
    """A position in the program.

    todo     what is left to do, the next of it last
    left     processor seconds of what it does now
    spent    seconds of segments, and of communication
    moved    bytes that segments have moved since it has communicated
    sends    the message that it is sending now
    link     when what it has sent last has left
    on_way   collectives that it has begun, by request: the collective, and when it is done
    hidden   seconds in which collectives are on their way and nobody waits for them
    crowd    ranks on its processor, where most are: between two of its segments run those of the others
    """

    todo: list[Work]
    left: float = 0.0
    communicates: bool = False
    spent: list[float] = field(default_factory=lambda: [0.0, 0.0])
    moved: int = 0
    sends: Communication | None = None
    link: float = 0.0
    on_way: dict[int, tuple[Communication, float]] = field(default_factory=dict)
    hidden: float = 0.0
    crowd: int = 1


def simulated(positions: Sequence[Sequence[Work]], before: Sequence[float], machine: Machine,
              ranks: Sequence[Sequence[int]] = ()) -> Timing:
    """The time of a program with other work at each position, after so many processor seconds of the call itself.

    ranks  the ranks at each position; none if each has a processor of its own
    """
    return _Simulation([_Position(list(reversed(work)), seconds, True) for work, seconds in zip(positions, before)],
                       machine, ranks).run()


class _Simulation:
    """Positions at work, at a time.

    sharing  for each processor that several ranks have, those of each position
    """

    def __init__(self, positions: Sequence[_Position], machine: Machine, ranks: Sequence[Sequence[int]]) -> None:
        self.positions, self.machine, self.now = positions, machine, 0.0
        sharing: dict[int, Counter[int]] = {}
        for position, its in enumerate(ranks):
            for rank in its:
                sharing.setdefault(machine.processor(rank), Counter())[position] += 1
        self.sharing = [counts for counts in sharing.values() if counts.total() > 1]
        for counts in self.sharing:
            for i in counts:
                positions[i].crowd = max(positions[i].crowd, counts.total())
        self.arrived: dict[int, tuple[float, int]] = {}    # messages, by tag: when they are there, and their bytes

    def run(self) -> Timing:
        """The time until all have done what they have to."""
        while True:
            while any(self._advance(position) for position in self.positions):
                pass                                       # a message may be there at once
            running = [(i, p) for i, p in enumerate(self.positions) if p.left > 0]
            awaited = [at for p in self.positions if p.left == 0 and (at := self._awaited(p)) > self.now]
            if not running and not any(map(math.isfinite, awaited)):
                assert not any(p.todo for p in self.positions), "no rank waits for ever"
                break
            speeds = self._speeds()
            seconds = min([p.left / speeds[i] for i, p in running] + [at - self.now for at in awaited])
            for p in self.positions:
                if p.left == 0 and p.todo and isinstance(p.todo[-1], Waiting):
                    p.spent[1] += seconds
                    p.hidden -= seconds
            self.now += seconds
            for i, p in running:
                done = seconds * speeds[i]
                p.left = 0.0 if p.left <= done * (1 + 1e-12) else p.left - done
                p.spent[p.communicates] += seconds
        n = len(self.positions)
        compute, communication = (sum(p.spent[i] for p in self.positions) / n for i in (0, 1))
        return Timing(compute, communication, self.now - compute - communication,
                      sum(p.hidden for p in self.positions) / n)

    def _speeds(self) -> list[float]:
        """The part of a processor that each position has that is at work: the least of its ranks.

        Ranks at one position that share a processor end a segment one after the other; those that have, wait.
        """
        speeds = [1.0] * len(self.positions)
        for counts in self.sharing:
            at_work = {i: n for i, n in counts.items() if self.positions[i].left > 0}
            running = sum(at_work.values())
            turns = sum((n - 1) / 2 for i, n in at_work.items() if not self.positions[i].communicates)
            free = 1 - self.machine.polling * (counts.total() - running + turns)
            assert free > 0, "ranks that wait leave some of their processor to others"
            for i in counts:
                speeds[i] = min(speeds[i], free / max(1, running))
        return speeds

    def _awaited(self, position: _Position) -> float:
        """The time at which that comes for which a position waits; inf if it waits for nothing that is sent."""
        step = position.todo[-1] if position.todo else None
        if isinstance(step, Waiting):
            return position.on_way[step.request][1]
        return self.arrived.get(step.tag, (math.inf, 0))[0] if isinstance(step, Communication) else math.inf

    def _advance(self, position: _Position) -> bool:
        """Begin what a position does next, unless it is busy or waits for a message; whether it did."""
        if position.left > 0:
            return False
        if (sent := position.sends) is not None:
            latency, network = self.machine.link(sent)
            position.link = max(self.now, position.link) + sent.bytes / network
            self.arrived[sent.tag] = position.link + latency, sent.bytes
            position.sends = None
            return True
        if not position.todo or (self._awaited(position) > self.now and _receives(position.todo[-1])):
            return False
        step = position.todo.pop()
        position.communicates = not isinstance(step, SegmentCost)
        if isinstance(step, SegmentCost):
            position.left = self.machine.segment(step)
            position.moved += step.moved * position.crowd
            return True
        position.left, position.moved = self.machine.refilled(position.moved), 0
        if isinstance(step, Waiting):
            begun, _ = position.on_way.pop(step.request)
            position.left += self._handled(begun) / 2
        elif step.request >= 0:
            self._begin(position, step)
        elif step.kind == "recv":
            position.left += self.machine.handling(1, self.arrived[step.tag][1]) / 2
        elif step.kind == "send":
            position.left += self.machine.handling(1, step.bytes) / 2
            position.sends = step
        else:
            before = max(0.0, position.link - self.now) if position.on_way else 0.0
            position.left += before + self.machine.communication(step)
        return True

    def _handled(self, step: Communication) -> float:
        """The processor seconds of a collective, which are part of all that it takes."""
        return min(self.machine.communication(step), self.machine.handling(step.messages, step.bytes))

    def _begin(self, position: _Position, step: Communication) -> None:
        """Have a collective be on its way: a processor takes half of what it handles now, the rest when it waits.

        The network carries the collectives of a position one after the other.
        """
        handled = self._handled(step)
        position.left += handled / 2
        on_way = self.machine.communication(step) - handled
        position.link = max(self.now + position.left, position.link) + on_way
        position.on_way[step.request] = step, position.link
        position.hidden += on_way


def _receives(step: Work) -> bool:
    return isinstance(step, Waiting) or (isinstance(step, Communication) and step.kind == "recv")
