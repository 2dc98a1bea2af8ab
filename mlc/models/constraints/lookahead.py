"""Masks of several tokens to come: of a state, and of those that its tokens lead to, where these are few and known.

A step that writes several tokens chooses among the masks by the tokens that it chooses, without Python in between: from
within a string most tokens lead back into it. What is not known, or depends on how many tokens remain, is not followed;
there the sequence gets no more tokens from the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.models.constraints.automaton import DEAD, Ends, Matcher

Array = np.ndarray[Any, Any]

MOST_BYTES = 1 << 16
"""Of the masks of a sequence: each step is given them anew."""
MOST_MASKS = 8
STOP = -1


def masks_ahead(matcher: Matcher, mask: Array, remaining: int, tokens: int) -> tuple[Array, Array]:
    """The masks of the next tokens [masks, vocabulary], the first one given, and for each token the number of the mask
    behind it, STOP if that is not known.

    remaining  how many tokens there are to be at most
    tokens     how many are written at most
    """
    automaton, room = matcher.automaton, max(1, min(MOST_MASKS, MOST_BYTES // len(mask)))
    if tokens < 2 or room < 2 or (first := automaton.kept_ends(matcher.state, matcher.count == 0)) is None:
        return mask[None], np.full((1, len(mask)), STOP, np.int8)
    masks, ends, numbers = [mask], [first], dict[int, int]()
    for here in ends:                                      # which grows meanwhile
        for state in _likely(here):
            if len(masks) < room and state not in numbers and not automaton.final(state):
                found = automaton.known(state)
                if found is None or found[1] + 2 > remaining - tokens:
                    continue
                allowed = found[0].copy()
                allowed[matcher.stop_tokens] = automaton.accepts[state]
                if allowed.any():
                    numbers[state] = len(masks)
                    masks.append(allowed)
                    ends.append(found[2])
    follow = [e.spread(np.array([numbers.get(int(s), STOP) for s in e.states], np.int8)) for e in ends]
    return np.stack(masks), np.stack(follow)


def _likely(ends: Ends) -> Sequence[int]:
    """The states that tokens lead to, those of most tokens first."""
    counts = np.bincount(ends.places, minlength=len(ends.states))
    order = np.argsort(-counts, kind="stable")[: MOST_MASKS + 1]
    return [int(s) for s in ends.states[order] if s != DEAD]
