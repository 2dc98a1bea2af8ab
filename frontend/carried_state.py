"""State that loops and branches on tensors change besides their variables: tensors of outside, and buffers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mlc.frontend import tree
from mlc.frontend.abstract_values import SourceConstruct, Trees, Undefined
from mlc.frontend.buffers import Buffers
from mlc.frontend.functionalization import base_of, give_up, is_outer, replace, spoil
from mlc.frontend.location import user_loc
from mlc.frontend.loop_memory import LoopMemory
from mlc.frontend.trace import Changes, current
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import Loc, UserError


def as_they_are(trees: Trees, changes: Changes) -> list[Any]:
    """Trees with tensors of their own in place of those that the region has changed, which the region's end undoes."""
    changed = changes.tensors
    return mapped(lambda x: Tracer(x.value, x.owner, x.weak) if isinstance(x, Tracer) and any(
        base_of(x) is base for base in changed) else x, trees)


def with_state(site: SourceConstruct, buffers: Buffers, which: Iterable[int],
               bases: Sequence[Tracer]) -> SourceConstruct:
    """The construct with names for buffers, and tensors that it changes in place, after those of its variables."""
    return SourceConstruct(site.what, site.loc, (*site.names, *map(buffers.path, which), *(
        x.value.name or "a tensor" for x in bases)))


class Again(Exception):
    """Raised when the body of a loop changes state that is not carried yet."""


class Same:
    """Leaf of a loop-carried tree that is one tensor throughout, which the body changes in place."""

    def __init__(self, tensor: Tracer) -> None:
        self.tensor = tensor


class CarriedState:
    """State that a loop's body changes besides its variables, as loop-carried values after these.

    In the body, a variable stands for a tensor of its own: it may be another one in each iteration. If that is changed
    in place, the loop is recorded again: where the variable is the same tensor after the body, that is what the body
    works on, and is carried as a tensor of outside; else the former tensor may not be used any more.

    init     the loop-carried variables before the loop
    which    the buffers of modules that are assigned, by their numbers
    bases    the tensors of outside that are changed in place
    same     those that variables are throughout, by the id of the tensor
    given_up those that a variable is before the loop, and not after it
    """

    def __init__(self, buffers: Buffers, init: Trees, memory: LoopMemory) -> None:
        self.buffers, self.init = buffers, init
        self.which = [i for i in memory.which if i < len(buffers.slots)]
        self.bases = [x for x in memory.bases if is_outer(x)]
        leaves = list(enumerate(tree.leaves(init)))
        self.same = {id(x): Same(x) for i, x in leaves if i in memory.same and isinstance(x, Tracer)}
        self.given_up = [x for i, x in leaves if i in memory.given_up and isinstance(x, Tracer)]
        self._spoiled: list[tuple[Tracer, Loc]] = []
        self._entered: list[tuple[Any, Any, Any]] = []     # per leaf: what the body gets, its value, and what is before

    @property
    def before(self) -> list[Any]:
        """The carried values before the loop."""
        return [*self._fixed(self.init), *(self.buffers.before[i] for i in self.which), *self.bases]

    def _fixed(self, trees: Trees) -> Trees:
        return mapped(lambda x: self.same.get(id(x), x), trees) if self.same else trees

    def enter(self, carried: Trees) -> Trees:
        """Have the state be what is carried; returns the other carried values."""
        count = len(carried) - len(self.which) - len(self.bases)
        self.buffers.assign(dict(zip(self.which, carried[count:])))
        for base, x in zip(self.bases, carried[count + len(self.which):]):
            replace(base, x.value)
        for x in self.given_up:
            x.changed = user_loc()
        own = mapped(lambda x: x.tensor if isinstance(x, Same) else x, carried[:count])
        self._entered = [(x, getattr(x, "value", None), first)
                         for x, first in zip(tree.leaves(own), tree.leaves(self.init))]
        return own

    def leave(self, carried: Trees) -> list[Any]:
        """The carried values after the body; restores buffers."""
        new = self._left(tree.leaves(carried))
        changes = current().changes[-1]
        self._spoiled = list(changes.spoiled)
        carried = as_they_are(self._fixed(carried), changes)
        return [*carried, *(new[i] for i in self.which), *(Tracer(x.value, x.owner) for x in self.bases)]

    def check_condition(self, site: SourceConstruct) -> None:
        """UserError if the condition of a loop has changed state."""
        before = [*self.which], [*self.bases], dict(self.same), [*self.given_up]
        values = [x.value for x in self.bases]
        try:
            self._left([x for x, _, _ in self._entered])
        except Again:
            pass
        if before != ([*self.which], [*self.bases], self.same, self.given_up) or values != [
                x.value for x in self.bases]:
            raise UserError(f"the condition of {site.what} assigns a buffer of a module, or changes a tensor",
                            code="MLC0608", loc=site.loc, hint="compute it in the body, and test what it gave")

    def _left(self, after: Sequence[Any]) -> dict[int, Any]:
        """The buffers after the body; Again if more is changed than is known."""
        new = self.buffers.take()
        for x in self.given_up:
            x.changed = None
        changed = current().changes[-1].tensors
        more = [x for x in changed if not any(x is known for known in self.bases)]
        which = sorted({*self.which, *new})
        again = bool(more) or which != self.which
        self.which, self.bases = which, self.bases + more
        if self._follow(after, changed) or again:
            raise Again
        return new

    def _follow(self, after: Sequence[Any], changed: Sequence[Tracer]) -> bool:
        """Note which variables are tensors that the body changes in place; whether that is new."""
        tensors = [(i, x, first) for i, (x, value, first) in enumerate(self._entered)
                   if isinstance(first, Tracer) and not first.weak and isinstance(x, Tracer) and (
                       x.value is not value or any(base_of(first) is base for base in changed))]
        moved = bool(tensors) and any(
            x is y for i, x in enumerate(after) for j, (y, _, first) in enumerate(self._entered)
            if i != j and isinstance(x, Tracer) and (
                i >= len(self._entered) or self._entered[i][2] is not first))
        found = False
        if moved:                                          # any of them may be the one that is changed
            tensors = [(i, x, first) for i, (x, _, first) in enumerate(self._entered) if isinstance(first, Tracer)]
        for i, x, first in tensors:
            stays = not moved and len(after) == len(self._entered) and after[i] is x
            if any(first is known for known in self.given_up):
                continue
            if not stays:
                self.same.pop(id(first), None)
                self.given_up.append(first)
                found = True
            elif id(first) not in self.same:
                self.same[id(first)] = Same(first)
                found = True
        return found

    def done(self, found: Trees) -> Trees:
        """Have the state be what the loop leaves; returns the other values that it leaves."""
        out = self.enter(found)
        first = [x for x in tree.leaves(self.init) if isinstance(x, Tracer)]
        for x in self.given_up:
            x.changed = None
            give_up(x, sum(x is y for y in first) > 1)
        for x, loc in self._spoiled:
            spoil(x, loc)
        return out

    def remember(self, memory: LoopMemory) -> None:
        """Note what is carried for the next recording."""
        leaves = list(enumerate(tree.leaves(self.init)))
        memory.which, memory.bases = self.which, self.bases
        memory.same = [i for i, x in leaves if id(x) in self.same]
        memory.given_up = [i for i, x in leaves if any(x is given for given in self.given_up)]

    def restore(self) -> None:
        """Undo what a failed attempt has changed."""
        self.buffers.restore()
        for x in self.given_up:
            x.changed = None


def mapped(f: Callable[[Any], Any], trees: Trees) -> list[Any]:
    """Trees with f applied to their leaves."""
    out = []
    for x in trees:
        if isinstance(x, Undefined):
            out.append(x)
            continue
        leaves, structure = tree.flatten(x)
        new = [f(leaf) for leaf in leaves]
        out.append(x if all(map(operator.is_, leaves, new)) else structure.unflatten(new))
    return out
