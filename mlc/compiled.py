"""What mlc.compile gives: a function that records, compiles and calls, and all that it remembers.

    record (frontend/trace.py) -> passes (passes/pipeline.py) -> llvm dialect -> native code (backends/executable.py)
                                                             -> kernels -> PTX (backends/cuda/executable.py)
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.code import code_for, image_for
from mlc.frontend import tree
from mlc.frontend.devices import CPU, CUDA, as_device, is_device
from mlc.frontend.generalize import Axis, Note, fits, note_of, record_for_sizes
from mlc.frontend.location import user_loc
from mlc.frontend.script import runtime
from mlc.frontend.script.reach import Reached
from mlc.frontend.script.report import UNRECORDED, Report
from mlc.frontend.signature import (
    Arguments,
    Recorded,
    Spec,
    at_the_call,
    consume,
    name_of,
    parameters,
    paths_of,
    record_entry,
    roots,
)
from mlc.frontend.tensor import Consumed, Tensor
from mlc.frontend.trace import Capture, state
from mlc.frontend.trace import call as recorded_call
from mlc.ir import sizes
from mlc.ir.core import Op
from mlc.ir.diag import BackendError, Error, InternalError, UserAssertionError, UserError, UserIndexError, UserTypeError
from mlc.ir.printer import to_text
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType
from mlc.ir.weak import WeakList

if TYPE_CHECKING:
    from mlc.backends.cuda.executable import Executable as DeviceExecutable
    from mlc.backends.cuda.image import DeviceImage
    from mlc.backends.executable import Entry, Executable
    from mlc.backends.image import Image
    from mlc.backends.target import Target

Parameters = str | int | Iterable[str | int]
"""Parameters of a function: names, positions, or one of them."""

PRECISIONS = (None, "ieee", "tf32")
"""How products of matrices may be asked for."""
_functions = WeakList["Compiled"]()


def _after_fork() -> None:
    """A thread that was recording is not in the child; its lock is."""
    for function in _functions.values():
        function._lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


Capture.function = staticmethod(runtime.captured)
Capture.way_out = staticmethod(runtime.way_out)
Capture.reached = Reached


Known = tuple["Recorded", "Entry | None", tuple[int, ...]]
"""What was recorded, its code if there is anything to compute, and the numbers of donated arrays."""

SHAPES_KNOWN = 1024
"""Shapes for which the code is found at once."""

STATES_KNOWN = 8
"""States of what a function reaches by itself, such as a model in training and not, whose code is kept."""


class Checks:
    """What is done with all calls of compiled functions in this process.

    every_call  whether they are compared with plain Python: what `mlc run --check` asks for
    anomaly     what is told of the results of each, how to record it again, and its arguments: mlc.detect_anomaly
    apart       runs what may end the process; what that raises it raises
    found       the first difference, which a program may catch as any error of this package
    """

    every_call = False
    apart: Callable[[Callable[[], None]], None] = staticmethod(lambda work: work())
    found: InternalError | None = None
    anomaly: Callable[[Sequence[Any], Callable[[], Op], Sequence[Any]], None] | None = None


@contextmanager
def without_fast_paths() -> Iterator[None]:
    """Within, all calls of compiled functions go through `Compiled`."""
    from mlc.backends.cpu.callable import without_fast_path
    with ExitStack() as stack:
        for function in _functions.values():
            if function.dispatcher is not None:
                stack.enter_context(without_fast_path(function.dispatcher, function))
        yield


@dataclass(frozen=True)
class General:
    """Code for many sizes, and what it asks of them."""

    types: list[TensorType]
    conditions: Sequence[Dim]
    known: Known

    def fits(self, arguments: Arguments) -> bool:
        return fits(self.types, [tuple(a.shape) for a in arguments.arrays], self.conditions)


@dataclass(frozen=True)
class Variant:
    """What a function was compiled to for some kind of arguments; those of a bound module are left out.

    structure  of (args, keywords)
    leaves     its leaves, None in place of arrays
    slots      per leaf: whether it is an array
    weak       per array: whether it is a Python number, whose type gives way to that of others
    bound      what the code depends on of the bound module
    images     the code, for each machine that it is for; none if there is nothing to compute
    """

    structure: tree.Structure
    leaves: list[Any]
    slots: list[bool]
    weak: list[bool]
    bound: Any
    recorded: Recorded
    images: list[Image | DeviceImage]


class Tables:
    """What has been compiled of a function while it reached the same: its closure, globals, and what they hold.

    reached   that, and what arguments reach that are no arrays: objects, functions, the classes of modules
    known     the code by all that it depends on
    general   code for many sizes, by all that is known but sizes
    seen      the sizes of the first call that had none
    """

    def __init__(self, reached: Reached) -> None:
        self.reached = [reached]
        self.known: dict[Any, Known] = {}
        self.general: dict[Any, list[General]] = {}
        self.seen: dict[Any, list[tuple[int, ...]]] = {}
        self.variants: list[Variant] = []

    def holds(self) -> bool:
        """Whether all that is reached is as it was."""
        return all(reached.holds() for reached in self.reached)


class Compiled:
    """A function that runs as native code, made when it is first called with arguments of new types.

    Arrays of other shapes or element types, other containers and other values of what is no array lead to another
    compilation; sizes that a specification names by a symbol do not. So does another device where tensors are, unless
    there is a target.
    """

    def __init__(self, f: Callable[..., Any], donate: Parameters = (), static: Parameters = (),
                 args: Sequence[Any] | None = None, target: str | None = None, graph: bool = False,
                 matmul_precision: str | None = None, fallback: bool = False, dynamic: bool | None = None,
                 check: bool = False, checked: bool = False) -> None:
        self.dynamic, self.check, self.checked = dynamic, check, checked
        self.where, self.target = _target(target)
        self.fallback = fallback
        self._reports: list[Report] = []
        self.graph = graph
        if matmul_precision not in PRECISIONS:
            raise UserError(f"matmul_precision is {matmul_precision!r}", code="MLC0380", loc=user_loc(),
                            hint='one of "ieee", "tf32" and None')
        self.precision = matmul_precision
        self.bound: tuple[Any, ...] = ()
        if isinstance(f, tree.AttributeTree):              # a module: its arrays are arguments, not constants
            self.bound, f = (f,), type(f).__call__
        if not callable(f):
            raise UserTypeError(f"mlc.compile takes a function, found {type(f).__name__}", code="MLC0380",
                                loc=user_loc())
        self.f = f
        known = parameters(f)
        if self.bound and "args" in known and hasattr(self.bound[0], "forward"):
            known = parameters(type(self.bound[0]).forward)            # its __call__ passes all of them on
        self.names = [n for n, p in known.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.KEYWORD_ONLY)]
        every = [n for n, p in known.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.donate = self._parameters(donate, every, "donate")
        self.static = self._parameters(static, every, "static")
        if both := sorted(self.donate & self.static):
            raise UserError(f"{both[0]} is both donated and static", code="MLC0380", loc=user_loc())
        self.specs = self._specifications(known, args)
        self._tables: list[Tables] = []                    # the last that was used comes first
        self._python: set[Any] = set()                     # the arguments for which it runs as Python
        self._emitted = list[Any]()                        # the wrappers, where each is checked by itself
        self.dispatcher: Any = None                        # what users hold, if it learns fast paths
        self._lock = threading.RLock()
        _functions.add(self)
        functools.update_wrapper(self, f, updated=())

    def _parameters(self, given: Parameters, names: Sequence[str], what: str) -> frozenset[str]:
        """The names of parameters, which may be given by position."""
        out = set()
        for x in (given,) if isinstance(given, str | int) else given:
            name = names[x] if isinstance(x, int) and -len(names) <= x < len(names) else x
            if name not in names:
                raise UserError(f"{what} names {x!r}, which is no parameter of {name_of(self.f)}", code="MLC0380",
                                loc=user_loc(), hint="it has " + ", ".join(names))
            out.add(str(name))
        return frozenset(out)

    def _specifications(self, known: dict[str, Any], args: Sequence[Any] | None) -> dict[str, Any]:
        """What is said of the parameters' types: by annotation, or by position in `args`."""
        out = {n: p.annotation for n, p in known.items() if isinstance(p.annotation, Spec)}
        for i, x in enumerate(args or ()):
            if i + len(self.bound) >= len(self.names):
                raise UserError(f"args has {len(args or ())} specifications, {name_of(self.f)} takes "
                                f"{len(self.names) - len(self.bound)} positional arguments", code="MLC0380",
                                loc=user_loc())
            if x is not None:
                out[self.names[i + len(self.bound)]] = x
        return out

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self.bound:
            args = (*self.bound, *args)
        if state.trace is not None:
            return recorded_call(name_of(self.f), self.f, *args, **keywords)
        arguments = self._take_apart(args, keywords)
        if self.check or Checks.every_call:
            try:
                return self._checked(arguments, args, keywords)
            except InternalError as error:
                Checks.found = Checks.found or error
                raise
        return self._run(arguments, args, keywords)

    def _checked(self, arguments: Arguments, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The call, after the same in plain Python; InternalError where they differ."""
        from mlc import checked
        plain, compiled = checked.plain_run(self.f, arguments), checked.Run()
        arrays = [np.array(a if isinstance(a, np.ndarray) else a.numpy()) for a in arguments.arrays]
        again = checked.again(args, bool(self.donate)) if not keywords else None
        try:
            compiled.result = self._run(arguments, args, keywords)
        except InternalError:
            raise
        except Error as error:
            compiled.error = error
        if isinstance(compiled.error, UserError) and plain.error is None and not isinstance(
                compiled.error, AssertionError) and compiled.error.code in UNRECORDED | {"MLC0329"}:
            raise compiled.error                           # it is refused, and not computed otherwise
        compiled.buffers = checked.buffers_of((args, keywords))
        checked.compare(name_of(self.f), plain, compiled, lambda: self._module(arguments, args, keywords), arrays)
        if compiled.error is not None:
            raise compiled.error
        if again is not None:
            donated = [i for i, name in enumerate(self.names[: len(args)]) if name in self.donate]
            Checks.apart(lambda: checked.compare_wrappers(name_of(self.f), self._emitted, again, compiled.result,
                                                          donated))
        return compiled.result

    def _module(self, arguments: Arguments, args: tuple[Any, ...], keywords: dict[str, Any]) -> Op:
        """What is recorded for these arguments."""
        return self._record(arguments, args, keywords)[0].trace.module

    def _run(self, arguments: Arguments, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        try:
            if self._key(arguments) in self._python:
                return self.f(*args, **keywords)
            tables = self._current()
            found = tables.known.get(self._key(arguments))
        except TypeError:
            raise self._unhashable(arguments, args, keywords) from None
        if found is None:
            found = self._compile(tables, arguments, args, keywords)
        if found is None:
            return self.f(*args, **keywords)
        recorded, entry, donated = found
        if entry is None:
            return recorded.result(())
        arrays = [np.array(a) for a in arguments.arrays] if Checks.anomaly is not None else []
        try:
            results = entry.call(self._brought(arguments))
        except (UserAssertionError, UserIndexError, InternalError):
            # The code has run, and may have written to them.
            consume(arguments.given, donated, user_loc(), name_of(self.f))
            raise
        except UserError as error:                         # an argument does not fit
            at_the_call(error)
            raise
        if donated:
            consume(arguments.given, donated, user_loc(), name_of(self.f))
        if Checks.anomaly is not None:
            Checks.anomaly(results, lambda: self._module(arguments, args, keywords), arrays)
        recorded.assign((args, keywords), results)
        return recorded.result(results)

    def _current(self) -> Tables:
        """What has been compiled for all that the function reaches as it is now."""
        if self._tables and self._tables[0].holds():
            return self._tables[0]
        with self._lock:
            found = next((t for t in self._tables if t.holds()), None) or Tables(Reached({"": self.f}))
            self._tables = [found, *(t for t in self._tables if t is not found)][:STATES_KNOWN]
            return found

    def specified(self) -> list[Any] | None:
        """The specifications of the positional arguments; None where one that must be passed has none."""
        known = parameters(type(self.bound[0]).forward) if self.bound and hasattr(
            self.bound[0], "forward") else parameters(self.f)
        out = list[Any]()
        for name in self.names[len(self.bound):]:
            if name in self.specs:
                out.append(self.specs[name])
            elif known[name].default is known[name].empty:
                return None
            else:
                break
        return out

    def _marked(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with each static one as a leaf, whatever it holds."""
        if not self.static:
            return args, keywords
        return (tuple(tree.Static(x) if i < len(self.names) and self.names[i] in self.static else x
                      for i, x in enumerate(args)),
                {n: tree.Static(x) if n in self.static else x for n, x in keywords.items()})

    def _take_apart(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Arguments:
        args, keywords = self._marked(args, keywords)
        leaves, structure = tree.flatten((args, keywords))
        specs = None
        if self.specs:
            specs = [s for name, x in roots(self.names, args, keywords) for s in self._of_leaves(name, x)]
        return Arguments(leaves, structure, specs)

    def _of_leaves(self, name: str, x: Any) -> list[Spec | None]:
        """The specification of each leaf of an argument."""
        leaves, structure = tree.flatten(x)
        wanted = self.specs.get(name)
        if wanted is None:
            return [None] * len(leaves)
        if isinstance(wanted, Spec):
            if len(structure) != 1:
                raise UserTypeError(f"{name} is a {type(x).__name__}, its specification {wanted}", code="MLC0381",
                                    loc=user_loc())
            return [wanted]
        return [s if isinstance(s, Spec) else None for s in tree.matching_leaves(structure, wanted)]

    def _compile(self, tables: Tables, arguments: Arguments, args: tuple[Any, ...],
                 keywords: dict[str, Any]) -> Known | None:
        """The code for some arguments, made if need be; None if they are for Python."""
        with self._lock:
            if (found := tables.known.get(self._key(arguments)) or self._fitting(tables, arguments)) is not None:
                return found
            own = Reached(self._reached_by(arguments, args, keywords))
            tables.reached += [own] if own.places else []
            notes: list[Note] = []
            if axes := self._varying(tables, arguments, args, keywords):
                if (found := self._compile_for_sizes(tables, axes, arguments, args, keywords, notes)) is not None:
                    return found
            try:
                recorded, donated = self._record(arguments, args, keywords, tables.reached[0])
            except UserError as error:
                if not self.fallback or error.code not in UNRECORDED:
                    raise
                self._reports.append(self._report(arguments, args, keywords, error=error))
                self._python.add(self._key(arguments))
                return None
            recorded.trace.notes += notes
            self._reports.append(self._report(arguments, args, keywords, recorded))
            made = self._code(recorded, arguments)
            entry: Any = made.entry("main") if made is not None else None
            images = [made.linked] if made is not None else []
            tables.variants.append(self._variant(arguments, args, keywords, recorded, images))
            tables.known[self._key(arguments)] = known = recorded, entry, donated
            self._add_fast_path(tables, entry, arguments, recorded, args, keywords)
            return known

    @staticmethod
    def _reached_by(arguments: Arguments, args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
        """What arguments bring along besides arrays: what is part of the code, and the methods of modules."""
        values = [x.value if isinstance(x, tree.Static) else x
                  for x, slot in zip(arguments.leaves, arguments.slots) if not slot]
        for module in tree.attribute_trees((args, keywords)):
            values += [type(module), *(x for x in vars(module).values() if not tree.is_data(x)
                                       and not isinstance(x, tree.AttributeTree))]
        return {str(i): x for i, x in enumerate(values)}

    def _fitting(self, tables: Tables, arguments: Arguments) -> Known | None:
        """Code for many sizes that serves these, which is then known for them."""
        for general in tables.general.get(self._rough_key(arguments), ()):
            if general.fits(arguments):
                if len(tables.known) >= SHAPES_KNOWN:
                    tables.known = {k: v for k, v in tables.known.items() if v is not general.known}
                tables.known[self._key(arguments)] = general.known
                return general.known
        return None

    def _rough_key(self, arguments: Arguments) -> Any:
        """The key without the sizes of arrays whose types are not specified."""
        flags = iter(zip(arguments.types, arguments.weak))
        out: list[Any] = [arguments.key[0]]
        for part, slot in zip(arguments.key[1:], arguments.slots):
            is_sized = slot and next(flags) == (None, False)
            out.append((part[0], len(part[1])) if is_sized else part)
        return tuple(out), arguments.device

    def _varying(self, tables: Tables, arguments: Arguments, args: tuple[Any, ...],
                 keywords: dict[str, Any]) -> list[Axis]:
        """The axes whose sizes shall be symbols: all with `dynamic`, else those that differ from an earlier call's.

        The arrays of modules keep their sizes.
        """
        if self.dynamic is False or (self.dynamic is None and self.where is not None):
            return []
        shapes = [tuple(a.shape) for a in arguments.arrays]
        before = tables.seen.setdefault(self._rough_key(arguments), shapes)
        held: list[bool] = []                              # per leaf: whether it belongs to a module
        for name, x in roots(self.names, args, keywords):
            count = 1 if name in self.static else len(tree.leaves(x))
            held += [any(True for _ in tree.attribute_trees(x))] * count
        own = [h for h, slot in zip(held, arguments.slots) if slot]
        return [(i, axis) for i, shape in enumerate(shapes) for axis, n in enumerate(shape)
                if arguments.types[i] is None and not arguments.weak[i] and not own[i]
                and (self.dynamic or n != before[i][axis])]

    def _compile_for_sizes(self, tables: Tables, axes: list[Axis], arguments: Arguments, args: tuple[Any, ...],
                           keywords: dict[str, Any], notes: list[Note]) -> Known | None:
        """Code for many sizes; None where there is none, and the error is the one for these sizes. `notes` say why."""
        static = list(arguments.types)
        names = paths_of(self.names, arguments, *self._marked(args, keywords))

        def record(types: list[TensorType]) -> tuple[Recorded, tuple[int, ...]]:
            arguments.types = [t if s is None else s for s, t in zip(static, types)]
            return self._record(arguments, args, keywords, tables.reached[0])

        try:
            (recorded, donated), types = record_for_sizes(record, arguments.input_types(), axes, names, notes)
            if all(t.is_static for t in types) and not self.dynamic:
                return None
            made = self._code(recorded, arguments)
        except InternalError:
            raise
        except Exception as error:                         # also of Python: what f calls may take no symbol
            notes.append(note_of(error, "; so the code is for these sizes alone"))
            return None
        finally:
            arguments.types = static
        entry: Any = made.entry("main") if made is not None else None
        known = recorded, entry, donated
        general = General(types, entry.interface.conditions if entry is not None else (), known)
        if not general.fits(arguments):
            return None
        arguments.types = [t if s is None else s for s, t in zip(static, types)]
        recorded.trace.notes += notes
        self._reports.append(self._report(arguments, args, keywords, recorded))
        tables.variants.append(self._variant(arguments, args, keywords, recorded, [made.linked] if made else []))
        self._add_fast_path(tables, entry, arguments, recorded, args, keywords)
        arguments.types = static
        tables.general.setdefault(self._rough_key(arguments), []).append(general)
        tables.known[self._key(arguments)] = known
        return known

    def _report(self, arguments: Arguments, args: tuple[Any, ...], keywords: dict[str, Any],
                recorded: Recorded | None = None, error: UserError | None = None) -> Report:
        """What became of the function for these arguments."""
        every = [path for name, x in roots(self.names, args, keywords)
                 for path in ([name] if name in self.static else tree.paths(x, name))]
        values = [(path, x) for path, x, slot in zip(every, arguments.leaves, arguments.slots) if not slot]
        types = [str(t) for t in arguments.input_types()]
        return Report(types, [(path, x.value if isinstance(x, tree.Static) else x) for path, x in values],
                      recorded.trace.notes if recorded is not None else [], error)

    def report(self) -> str:
        """What the function was compiled for, which of its lines became loops and conditions, which Python values it
        was specialised on, and for which arguments it runs as Python (`fallback`), and why.
        """
        count = len(self._reports)
        return f"{name_of(self.f)}: {count} specialisation{'s' * (count != 1)}\n" + "".join(map(str, self._reports))

    def _key(self, arguments: Arguments) -> Any:
        """What to find the code for some arguments by."""
        return arguments.key if self.where or arguments.device == CPU else (arguments.key, arguments.device)

    def _brought(self, arguments: Arguments) -> Sequence[Any]:
        """The arrays, on the CPU if the function runs there; a device brings what it needs by itself."""
        if self.where != CPU or arguments.device == CPU:
            return arguments.arrays
        return [a if isinstance(a, np.ndarray) else a.numpy() for a in arguments.arrays]

    def _on_cpu(self, arguments: Arguments) -> bool:
        return (self.where or arguments.device) == CPU

    def _code(self, recorded: Recorded, arguments: Arguments) -> Executable | DeviceExecutable | None:
        """The code of what was recorded, if there is anything to run, where the target or the arguments are."""
        if not recorded.computes:
            return None
        return code_for(recorded.trace.module, self.where or arguments.device, self.target, self.graph, self.precision,
                        self.checked)

    def _variant(self, arguments: Arguments, args: tuple[Any, ...], keywords: dict[str, Any], recorded: Recorded,
                 images: list[Image | DeviceImage]) -> Variant:
        """What was compiled, without the arrays that it was compiled for."""
        known, slots = iter(arguments.slots), list[bool]()
        for name, x in roots(self.names, args, keywords):
            count = len(tree.leaves(x))
            if name in self.static:
                next(known)
            slots += [False] * count if name in self.static else islice(known, count)
        leaves, structure = tree.flatten((args[len(self.bound):], keywords))
        slots = slots[len(tree.leaves(self.bound)):]
        weak = arguments.weak[len(arguments.weak) - sum(slots):]
        return Variant(structure, [None if slot else x for x, slot in zip(leaves, slots)], slots, weak,
                       self._bound_key(), recorded, images)

    def _bound_key(self) -> Any:
        """The types of the bound module's arrays, and what else it holds: whether it is in training, for one."""
        return Arguments(*tree.flatten(self.bound)).key

    @property
    def variants(self) -> list[Variant]:
        """What has been compiled for the bound module as it is now."""
        now = self._bound_key()
        return [v for v in self._current().variants if v.bound == now]

    def prepare(self, args: Sequence[Any], keywords: dict[str, Any], targets: Sequence[str] = ()) -> Variant:
        """The code for arguments like these (arrays or specifications), made without running it; for machines of these
        names, as of `mlc.compile`, or for that which the function runs on."""
        args = (*self.bound, *args)
        arguments = self._for_types(args, keywords)
        images = []
        for where, target in [_machine(t) for t in targets] or [(self.where, self.target)]:
            recorded, _ = self._record(arguments, args, keywords)              # lowering uses up what was recorded
            if recorded.computes:
                images.append(image_for(recorded.trace.module, where or arguments.device, target, self.precision,
                                        self.checked))
        return self._variant(arguments, args, keywords, recorded, images)

    def recording(self, args: Sequence[Any], keywords: dict[str, Any]) -> Variant:
        """What is recorded for arguments like these (arrays or specifications), with no code made of it."""
        args = (*self.bound, *args)
        arguments = self._for_types(args, keywords)
        return self._variant(arguments, args, keywords, self._record(arguments, args, keywords)[0], [])

    def _for_types(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Arguments:
        """Arguments some of which may be specifications."""
        arguments = self._take_apart(args, keywords)
        arguments.types = [x.type if isinstance(x, Spec) else t for x, t in zip(arguments.given, arguments.types)]
        return arguments

    def _is_flat(self, arguments: Arguments, recorded: Recorded, args: tuple[Any, ...],
                 keywords: dict[str, Any]) -> bool:
        """Whether arguments and results are just arrays, as the emitted wrapper takes and returns them."""
        count = len(recorded.outputs)
        wanted = ["leaf"] if count == 1 else ["tuple", *["leaf"] * count]
        tokens = ["leaf" if t is tree.LEAF else "tuple" if t[0] is tuple else "" for t in recorded.structure]
        return (not keywords and not any(arguments.weak) and len(arguments.arrays) == len(args)
                and tokens == wanted and recorded.outputs == [("result", i) for i in range(count)])

    def _add_fast_path(self, tables: Tables, entry: Any, arguments: Arguments, recorded: Recorded,
                       args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Let calls like this one go past this class, as long as variables are all that the function reaches."""
        variables = tables.reached[0].variables
        if (not self._on_cpu(arguments) or entry is None or self.dispatcher is None or variables is None
                or Checks.anomaly is not None or not self._is_flat(arguments, recorded, args, keywords)):
            return
        from mlc.backends.cpu.callable import add_fast_path, make_callable
        how = "tensor", Tensor, "_array", Consumed(None, name_of(self.f)), variables
        if self.check or Checks.every_call:                # every call is checked, and this way beside it
            from mlc import checked
            self._emitted.append(make_callable(entry, checked.refused, *how))
        else:
            add_fast_path(self.dispatcher, entry, *how)

    def _record(self, arguments: Arguments, args: tuple[Any, ...], keywords: dict[str, Any],
                reached: Reached | None = None) -> tuple[Recorded, tuple[int, ...]]:
        args, keywords = self._marked(args, keywords)
        donated, slots = [], iter(arguments.slots)
        number = 0
        for name, x in roots(self.names, args, keywords):
            for _ in tree.leaves(x):
                if next(slots):
                    donated += [number] if name in self.donate else []
                    number += 1
        names = paths_of(self.names, arguments, args, keywords)
        reached = reached or Reached({"": self.f})
        return record_entry(self.f, arguments, names, donated=donated, reached=reached), tuple(donated)

    def _unhashable(self, arguments: Arguments, args: tuple[Any, ...], keywords: dict[str, Any]) -> UserTypeError:
        every = [path for name, x in roots(self.names, args, keywords) for path in tree.paths(x, name)]
        for path, x, slot in zip(every, arguments.leaves, arguments.slots):
            try:
                hash(None if slot else x)
            except TypeError:
                return UserTypeError(f"{path} is a {type(x).__name__}, which is neither an array nor hashable",
                                     code="MLC0347", loc=user_loc())
        return UserTypeError("an argument is neither an array nor hashable", code="MLC0347", loc=user_loc())

    def peak_bytes(self, **numbers: int) -> int:
        """The memory of a call, known before it: bytes of its arguments, its results and all between them, at once.

        `numbers` are for the sizes that are symbols. Of several codes it is that whose symbols are these. Loops of
        which only the data tell how often they turn may take more for their derivatives, while these run.
        """
        interfaces = [e.interface for _, e, _ in self._all() if e is not None]
        if not interfaces and (args := self.specified()) is not None:
            interfaces = [i for image in self.prepare(args, {}).images for i in image.interfaces.values()]
        interface = next((i for i in interfaces if set(i.symbols) == set(numbers)), None)
        if interface is None:
            known = sorted({", ".join(i.symbols) or "none" for i in interfaces})
            raise UserError(f"{name_of(self.f)} has no code whose symbolic sizes are {', '.join(numbers) or 'none'}",
                            code="MLC0409", loc=user_loc(), hint="those of what is compiled so far: " + (
                                "; ".join(known) if known else "nothing is, so call it once"))
        types = [*interface.inputs, *(t for t, a in zip(interface.results, interface.aliases) if a < 0)]
        return sum(sizes.evaluate(n, numbers) for n in (interface.arena, *(t.size * t.dtype.itemsize for t in types)))

    # -- looking inside -----------------------------------------------------------------------------------------------
    def lower(self, *args: Any, level: str = "tensor", **keywords: Any) -> Lowered:
        """The module for these arguments (arrays or specifications) at a level; see `mlc.lower`."""
        args = (*self.bound, *args)
        arguments = self._for_types(args, keywords)
        module = self._record(arguments, args, keywords)[0].trace.module
        on_cpu = self._on_cpu(arguments)
        from mlc.backends.target import GPUS
        return Lowered(module, level, None if on_cpu else self.target or GPUS["cuda:sm_90"], self.precision)

    def _all(self) -> list[Known]:
        return [known for tables in self._tables for known in tables.known.values()]

    @property
    def compiled(self) -> Compiled:
        """This object, also when asked of the callable that `mlc.compile` returns for it."""
        return self

    @property
    def signatures(self) -> list[str]:
        """The types that code has been made for so far."""
        return [str(e.interface.type) for _, e, _ in self._all() if e is not None]

    @property
    def entries(self) -> list[Entry]:
        """The compiled functions made so far; each counts its calls."""
        return [e for _, e, _ in self._all() if e is not None]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a function's: found on an instance, it takes that as its first argument."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<mlc.compile({name_of(self.f)}), {len(self._all())} signatures>"


def _machine(text: str) -> tuple[str | None, Target | None]:
    """As `_target`, of a machine that code is made for and that need not be this one."""
    from mlc.backends.target import LEVELS
    return (CPU, LEVELS[text]) if text in LEVELS else _target(text)


def _target(text: str | None) -> tuple[str | None, Target | None]:
    """The device that a target names, and the code it asks for; None of what it leaves open."""
    if text is None or text == "host":
        return (None if text is None else CPU), None
    if is_device(text) and (text.partition(":")[2].isdigit() or ":" not in text):
        return as_device(text), None
    from mlc.backends.target import Target
    try:
        target = Target.parse(text)
    except BackendError as error:
        raise UserError(error.message, code=error.code, loc=user_loc(), hint=f'{error.hint}, "cpu", "cuda"') from None
    if not target.is_gpu:
        raise UserError(f"what is compiled here runs here, and {text} may be another machine", code="MLC0501",
                        loc=user_loc(), hint='use target="host"; mlc compile --target makes code for other machines')
    return f"{CUDA}:0", target


class Lowered:
    """A module at one of the levels."""

    def __init__(self, module: Op, level: str, gpu: Target | None = None,
                 precision: str | None = None) -> None:
        from mlc.passes import pipeline
        if level not in ("trace", *pipeline.LEVELS):
            raise UserError(f"there is no level {level!r}", code="MLC0334", loc=user_loc(),
                            hint="one of trace, " + ", ".join(pipeline.LEVELS))
        from mlc.backends.target import host
        self.level = level
        self.module = module if level == "trace" else pipeline.lower(
            module, level, host().vector_bits, machine="gpu" if gpu else "cpu",
            products=gpu.products(precision) if gpu else "fma")

    def to_text(self, generic: bool = False, locations: bool = False) -> str:
        """The text of the module, in the pretty printing or in the generic one that any MLIR tool reads."""
        return to_text(self.module, generic, locations)

    __str__ = to_text


def compiled_function(f: Any) -> Compiled | None:
    """The `Compiled` behind what `mlc.compile` returned: that itself, or what it calls where it has no fast path."""
    found = getattr(f, "compiled", None)
    return found if isinstance(found, Compiled) else None
