"""Eager execution: one kernel per operation, non-array arguments, element types and ranks.

The operation is recorded as a module of its own, and compiled by the same pipeline as any function. Every size but 0
and 1 becomes a symbol, so a new shape seldom requires a new kernel: each axis is one of its own, except those that the
operation requires to be equal. Where that cannot be found out, equal sizes are the same symbol, and symbols that the
operation cannot be recorded for, such as those that a normalized shape names, become the numbers that they stand for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mlc.dialects import func
from mlc.dialects.builtin import Module
from mlc.frontend import tree
from mlc.frontend.autograd.graph import alone
from mlc.frontend.compiler import Compile, Entry, compile_module, compiled_instead_by
from mlc.frontend.data_dependent import unpad
from mlc.frontend.devices import CPU, BackingArray, common_device, device_of
from mlc.frontend.dispatch import general_path
from mlc.frontend.generalize import asks_for_numbers
from mlc.frontend.hints import hint_for, shown
from mlc.frontend.leaf_keys import frozen_leaf
from mlc.frontend.location import user_loc
from mlc.frontend.operation_errors import as_user_error
from mlc.frontend.recorded_operation import MAY_RETURN_OPERAND, Operation
from mlc.frontend.tensor import Tensor, as_backing_array, wrap
from mlc.frontend.trace import Trace
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.compilation_lock import compiling
from mlc.ir.core import located
from mlc.ir.diag import Error, UserError, UserIndexError, UserTypeError
from mlc.ir.profiling import state as profiling
from mlc.ir.profiling import timed
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, from_numpy
from mlc.passes import pipeline

MAX_JOINS = 8
"""Number of times that an operation is recorded to find out which axes it relates."""
MAX_SHAPES = 100_000
"""Number of shapes after which the table of shapes is cleared; the kernels are kept."""

_SYMBOL = re.compile(r"\b([dn])(\d+)(?:_(\d+))?\b")
_kernels: dict[Any, EagerKernel | frozenset[str]] = {}     # by pattern; or the symbols that have to be numbers
_by_shape: dict[Any, EagerKernel] = {}


class EagerKernel:
    """A compiled eager operation: its entry point, and the structure of its output.

    unused    positions of arrays whose elements do not matter; known of gradients only
    distinct  whether its symbols stand for different sizes
    is_new    whether it is still to be offered to the dispatcher
    is_timed  whether it is for a profile that is on
    """

    __slots__ = ("distinct", "entry", "is_new", "is_timed", "outputs", "structure", "unused")

    def __init__(self, entry: Entry | None, structure: tree.TreeDef, outputs: list[tuple[str, Any]],
                 unused: frozenset[int] = frozenset()) -> None:
        self.entry = entry
        self.unused = unused
        self.structure = structure
        self.outputs = outputs
        self.is_new = self.distinct = True
        self.is_timed = profiling.kernels                  # kernels are built while `compiling` is held

    def for_any_sizes(self, numbers: Mapping[str, int]) -> EagerKernel | None:
        """The kernel, whose symbols may stand for equal sizes; None if it has to compare sizes that are equal here, as
        those of indices with those of what they index: native calls do not."""
        interface = getattr(self.entry, "interface", None)
        for size in () if interface is None else interface.size_constraints:
            known = [numbers[name] for name in sizes.symbols(size) if name in numbers]
            if len({*known}) < len(known):
                return None
        self.distinct = False
        return self

    @property
    def computes_all(self) -> bool:
        """Whether the leaves of the output are the results of the code, each once and in order."""
        return self.outputs == [("result", i) for i in range(len(self.outputs))]

    @property
    def is_plain(self) -> bool:
        """Whether the output is one leaf, or a tuple of leaves."""
        made = self.structure.unflatten(range(len(self.outputs)))
        return len(self.structure) == 1 or (type(made) is tuple and made == (*range(len(made)),))

    def run(self, arrays: Sequence[BackingArray], given: Sequence[Any]) -> Any:
        results = self.entry.call(arrays) if self.entry is not None else []
        if len(self.outputs) == 1 and self.outputs[0][0] == "result" and len(self.structure) == 1:
            return wrap(results[0])
        leaves = []
        for kind, x in self.outputs:
            if kind == "result":
                leaves.append(wrap(results[x]))
            elif kind == "first":
                leaves.append(wrap(unpad(results, *x)))
            elif kind == "input":
                leaves.append(given[x] if type(given[x]) is Tensor else wrap(arrays[x].copy()))
            elif kind == "copy":
                leaves.append(alone(given[x]) if type(given[x]) is Tensor else wrap(arrays[x].copy()))
            else:
                leaves.append(x)
        return self.structure.unflatten(leaves)


_watching: list[Callable[[str, Sequence[BackingArray], Any], None]] = []


@contextmanager
def watched(watch: Callable[[str, Sequence[BackingArray], Any], None]) -> Iterator[None]:
    """Context in which `watch` is called with the name, the operands and the result of every operation."""
    _watching.append(watch)
    try:
        with general_path():
            yield
    finally:
        _watching.remove(watch)


def is_watched() -> bool:
    """Whether the current eager operations are the reference run of a check."""
    return bool(_watching)


@contextmanager
def compiled_by(compile: Compile) -> Iterator[None]:
    """Context in which `compile` compiles the kernels of operations; existing kernels are neither used nor changed."""
    global _kernels, _by_shape
    before = _kernels, _by_shape
    _kernels, _by_shape = {}, {}
    try:
        with compiled_instead_by(compile), general_path():
            yield
    finally:
        _kernels, _by_shape = before


def run(call: Call) -> tuple[EagerKernel, Any]:
    """Run an operation on arrays eagerly; the kernel that has run, and the result."""
    try:
        kernel = _by_shape.get(call.key)
    except TypeError:
        raise UserTypeError(f"{call.op.name}: takes no {_unhashable(call.args, call.keywords)} here", code="MLC0347",
                            loc=user_loc()) from None
    if kernel is None:
        with compiling:
            kernel = timed("compilation", call.op.name, lambda: _find(call))
    try:
        try:
            result = _run(kernel, call)
        except UserError as error:
            if error.code != "MLC0328" or not call.sizes:  # such as a slice that is clipped at these sizes only
                raise
            with compiling:
                kernel = _by_shape[call.key] = _build(call, [a.shape for a in call.arrays])
            result = _run(kernel, call)
        for watch in _watching:
            watch(call.op.name, call.arrays, result)
        return kernel, result
    except Error as error:                                 # the kernel may have been compiled for another line
        if isinstance(error, UserError):
            error.loc = user_loc()
            error.hint = error.hint or hint_for(error.code, shown(call.op.name))
            error.message = _SYMBOL.sub(call.number_of, error.message)
            if isinstance(error, UserIndexError):
                error.message = _with_index(error.message, call)
        raise


def _run(kernel: EagerKernel, call: Call) -> Any:
    return timed("operation", call.op.name, lambda: kernel.run(call.arrays, call.given), call.arrays)


def _with_index(message: str, call: Call) -> str:
    """Message for an index out of range that names the public function and the first invalid index."""
    found = re.search(r"out of range for axis \d+ of size (\d+)", message)
    if found is None:
        return message
    n = int(found[1])
    arrays = [a for a in call.arrays if isinstance(a, np.ndarray) and a.dtype.kind in "iu"]
    wrong = next((a[(a >= n) | (a < -n)][0] for a in arrays if ((a >= n) | (a < -n)).any()), None)
    if wrong is None:                                      # a negative index, where only others are allowed
        wrong = next((a[a < 0][0] for a in arrays if (a < 0).any()), None)
    return f"{shown(call.op.name)}: " + (message if wrong is None else f"index {wrong} is {found[0]}")


class Call:
    """The arguments of one call of an operation: the arrays, and the key of everything else.

    given          the operands as they were passed, one for each array
    requires_grad  whether one of them requires a gradient
    """

    __slots__ = ("args", "arrays", "device", "given", "key", "keywords", "op", "requires_grad", "weak")

    def __init__(self, op: Operation, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.op, self.args, self.keywords = op, args, keywords
        self.arrays: list[BackingArray] = []
        self.device: str = CPU
        self.given: list[Any] = []
        self.weak: list[bool] = []
        self.requires_grad = False
        key: list[Any] = [op]
        for i, x in enumerate(args):
            name = op.parameter(i)
            if type(x) is Tensor and name not in op.operands:
                x = _as_number(name, x)
                self.args = (*self.args[:i], x, *args[i + 1:])
            key.append(self.operand(x, op.is_literal(name, x)) if name in op.operands else frozen(x))
        for name, x in keywords.items():
            if type(x) is Tensor and name not in op.operands:
                x = _as_number(name, x)
                self.keywords = {**self.keywords, name: x}
            key.append((name, self.operand(x, op.is_literal(name, x)) if name in op.operands else frozen(x)))
        if self.device != CPU:
            self.device = common_device(self.arrays, self.given, op.name)
            key.append(self.device)
        self.key = tuple(key)

    def operand(self, x: Any, literal: bool) -> Any:
        """Register an operand; returns its part of the key."""
        kind = type(x)
        if kind is Tensor:
            if x._autograd is not None and x._autograd.requires_grad:
                self.requires_grad = True
            return self._array(x.backing_array, x)
        if x is None or kind is bool:
            return x
        if kind is int or kind is float or kind is complex:
            if literal:
                return frozen(x)
            if kind is int and not -2**63 <= x < 2**63:
                raise UserError(f"{self.op.name}: {x} does not fit in 64 bits", code="MLC0348", loc=user_loc())
            self._array(np.array(x), x, True)
            return kind
        if kind is list or kind is tuple:
            return tuple(self.operand(t, literal) for t in x)
        if isinstance(x, Tracer):
            raise UserError(f"{self.op.name}: a {x.type} is used after the function it belongs to has been recorded",
                            code="MLC0351", loc=user_loc(), hint="return it from the function instead of storing it")
        return self._array(as_backing_array(x), x)

    @property
    def sizes(self) -> list[int]:
        """The distinct sizes above 1: the values of the symbols n0, n1, ... of a kernel for many shapes."""
        return list(dict.fromkeys(n for a in self.arrays for n in a.shape if n > 1))

    @property
    def one_shape(self) -> tuple[int, ...] | None:
        """The shape that all arrays have, but for those without dimensions; None if they differ."""
        shapes = {a.shape for a in self.arrays if a.ndim}
        return shapes.pop() if len(shapes) == 1 else None

    def number_of(self, symbol: re.Match[str]) -> str:
        """The size that a symbol of a kernel stands for in this call: n0, ... for sizes, d0, ... for the axes of all
        operands, d0_1 for axis 1 of operand 0."""
        kind, number, axis = symbol.groups()
        shape = self.sizes if kind == "n" else self.one_shape or () if axis is None else self.arrays[int(number)].shape
        return str(shape[int(axis or number)])

    def _array(self, array: BackingArray, given: Any, weak: bool = False) -> Any:
        if type(array) is not np.ndarray:
            self.device = device_of(array)
        self.arrays.append(array)
        self.given.append(given)
        self.weak.append(weak)
        return array.dtype, array.shape


def _as_number(name: str, x: Tensor) -> Any:
    """A tensor without dimensions, in place of a constant of the kernel, as the number that it is now."""
    if x.ndim:
        return x
    if x.requires_grad:
        raise UserTypeError(f"{name} is a number, and has no gradient: a tensor that requires one stands for none",
                            code="MLC0364", loc=user_loc(), hint=f"pass {name}.detach()")
    return x.item()


def frozen(x: Any) -> Any:
    """A hashable stand-in for an argument that is not an array; 1, 1.0 and True differ, and 0.0 and -0.0."""
    if isinstance(x, list | tuple):
        return tuple(frozen(t) for t in x)
    return x if x is None or type(x) is str else frozen_leaf(x)


def _unhashable(args: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    for x in (*args, *keywords.values()):
        try:
            hash(frozen(x))
        except TypeError:
            return type(x).__name__
    return "such arguments"


def _find(call: Call) -> EagerKernel:
    """The kernel for a call with new shapes, compiled if there is none."""
    static = {n for x in call.op.static_operands(call.args, call.keywords) for n in getattr(x, "shape", ())}
    kernel = None if static else _of_axes(call)
    names = {n: f"n{i}" for i, n in enumerate(call.sizes) if n not in static}
    while kernel is None:
        shapes: list[tuple[Dim, ...]] = [tuple(sizes.sym(names[n]) if n in names else n for n in a.shape)
                                         for a in call.arrays]
        found = _known(call, shapes, bool(names))
        if isinstance(found, EagerKernel):
            kernel = found
        else:
            # Gradients that need one number are for exact sizes: that of attention takes 0.6 of the time then.
            numbers = (found & {*names.values()} if not call.op.forgets else None) or {*names.values()}
            names = {n: name for n, name in names.items() if name not in numbers}
    if len(_by_shape) >= MAX_SHAPES:
        _by_shape.clear()
    _by_shape[call.key] = kernel
    return kernel


def _of_axes(call: Call) -> EagerKernel | None:
    """The kernel with a symbol for each axis, of which only those are the same that the operation requires to be, and
    only those are numbers that it names; None if that cannot be found out. It serves sizes that are equal by chance."""
    found: EagerKernel | frozenset[str]
    if (shape := call.one_shape) is not None:
        row = [sizes.sym(f"d{axis}") if n > 1 else n for axis, n in enumerate(shape)]
        found = _known(call, [tuple(row[:a.ndim]) for a in call.arrays], max(shape) > 1)
        if isinstance(found, EagerKernel):
            return found.for_any_sizes({f"d{axis}": n for axis, n in enumerate(shape)})
    numbers = {f"d{i}_{axis}": n for i, a in enumerate(call.arrays) for axis, n in enumerate(a.shape) if n > 1}
    means: dict[str, Dim] = {name: sizes.sym(name) for name in numbers}
    for _ in range(MAX_JOINS):
        found = _known(call, [tuple(means.get(f"d{i}_{axis}", n) for axis, n in enumerate(a.shape))
                              for i, a in enumerate(call.arrays)], any(sizes.symbols(*means.values())))
        if isinstance(found, EagerKernel):
            return found.for_any_sizes(numbers)
        first: dict[int, str] = {}
        joined = {name: first.setdefault(numbers[name], name) for name in sorted(found & numbers.keys())}
        if not joined:
            return None
        equal = {name: sizes.sym(other) for name, other in joined.items() if name != other}
        if not equal and call.op.forgets:                      # see `_find`
            return None
        now = equal or {name: numbers[name] for name in joined}
        means = {name: sizes.substitute(meaning, now) for name, meaning in means.items()}
    return None


def _known(call: Call, shapes: list[tuple[Dim, ...]], symbolic: bool) -> EagerKernel | frozenset[str]:
    """The kernel for a pattern of shapes, or the symbols that it has to be recorded without, if any are known."""
    pattern = (without_shapes(call.key), tuple(shapes))    # the key contains the device
    found = _kernels.get(pattern)
    if found is None:
        try:
            found = _build(call, shapes)
        except Error as error:
            if not symbolic or not asks_for_numbers(error):
                raise
            found = error.symbols
        _kernels[pattern] = found
    return found


def without_shapes(key: Any) -> Any:
    """A call's key with the rank of each array in place of its shape."""
    if isinstance(key, tuple):
        return (key[0], len(key[1])) if len(key) == 2 and isinstance(key[0], np.dtype) else tuple(
            without_shapes(k) for k in key)
    return key


def _build(call: Call, shapes: Sequence[tuple[Dim, ...]]) -> EagerKernel:
    """Record and compile the operation for arrays of these shapes."""
    op, loc = call.op, user_loc()
    trace = Trace("main")
    inputs = [trace.arg(TensorType(tuple(shape), from_numpy(a.dtype)), weak=weak)
              for a, shape, weak in zip(call.arrays, shapes, call.weak)]
    position = {t.value: i for i, t in enumerate(inputs)}
    pending = iter(inputs)
    args = tuple(with_operands(x, op, op.parameter(i), pending) for i, x in enumerate(call.args))
    keywords = {name: with_operands(x, op, name, pending) for name, x in call.keywords.items()}
    with trace.recording():
        leaves, structure = tree.flatten(op.record(args, keywords))
        try:
            with located(loc):
                results = [x for x in leaves if isinstance(x, Tracer) and x.value not in position]
                trace.finish(results, True)
        except Error as error:
            raise as_user_error(error, op.name, call.given, loc) from None
    number = {r.value: i for i, r in enumerate(results)}
    of_input = "input" if op.name in MAY_RETURN_OPERAND else "copy"
    outputs = [("value", x) if not isinstance(x, Tracer) else
               (of_input, position[x.value]) if x.value in position else ("result", number[x.value]) for x in leaves]
    outputs = [("first", (x, trace.unpadding[x])) if kind == "result" and x in trace.unpadding else (kind, x)
               for kind, x in outputs]
    unused = unused_arguments(trace.module) if op.forgets else frozenset[int]()
    return EagerKernel(compile_module(trace.module, call.device) if results else None, structure, outputs, unused)


def unused_arguments(module: Module) -> frozenset[int]:
    """The arguments of @main that nothing depends on, once the module is differentiated and simplified."""
    copy = module.clone()
    pipeline.lower(copy, "tensor")
    main = next(f for f in func.functions(copy) if f.sym_name == "main")
    return frozenset(i for i, arg in enumerate(main.block.args) if not arg.uses)


def with_operands(x: Any, op: Operation, parameter: str, pending: Any) -> Any:
    """An argument with those of `pending` in place of its arrays, in the order of `Call.operand`."""
    if parameter not in op.operands or x is None or type(x) is bool:
        return x
    if isinstance(x, list | tuple):
        return [with_operands(t, op, parameter, pending) for t in x]
    if type(x) in (int, float, complex) and op.is_literal(parameter, x):
        return x
    return next(pending)
