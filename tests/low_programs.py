"""Run a function of the low level three ways: interpreted there, interpreted in the llvm dialect, and natively."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mlc.backends.cpu.targets import LEVELS, host
from mlc.backends.emit_llvm import emit
from mlc.backends.link import link
from mlc.backends.load import load
from mlc.backends.object_code import compile_object
from mlc.backends.target import Target
from mlc.dialects import load_all
from mlc.dialects.llvm import heap
from mlc.ir.core import Op
from mlc.ir.interp import Interpreter
from mlc.ir.parser import parse_module
from mlc.ir.passes import find_pass
from mlc.ir.printer import to_text
from mlc.ir.types import FloatType, MemRefType, ScalarType, Type
from mlc.ir.verify import verify
from tests.arrays import Array, difference

load_all()
Argument = Array | int | float
TARGETS = [host(), *(t for t in LEVELS.values() if host().runs(t))]
ENDS = TARGETS[:2]
"""This machine and the oldest."""


def parsed(text: str) -> Op:
    module = parse_module(text)
    verify(module)
    return module


def copy_of(module: Op) -> Op:
    return module.clone()


def lowered(module: Op) -> Op:
    """The module in the llvm dialect."""
    module = copy_of(module)
    find_pass("scf_to_llvm").run(module)
    verify(module)
    return module


def function_types(module: Op, name: str) -> list[Type]:
    found = next(op for op in module.regions[0].block if op.attrs.get("sym_name") == name)
    return [a.type for a in found.regions[0].blocks[0].args]


def parts(types: Sequence[Type], args: Sequence[Argument]) -> list[tuple[str, Any]]:
    """The arguments taken apart as scf_to_llvm does: (kind, value), where a kind is ptr, i64 or a scalar type."""
    out: list[tuple[str, Any]] = []
    for type, arg in zip(types, args):
        if isinstance(type, MemRefType):
            assert isinstance(arg, np.ndarray)
            out.append(("ptr", arg))
            out += [("i64", n) for n, d in zip(arg.shape, type.shape) if d is None]
            if type.strides is not None:
                out += [("i64", s // arg.itemsize) for s, d in zip(arg.strides, type.strides) if d is None]
        else:
            assert isinstance(type, ScalarType)
            out.append(("i64" if str(type) == "index" else str(type), arg))
    return out


def bytes_of(array: Array) -> Array:
    """The memory of an array, which may be a strided view from the start of its buffer."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    extent = 1 + sum((n - 1) * s // array.itemsize for n, s in zip(array.shape, array.strides))
    return np.lib.stride_tricks.as_strided(array, (extent,), (array.itemsize,))


def interpret(module: Op, name: str, args: Sequence[Argument]) -> list[Any]:
    return Interpreter(module).call(name, args)


def interpret_llvm(module: Op, name: str, types: Sequence[Type], args: Sequence[Argument]) -> list[Any]:
    """Call a lowered function in the interpreter, on the memory of the arrays."""
    interpreter = Interpreter(module)
    values: list[Any] = []
    for kind, value in parts(types, args):
        if kind == "ptr":
            values.append(heap(interpreter).pointer(bytes_of(value)))
        elif kind == "i64":
            values.append(np.int64(value))
        else:
            values.append({"f32": np.float32, "f64": np.float64, "i32": np.int32, "i1": np.bool_}[kind](value))
    return interpreter.call(name, values)


def compiled(module: Op, exports: Sequence[str], target: Target, opt_level: int = 2) -> Any:
    """The loaded library of a lowered module."""
    return load(link(compile_object(emit(module, target), target, opt_level), exports))


C_TYPES: dict[str, Any] = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "i32": ctypes.c_int32,
                           "f32": ctypes.c_float, "f64": ctypes.c_double, "i1": ctypes.c_bool}


def call_native(library: Any, name: str, types: Sequence[Type], args: Sequence[Argument], result: Any = None) -> Any:
    taken = parts(types, args)
    function = library.function(name, result, [C_TYPES[kind] for kind, _ in taken])
    return function(*(v.ctypes.data if kind == "ptr" else v for kind, v in taken))


class Program:
    """A module of the low level with its lowering, compiled once for every target."""

    def __init__(self, module: Op | str, targets: Sequence[Target] = ENDS, opt_levels: Sequence[int] = (2,)) -> None:
        self.low = parsed(module) if isinstance(module, str) else module
        self.llvm = lowered(self.low)
        exports = [str(op.attrs["sym_name"]) for op in self.low.regions[0].block
                   if op.name == "func.func" and op.attrs.get("sym_visibility") != "private"]
        self.native = {f"{target} -O{level}": compiled(self.llvm, exports, target, level)
                       for target in targets for level in opt_levels}

    def check(self, name: str, args: Sequence[Argument], slow: bool = True) -> list[Argument]:
        """All ways write the same bits to the arrays; returned as the interpreter of the low level left them.

        slow  also interpret the llvm dialect
        """
        types = function_types(self.low, name)
        want = fresh(args)
        interpret(self.low, name, want)
        ways: dict[str, Callable[[list[Argument]], Any]] = {
            way: partial(call_native, library, name, types) for way, library in self.native.items()}
        if slow:
            ways["llvm"] = partial(interpret_llvm, self.llvm, name, types)
        for way, run in ways.items():
            own = fresh(args)
            run(own)
            for i, (a, b) in enumerate(zip(own, want)):
                if isinstance(a, np.ndarray) and (message := difference(a, np.asarray(b), "bits")):
                    raise AssertionError(f"{way}, @{name}, argument {i}: {message}\n{to_text(self.low)}")
        return want


def check(module: Op | str, name: str, args: Sequence[Argument]) -> list[Argument]:
    """`Program(module).check(...)`, with the printings checked too."""
    program = Program(module)
    return program.check(name, args)


def fresh(args: Sequence[Argument]) -> list[Argument]:
    """Copies with their own memory; a view with strides stays one."""
    out: list[Argument] = []
    for a in args:
        if isinstance(a, np.ndarray) and not a.flags.c_contiguous:
            flat = bytes_of(a).copy()
            out.append(np.lib.stride_tricks.as_strided(flat, a.shape, a.strides))
        else:
            out.append(a.copy() if isinstance(a, np.ndarray) else a)
    return out


def specials(type: ScalarType) -> Array:
    """The values of an element type where arithmetic has its corners."""
    from mlc.ir.types import to_numpy
    dtype = to_numpy(type)
    if type.is_bool:
        return np.array([False, True])
    if isinstance(type, FloatType):
        import ml_dtypes
        finfo: Any = ml_dtypes.finfo
        info = finfo(dtype)
        tiny, small, big, eps = (float(x) for x in (info.smallest_subnormal, info.tiny, info.max, info.eps))
        values = [0.0, 1.0, 1 + eps, 1.5, 2.5, 0.5, 3.0, 7.25, 100.7, 1 / 3, tiny, 3 * tiny, small, small - tiny, big,
                  big / 2, 1 / eps, 2 / eps - 1, 0.5 / eps + 0.5, np.inf]
        return np.array([*values, *(-v for v in values), np.nan], np.float64).astype(dtype)
    low, high = -(1 << type.width - 1), (1 << type.width - 1) - 1
    values = [0, 1, 2, 3, 7, 10, 63, 64, 100, -1, -2, -3, -7, -100, low, low + 1, high, high - 1, high // 3]
    return np.unique(np.array([v for v in values if low <= v <= high], np.int64)).astype(dtype)
