"""Networks of states on bytes: a recursive transition network, one part of it per rule.

A state has moves on ranges of bytes, and moves without one: to another state, or through a whole rule. A rule is read
by a call, which returns where it was made; so the texts of a network are those of a context-free grammar, and a network
without rules is a finite automaton. What cannot lead to an end is left out, and left recursion is refused: a rule that
begins with itself would be called without end.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from collections.abc import Sequence as Several

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.models.constraints.expressions import Chars, Choice, Expression, Graph, Repeat, Rule, Sequence, Text
from mlc.models.constraints.utf8 import byte_ranges

MOST_STATES = 400_000
MOST_TURNS = 1_000_000
"""How many expressions are added at most, with those that make no state."""
NEVER = 1 << 30
"""The distance of a state from an end that it does not lead to."""


def unsupported(message: str, hint: str) -> UserError:
    """The error for a constraint that is wrong, or that mlc does not enforce."""
    return UserError(message, code="MLC0919", loc=user_loc(), hint=hint)


class Network:
    """The states of some rules.

    moves      of each state: first byte, last byte, next state
    epsilon    of each state: states that it is at the same time
    calls      of each state: pairs of the first state of a rule and the state after it
    begin, end states of each rule
    distance   the least number of bytes from each state to the end of its rule
    """

    def __init__(self, rules: Mapping[str, Expression], start: str) -> None:
        self._turns = 0
        self.moves: list[list[tuple[int, int, int]]] = []
        self.epsilon: list[list[int]] = []
        self.calls: list[list[tuple[int, int]]] = []
        self.begin = {name: self._state() for name in rules}
        self.end: dict[str, int] = {}
        for name, rule in rules.items():
            self.end[name] = self._add(rule, self.begin[name])
        self.ends = frozenset(self.end.values())
        self.start = self.begin[start]
        self._rule_of_begin = {state: name for name, state in self.begin.items()}
        self.distance = self._distances()
        if self.distance[self.start] >= NEVER:
            raise unsupported("no text satisfies the constraint", "something in it excludes all texts, or a rule "
                                                                  "contains itself always")
        self._refuse_left_recursion()

    # -- expressions to states ----------------------------------------------------------------------------------------
    def _state(self) -> int:
        if len(self.moves) >= MOST_STATES:
            raise unsupported(f"a constraint has more than {MOST_STATES} states", "use smaller numbers of repetitions")
        self.moves.append([])
        self.epsilon.append([])
        self.calls.append([])
        return len(self.moves) - 1

    def _add(self, x: Expression, at: int) -> int:
        """Add states that read an expression from a state on; the state after it."""
        self._turns += 1
        if self._turns > MOST_TURNS:
            raise unsupported(f"a constraint has more than {MOST_TURNS} parts", "use smaller numbers of repetitions")
        match x:
            case Text(text):
                for byte in text.encode("utf-8", "surrogatepass"):
                    at = self._move(at, byte, byte)
                return at
            case Chars(ranges):
                end = self._state()
                for low, high in ranges:
                    for parts in byte_ranges(low, high):
                        self._bytes(at, parts, end)
                return end
            case Sequence(parts):
                for part in parts:
                    at = self._add(part, at)
                return at
            case Choice(parts):
                end = self._state()
                for part in parts:
                    self.epsilon[self._add(part, self._next(at))].append(end)
                return end
            case Repeat(body, least, most):
                return self._repeat(body, least, most, at)
            case Rule(name):
                end = self._state()
                self.calls[at].append((self.begin[name], end))
                return end
            case Graph(edges, ends):
                return self._graph(edges, ends, at)

    def _graph(self, edges: Several[Several[tuple[Expression, int]]], ends: Collection[int], at: int) -> int:
        states, end = [self._next(at), *(self._state() for _ in edges[1:])], self._state()
        for state, out in zip(states, edges):
            for body, target in out:
                if isinstance(body, Chars):                # without a state of its own
                    for low, high in body.ranges:
                        for parts in byte_ranges(low, high):
                            self._bytes(state, parts, states[target])
                else:
                    self.epsilon[self._add(body, self._next(state))].append(states[target])
        for state in ends:
            self.epsilon[states[state]].append(end)
        return end

    def _repeat(self, body: Expression, least: int, most: int | None, at: int) -> int:
        if _is_empty(body):
            return at
        for _ in range(least):
            at = self._add(body, at)
        if most is None:
            loop = self._next(at)
            self.epsilon[self._add(body, loop)].append(loop)
            return self._next(loop)
        end = self._state()
        for _ in range(most - least):
            self.epsilon[at].append(end)
            at = self._add(body, self._next(at))
        self.epsilon[at].append(end)
        return end

    def _next(self, at: int) -> int:
        state = self._state()
        self.epsilon[at].append(state)
        return state

    def _move(self, at: int, low: int, high: int) -> int:
        state = self._state()
        self.moves[at].append((low, high, state))
        return state

    def _bytes(self, at: int, parts: tuple[tuple[int, int], ...], end: int) -> None:
        for low, high in parts[:-1]:
            at = self._move(at, low, high)
        self.moves[at].append((*parts[-1], end))

    # -- what the states lead to --------------------------------------------------------------------------------------
    def _distances(self) -> list[int]:
        """The least number of bytes from each state to the end of its rule."""
        before: list[list[tuple[int, int]]] = [[] for _ in self.moves]     # states that lead to a state, and how far
        calling: list[list[tuple[int, int, int]]] = [[] for _ in self.moves]   # with a rule and a state after it
        for state, (moves, epsilon, calls) in enumerate(zip(self.moves, self.epsilon, self.calls)):
            for _, _, t in moves:
                before[t].append((state, 1))
            for t in epsilon:
                before[t].append((state, 0))
            for rule, t in calls:
                calling[rule].append((state, rule, t))
                calling[t].append((state, rule, t))
        distance = [NEVER] * len(self.moves)
        nearest = [(0, end) for end in sorted(self.ends)]
        while nearest:                                     # Knuth's form of Dijkstra's algorithm, for grammars
            far, state = heapq.heappop(nearest)
            if distance[state] <= far:
                continue
            distance[state] = far
            for p, step in before[state]:
                if far + step < distance[p]:
                    heapq.heappush(nearest, (far + step, p))
            for p, rule, t in calling[state]:
                if (found := distance[rule] + distance[t]) < distance[p]:
                    heapq.heappush(nearest, (found, p))
        return distance

    def _refuse_left_recursion(self) -> None:
        """Refuse rules that begin with themselves: look for a cycle among the rules that each may begin with."""
        first = {begin: self._called_first(begin) for begin in self.begin.values()}
        done, path = set[int](), dict[int, None]()
        for root in first:
            work = [(root, iter(first[root]))] if root not in done else []
            path[root] = None
            while work:
                at, rest = work[-1]
                found = next(rest, None)
                if found is None:
                    work.pop()
                    path.pop(at, None)
                    done.add(at)
                elif found in path:
                    raise unsupported(f"the rule {self._rule_of_begin[found]} begins with itself, through other rules",
                                      "let it begin with something else")
                elif found not in done:
                    path[found] = None
                    work.append((found, iter(first[found])))
            path.clear()

    def _called_first(self, begin: int) -> set[int]:
        """The rules that are called from a state before any byte is read."""
        seen, work, called = {begin}, [begin], set[int]()
        while work:
            state = work.pop()
            following = list(self.epsilon[state])
            for rule, after in self.calls[state]:
                called.add(rule)
                if self.distance[rule] == 0:
                    following.append(after)
            for t in following:
                if t not in seen:
                    seen.add(t)
                    work.append(t)
        return called


def _is_empty(x: Expression) -> bool:
    """Whether an expression is the empty text alone, however often it is repeated."""
    match x:
        case Text(text):
            return not text
        case Sequence(parts):
            return all(map(_is_empty, parts))
        case Repeat(body, _, most):
            return most == 0 or _is_empty(body)
        case _:
            return False
