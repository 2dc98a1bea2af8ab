"""Products of regular languages of characters: texts that several expressions describe at once, or some and not others.

An expression without rules becomes a machine of states with moves on characters. Several machines read a text together:
a state of the product is a set of states of each, so that it says at each place which of the expressions the text so
far is one of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlc.models.constraints.expressions import (
    ALL,
    Chars,
    Choice,
    Expression,
    Graph,
    Ranges,
    Repeat,
    Rule,
    Text,
    union,
)
from mlc.models.constraints.expressions import Sequence as Parts
from mlc.models.constraints.network import unsupported

MOST_STATES = 5_000
"""States of a product, and"""
MOST_WORK = 10_000_000
"""looks at moves that all products of a schema may take: a second or two."""
State = tuple[frozenset[int], ...]
"""The states that each machine may be in."""


class Languages:
    """Makes products, all of them within a budget."""

    def __init__(self) -> None:
        self._left = MOST_WORK
        self._made: dict[tuple[Expression, ...], Graph] = {}

    def of_all(self, *expressions: Expression) -> Graph:
        """The texts that all expressions describe."""
        if expressions not in self._made:
            edges, states = self._product(expressions, ALL, all)
            self._made[expressions] = Graph(edges, frozenset(i for i, accepts in enumerate(states) if all(accepts)))
        return self._made[expressions]

    def by_match(self, patterns: Sequence[Expression], without: Expression, alphabet: Ranges
                 ) -> dict[frozenset[int], Graph]:
        """The texts of an alphabet, but for some, by the patterns that describe them."""
        edges, states = self._product((*patterns, without), alphabet, lambda alive: True)
        found: dict[frozenset[int], list[int]] = {}
        for i, (*matches, excluded) in enumerate(states):
            if not excluded:
                found.setdefault(frozenset(j for j, m in enumerate(matches) if m), []).append(i)
        return {label: Graph(edges, frozenset(ends)) for label, ends in found.items()}

    def holds(self, expression: Expression, text: str) -> bool:
        """Whether an expression describes a text."""
        machine = _Machine(self.spend)
        end = machine.add(expression, 0)
        at = machine.closure([0])
        for c in text:
            at = machine.after(at, ord(c))
            self.spend(10 + sum(len(machine.moves[q]) for q in at))
        return end in at

    def spend(self, amount: int) -> None:
        """Take from the budget."""
        self._left -= amount
        if self._left < 0:
            raise unsupported("the patterns and multiples of a schema take too many states", "use simpler ones")

    def _product(self, expressions: Sequence[Expression], alphabet: Ranges, wanted: Callable[[Sequence[bool]], bool]
                 ) -> tuple[tuple[tuple[tuple[Expression, int], ...], ...], list[tuple[bool, ...]]]:
        """The edges of the product, and of each of its states which expressions end there.

        wanted  whether a state is kept, given which machines are in any state at all
        """
        machines = [_Machine(self.spend) for _ in expressions]
        ends = [m.add(x, 0) for m, x in zip(machines, expressions)]
        order: list[State] = [tuple(m.closure([0]) for m in machines)]
        numbers, edges = {order[0]: 0}, list[tuple[tuple[Expression, int], ...]]()
        for state in order:                                # which grows meanwhile
            borders = {b for m, at in zip(machines, state) for q in at for low, high, _ in m.moves[q]
                       for b in (low, high + 1)} | {b for low, high in alphabet for b in (low, high + 1)}
            moves = sum(len(m.moves[q]) for m, at in zip(machines, state) for q in at)
            self.spend(10 + len(borders) * (10 + moves))
            found: dict[int, list[tuple[int, int]]] = {}
            for low, end in zip(ordered := sorted(borders), ordered[1:]):
                after = tuple(m.after(at, low) for m, at in zip(machines, state))
                if wanted([bool(at) for at in after]) and any(a <= low <= b for a, b in alphabet):
                    if after not in numbers:
                        numbers[after] = len(order)
                        order.append(after)
                    found.setdefault(numbers[after], []).append((low, end - 1))
            if len(order) > MOST_STATES:
                raise unsupported(f"patterns that hold at once take more than {MOST_STATES} states", "use simpler ones")
            edges.append(tuple((Chars(union(ranges)), to) for to, ranges in found.items()))
        return tuple(edges), [tuple(end in at for end, at in zip(ends, state)) for state in order]


class _Machine:
    """States of an expression, 0 is the first.

    moves    of each: first character, last character, next state
    epsilon  of each: states that it is at the same time
    """

    def __init__(self, spend: Callable[[int], None]) -> None:
        self.spend = spend
        self.moves: list[list[tuple[int, int, int]]] = [[]]
        self.epsilon: list[list[int]] = [[]]
        self._closures: dict[int, frozenset[int]] = {}

    def add(self, x: Expression, at: int) -> int:
        """Add states that read an expression from a state on; the state behind it."""
        self.spend(10)
        match x:
            case Text(text):
                for c in text:
                    at = self._move(at, ((ord(c), ord(c)),))
                return at
            case Chars(ranges):
                return self._move(at, ranges)
            case Parts(parts):
                for part in parts:
                    at = self.add(part, at)
                return at
            case Choice(parts):
                return self._joined([self.add(part, self._next(at)) for part in parts])
            case Repeat(body, least, most):
                return self._repeat(body, least, most, at)
            case Graph(edges, ends):
                states = [self._next(at), *(self._state() for _ in edges[1:])]
                for state, out in zip(states, edges):
                    for body, target in out:
                        self.epsilon[self.add(body, self._next(state))].append(states[target])
                return self._joined([states[end] for end in ends])
            case Rule(name):
                raise unsupported(f"the rule {name} stands within a pattern", "use a regular expression")

    def closure(self, states: Sequence[int]) -> frozenset[int]:
        """The states that some are at the same time, those without moves or an end left out where they lead on."""
        if len(states) != 1:
            return frozenset[int]().union(*(self.closure([q]) for q in states))
        if (known := self._closures.get(states[0])) is None:
            seen, work = set(states), list(states)
            while work:
                for t in self.epsilon[work.pop()]:
                    if t not in seen:
                        seen.add(t)
                        work.append(t)
            self.spend(10 * len(seen))
            known = self._closures[states[0]] = frozenset(q for q in seen if self.moves[q] or not self.epsilon[q])
        return known

    def after(self, states: frozenset[int], c: int) -> frozenset[int]:
        """The states after a character."""
        return self.closure([t for q in states for low, high, t in self.moves[q] if low <= c <= high])

    def _repeat(self, body: Expression, least: int, most: int | None, at: int) -> int:
        for _ in range(least):
            at = self.add(body, at)
        if most is None:
            loop = self._next(at)
            self.epsilon[self.add(body, loop)].append(loop)
            return self._next(loop)
        ends = [at]
        for _ in range(most - least):
            at = self.add(body, self._next(at))
            ends.append(at)
        return self._joined(ends)

    def _state(self) -> int:
        self.spend(10)
        self.moves.append([])
        self.epsilon.append([])
        return len(self.moves) - 1

    def _next(self, at: int) -> int:
        state = self._state()
        self.epsilon[at].append(state)
        return state

    def _move(self, at: int, ranges: Ranges) -> int:
        state = self._state()
        self.moves[at] += [(low, high, state) for low, high in ranges]
        return state

    def _joined(self, ends: Sequence[int]) -> int:
        end = self._state()
        for state in ends:
            self.epsilon[state].append(end)
        return end
