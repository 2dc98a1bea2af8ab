"""Cache of a function's specializations: by the arguments of calls, their sizes, and the captured state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mlc.call import Call, Signature
from mlc.frontend.autograd.function_node import Split
from mlc.frontend.compiler import compiler
from mlc.frontend.generalize import fits
from mlc.frontend.global_hooks import OF_ALL
from mlc.frontend.recorded_function import Recorded
from mlc.frontend.script.reach import Reached
from mlc.frontend.script.reached_state import GradientPresence, Payload
from mlc.frontend.script.unread import names_read
from mlc.frontend.script.words import Watch
from mlc.frontend.tree import AttributeTree
from mlc.ir.compilation_lock import compiling
from mlc.ir.sizes import Dim
from mlc.ir.types import FunctionType, TensorType
from mlc.repeated_call import RepeatedCall
from mlc.variant import Variant

if TYPE_CHECKING:
    from mlc.backends.cpu.captured import Guards
    from mlc.backends.toolchain import Executable

SHAPES_KNOWN = 1024
"""Limit on the shapes whose code is found by a single lookup."""

STATES_KNOWN = 8
"""Limit on the captured states, such as a model in training and evaluation mode, whose code is cached."""

FROZEN_STATES_KNOWN = 2
"""The same for a frozen function, of which each state has constants of its own; former elements hardly come back."""


class Code(NamedTuple):
    """Native code of a recording.

    executable  the code
    entry       the entry to call
    repeated    its calls, where most inputs are those of the call before
    """

    executable: Executable | None = None
    entry: Any = None
    repeated: RepeatedCall | None = None


class Specialization:
    """Specialization of a function for some arguments.

    recorded  the recording, which rebuilds the Python result
    donated   the numbers of donated arrays
    split     for code of calls that are recorded for backward: what it leaves for that; None if that computes all
    may_split whether calls that are recorded for backward may have code of their own
    saving    that code, by the numbers of the inputs that require a gradient; None where there is none
    waits     whether its own code has not been offered to the fast path: it is made when a call first asks for it
    """

    may_split = waits = False

    def __init__(self, recorded: Recorded, make: Callable[[], Code] = Code, donated: tuple[int, ...] = (),
                 split: Split | None = None) -> None:
        self.recorded, self.donated, self.split, self._make = recorded, donated, split, make
        self.saving: dict[tuple[int, ...], Specialization | None] = {}
        self._code: Code | None = None

    @property
    def code(self) -> Code:
        """Its code."""
        if self._code is None:                             # no cached_property: before Python 3.12 it has another lock
            with compiling:
                if self._code is None:
                    self._code = self._make()
        return self._code

    @property
    def executable(self) -> Executable | None:
        """The executable; None if there is nothing to compute."""
        return self.code.executable

    @property
    def entry(self) -> Any:
        """The entry to call; None if there is nothing to compute."""
        return self.code.entry

    @property
    def repeated(self) -> RepeatedCall | None:
        """Its calls, where most inputs are those of the call before."""
        return self.code.repeated

    @property
    def images(self) -> list[Any]:
        """The image of its code, for saving."""
        return [] if self.executable is None else [self.executable.linked]

    @property
    def signature(self) -> str | None:
        """The type of its entry, or of those of calls that are recorded, without what these leave for backward; None
        if none has been made."""
        if self._code is not None and self._code.entry is not None:
            type = self._code.entry.interface.type
            return str(type if self.split is None else FunctionType(type.inputs, type.results[:self.split.results]))
        return next((text for s in self.saving.values() if s is not None for text in [s.signature]), None)

    @property
    def made(self) -> list[Any]:
        """The entries that have been made so far: its own, and those of calls that are recorded for backward."""
        own = None if self._code is None else self._code.entry
        return [entry for entry in (own, *(e for s in self.saving.values() if s is not None for e in s.made))
                if entry is not None]


class RunAsPython:
    """Placeholder for a specialization: for these arguments the function runs as plain Python."""


PYTHON = RunAsPython()


@dataclass(frozen=True)
class ForSizes:
    """Code for many sizes, and its constraints on them."""

    types: list[TensorType]
    size_constraints: Sequence[Dim]
    code: Specialization

    def fits(self, call: Call) -> bool:
        return fits(self.types, [tuple(a.shape) for a in call.arrays], self.size_constraints)


class State:
    """Specializations of a function for one captured state: closure cells, globals, and their contents.

    reached   that, and what arguments reach that are no arrays: objects, functions, the classes of modules
    known     code by all that it depends on
    general   code for many sizes, by all that is known but sizes
    seen      the sizes of the first call, by the same
    read      tensors whose elements a recording depends on
    variants  the code for files
    reaching  per code that takes tensors which the function reaches, of which files have constants: the module that it
              belongs to as it was, by `bound_key`, and the specified arguments
    """

    def __init__(self, reached: Reached) -> None:
        self.reached = [reached]
        if any(isinstance(x, AttributeTree) for x in reached.objects()):
            self.reached.append(Reached({"the hooks of all modules": OF_ALL}))
        self.read: list[Any] = []
        self._watch: Watch | None = None
        self.known: dict[Any, Specialization] = {}
        self.general: dict[Any, list[ForSizes]] = {}
        self.seen: dict[Any, list[tuple[int, ...]]] = {}
        self.variants: list[Variant] = []
        self.reaching: list[tuple[Any, list[Any], dict[str, Any]]] = []

    def learn(self, recorded: Recorded) -> None:
        """Take what is an input of the code out of the guards, and add what the recording depends on besides."""
        self._watch = None
        captures = recorded.captures
        if captures is None:
            return
        self.reached += captures.hooks
        self.read += captures.read
        for module, name in captures.by_place:
            self.reached[0].by_place.setdefault(id(vars(module)), set()).add(name)
        names = names_read(self.reached)
        for reached in self.reached:
            reached.loosen(self.read, captures.numbers, captures.hosts, names)
        self.reached[0].places += [GradientPresence("", owner, present) for owner, present in captures.gradients_read()]
        self.reached[0].places += [Payload("", t) for t in captures.read]

    def guards(self) -> Guards | None:
        """The words of memory that change with the captured state; None if it has changed, or has to be looked at."""
        from mlc.backends.cpu.captured import Guards
        if self._watch is None and not self.holds():
            return None
        rows = None if self._watch is None else self._watch.rows()
        return None if rows is None else Guards(*rows)

    def is_of_other_types(self) -> bool:
        """Whether a tensor that is reached has another type now, which only code finds out that takes it."""
        return not all(place.holds() for reached in self.reached for place in reached.places)

    def holds(self) -> bool:
        """Whether the captured state is unchanged."""
        if self._watch is not None:
            return self._watch.holds()
        places = [place for reached in self.reached for place in reached.places]
        if not all(place.holds() for place in places):
            return False
        for place in places:                               # to keep the objects whose addresses are watched
            place.renew()
        self._watch = Watch(places, compiler().first_changed())
        return True

    def fitting(self, call: Call) -> Specialization | None:
        """Code for many sizes that serves a call, which is then known for it."""
        for general in self.general.get(call.lookup_without_sizes(), ()):
            if general.fits(call):
                if len(self.known) >= SHAPES_KNOWN:
                    self.known = {k: v for k, v in self.known.items() if v is not general.code}
                self.known[call.lookup] = general.code
                return general.code
        return None


class DispatchCache:
    """All specializations of one function.

    timed   whether their kernels are timed
    most    limit on the captured states
    lock    held while something is compiled for it
    states  the number of captured states so far
    """

    def __init__(self, signature: Signature, timed: bool = False, most: int = STATES_KNOWN) -> None:
        self.timed, self.most = timed, most
        self.lock = threading.RLock()
        self._signature = signature
        self.states = 0
        self._states: list[State] = []                     # most recently used first
        self._python: set[Any] = set()

    def find(self, call: Call) -> Specialization | RunAsPython | None:
        """The code for a call; None if there is none yet."""
        try:
            if call.lookup in self._python:
                return PYTHON
        except TypeError:
            raise call.unhashable() from None
        return self.state().known.get(call.lookup)

    def state(self) -> State:
        """Specializations for the current captured state."""
        if self._states and self._states[0].holds():
            return self._states[0]
        with self.lock:
            found = next((s for s in self._states if s.holds()), None)
            if found is None:
                found, self.states = State(Reached({"": self._signature.f})), self.states + 1
            self._states = [found, *(s for s in self._states if s is not found)][:self.most]
            return found

    def changed(self, state: State) -> str:
        """The path of what a function reaches that differs from the last state before this one; "" if nothing does."""
        before = next((s for s in self._states if s is not state), None)
        places = [place for reached in before.reached for place in reached.places] if before is not None else []
        return next((place.change() for place in places if not place.holds()), "")

    def reaching(self) -> list[tuple[Any, list[Any], dict[str, Any]]]:
        """The specified arguments of code that takes tensors which the function reaches, of all states."""
        return [found for state in self._states for found in state.reaching]

    def forget(self) -> None:
        """Drop the specializations for the current captured state."""
        with self.lock:
            self._states = self._states[1:]

    def run_as_python(self, call: Call) -> RunAsPython:
        """Make the function run as plain Python for arguments like these."""
        self._python.add(call.lookup)
        return PYTHON

    def all(self) -> list[Specialization]:
        """Every specialization, once, however many sizes it is known for."""
        return [*{id(code): code for state in self._states for code in state.known.values()}.values()]

    def after_fork(self) -> None:
        """A thread that was compiling is not in the child; its lock is."""
        self.lock = threading.RLock()
