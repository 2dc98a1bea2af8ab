"""Calls of one pattern (ir/call_pattern.py) at C speed, through a vectorcall function that all patterns share.

    vectorcall(callable, args, nargsf, kwnames) -> object

matches the arguments against the pattern of the callable, a table in memory, allocates the results, calls the entry and
wraps what it returns in tensors. A call that does not match, or whose entry reports an error, takes the slow path with
the same arguments: nothing has been written to. If a tensor among the arguments has a record for autograd, the
callable's `record` is called on the result and the arguments, and its result is that of the call.

The wrapper of backends/cpu/wrapper.py is compiled for one signature and serves a compiled function. This one reads the
signature from a table, which takes some nanoseconds longer, and nothing is compiled for another operation.
"""

from __future__ import annotations

import ctypes

from mlc.backends.cpu import layout, support
from mlc.backends.cpu.assemble import I32, I64, PTR, Assembler, ModuleBuilder
from mlc.backends.cpu.checked_call import EntryCall
from mlc.backends.cpu.pattern_match import (
    MAX_ARRAYS,
    SIGNATURES,
    Argument,
    Frame,
    Matching,
    Pattern,
    Result,
    bind_sizes,
    field,
    item,
    loop,
    names_match,
    place,
    same_constant,
    take,
)
from mlc.backends.cpu.support import Callable, Scratch, offset
from mlc.dialects.builtin import Module
from mlc.ir import abi
from mlc.ir.core import Block, Value

NAME = "vectorcall"
_C_ORDER = 0


def pattern_module() -> Module:
    """The vectorcall function of all patterns."""
    builder = ModuleBuilder(SIGNATURES)
    for support_function in (support.bindings_hold, support.tensor_of, support.drop_all, support.new_array,
                             support.take_scratch, support.grow):
        support_function(builder)
    for function in (same_constant, bind_sizes, take, names_match, _copy, _allocate, _run, _hand_over, _record,
                     _matched):
        function(builder)
    _vectorcall(builder)
    return builder.module


# -- the call ---------------------------------------------------------------------------------------------------------
def _copy(builder: ModuleBuilder) -> None:
    """copy(self, frame): copy arrays that do not lie in memory in order; false, and an exception, if there is none."""
    a = Matching(builder, "copy", [PTR, PTR])
    self, frame = a.args
    count = field(a, Frame, frame, "count")
    loop(a, count, lambda i: a.store(a.null, place(a, "copies", frame, i)))

    def copy(i: Value) -> None:
        array, flags = a.load(PTR, place(a, "arrays", frame, i)), a.load(I64, place(a, "flags", frame, i))
        some, present, scattered, done = a.block(), a.block(), a.block(), a.block()
        a.branch(a.compare("eq", flags, a.i64(0)), done, some)
        a.start(some)
        found = a.and_(a.load(I64, array, layout.ARRAY_FLAGS), flags)
        a.branch(a.compare("eq", found, flags), done, scattered)
        a.start(scattered)
        made = a.call_pointer(a.load(PTR, self, offset(Callable, "new_copy")), PTR, array, a.i32(_C_ORDER))
        a.branch(a.is_null(made), a.refused, present)
        a.start(present)
        a.store(made, place(a, "copies", frame, i))
        a.store(a.load(PTR, made, layout.ARRAY_DATA), place(a, "data", frame, i))
        a.goto(done)
        a.start(done)

    loop(a, count, copy)
    a.finish()


def _allocate(builder: ModuleBuilder) -> None:
    """allocate(self, frame): make the arrays of the results; false, and an exception, if there is no memory."""
    a = Matching(builder, "allocate", [PTR, PTR])
    self, frame = a.args
    pattern = a.load(PTR, self, offset(Callable, "pattern"))
    count, found = field(a, Pattern, pattern, "result_count"), field(a, Frame, frame, "found")
    size, term = a.alloca(1), a.alloca(1)
    loop(a, count, lambda k: a.store(a.null, place(a, "made", frame, k)))

    def make(k: Value) -> None:
        result = item(a, field(a, Pattern, pattern, "results"), Result, k)
        a.store(field(a, Result, result, "itemsize"), size)
        rank = field(a, Result, result, "rank")

        def set_size(axis: Value) -> None:
            row = a.at(field(a, Result, result, "sizes"), a.mul(a.mul(axis, a.add(found, a.i64(1))), a.i64(8)))
            a.store(a.load(I64, row), term)

            def add(symbol: Value) -> None:
                coefficient = a.load(I64, a.at(row, a.mul(a.add(symbol, a.i64(1)), a.i64(8))))
                product = a.mul(coefficient, a.load(I64, place(a, "symbols", frame, symbol)))
                a.store(a.add(a.load(I64, term), product), term)

            loop(a, found, add)
            a.store(a.load(I64, term), place(a, "shape", frame, axis))
            a.store(a.mul(a.load(I64, size), a.load(I64, term)), size)

        loop(a, rank, set_size)
        dtype, dims = field(a, Result, result, "dtype"), a.at(frame, offset(Frame, "shape"))
        made = a.call("new_array", self, dtype, a.load(I32, result, offset(Result, "rank")), dims, a.load(I64, size))
        a.need(a.not_null(made))
        a.store(made, place(a, "made", frame, k))
        a.store(a.load(PTR, made, layout.ARRAY_DATA), place(a, "outputs", frame, k))

    loop(a, count, make)
    a.finish()


class _Run(EntryCall):
    """The call of the entry for a frame."""

    def __init__(self, a: Assembler, pattern: Value, frame: Value) -> None:
        super().__init__(a, *(a.at(frame, offset(Frame, name)) for name in ("data", "numbers", "outputs")))
        self.pattern, self.frame = pattern, frame

    def work(self) -> Value:
        a = self.a
        return a.compare("sge", field(a, Frame, self.frame, "elements"), field(a, Pattern, self.pattern, "long"))


def _run(builder: ModuleBuilder) -> None:
    """run(self, frame): call the entry, with arrays that live meanwhile; its status, or ARENA_TOO_SMALL if there is no
    memory."""
    a = Assembler(builder, "run", [PTR, PTR], I32)
    self, frame = a.args
    pattern = a.load(PTR, self, offset(Callable, "pattern"))
    without, ready = a.block(), a.block()
    scratch = a.call("take_scratch", a.at(self, offset(Callable, "pool")))
    a.branch(a.is_null(scratch), without, ready)
    a.start(without)
    a.ret(a.i32(abi.ARENA_TOO_SMALL))
    a.start(ready)

    def number(k: Value) -> None:
        symbol = a.load(I64, a.at(field(a, Pattern, pattern, "order"), a.mul(k, a.i64(8))))
        a.store(a.load(I64, place(a, "symbols", frame, symbol)), place(a, "numbers", frame, k))

    loop(a, field(a, Pattern, pattern, "symbols"), number)
    count = field(a, Frame, frame, "count")

    def each_array(change: str) -> None:
        loop(a, count, lambda i: a.call(change, a.load(PTR, place(a, "arrays", frame, i))))

    each_array("Py_IncRef")                                  # another thread may give a tensor another array
    status = _Run(a, pattern, frame).call_entry(a.load(PTR, self, offset(Callable, "function")), scratch)
    each_array("Py_DecRef")
    a.store(a.load(PTR, self, offset(Callable, "pool")), scratch, offset(Scratch, "next"))
    a.store(scratch, self, offset(Callable, "pool"))
    for name in ("calls", "all_calls"):
        counter = a.load(PTR, self, offset(Callable, name))
        a.store(a.add(a.load(I64, counter), a.i64(1)), counter)
    a.ret(status)


def _hand_over(builder: ModuleBuilder) -> None:
    """hand_over(self, frame): the results as tensors, or the only one; null, and an exception, if there is no
    memory."""
    a = Assembler(builder, "hand_over", [PTR, PTR], PTR)
    self, frame = a.args
    pattern = a.load(PTR, self, offset(Callable, "pattern"))
    count, none = field(a, Pattern, pattern, "result_count"), a.load(PTR, self, offset(Callable, "none"))
    failed, one, several, listed = a.block(), a.block(), a.block(), a.block()

    def present(obj: Value) -> Value:
        following = a.block()
        a.branch(a.is_null(obj), failed, following)
        a.start(following)
        return obj

    def wrap(k: Value) -> None:
        tensor = present(a.call("tensor_of", self, a.load(PTR, place(a, "made", frame, k))))
        for i in range(3):
            a.call("Py_IncRef", none)
            a.store(none, a.at(tensor, a.load(I64, pattern, offset(Pattern, "empty") + 8 * i)))
        a.store(tensor, place(a, "made", frame, k))

    loop(a, count, wrap)
    a.branch(a.compare("ne", field(a, Pattern, pattern, "bare"), a.i64(0)), one, several)
    a.start(one)
    a.ret(a.load(PTR, frame, offset(Frame, "made")))
    a.start(several)
    out = present(a.call("PyTuple_New", count))
    a.goto(listed)
    a.start(listed)
    loop(a, count, lambda k: a.call("PyTuple_SetItem", out, k, a.load(PTR, place(a, "made", frame, k))))
    a.ret(out)
    a.start(failed)
    a.call("drop_all", a.at(frame, offset(Frame, "made")), count)
    a.ret(a.null)


def _record(builder: ModuleBuilder) -> None:
    """record(self, out, args, count, kwnames, frame): the result after the pattern's function for autograd, if a tensor
    among the arguments has a record and the pattern has such a function."""
    a = Assembler(builder, "record", [PTR, PTR, PTR, I64, PTR, PTR], PTR)
    self, out, args, count, kwnames, frame = a.args
    pattern = a.load(PTR, self, offset(Callable, "pattern"))
    function = field(a, Pattern, pattern, "record")
    wanted, some, done = a.block(), a.block(), a.block()
    a.branch(a.compare("ne", field(a, Frame, frame, "recorded"), a.i64(0)), some, done)
    a.start(some)
    a.branch(a.is_null(function), done, wanted)
    a.start(wanted)
    all = a.alloca(MAX_ARRAYS + 1)
    a.store(out, all)
    total = a.add(count, field(a, Pattern, pattern, "keywords"))
    loop(a, total, lambda i: a.store(a.load(PTR, a.at(args, a.mul(i, a.i64(8)))),
                                      a.at(all, a.add(a.mul(i, a.i64(8)), a.i64(8)))))
    found = a.call("PyObject_Vectorcall", function, all, a.add(count, a.i64(1)), kwnames)
    a.call("Py_DecRef", out)
    a.ret(found)
    a.start(done)
    a.ret(out)


def _matched(builder: ModuleBuilder) -> None:
    """matched(self, args, count, kwnames, taken): the result of a call that fits the pattern, null with an exception;
    `taken` becomes 1 then. It is a function of its own, as its frame is large: that of a callable which passes a call
    on to the next one, and this to another, is not."""
    a = Assembler(builder, "matched", [PTR, PTR, I64, PTR, PTR], PTR)
    a.function.passthrough = ("noinline",)
    self, args, count, kwnames, taken = a.args
    pattern, frame = a.load(PTR, self, offset(Callable, "pattern")), a.alloca(ctypes.sizeof(Frame) // 8)
    slow, failed, dropped, scattered = (a.block() for _ in range(4))

    def need(condition: Value, otherwise: Block = slow) -> None:
        following = a.block()
        a.branch(condition, following, otherwise)
        a.start(following)

    for name in ("count", "found", "elements"):
        a.store(a.i64(0), frame, offset(Frame, name))
    a.store(field(a, Pattern, pattern, "always"), frame, offset(Frame, "recorded"))
    table, made = field(a, Pattern, pattern, "arguments"), a.at(frame, offset(Frame, "made"))
    results = field(a, Pattern, pattern, "result_count")
    loop(a, field(a, Pattern, pattern, "count"), lambda i: need(a.call(
        "take", self, item(a, table, Argument, i), a.load(PTR, a.at(args, a.mul(i, a.i64(8)))), frame)))
    refused = a.and_(field(a, Frame, frame, "recorded"), field(a, Pattern, pattern, "constant"))
    need(a.compare("eq", refused, a.i64(0)))
    need(a.call("copy", self, frame), scattered)
    need(a.call("allocate", self, frame), failed)
    status = a.call("run", self, frame)
    copies, arrays = a.at(frame, offset(Frame, "copies")), field(a, Frame, frame, "count")
    a.call("drop_all", copies, arrays)
    need(a.compare("eq", status, a.i32(abi.OK)), dropped)
    a.store(a.i64(1), taken)
    out = a.call("hand_over", self, frame)
    following, empty = a.block(), a.block()
    a.branch(a.is_null(out), empty, following)
    a.start(empty)
    a.ret(a.null)
    a.start(following)
    a.ret(a.call("record", self, out, args, count, kwnames, frame))

    for block, after in ((scattered, slow), (failed, dropped)):
        a.start(block)
        a.call("PyErr_Clear")                                # the slow path says what does not fit
        a.call("drop_all", a.at(frame, offset(Frame, "copies")), field(a, Frame, frame, "count"))
        a.goto(after)
    a.start(dropped)
    a.call("drop_all", made, results)
    a.goto(slow)
    a.start(slow)
    a.ret(a.null)


def _vectorcall(builder: ModuleBuilder) -> None:
    a = Assembler(builder, NAME, [PTR, PTR, I64, PTR], PTR, public=True)
    self, args, nargsf, kwnames = a.args
    pattern, taken = a.load(PTR, self, offset(Callable, "pattern")), a.alloca(1)
    slow, done = a.block(), a.block()

    def need(condition: Value) -> None:
        following = a.block()
        a.branch(condition, following, slow)
        a.start(following)

    count = a.and_(nargsf, a.i64(layout.VECTORCALL_OFFSET_FLAG - 1))
    need(a.compare("eq", count, field(a, Pattern, pattern, "positional")))
    need(a.call("bindings_hold", self))
    need(a.call("names_match", pattern, kwnames))
    a.store(a.i64(0), taken)
    out = a.call("matched", self, args, count, kwnames, taken)
    a.branch(a.compare("eq", a.load(I64, taken), a.i64(0)), slow, done)
    a.start(done)
    a.ret(out)
    a.start(slow)
    a.ret(a.call("PyObject_Vectorcall", a.load(PTR, self, offset(Callable, "slow_path")), args, nargsf, kwnames))
