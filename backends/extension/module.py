"""The module: PyInit, the import-time code, and the C entries, which dispatch to the code for the processor.

    PyInit_NAME()                    returns the module's definition, or raises ImportError for an unsupported Python
    mlc_exec(module)                 stores numpy's functions, dtypes and constants in the module state
    F_entry(ctx, args, sizes, results)   C entry of function F: adds the weights, and calls the code for this processor
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlc.backends.cpu import support
from mlc.backends.cpu.assemble import I1, I32, I64, PTR, Assembler, ModuleBuilder
from mlc.backends.cpu.support import Scratch, offset
from mlc.backends.extension import arrays, objects, python
from mlc.backends.extension.call import emit_call, symbol
from mlc.backends.extension.objects import State, error
from mlc.backends.extension.signature import Function
from mlc.backends.extension.stub import description, parameters
from mlc.backends.extension.weights import Weights
from mlc.dialects.builtin import Module
from mlc.ir.core import Block, Value

OLDEST_PYTHON = 0x030B0000
"""sys.hexversion of 3.11."""

WEIGHTS = "mlc_weights"
"""Symbol of the weights."""
LEVEL, CHOOSE = "mlc_level", "mlc_choose_level"
"""The level of this processor: from 1; 0 if not determined yet, -1 if none; and the function that determines it."""
UNSUITED, NO_WEIGHTS = 3, 4
"""Status codes of a C entry: no code for this processor, and weights not set."""
WEIGHTS_AT = "mlc_weights_at"
"""Variable with the address of weights in a separate file."""
DEFINITION = "mlc_definition"


def code_symbol(function: Function, level: int) -> str:
    """The symbol of a function's code for a processor level."""
    return f"mlc_code_{function.name}_{level}"


def glue(name: str, functions: Sequence[Function], levels: Sequence[str], weights: Weights) -> tuple[Module, str]:
    """The emitted functions of a module, and LLVM IR of the tables that refer to them.

    levels   processor levels that it has code for, in ascending order of requirements
    """
    externals = {**python.FUNCTIONS, CHOOSE: (I32, ())}
    for function in functions:
        externals |= {code_symbol(function, level): (I32, (PTR,) * 4) for level in range(len(levels))}
    builder, state = ModuleBuilder(externals), State(len(functions))
    for function, places in zip(functions, weights.places):
        _entry(builder, function, len(levels), places, bool(weights.beside))
    if weights.beside:
        _use_weights(builder, name, len(weights.content))
    objects.emit(builder)
    arrays.emit(builder, state)
    support.drop_all(builder)
    support.take_scratch(builder)
    support.grow(builder)
    if any(f.interface.donated for f in functions):
        support.count_overlaps(builder)
    calls = [emit_call(builder, function.named(), i, state) for i, function in enumerate(functions)]
    _keep(builder)
    _exec(builder, name, state, f"a processor of the level {levels[0]}", weights)
    _free(builder, state)
    _init(builder, name)
    return builder.module, _tables(name, functions, calls, state)


# -- the C entry ------------------------------------------------------------------------------------------------------
def use_weights_symbol(name: str) -> str:
    """The symbol of the C function that sets the address of the weights."""
    return f"{name}_use_weights"


def _use_weights(builder: ModuleBuilder, name: str, size: int) -> None:
    """NAME_use_weights(file, size): use the weights in the bytes of a file, unless its size is wrong."""
    a = Assembler(builder, use_weights_symbol(name), [PTR, I64], I32, public=True)
    content, found = a.args
    fits, other = a.block(), a.block()
    a.branch(a.compare("eq", found, a.i64(size)), fits, other)
    a.start(fits)
    a.store(content, a.address_of(builder.variable(WEIGHTS_AT, 8, defined=True)))
    a.ret(a.i32(0))
    a.start(other)
    a.ret(a.i32(1))


def _entry(builder: ModuleBuilder, function: Function, levels: int, places: Sequence[int], beside: bool) -> None:
    a = Assembler(builder, symbol(function.name), [PTR] * 4, I32, public=True)
    context, args, numbers, results = a.args
    if places:
        count = len(function.interface.inputs)
        full = a.alloca(len(places) + count)
        weights = a.address_of(builder.variable(WEIGHTS_AT, 8, defined=True) if beside else
                               builder.variable(WEIGHTS, 8, defined=False))
        if beside:
            weights = a.load(PTR, weights)
            given, missing = a.block(), a.block()
            a.branch(a.is_null(weights), missing, given)
            a.start(missing)
            a.ret(a.i32(NO_WEIGHTS))
            a.start(given)
        for i, place in enumerate(places):
            a.store(a.at(weights, place), full, 8 * i)
        for i in range(count):
            a.store(a.load(PTR, args, 8 * i), full, 8 * (len(places) + i))
        args = full
    level_at = a.address_of(builder.variable(LEVEL, 4, defined=False))
    known, choose, chosen, unsuited = a.block(), a.block(), a.block(I32), a.block()
    level = a.load(I32, level_at)
    a.branch(a.compare("eq", level, a.i32(0)), choose, known)
    a.start(known)
    a.goto(chosen, level)
    a.start(choose)
    a.goto(chosen, a.call(CHOOSE))
    a.start(chosen)
    level, = chosen.args
    for i in range(levels):
        here, other = a.block(), a.block()
        a.branch(a.compare("eq", level, a.i32(i + 1)), here, other)
        a.start(here)
        a.ret(a.call(code_symbol(function, i), context, args, numbers, results))
        a.start(other)
    a.goto(unsuited)
    a.start(unsuited)
    a.ret(a.i32(UNSUITED))


# -- importing --------------------------------------------------------------------------------------------------------
def _init(builder: ModuleBuilder, name: str) -> None:
    """PyInit_NAME(): the module definition, if the interpreter has the expected object layout."""
    a = Assembler(builder, f"PyInit_{name}", [], PTR, public=True)
    letters = a.call("PySys_GetObject", a.text("abiflags"))
    version = a.call("PySys_GetObject", a.text("hexversion"))
    found, fits, threaded, old, locked = a.block(), a.block(), a.block(), a.block(), a.block()
    a.branch(a.or_(a.is_null(letters), a.is_null(version)), old, found)
    a.start(found)
    length = a.call("PyUnicode_GetLength", letters)
    at = a.call("PyUnicode_FindChar", letters, a.i32(ord("t")), a.i64(0), length, a.i32(1))
    a.branch(a.compare("slt", at, a.i64(0)), locked, threaded)
    a.start(locked)
    a.branch(a.compare("sge", a.call("PyLong_AsLong", version), a.i64(OLDEST_PYTHON)), fits, old)
    a.start(fits)
    a.ret(a.call("PyModuleDef_Init", a.address_of(builder.variable(DEFINITION, 104, defined=False))))
    for block, what in ((threaded, "a Python with a global lock, this one is free-threaded"),
                        (old, "Python 3.11 or newer")):
        a.start(block)
        a.call("PyErr_SetString", a.load(PTR, error(a, "ImportError")), a.text(f"{name} needs {what}"))
        a.ret(a.null)


def _keep(builder: ModuleBuilder) -> None:
    """keep(place, obj): store a new reference unless it is NULL."""
    a = Assembler(builder, "keep", [PTR, PTR], I1)
    place, obj = a.args
    a.store(obj, place)
    a.ret(a.not_null(obj))


def _exec(builder: ModuleBuilder, name: str, state: State, needed: str, weights: Weights) -> None:
    """mlc_exec(module): 0, or -1 and an exception."""
    a = Assembler(builder, "mlc_exec", [PTR], I32, public=True)
    module, = a.args
    failed = a.block()
    level = a.call(CHOOSE)
    suited, unsuited = a.block(), a.block()
    a.branch(a.compare("sgt", level, a.i32(0)), suited, unsuited)
    a.start(unsuited)
    a.call("PyErr_SetString", a.load(PTR, error(a, "ImportError")), a.text(f"{name} needs {needed}"))
    a.goto(failed)
    a.start(suited)
    this = a.call("PyModule_GetState", module)
    numpy = a.call("PyImport_ImportModule", a.text("numpy"))
    found = a.block()
    a.branch(a.is_null(numpy), failed, found)
    a.start(found)
    dropped = a.block()

    def keep(place: int, obj: Value) -> Value:
        following = a.block()
        a.branch(a.call("keep", a.at(this, place), obj), following, dropped)
        a.start(following)
        return obj

    for function in (*arrays.NUMPY, *(["fromfile"] if weights.beside else [])):
        keep(state.add(function), a.call("PyObject_GetAttrString", numpy, a.text(function)))
    for reference, place in list(state.references.items()):
        if reference in state.constants:
            keep(place, _made(a, state.constants[reference]))
        elif reference == arrays.CONTIGUOUS:
            keep(place, a.call("PyUnicode_InternFromString", a.text(reference)))
        elif reference.startswith("dtype "):
            dtype = a.call("PyUnicode_InternFromString", a.text(reference.removeprefix("dtype ")))
            keep(place, a.call("call", a.load(PTR, this, state.add("dtype")), dtype, a.null))
    if weights.beside:
        _load_weights(a, name, module, weights, lambda what, obj: keep(state.add(what), obj),
                      lambda what: a.load(PTR, this, state.add(what)), dropped)
    a.call("Py_DecRef", numpy)
    a.ret(a.i32(0))
    a.start(dropped)
    a.call("Py_DecRef", numpy)
    a.goto(failed)
    a.start(failed)
    a.ret(a.i32(-1))


def _load_weights(a: Assembler, name: str, module: Value, weights: Weights, keep: Callable[[str, Value], Value],
                  kept: Callable[[str], Value], failed: Block) -> None:
    """Read the weights file, verify its checksum, and pass its address to the C entries.

    Intermediate objects are kept by the module; the weights outlive it, since C code may still use them.
    """
    def attribute(obj: Value, what: str) -> Value:
        return keep(what, a.call("PyObject_GetAttrString", obj, a.text(what)))

    def called(function: Value, x: Value, y: Value) -> Value:
        a.call("Py_IncRef", x)
        a.call("Py_IncRef", y)                               # y may be NULL
        return a.call("call", function, x, y)

    file = attribute(module, "__file__")
    paths = keep("os.path", a.call("PyImport_ImportModule", a.text("os.path")))
    folder = keep("folder", called(attribute(paths, "dirname"), file, a.null))
    beside = keep("beside", a.call("PyUnicode_FromString", a.text(weights.beside)))
    path = keep("path", called(attribute(paths, "join"), folder, beside))
    byte = keep("byte", a.call("PyUnicode_FromString", a.text("uint8")))
    content = keep("weights", called(kept("fromfile"), path, byte))
    hashes = keep("hashlib", a.call("PyImport_ImportModule", a.text("hashlib")))
    made = keep("digest", called(attribute(hashes, "sha256"), content, a.null))
    found = keep("found", a.call("PyObject_CallObject", attribute(made, "hexdigest"), a.null))
    expected = keep("expected", a.call("PyUnicode_FromString", a.text(weights.digest)))
    right, wrong, opened = a.block(), a.block(), a.block()
    a.branch(a.compare("eq", a.call("PyUnicode_Compare", found, expected), a.i32(0)), right, wrong)
    a.start(wrong)
    a.call("Py_IncRef", path)
    a.call("raise_error", error(a, "ImportError"),
           a.text(f"{name}: %s is damaged, or not what the module was compiled with: its checksum is wrong"),
           a.call("tuple_of", path, a.null))
    a.goto(failed)
    a.start(right)
    view = a.alloca(python.VIEW_SIZE // 8)
    status = a.call("PyObject_GetBuffer", content, view, a.i32(python.BUFFER_FLAGS))
    a.branch(a.compare("eq", status, a.i32(0)), opened, failed)
    a.start(opened)
    a.store(a.load(PTR, view, python.VIEW_DATA), a.address_of(a.builder.variable(WEIGHTS_AT, 8, defined=True)))
    a.call("PyBuffer_Release", view)
    a.call("Py_IncRef", content)


def _made(a: Assembler, value: bool | int | float | str | None) -> Value:
    """A plain value as a new object."""
    if value is None or isinstance(value, bool):
        name = {None: "_Py_NoneStruct", True: "_Py_TrueStruct", False: "_Py_FalseStruct"}[value]
        obj = a.address_of(a.builder.variable(name, 16, defined=False))
        a.call("Py_IncRef", obj)
        return obj
    if isinstance(value, int):
        return a.call("PyLong_FromString", a.text(str(value)), a.null, a.i32(10))
    if isinstance(value, float):
        return a.call("PyFloat_FromDouble", a.f64(value))
    return a.call("PyUnicode_InternFromString", a.text(value))


def _free(builder: ModuleBuilder, state: State) -> None:
    """mlc_free(module): release references and arenas; they are NULL if the import failed."""
    a = Assembler(builder, "mlc_free", [PTR], None, public=True)
    module, = a.args
    this = a.call("PyModule_GetState", module)
    held, done = a.block(), a.block()
    a.branch(a.is_null(this), done, held)
    a.start(held)
    a.call("drop_all", a.at(this, 8 * state.pools), a.i64(len(state.references)))
    for i in range(state.pools):
        loop, some, following = a.block(PTR), a.block(), a.block()
        pool = a.at(this, state.pool(i))
        a.goto(loop, a.load(PTR, pool))
        a.start(loop)
        scratch, = loop.args
        a.branch(a.is_null(scratch), following, some)
        a.start(some)
        after = a.load(PTR, scratch, offset(Scratch, "next"))
        a.call("PyMem_RawFree", a.load(PTR, scratch, offset(Scratch, "memory")))
        a.call("PyMem_RawFree", scratch)
        a.goto(loop, after)
        a.start(following)
        a.store(a.null, pool)
    a.goto(done)
    a.start(done)
    a.ret()


# -- tables -----------------------------------------------------------------------------------------------------------
def _tables(name: str, functions: Sequence[Function], calls: Sequence[str], state: State) -> str:
    """PyModuleDef, with its methods and slots, in LLVM IR."""
    lines, methods = list[str](), list[str]()

    def text(content: str) -> str:
        raw = content.encode() + bytes(1)
        escaped = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in raw)
        lines.append(f'@text{len(lines)} = internal constant [{len(raw)} x i8] c"{escaped}"')
        return f"@text{len(lines) - 1}"

    for function, call in zip(functions, calls):
        methods.append(f"{{ ptr, ptr, i32, ptr }} {{ ptr {text(function.name)}, ptr @{call}, "
                       f"i32 {python.METH_FASTCALL_KEYWORDS}, ptr {text(docstring(function))} }}")
    methods.append("{ ptr, ptr, i32, ptr } zeroinitializer")
    title, doc = text(name), text(f"Compiled functions: {', '.join(f.name for f in functions)}.")
    head = "i64 1, ptr null, ptr null, i64 0, ptr null"          # PyModuleDef_HEAD_INIT
    kinds = "{ i64, ptr, ptr, i64, ptr, ptr, ptr, i64, ptr, ptr, ptr, ptr, ptr }"
    return "\n".join([
        *lines, *(f"declare ptr @{call}(ptr, ptr, i64, ptr)" for call in calls),
        "declare i32 @mlc_exec(ptr)", "declare void @mlc_free(ptr)",
        f"@methods = internal global [{len(methods)} x {{ ptr, ptr, i32, ptr }}] [{', '.join(methods)}]",
        f"@slots = internal global [2 x {{ i32, ptr }}] [{{ i32, ptr }} {{ i32 {python.PY_MOD_EXEC}, ptr @mlc_exec }}, "
        "{ i32, ptr } zeroinitializer]",
        f"@{DEFINITION} = global {kinds} {{ {head}, ptr {title}, ptr {doc}, i64 {state.size}, ptr @methods, "
        "ptr @slots, ptr null, ptr null, ptr @mlc_free }", ""])


def docstring(function: Function) -> str:
    """The docstring: the signature, the shapes, and the author's description."""
    return f"{function.name}({parameters(function)})\n--\n\n{description(function)}"
