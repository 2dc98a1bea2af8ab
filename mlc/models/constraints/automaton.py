"""Constraints at work: an automaton on bytes that is made as it is needed, and the tokens that each state allows.

A state of the automaton is a set of positions in a network, each with the stack of the calls it is in. Equal sets are
one state, and where a state leads to is computed once per byte, so that reading a byte is a look into a table. The
tokens that a state allows are found by one walk over the trie of the vocabulary, level by level and for all tokens at
once, and are remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.models.constraints.network import Network, unsupported
from mlc.models.constraints.vocabulary import Vocabulary

Array = np.ndarray[Any, Any]
Position = tuple[int, int]
"""A state of the network, and the stack that it returns to: 0 for none."""

DEAD = -1
MOST_MASKS, MOST_ENDS, KEPT_BYTES = 512, 64, 2 << 20
"""How many masks and ends are kept: this many, and more where all of them take no more than some bytes."""
DENSE = 4
"""A level of the trie is looked up as a whole if this many times its nodes so far are more than it has."""
FEW = 256


@dataclass(frozen=True)
class Ends:
    """Where tokens lead from a state.

    states  that they lead to, DEAD among them if any may not come
    places  of the state that each token leads to, in `states`
    """

    states: Array
    places: Array

    def spread(self, values: Array) -> Array:
        """Values of states as those of the tokens that lead there."""
        out: Array = values[self.places]
        return out


class Automaton:
    """The texts of a network, for the tokens of a vocabulary.

    network     what texts there are
    vocabulary  the tokens
    """

    def __init__(self, network: Network, vocabulary: Vocabulary) -> None:
        self.network, self.vocabulary = network, vocabulary
        self._cells: list[tuple[int, int]] = [(0, 0)]      # of stacks: a state to return to, and the stack below
        self._cell_numbers: dict[tuple[int, int], int] = {}
        self._cell_distances = [0]
        self._sets: list[frozenset[Position]] = []
        self._numbers: dict[tuple[frozenset[Position], bool], int] = {}
        self._closures: dict[Position, tuple[frozenset[Position], bool]] = {}
        self.accepts: list[bool] = []
        self._expanded: list[bool] = []
        self._table: Array = np.full((FEW, 256), DEAD, np.int32)
        self._distances: Array = np.zeros(FEW, np.int32)
        self._most_small = KEPT_BYTES // (3 * max(1, len(vocabulary)))
        self._masks = OrderedDict[tuple[int, bool], tuple[Array, int]]()
        self._ends = OrderedDict[tuple[int, bool], Ends]()
        self.start = self._number(*self._closure([(network.start, 0)]))

    @property
    def size(self) -> int:
        """The number of states so far."""
        return len(self._sets)

    def next(self, state: int, byte: int) -> int:
        """The state after a byte; DEAD if the byte may not come."""
        self._expand(state)
        return int(self._table[state, byte])

    def final(self, state: int) -> bool:
        """Whether a state ends a text that nothing can be added to."""
        return state != DEAD and self.accepts[state] and not self._sets[state]

    def distance(self, state: int) -> int:
        """The least number of bytes from a state to the end of a text."""
        return int(self._distances[state])

    def mask(self, state: int, first: bool) -> tuple[Array, int]:
        """The tokens that may follow a state, and how far from an end they lead at most; `first` begins the text."""
        key = state, first
        if (found := self._masks.get(key)) is None:
            ends = self.ends(state, first)
            leads = ends.states != DEAD
            farthest = int(self._distances[ends.states[leads]].max(initial=0))
            found = self._masks[key] = ends.spread(leads), farthest
            if len(self._masks) > max(MOST_MASKS, self._most_small):
                self._masks.popitem(last=False)
        else:
            self._masks.move_to_end(key)
        return found

    def ends(self, state: int, first: bool) -> Ends:
        """Where tokens lead from a state; those of the states that were asked for last are kept."""
        key = state, first
        if (found := self._ends.get(key)) is None:
            after = self._walk(state, first)
            places = np.bincount(after + 1, minlength=self.size + 1) > 0      # of DEAD, and of each state
            states = np.flatnonzero(places) - 1
            kind = np.uint16 if len(states) < 1 << 16 else np.int32
            found = self._ends[key] = Ends(states, (np.cumsum(places) - 1).astype(kind)[after + 1])
            if len(self._ends) > max(MOST_ENDS, self._most_small):
                self._ends.popitem(last=False)
        else:
            self._ends.move_to_end(key)
        return found

    def _walk(self, state: int, first: bool) -> Array:
        """The state that each token leads to, DEAD where it may not come: a walk over all tokens at once.

        Where most beginnings of a length may come, all of that length are looked up: this is cheaper than to list them.
        """
        trie = self.vocabulary.trie(first)
        states: Array = np.full(len(trie.bytes), DEAD, np.int32)
        states[0], frontier = state, np.zeros(1, np.int64)
        for start, end in zip(trie.levels[1:], trie.levels[2:]):
            if not len(frontier):
                break
            for s in np.flatnonzero(np.bincount(states[frontier])):
                self._expand(int(s))
            if DENSE * len(frontier) > end - start:
                before = states[trie.parents[start:end]]
                after = self._table[before, trie.bytes[start:end]]            # the last row is that of DEAD
                states[start:end] = after
                frontier = start + np.flatnonzero(after != DEAD)
            else:
                children, counts = trie.children(frontier)
                after = self._table[np.repeat(states[frontier], counts), trie.bytes[children]]
                frontier = children[after != DEAD]
                states[frontier] = after[after != DEAD]
        out = states[trie.nodes]
        out[trie.nodes == 0] = DEAD
        return out

    def kept_ends(self, state: int, first: bool) -> Ends | None:
        """Where tokens lead from a state, if it is known."""
        return self._ends.get((state, first))

    def known(self, state: int) -> tuple[Array, int, Ends] | None:
        """The tokens that may follow a state within a text, how far they lead, and where, if all that is known."""
        mask, ends = self._masks.get((state, False)), self._ends.get((state, False))
        return None if mask is None or ends is None else (*mask, ends)

    def distances(self, states: Array) -> Array:
        """The distances of states from an end."""
        out: Array = self._distances[states]
        return out

    # -- states -------------------------------------------------------------------------------------------------------
    def _expand(self, state: int) -> None:
        """Fill the row of a state: where each byte leads."""
        if self._expanded[state]:
            return
        self._expanded[state] = True
        moves = [(low, high, (target, stack)) for q, stack in self._sets[state]
                 for low, high, target in self.network.moves[q]]
        borders = sorted({b for low, high, _ in moves for b in (low, high + 1)})
        for low, end in zip(borders, borders[1:]):
            targets = [p for a, b, p in moves if a <= low <= b]
            if targets:
                number = self._number(*self._closure(targets))
                self._table[state, low:end] = number

    def _number(self, positions: frozenset[Position], accepts: bool) -> int:
        """The state of a set of positions; DEAD if there is nothing."""
        if not positions and not accepts:
            return DEAD
        key = positions, accepts
        if (found := self._numbers.get(key)) is None:
            found = self._numbers[key] = len(self._sets)
            self._sets.append(positions)
            self.accepts.append(accepts)
            self._expanded.append(False)
            if found + 1 == len(self._table):              # the last row stays that of DEAD
                self._table = np.concatenate([self._table, np.full_like(self._table, DEAD)])
                self._distances = np.concatenate([self._distances, np.zeros_like(self._distances)])
            self._distances[found] = 0 if accepts else min(
                self.network.distance[q] + self._cell_distances[stack] for q, stack in positions)
        return found

    def _closure(self, positions: Collection[Position]) -> tuple[frozenset[Position], bool]:
        """All positions with moves that some positions are at the same time, and whether a text may end here."""
        if len(positions) == 1:
            return self._closure_of(next(iter(positions)))
        parts = [self._closure_of(p) for p in positions]
        return frozenset().union(*(p for p, _ in parts)), any(a for _, a in parts)

    def _closure_of(self, position: Position) -> tuple[frozenset[Position], bool]:
        if (known := self._closures.get(position)) is not None:
            return known
        network, out, accepts = self.network, set[Position](), False
        seen, work = {position}, [position]
        while work:
            q, stack = work.pop()
            if network.moves[q]:
                out.add((q, stack))
            following = [(t, stack) for t in network.epsilon[q]]
            following += [(rule, self._push(after, stack)) for rule, after in network.calls[q]]
            if q in network.ends:
                if stack == 0:
                    accepts = True
                else:
                    following.append(self._cells[stack])
            for p in following:
                if p not in seen and network.distance[p[0]] < 1 << 30:
                    seen.add(p)
                    work.append(p)
        found = self._closures[position] = frozenset(out), accepts
        return found

    def _push(self, after: int, stack: int) -> int:
        """The stack from which a rule returns to a state; a state that only returns itself is left out."""
        network = self.network
        while after in network.ends or (len(network.epsilon[after]) == 1 and not network.moves[after]
                                        and not network.calls[after]):
            if after in network.ends:
                return stack
            after = network.epsilon[after][0]
        cell = after, stack
        if (found := self._cell_numbers.get(cell)) is None:
            found = self._cell_numbers[cell] = len(self._cells)
            self._cells.append(cell)
            self._cell_distances.append(network.distance[after] + self._cell_distances[stack])
        return found


class Matcher:
    """One text under a constraint, token by token.

    automaton    of the constraint
    stop_tokens  tokens that end the text, where it may end
    """

    def __init__(self, automaton: Automaton, stop_tokens: Collection[int]) -> None:
        self.automaton, self.stop_tokens = automaton, list(stop_tokens)
        self.state, self.count = automaton.start, 0

    @property
    def complete(self) -> bool:
        """Whether the text is whole, and nothing can be added."""
        return self.automaton.final(self.state)

    def advance(self, token: int) -> None:
        """Go on by a token; a token that the mask of the state does not allow is refused."""
        text = self.automaton.vocabulary.of_token(token, self.count == 0)
        state = self.state if text else DEAD               # special tokens are no text
        for byte in text:
            state = self.automaton.next(state, byte) if state != DEAD else DEAD
        if state == DEAD:
            raise unsupported(f"the token {token} came, which the constraint does not allow",
                              "choose tokens by the mask")
        self.state = state
        self.count += 1

    def mask(self, remaining: int) -> Array:
        """Which tokens may come next, if there are to be no more than `remaining`.

        Where few remain, only tokens that leave enough of them to end the text are allowed: as each byte has a token of
        its own, the distance in bytes is as many tokens as are needed at most. If even that is too far, those are
        allowed that come closer to the end.
        """
        automaton, first = self.automaton, self.count == 0
        allowed, farthest = automaton.mask(self.state, first)
        if farthest + 2 > remaining:
            ends = automaton.ends(self.state, first)       # what follows is of the few states that tokens lead to
            leads, distances = ends.states != DEAD, automaton.distances(ends.states)
            near = leads & ((distances + 2 <= remaining) | [automaton.final(int(e)) for e in ends.states])
            accepts = automaton.accepts[self.state]
            if not near.any() and not accepts:
                near = leads & (distances < automaton.distance(self.state))
            allowed = ends.spread(near) if near.any() or accepts else allowed.copy()
        else:
            allowed = allowed.copy()
        allowed[self.stop_tokens] = automaton.accepts[self.state]
        if not allowed.any():
            raise unsupported("no token of the model goes on with a text that satisfies the constraint",
                              "the vocabulary lacks characters that it needs")
        return allowed
