"""Shared support of an extension module's functions: its state, error reporting, and argument lookup.

Everything is emitted as functions of the llvm dialect. Those that return an object or address set an exception and
return NULL on failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mlc.backends.cpu.assemble import I1, I64, PTR, Assembler, ModuleBuilder
from mlc.backends.extension import python
from mlc.backends.extension.signature import Plain
from mlc.ir.core import Value


@dataclass
class State:
    """Layout of a module's state: a list of free arenas per function, then references.

    constants  the plain values among the references
    """

    pools: int
    references: dict[str, int] = field(default_factory=dict)
    constants: dict[str, Plain] = field(default_factory=dict)

    def add(self, name: str) -> int:
        """Add a named reference; returns its offset."""
        return self.references.setdefault(name, 8 * (self.pools + len(self.references)))

    def constant(self, value: Plain) -> int:
        """Add a plain value; returns its offset."""
        name = f"{type(value).__name__} {value.hex() if isinstance(value, float) else value!r}"
        self.constants[name] = value
        return self.add(name)

    def row(self, what: str, texts: Sequence[str]) -> int:
        """Add consecutive texts; returns the offset of the first."""
        for i, text in enumerate(texts):
            self.constants[f"{what} {i}"] = text
            self.add(f"{what} {i}")
        return self.references[f"{what} 0"]

    def pool(self, function: int) -> int:
        return 8 * function

    @property
    def size(self) -> int:
        return 8 * (len(self.references) + self.pools)


def emit(builder: ModuleBuilder) -> None:
    """Emit all functions of this file."""
    _raise(builder)
    _numbers(builder)
    _tuple_of(builder)
    _call(builder)
    _type_name(builder)
    _bind(builder)


def error(a: Assembler, name: str) -> Value:
    """The built-in exception `name`, for `raise_error`."""
    return a.address_of(a.builder.variable(f"PyExc_{name}", 8, defined=False))


# -- exceptions -------------------------------------------------------------------------------------------------------
def _raise(builder: ModuleBuilder) -> None:
    """raise_error(exception, format, arguments): set an exception; steals the reference to the tuple of arguments.

    If the tuple is NULL, the exception that its construction raised is kept.
    """
    a = Assembler(builder, "raise_error", [PTR, PTR, PTR], None)
    exception, text, arguments = a.args
    given, formatted, made, done = a.block(), a.block(), a.block(), a.block()
    a.branch(a.is_null(arguments), done, given)
    a.start(given)
    pattern = a.call("PyUnicode_FromString", text)
    gone = a.block()
    a.branch(a.is_null(pattern), gone, formatted)
    a.start(formatted)
    message = a.call("PyUnicode_Format", pattern, arguments)
    a.call("Py_DecRef", pattern)
    a.branch(a.is_null(message), gone, made)
    a.start(made)
    a.call("PyErr_SetObject", a.load(PTR, exception), message)
    a.call("Py_DecRef", message)
    a.goto(gone)
    a.start(gone)
    a.call("Py_DecRef", arguments)
    a.goto(done)
    a.start(done)
    a.ret()


def _numbers(builder: ModuleBuilder) -> None:
    """numbers(values, count): a tuple of integers."""
    a = Assembler(builder, "numbers", [PTR, I64], PTR)
    values, count = a.args
    out = a.call("PyTuple_New", count)
    made, none = a.block(), a.block()
    a.branch(a.is_null(out), none, made)
    a.start(none)
    a.ret(a.null)
    a.start(made)
    i, filled = loop(a, count)
    number = a.call("PyLong_FromLongLong", a.load(I64, item(a, values, i)))
    fine, failed = a.block(), a.block()
    a.branch(a.is_null(number), failed, fine)
    a.start(failed)
    a.call("Py_DecRef", out)
    a.ret(a.null)
    a.start(fine)
    a.call("PyTuple_SetItem", out, i, number)
    filled()
    a.ret(out)


def _tuple_of(builder: ModuleBuilder) -> None:
    """tuple_of(x, y): a tuple of x and, unless it is NULL, y, stealing the references; NULL if x is NULL."""
    a = Assembler(builder, "tuple_of", [PTR, PTR], PTR)
    x, y = a.args
    given, made, second, failed, done = a.block(), a.block(), a.block(), a.block(), a.block()
    a.branch(a.is_null(x), failed, given)
    a.start(given)
    several = a.widen(a.not_null(y))
    out = a.call("PyTuple_New", a.add(several, a.i64(1)))
    a.branch(a.is_null(out), failed, made)
    a.start(made)
    a.call("PyTuple_SetItem", out, a.i64(0), x)
    a.branch(a.not_null(y), second, done)
    a.start(second)
    a.call("PyTuple_SetItem", out, a.i64(1), y)
    a.goto(done)
    a.start(done)
    a.ret(out)
    a.start(failed)
    a.call("Py_DecRef", x)
    a.call("Py_DecRef", y)
    a.ret(a.null)


def _call(builder: ModuleBuilder) -> None:
    """call(function, x, y): call with one or two arguments, as in `tuple_of`."""
    a = Assembler(builder, "call", [PTR, PTR, PTR], PTR)
    function, x, y = a.args
    arguments = a.call("tuple_of", x, y)
    some, none = a.block(), a.block()
    a.branch(a.is_null(arguments), none, some)
    a.start(some)
    result = a.call("PyObject_CallObject", function, arguments)
    a.call("Py_DecRef", arguments)
    a.ret(result)
    a.start(none)
    a.ret(a.null)


def _type_name(builder: ModuleBuilder) -> None:
    """type_name(obj): (the name of its type,), for a message."""
    a = Assembler(builder, "type_name", [PTR], PTR)
    obj, = a.args
    a.ret(a.call("tuple_of", a.call("PyType_GetName", a.load(PTR, obj, python.OB_TYPE)), a.null))


# -- arguments by position and name -----------------------------------------------------------------------------------
def _bind(builder: ModuleBuilder) -> None:
    """bind(names, count, args, nargs, kwnames, slots): borrow the argument of each of `count` parameters; `names` has
    the name of the function, then of the parameters. Returns whether all are present."""
    _place(builder)
    a = Assembler(builder, "bind", [PTR, I64, PTR, I64, PTR, PTR], I1)
    names, count, args, nargs, kwnames, slots = a.args
    positional, copied = loop(a, count)
    given, absent, following = a.block(), a.block(), a.block()
    a.branch(a.compare("ult", positional, nargs), given, absent)
    a.start(given)
    a.store(a.load(PTR, item(a, args, positional)), item(a, slots, positional))
    a.goto(following)
    a.start(absent)
    a.store(a.null, item(a, slots, positional))
    a.goto(following)
    a.start(following)
    copied()

    named, unnamed = a.block(), a.block()
    a.branch(a.is_null(kwnames), unnamed, named)
    a.start(named)
    j, placed = loop(a, a.call("PyTuple_Size", kwnames))
    key, obj = a.call("PyTuple_GetItem", kwnames, j), a.load(PTR, item(a, args, a.add(nargs, j)))
    fine, wrong = a.block(), a.block()
    a.branch(a.call("place", names, count, key, obj, slots), fine, wrong)
    a.start(wrong)
    a.ret(a.false)
    a.start(fine)
    placed()
    a.goto(unnamed)

    a.start(unnamed)
    i, complete = loop(a, count)
    present, missing = a.block(), a.block()
    a.branch(a.is_null(a.load(PTR, item(a, slots, i))), missing, present)
    a.start(missing)
    _refuse_name(a, "%s() needs the argument %s", a.load(PTR, names), a.load(PTR, item(a, names, a.add(i, a.i64(1)))))
    a.start(present)
    complete()
    a.ret(a.true)


def _place(builder: ModuleBuilder) -> None:
    """place(names, count, key, obj, slots): store a keyword argument in its slot; whether it matches a parameter."""
    a = Assembler(builder, "place", [PTR, I64, PTR, PTR, PTR], I1)
    names, count, key, obj, slots = a.args
    i, through = loop(a, count)
    found, other = a.block(), a.block()
    differs = a.call("PyUnicode_Compare", key, a.load(PTR, item(a, names, a.add(i, a.i64(1)))))
    a.branch(a.compare("eq", differs, a.i32(0)), found, other)
    a.start(found)
    free, twice = a.block(), a.block()
    a.branch(a.is_null(a.load(PTR, item(a, slots, i))), free, twice)
    a.start(free)
    a.store(obj, item(a, slots, i))
    a.ret(a.true)
    a.start(twice)
    _refuse_name(a, "%s() has two values for %s", a.load(PTR, names), key)
    a.start(other)
    through()
    _refuse_name(a, "%s() has no parameter %s", a.load(PTR, names), key)


def _refuse_name(a: Assembler, text: str, function: Value, name: Value) -> None:
    """Return with an exception about a function and a parameter."""
    a.call("Py_IncRef", function)
    a.call("Py_IncRef", name)
    a.call("raise_error", error(a, "TypeError"), a.text(text), a.call("tuple_of", function, name))
    a.ret(a.false)


# -- loops ------------------------------------------------------------------------------------------------------------
def item(a: Assembler, base: Value, i: Value) -> Value:
    """The address of word i."""
    return a.at(base, a.mul(i, a.i64(8)))


def loop(a: Assembler, count: Value) -> tuple[Value, Callable[[], None]]:
    """Begin a loop over i in range(count); returns i and a function that ends the body and continues after the loop."""
    check, body, after = a.block(I64), a.block(), a.block()
    a.goto(check, a.i64(0))
    a.start(check)
    i, = check.args
    a.branch(a.compare("ult", i, count), body, after)
    a.start(body)

    def end() -> None:
        a.goto(check, a.add(i, a.i64(1)))
        a.start(after)
    return i, end
