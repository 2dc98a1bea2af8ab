"""Recorded calls of whole functions: those that `mlc.compile` compiles, and those that `mlc.scan`, `mlc.vmap` and the
like record and run at once.

What is kept for the derivative is the function as it was recorded, so that a change of the program's state between the
call and `backward` does not matter, and, where the code of the call has left it (`Saved`), what backward reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mlc.dialects import func
from mlc.dialects.builtin import Module
from mlc.dialects.tensor.debug import Debug
from mlc.frontend import tree
from mlc.frontend.autograd import function_modules
from mlc.frontend.autograd.function_modules import copy_of, moves
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.graph import Edge, Node, edge_to
from mlc.frontend.autograd.saved_tensors import keeps_arrays, save_arrays, saved_by_place, unpack, with_histories
from mlc.frontend.autograd.tangents import NoTangents, any_tangent, duals, put_tangent, tangent_of
from mlc.frontend.compiler import Entry, compile_module
from mlc.frontend.devices import CPU, BackingArray, device_of_call
from mlc.frontend.dispatch import native_call
from mlc.frontend.in_place import views_follow
from mlc.frontend.location import user_loc
from mlc.frontend.recorded_function import SHARING, Recorded
from mlc.frontend.tensor import Tensor, as_backing_array, wrap
from mlc.ir.call_pattern import Array, CallPattern, Items
from mlc.ir.compilation_lock import compiling
from mlc.ir.diag import UserError
from mlc.ir.profiling import state as profiling
from mlc.ir.profiling import timed


class FunctionRecord:
    """A recorded function, as a module of the tensor level with the entry @main, and its pullbacks.

    name       its name in profiles
    pullbacks  vector-Jacobian products, by the operands that they are for and the results whose cotangents they take
    native     the same by compiled code, of a list of arrays on the CPU, which returns tensors; None before the first
               call, or if there is none, and what it returns for operands that it does not take
    """

    def __init__(self, module: Module, name: str) -> None:
        self.module, self.name = module, name
        for op in list(module.inside(Debug)):              # the call has shown the values: its derivatives do not again
            op.erase()
        self.pullbacks: dict[Any, FunctionRecord] = {}
        self.entries: dict[tuple[str, bool], Entry] = {}   # by the device, and whether kernels are timed
        self.native: Callable[[list[Any]], Any] | None = None

    def call(self, operands: Sequence[Any]) -> Sequence[BackingArray]:
        """The results of the function, compiled on the first call on a device."""
        arrays = [as_backing_array(x) for x in operands]
        device = device_of_call(arrays)
        with compiling:                                    # so that no profile begins or ends meanwhile
            key = device, profiling.kernels
            if key not in self.entries:
                self.entries[key] = timed("compilation", self.name,
                                          lambda: compile_module(copy_of(self.module), device))
                if key == (CPU, False):
                    pattern = CallPattern((Items((Array(),) * len(arrays)),), in_tuple=True)
                    self.native = native_call(self.entries[key], pattern, _not_taken, None)
        return timed("compiled function", self.name, lambda: self.entries[key].call(arrays), arrays)

    def pullback(self, wrt: tuple[int, ...], present: tuple[int, ...]) -> FunctionRecord:
        """The function of the operands, and of cotangents of the results `present`, that gives the cotangents of the
        operands `wrt`."""
        key = wrt, present
        if key not in self.pullbacks:
            module = function_modules.pullback(self.module, wrt, present)
            self.pullbacks[key] = FunctionRecord(module, f"{self.name}_backward")
        return self.pullbacks[key]

    def split(self, wrt: tuple[int, ...], present: tuple[int, ...]) -> Split | None:
        """The function with what its pullback for the operands `wrt` and cotangents of the results `present` reads,
        and that pullback; None if it computes all by itself."""
        found = function_modules.split(self.module, wrt, present)
        return None if found is None else Split(self.name, *found, wrt, present, len(self.results))

    @property
    def results(self) -> Sequence[Any]:
        """The types of the results."""
        main = next(f for f in func.functions(self.module) if f.sym_name == "main")
        return main.function_type.results

    def pushforward(self, wrt: Sequence[int]) -> FunctionRecord:
        """The function of the operands, and of tangents of the operands `wrt`, that gives those of the results that
        have one."""
        key = "tangents", tuple(wrt)
        if key not in self.pullbacks:
            module = function_modules.pushforward(self.module, wrt)
            self.pullbacks[key] = FunctionRecord(module, f"{self.name}_forward_mode")
        return self.pullbacks[key]


def _not_taken(operands: list[Any]) -> None:
    """Stands for the results of operands that native code does not take."""


class Split:
    """A function that also returns what its pullback reads, and the pullback of that.

    forward   the module of the function: its results, and behind them what else is saved
    backward  the module of the pullback: of the cotangents of the results `present`, and what is saved
    wrt       the operands that it gives cotangents of
    saved     what it reads besides cotangents: numbers among the operands and the results of `forward`
    results   how many results the function itself has
    kept      those of `saved` that are results of `forward`; the first are results of the function itself
    """

    def __init__(self, name: str, forward: Module, backward: Module, saved: tuple[int, ...], wrt: tuple[int, ...],
                 present: tuple[int, ...], results: int) -> None:
        self.name, self.forward, self.backward = name, forward, backward
        self.saved, self.wrt, self.present, self.results = saved, wrt, present, results
        count = len(next(f for f in func.functions(forward) if f.sym_name == "main").args)
        self.kept = sorted(n - count for n in saved if n >= count)
        self._pullbacks: dict[tuple[int, ...], FunctionRecord] = {}

    def pullback(self, given: tuple[int, ...]) -> FunctionRecord:
        """The function of cotangents of the results `given`, and of what is saved, that gives the cotangents."""
        found = self._pullbacks.get(given)
        if found is None:
            module = self.backward
            if given != self.present:
                module = function_modules.without_cotangents(module, self.present, given)
            found = self._pullbacks[given] = FunctionRecord(module, f"{self.name}_backward")
        return found


class Saved(NamedTuple):
    """The values that a call of the forward function of a split one has left for backward.

    arrays   its results behind those of the function
    reclaim  takes the arrays back when backward has read them; None if it makes others
    """

    split: Split
    arrays: Sequence[BackingArray]
    reclaim: Callable[[list[Any]], None] | None = None


class FunctionNode(Node):
    """A recorded call of a function.

    operands  what the function was called with, tensors or their arrays; None once they have been dropped
    wrt       the positions of the operands that require a gradient
    numbers   the positions of the results that do
    depends   per result: the positions of the operands that it has a derivative by; None if that is not known
    split     the function whose results `kept` are; None if backward computes all from the operands
    kept      what backward reads of these; None once it has been dropped
    reclaim   takes the arrays back that the call has left, the last of `kept`; None if it does not
    """

    __slots__ = ("depends", "function", "kept", "numbers", "operands", "reclaim", "split", "wrt")

    def __init__(self, function: FunctionRecord, wrt: tuple[int, ...], edges: list[Edge], operands: Sequence[Any],
                 numbers: Sequence[int], results: Sequence[Tensor],
                 depends: Sequence[frozenset[int]] | None = None, saved: Saved | None = None) -> None:
        if saved is not None and (saved.split.wrt != wrt or saved_by_place()):
            saved = None
        self.kept = None if saved is None else _kept(saved, dict(zip(numbers, results)))
        self.split = None if saved is None or self.kept is None else saved.split
        self.reclaim = None if saved is None or not keeps_arrays() else saved.reclaim
        self.link(edges, results)
        self.function, self.wrt, self.numbers, self.depends = function, wrt, numbers, depends
        self.operands: Sequence[Any] | None = save_arrays(operands)

    @staticmethod
    def of(function: FunctionRecord, operands: Sequence[Any], results: dict[int, Tensor],
           depends: Sequence[frozenset[int]] | None = None, saved: Saved | None = None) -> FunctionNode:
        """The node of a call on these operands; `results` has those that require a gradient by their numbers."""
        wrt = tuple(i for i, x in enumerate(operands) if type(x) is Tensor and x.requires_grad)
        return FunctionNode(function, wrt, [edge_to(operands[i]) for i in wrt], operands, [*results],
                            [*results.values()], depends, saved)

    def name(self) -> str:
        return "FunctionBackward"

    def pullback(self, cotangents: Sequence[Tensor | None]) -> tuple[FunctionRecord, list[Any]]:
        """The function of all operands that gives the cotangents, and what it is called with."""
        assert self.operands is not None
        given = {number: x for number, x in zip(self.numbers, cotangents) if x is not None}
        return self.function.pullback(self.wrt, tuple(given)), [*unpack(self.operands), *given.values()]

    def _split_pullback(self, cotangents: Sequence[Tensor | None]) -> tuple[FunctionRecord, list[Any]] | None:
        """The function of what is saved that gives the cotangents, and what it is called with; None if there is
        none."""
        split = self.split
        if split is None:
            return None
        assert self.operands is not None and self.kept is not None
        found = {number: x for number, x in zip(self.numbers, cotangents) if x is not None}
        count = len(self.operands)
        given = {number: found[number] for number in split.present if number in found}
        if len(given) < len(found):
            return None
        kept = dict(zip(split.kept, unpack(self.kept)))
        operands = iter(unpack([self.operands[n] for n in split.saved if n < count]))
        return split.pullback(tuple(given)), [
            *given.values(), *(next(operands) if n < count else kept[n - count] for n in split.saved)]

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        plain = not mode.enabled and duals.level is None
        if plain and (of_saved := self._split_pullback(cotangents)) is not None:
            pullback, operands = of_saved
        else:
            pullback, operands = self.pullback(cotangents)
        found: Sequence[Tensor] | None = pullback.native(operands) if plain and pullback.native is not None else None
        if found is None and plain:
            found = [wrap(x) for x in pullback.call(operands)]
        elif found is None:
            operands = with_histories(operands, self.wrt, self.edges)
            found = [wrap(x) for x in pullback.call(operands)]
            if mode.enabled:
                FunctionNode.of(pullback, operands, dict(enumerate(found)))
            for x, tangent in zip(found, push(pullback, operands)):
                put_tangent(x, tangent)
        if self.depends is None:
            return found
        reached = frozenset[int]().union(*(self.depends[n] for n, x in zip(self.numbers, cotangents) if x is not None))
        return [x if i in reached else None for i, x in zip(self.wrt, found)]

    def release(self) -> None:
        super().release()
        if self.reclaim is not None and self.kept is not None:
            self.reclaim(self.kept)
        self.operands = self.kept = self.split = self.reclaim = None


def _kept(saved: Saved, results: dict[int, Tensor]) -> list[Any] | None:
    """The values that backward reads besides operands, as a node keeps them; None if a result is not at hand."""
    split = saved.split
    if any(n < split.results and n not in results for n in split.kept):
        return None
    return save_arrays([wrap(as_backing_array(results[n]) if n < split.results else saved.arrays[n - split.results])
                        for n in split.kept])              # tensors of their own: hooks may keep what they are given


class Unrecorded(Node):
    """Stands for a call that should have been recorded and was not: `backward` through it raises `reason`."""

    __slots__ = ("hint", "reason")

    def __init__(self, results: Sequence[Tensor], reason: str, hint: str) -> None:
        super().__init__([], results)
        self.reason, self.hint = reason, hint

    def name(self) -> str:
        return "UnrecordedBackward"

    def pull(self, cotangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        raise UserError(self.reason, code="MLC0438", loc=user_loc(), hint=self.hint)


def requires_grad(operands: Sequence[Any]) -> bool:
    """Whether a call with these operands is to be recorded."""
    return mode.enabled and any(type(x) is Tensor and x.requires_grad for x in operands)


def push(function: FunctionRecord, operands: Sequence[Any]) -> list[Tensor]:
    """The tangents of the results that have a derivative; empty if no operand is dual."""
    tangents = [tangent_of(x) for x in operands]
    wrt = [i for i, t in enumerate(tangents) if t is not None]
    if not wrt:
        return []
    pushforward, given = function.pushforward(wrt), [*operands, *(tangents[i] for i in wrt)]
    found = [wrap(x) for x in pushforward.call(given)]
    if requires_grad(given):
        with NoTangents():
            FunctionNode.of(pushforward, given, dict(enumerate(found)))
    return found


def push_call(name: str, function: FunctionRecord, recorded: Recorded, operands: Sequence[Any], out: Any) -> None:
    """Give the results of a call of a function their tangents, where `operands` are dual. What is an operand itself, or
    a view of one, has them."""
    if not any_tangent(operands):
        return
    moving = [n for n, t in enumerate(function.results) if moves(t)]
    returned = [(number if kind == "result" else number[1], kind, x)
                for (kind, number), x in zip(recorded.outputs, tree.leaves(out)) if kind in ("result", *SHARING)]
    if recorded.trace.unpadding or not {n for n, _, _ in returned}.issuperset(moving):
        raise UserError(f"{name} is called with dual tensors, and has results of data-dependent sizes, or assigns "
                        "buffers of modules", code="MLC0839", loc=user_loc(),
                        hint="call its operations eagerly, or differentiate by mlc.jvp")
    tangents = dict(zip(moving, push(function, operands)))
    for n, kind, x in returned:
        if kind == "result" and n in tangents:
            put_tangent(x, tangents[n])


def record_call(name: str, function: FunctionRecord, recorded: Recorded, operands: Sequence[Any], out: Any,
                saved: Saved | None = None) -> None:
    """Record a call of a function on `operands`, its arguments and what it captured, that returned `out`, and has left
    `saved` for backward."""
    results = differentiable_results(recorded, out, operands)
    if not results:
        return
    if recorded.trace.unpadding:
        Unrecorded(list(results.values()), f"a result of {name} has a data-dependent size, and such a call is not "
                   "differentiated by backward", "call its operations eagerly, or differentiate by mlc.grad")
    else:
        FunctionNode.of(function, operands, results, recorded.depends, saved)
    for x in results.values():
        views_follow(x)


def differentiable_results(recorded: Recorded, out: Any, operands: Sequence[Any]) -> dict[int, Tensor]:
    """The results of a function that have a gradient by one of its operands, by their numbers.

    The parameters of a module that is returned are leaves, as all parameters are.
    """
    wanted = frozenset(i for i, x in enumerate(operands) if type(x) is Tensor and x.requires_grad)
    held = {id(t) for module in tree.attribute_trees(out) for t in tree.leaves(module)}
    found = {}
    for (kind, number), x in zip(recorded.outputs, tree.leaves(out)):
        computed = type(x) is Tensor and kind != "value" and kind not in SHARING
        if computed and x.dtype.ir.is_inexact and id(x) not in held:
            found[number if kind == "result" else number[0]] = x
    depends = recorded.depends
    return found if depends is None else {n: x for n, x in found.items() if not wanted.isdisjoint(depends[n])}
