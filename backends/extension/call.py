"""The emitted Python wrapper of a compiled function: METH_FASTCALL | METH_KEYWORDS.

    call(module, args, nargs, kwnames) -> object

binds arguments to parameters, flattens trees, opens the arrays as buffers, checks them against the interface, allocates
the results by numpy.empty, calls the C entry and builds the result tree. A mismatch raises an exception that names the
argument and what was expected. Calls are re-entrant: their state is on the stack, except an arena that a call takes
from the module's free list and returns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath

import numpy as np

from mlc.backends.cpu.assemble import I64, PTR, Assembler, ModuleBuilder
from mlc.backends.cpu.checked_call import CheckedCall, Refusal
from mlc.backends.cpu.support import Scratch, offset
from mlc.backends.extension import python
from mlc.backends.extension.arrays import expected
from mlc.backends.extension.objects import State, error
from mlc.backends.extension.signature import Constant, Container, Function, Slot, Tree, containers, dtype_name, shown
from mlc.ir import abi
from mlc.ir.abi import Context
from mlc.ir.core import Block, Value
from mlc.ir.interp import ASSERTION, ELEMENTS
from mlc.ir.sizes import Dim

Placer = Callable[[Value], None]
"""Stores an object in its container, stealing the reference."""

ON_STACK = 64
"""Maximum number of arguments whose buffer views are on the stack; beyond it they are on the heap."""


def symbol(name: str) -> str:
    """The symbol of a function's C entry."""
    return name + abi.ENTRY_SUFFIX


def emit_call(builder: ModuleBuilder, function: Function, number: int, state: State) -> str:
    """Emit the Python function; returns its symbol. `number` is its position in the module."""
    name = f"mlc_call_{number}"
    _Call(builder, name, function, number, state).emit()
    return name


class _Call(CheckedCall):
    """The blocks of one function, in order of execution."""

    def __init__(self, builder: ModuleBuilder, name: str, function: Function, number: int, state: State) -> None:
        super().__init__(Assembler(builder, name, [PTR, PTR, I64, PTR], PTR, public=True), function.interface)
        self.function = function
        self.number = number
        self.state = state
        self.module, self.args, self.nargs, self.kwnames = self.a.args
        self.failed = self.a.block()
        self.refusals: list[tuple[Block, Refusal]] = []
        self.held = 0                                        # nested containers visited so far
        self.count = len(self.interface.inputs) + sum(containers(p.tree) - 1 for p in function.parameters
                                                      if isinstance(p.tree, Container))

    def emit(self) -> None:
        a, interface = self.a, self.interface
        self.this = a.call("PyModule_GetState", self.module)
        self.made = a.alloca(max(len(interface.results), 1))
        self.shape = a.alloca(max([t.rank for t in interface.results] + [1]))
        self.root = a.alloca(1)
        self.found = a.alloca(max(len(interface.symbols) + 1, 4))
        self.make_room()
        self.bind()
        for i, parameter in enumerate(self.function.parameters):
            self.take(parameter.tree, a.load(PTR, self.slots, 8 * i), parameter.name)
        for i in range(len(interface.inputs)):
            self.open(i)
        self.check_sizes()
        self.check_size_constraints()
        self.check_results()
        if interface.donated:
            self.check_overlaps()
        self.allocate_results()
        self.run()

        for block, refuse in self.refusals:
            a.start(block)
            refuse()
            a.goto(self.failed)
        a.start(self.failed)
        a.call("Py_DecRef", a.load(PTR, self.root))
        self.clean_up()
        a.ret(a.null)

    # -- rejecting a call
    def guard(self, *checks: tuple[Value, Refusal]) -> None:
        for condition, refuse in checks:
            refused, following = self.a.block(), self.a.block()
            self.refusals.append((refused, refuse))
            self.a.branch(condition, following, refused)
            self.a.start(following)

    def fail(self, exception: str, text: str, *numbers: Value) -> None:
        """Set an exception whose message has these numbers in place of its %d."""
        a = self.a
        for i, number in enumerate(numbers):
            a.store(number, self.found, 8 * i)
        arguments = a.call("numbers", self.found, a.i64(len(numbers)))
        a.call("raise_error", error(a, exception), a.text(text), arguments)

    def wrong_size(self, i: int, axis: int, expected: Value) -> None:
        dim = self.interface.inputs[i].shape[axis]
        value = "" if isinstance(dim, int) else " = %d"
        text = f"{_quoted(self.interface.argument(i))} has size %d on axis {axis}, expected {_quoted(str(dim))}{value}"
        self.fail("ValueError", text, self.dims[i][axis], *([] if isinstance(dim, int) else [expected]))

    def wrong_condition(self, number: int) -> None:
        where = ", ".join(f"{name} = %d" for name in self.env)
        self.fail("ValueError", f"{_quoted(site(self.interface.constraint_sites[number]))}, where {where}",
                  *self.env.values())

    def wrong_result(self, number: int) -> None:
        where = ", ".join(f"{name} = %d" for name in self.env)
        kind = _quoted(shown(self.interface.results[number]))
        self.fail("ValueError", f"{self.function.name}: result {number} would be {kind} where {where}",
                  *self.env.values())

    def too_large(self) -> None:
        where = ", ".join(f"{name} = %d" for name in self.env)
        self.fail("ValueError", f"{self.function.name}: the sizes are too large: {where}", *self.env.values())

    def divides_by_zero(self, divisor: Dim) -> None:
        self.fail("ValueError", f"{self.function.name}: a size is divided by {_quoted(str(divisor))}, which is not "
                  "positive")

    def overlap(self, i: int) -> None:
        self.fail("ValueError", f"{_quoted(self.interface.argument(i))} is donated, but shares memory with another "
                  "argument: pass a copy of one of them")

    def no_memory(self) -> None:
        self.a.call("PyErr_NoMemory")

    def of_type(self, obj: Value, path: str, what: str) -> Refusal:
        """Reject an object of a wrong type."""
        def refuse() -> None:
            a = self.a
            a.call("raise_error", error(a, "TypeError"), a.text(f"{_quoted(path)} is a %s, expected {_quoted(what)}"),
                   a.call("type_name", obj))
        return refuse

    # -- memory of the call
    def make_room(self) -> None:
        """Allocate the slots of arguments, buffers and results, all empty."""
        a, arrays = self.a, len(self.interface.inputs)
        self.slots = a.alloca(max(len(self.function.parameters), 1))
        words = self.count + arrays * (python.VIEW_SIZE // 8)
        a.store(a.null, self.root)
        for k in range(len(self.interface.results)):
            a.store(a.null, self.made, 8 * k)
        if self.count <= ON_STACK:
            self.objects = a.alloca(max(words, 1))
        else:
            self.objects = a.call("PyMem_RawMalloc", a.i64(8 * words))
            without, following = a.block(), a.block()
            a.branch(a.is_null(self.objects), without, following)
            a.start(without)
            a.call("PyErr_NoMemory")
            a.ret(a.null)
            a.start(following)
        self.views = a.at(self.objects, 8 * self.count)
        a.call("forget", self.objects, a.i64(self.count), self.views, a.i64(arrays))

    def clean_up(self) -> None:
        """Release what the call holds."""
        a = self.a
        a.call("release_all", self.views, a.i64(len(self.interface.inputs)))
        a.call("drop_all", self.objects, a.i64(self.count))
        a.call("drop_all", self.made, a.i64(len(self.interface.results)))
        if self.count > ON_STACK:
            a.call("PyMem_RawFree", self.objects)

    # -- what the caller passes
    def bind(self) -> None:
        a, function = self.a, self.function
        names = self.state.row(function.name, [function.name, *(p.name for p in function.parameters)])
        several = a.compare("sle", self.nargs, a.i64(function.positional))
        self.guard((several, lambda: self.fail(
            "TypeError", f"{function.name}() takes {function.positional} positional arguments, got %d", self.nargs)))
        bound = a.call("bind", a.at(self.this, names), a.i64(len(function.parameters)), self.args, self.nargs,
                       self.kwnames, self.slots)
        following = a.block()
        a.branch(bound, following, self.failed)
        a.start(following)

    def take(self, tree: Tree, obj: Value, path: str) -> None:
        """Collect the leaves of an argument that should be arrays."""
        a = self.a
        if isinstance(tree, Slot):
            a.call("Py_IncRef", obj)
            a.store(obj, self.objects, 8 * tree.number)
            return
        if isinstance(tree, Constant):
            none = a.address_of(a.builder.variable("_Py_NoneStruct", 16, defined=False))
            self.guard((a.compare("eq", obj, none), self.of_type(obj, path, "None")))
            return
        flags = a.call("PyType_GetFlags", a.load(PTR, obj, python.OB_TYPE))
        wanted = a.compare("ne", a.and_(flags, a.i64(python.TYPE_FLAGS[tree.kind])), a.i64(0))
        self.guard((wanted, self.of_type(obj, path, f"a {tree.kind}")))
        size = a.call({"list": "PyList_Size", "tuple": "PyTuple_Size", "dict": "PyDict_Size"}[tree.kind], obj)
        if tree.kind != "dict":
            self.guard((a.compare("eq", size, a.i64(len(tree.children))), lambda: self.fail(
                "TypeError", f"{_quoted(path)} has %d elements, expected {len(tree.children)}", size)))
        for i, (step, child) in enumerate(zip(tree.steps(), tree.children)):
            if tree.kind == "dict":
                item = a.call("PyDict_GetItemWithError", obj, self.constant(tree.keys[i]))
                self.guard((a.not_null(item), self.missing(path, tree.keys[i])))
            else:
                item = a.call("PyList_GetItem" if tree.kind == "list" else "PyTuple_GetItem", obj, a.i64(i))
            if isinstance(child, Container):                 # key lookup may run code that drops the reference
                a.call("Py_IncRef", item)
                a.store(item, self.objects, 8 * (len(self.interface.inputs) + self.held))
                self.held += 1
            self.take(child, item, path + step)
        if tree.kind == "dict":
            known = ", ".join(repr(k) for k in tree.keys[:8]) + (", ..." if len(tree.keys) > 8 else "")
            self.guard((a.compare("eq", size, a.i64(len(tree.children))), lambda: self.fail(
                "TypeError", f"{_quoted(path)} has %d keys, expected {len(tree.children)}: {_quoted(known)}", size)))

    def missing(self, path: str, key: str | int) -> Refusal:
        return lambda: self.fail("TypeError", f"{_quoted(path)} has no key {_quoted(repr(key))}")

    def open(self, i: int) -> None:
        """Open an argument as a buffer, and load its sizes."""
        a, type = self.a, self.interface.inputs[i]
        spec = expected(type, self.interface.argument(i), i in self.interface.donated, self.state)
        view = a.at(self.views, python.VIEW_SIZE * i)
        data = a.call("take_array", self.this, a.load(PTR, self.objects, 8 * i), view,
                      a.address_of(a.builder.constant(spec)))
        self.object_or_fail(data)
        a.store(data, self.data, 8 * i)
        dims: list[Value] = []
        if type.rank:
            where = a.load(PTR, view, python.VIEW_SHAPE)
            dims = [a.load(I64, where, 8 * axis) for axis in range(type.rank)]
        self.dims.append(dims)

    # -- the call
    def allocate_results(self) -> None:
        a, interface = self.a, self.interface
        for k, (alias, type) in enumerate(zip(interface.aliases, interface.results)):
            if alias >= 0:
                a.store(a.load(PTR, self.data, 8 * alias), self.outputs, 8 * k)
                continue
            for axis, d in enumerate(type.shape):
                a.store(self.size(d), self.shape, 8 * axis)
            made = a.call("new_result", self.this, self.reference(f"dtype {dtype_name(type.dtype)}"),
                          a.i64(type.rank), self.shape, a.at(self.outputs, 8 * k))
            a.store(self.object_or_fail(made), self.made, 8 * k)

    def run(self) -> None:
        """Call the entry, and return its results or raise its error."""
        a = self.a
        pool = a.at(self.this, self.state.pool(self.number))
        scratch = a.call("take_scratch", pool)
        without, ready = a.block(), a.block()
        a.branch(a.is_null(scratch), without, ready)
        a.start(without)
        a.call("PyErr_NoMemory")
        a.goto(self.failed)

        a.start(ready)
        status = self.call_entry(symbol(self.function.name), scratch)
        record = a.load(I64, a.at(scratch, offset(Scratch, "context")), offset(Context, "record"))
        a.store(a.load(PTR, pool), scratch, offset(Scratch, "next"))
        a.store(scratch, pool)
        self.guard((a.compare("ne", status, a.i32(abi.ERROR_RECORDED)), lambda: self.raise_record(record)),
                   (a.compare("eq", status, a.i32(abi.OK)), self.no_memory))
        for k, alias in enumerate(self.interface.aliases):
            if alias >= 0:
                obj = a.load(PTR, self.objects, 8 * alias)
                a.call("Py_IncRef", obj)
                array = a.call("call", self.reference("asarray"), obj, a.null)
                a.store(self.object_or_fail(array), self.made, 8 * k)
        self.build(self.function.result, self.put_root)
        result = a.load(PTR, self.root)
        self.clean_up()
        a.ret(result)

    def raise_record(self, record: Value) -> None:
        """Raise an index out of range or a failed assertion, by the error site in the record."""
        a, places = self.a, self.interface.error_sites
        asserted = [ASSERTION in s for s in places]
        tails = ["%.0s" if is_assertion else " (element %d of the kernel)" for is_assertion in asserted]
        sites = [_quoted(site(s).replace(ASSERTION, "", 1)) + tail for s, tail in zip(places, tails)]
        texts = [site.encode() + bytes(1) for site in sites]
        offsets = np.cumsum([0, *map(len, texts)][:-1] or [0], dtype=np.int64)
        place = a.shift_right(record, ELEMENTS.bit_length() - 1)
        where = a.load(I64, a.at(a.address_of(a.builder.constant(offsets.tobytes())), a.mul(place, a.i64(8))))
        a.store(a.and_(record, a.i64(ELEMENTS - 1)), self.found)
        kinds = np.array(asserted or [False], dtype=np.int64)
        is_assertion = a.load(I64, a.at(a.address_of(a.builder.constant(kinds.tobytes())), a.mul(place, a.i64(8))))
        exception = a.select(a.compare("ne", is_assertion, a.i64(0)), error(a, "AssertionError"),
                             error(a, "IndexError"))
        a.call("raise_error", exception, a.at(a.address_of(a.builder.constant(b"".join(texts))), where),
               a.call("numbers", self.found, a.i64(1)))

    # -- what the caller gets
    def put_root(self, obj: Value) -> None:
        self.a.store(obj, self.root)

    def build(self, tree: Tree, put: Placer) -> None:
        """Build the object of a tree; its reference is passed to `put` before its children are built."""
        a = self.a
        if isinstance(tree, Slot):
            obj = a.load(PTR, self.made, 8 * tree.number)
            a.store(a.null, self.made, 8 * tree.number)
            put(obj)
            return
        if isinstance(tree, Constant):
            obj = self.constant(tree.value)
            a.call("Py_IncRef", obj)
            put(obj)
            return
        if tree.kind == "dict":
            made = self.object_or_fail(a.call("PyDict_New"))
        else:
            made = self.object_or_fail(a.call("PyList_New" if tree.kind == "list" else "PyTuple_New",
                                              a.i64(len(tree.children))))
        put(made)
        for i, child in enumerate(tree.children):
            if tree.kind == "dict":
                self.build(child, self.putter(made, self.constant(tree.keys[i])))
            else:
                self.build(child, self.setter(tree.kind, made, i))

    def setter(self, kind: str, sequence: Value, i: int) -> Placer:
        """Returns a function that stores an object in a new list or tuple, which steals the reference."""
        def put(obj: Value) -> None:
            self.a.call("PyList_SetItem" if kind == "list" else "PyTuple_SetItem", sequence, self.a.i64(i), obj)
        return put

    def putter(self, mapping: Value, key: Value) -> Placer:
        """Returns a function that stores an object in a dict, which takes a new reference."""
        def put(obj: Value) -> None:
            a = self.a
            status = a.call("PyDict_SetItem", mapping, key, obj)
            a.call("Py_DecRef", obj)
            following = a.block()
            a.branch(a.compare("eq", status, a.i32(0)), following, self.failed)
            a.start(following)
        return put

    # -- objects in the module state
    def reference(self, name: str) -> Value:
        return self.a.load(PTR, self.this, self.state.add(name))

    def constant(self, value: bool | int | float | str | None) -> Value:
        """The object of a plain value."""
        return self.a.load(PTR, self.this, self.state.constant(value))

    def object_or_fail(self, obj: Value) -> Value:
        following = self.a.block()
        self.a.branch(self.a.is_null(obj), self.failed, following)
        self.a.start(following)
        return obj


def _quoted(text: str) -> str:
    """Escape a text for use in a format string."""
    return text.replace("%", "%%")


def site(site: str) -> str:
    """A location and message, without the folder, which exists only on the compiling machine."""
    found = re.match(r"(.*?)(:\d+(?::\d+)?: .*)", site, re.DOTALL)
    return PurePath(found[1]).name + found[2] if found else site
