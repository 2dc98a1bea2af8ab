"""Calls of code that takes hundreds of tensors which its function reaches, such as a training step.

Most of them are as the call before left them, so that nothing has to be checked again. New elements of a tensor are
written over those that it has, where the code allows that and nobody else holds its memory. Otherwise the memory of
elements that a call has replaced serves the next one but one, unless somebody else holds it. So a step allocates
nothing, and a call that fails has changed nothing.

While a call runs, another thread that reads a tensor which the call changes may find some new elements, as in PyTorch.
One that is interrupted by the keyboard may have changed some tensors and not others.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.backends.executable import Entry, new_array
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.tensor import Tensor, as_backing_array

if TYPE_CHECKING:
    from mlc.backends.cpu.captured import CapturedInputs

Array = np.ndarray[Any, Any]
Pairs = Sequence[tuple[int, int]]
_OURS = 2
"""References to an array that nobody else holds, as `sys.getrefcount` counts them in `_result`."""
_PROBE = np.empty(2)[:1]
_PLACES = [_PROBE, _PROBE]
"""An array that three places have, as the tensor, `known` and `fitting` have that of a captured tensor. How many
references a call adds depends on the interpreter, and on tools that it runs under, so both are counted alike."""


def may_be_over(entry: Entry, own: int, stored: Pairs) -> Pairs:
    """Those among the captured inputs and the results with their new elements that may have one buffer; `own` is the
    number of the arguments."""
    over = entry.interface.overwrites
    return [(j, n) for j, n in stored if over and over[n] == own + j]


def _is_alone(x: Any, array: Any, probe: Array, last: tuple[Array, int] | None) -> bool:
    """Whether nobody else has the array that a captured input had in the last call, and has now, or its memory."""
    if type(x) is not Tensor or x._array is not array or x._storage is not None or not array.flags.writeable:
        return False
    base, like = array.base, probe.base
    return sys.getrefcount(array) <= sys.getrefcount(probe) + (last is not None and last[0] is array) and (
        base is None or (type(base) is np.ndarray and base.base is None
                         and sys.getrefcount(base) <= sys.getrefcount(like)))


class RepeatedCall:
    """The arrays of the last call of an entry without symbolic sizes.

    own       number of the arguments, before the captured inputs
    stored    numbers of captured inputs that take over results, with those of the results
    over      those of `stored` that the code may write over
    recycled  numbers of the results whose memory serves later calls
    fast      the fast paths of such calls: one of those that are recorded for derivatives, and one of others
    offered   for which arguments that require a gradient it has been tried to add the first of them
    known     per captured input: the array of the last call, or the one that a call has stored since; None for a copy
    """

    def __init__(self, entry: Entry, own: int, stored: Pairs, recycled: Sequence[int]) -> None:
        self.entry, self.own, self.stored, self.recycled = entry, own, stored, recycled
        self.over = may_be_over(entry, own, stored)
        self.results = entry.static_results
        self.known: list[Any] = [None] * (len(entry.interface.inputs) - own)
        self.pointers = [0] * len(self.known)
        self.fitting: list[Any] = [None] * len(self.known)             # what the pointers point into
        self.spare: list[tuple[Array, int] | None] = [None] * len(self.results)
        self.last: list[tuple[Array, int] | None] = [None] * len(self.results)
        self.lock = threading.Lock()
        self.fast: list[CapturedInputs] = []
        self.offered = set[tuple[int, ...]]()

    @staticmethod
    def of(entry: Any, recorded: Recorded, own: int) -> RepeatedCall | None:
        """The calls of an entry; None if they cannot be repeated, since sizes are symbolic or it runs on a device."""
        direct = getattr(entry, "direct", None)
        if direct is None or direct.interface.symbols or recorded.captures is None:
            return None
        stored = [*recorded.stored.items()]
        gradients = dict.fromkeys(n for _, n in recorded.gradients if n is not None)
        return RepeatedCall(direct, own, stored, [*(n for _, n in stored), *gradients])

    def run(self, arrays: Sequence[Any], captured: Sequence[Any], keep: bool = False) -> list[Array]:
        """The results of a call on these arguments and captured inputs, whose elements are to stay if `keep`."""
        entry = self.entry
        given = [entry.checked_array(i, x) for i, x in enumerate(arrays)]
        self._follow(captured)
        pointers = [*map(entry.address_of, given), *self.pointers]
        entry.check_overlap([*given, *self.fitting], pointers)
        over = {} if keep else {n: (self.fitting[j], self.pointers[j])
                                for j, n in self.over if _is_alone(captured[j], self.known[j], _PROBE, self.last[n])}
        made = [over[n] if n in over else self._result(n) for n in range(len(self.results))]
        for n, a in entry.reused:                          # donated arguments
            made[n] = given[a], pointers[a]
        entry.enter(pointers, [address for _, address in made])
        for n in self.recycled:
            self.spare[n], self.last[n] = (None, None) if n in over else (self.last[n], made[n])
        for j, n in self.stored:
            self.known[j] = self.fitting[j] = made[n][0]
            self.pointers[j] = made[n][1]
        return [array for array, _ in made]

    def renew_fast_path(self) -> None:
        """Have calls as this one take a fast path from now on, if they may."""
        for fast in self.fast:
            if fast.takes(mode.enabled):
                fast.renew()
                if fast.changes is not None and self.lock.acquire(blocking=False):
                    self._forget()                         # the fast path has spare arrays of its own
                    self.lock.release()

    def _forget(self) -> None:
        for j, _ in self.stored:
            self.known[j] = self.fitting[j] = None
        for n in self.recycled:
            self.spare[n] = self.last[n] = None

    def _follow(self, captured: Sequence[Any]) -> None:
        """Take note of captured inputs that have other arrays than in the last call."""
        for j, x in enumerate(captured):
            array = x._array if type(x) is Tensor else x
            if array is not self.known[j]:
                self._learn(j, array if type(array) is np.ndarray else as_backing_array(x))

    def _learn(self, j: int, array: Any) -> None:
        """Take note of another array of a captured input; one that has to be copied is copied in each call."""
        fitting = self.fitting[j] = self.entry.checked_array(self.own + j, array)
        self.known[j] = array if fitting is array else None
        self.pointers[j] = self.entry.address_of(fitting)

    def _result(self, number: int) -> tuple[Array, int]:
        """An array for a result, and the address of its elements."""
        kept = self.spare[number]
        if kept is not None:
            self.spare[number] = None
            array, address = kept
            del kept
            if sys.getrefcount(array) <= _OURS:
                return array, address
        array = new_array(*self.results[number])
        return array, self.entry.address_of(array)
