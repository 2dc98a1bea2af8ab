"""Builder for functions of the llvm dialect in the style of an assembler: blocks, byte offsets, calls by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlc.dialects.builtin import module
from mlc.dialects.llvm import aggregates, control, globals, memory
from mlc.dialects.llvm import arithmetic as ops
from mlc.dialects.llvm.types import ArrayType, LLVMFunctionType, ptr
from mlc.ir.core import Block, Region, Symbol, Value, insertion
from mlc.ir.diag import Loc
from mlc.ir.types import Type, f64, i1, i8, i32, i64

PTR, I1, I8, I32, I64, F64 = ptr, i1, i8, i32, i64, f64
Signature = tuple[Type | None, tuple[Type, ...]]

_MADE = Loc("<wrapper>", 0)


class ModuleBuilder:
    """A module under construction, with its functions by name. `externals` are declared."""

    def __init__(self, externals: Mapping[str, Signature]) -> None:
        self.module = module()
        self.functions: dict[str, control.Func] = {}
        self._constants: dict[bytes, str] = {}
        self._variables: set[str] = set()
        for name, (result, params) in externals.items():
            self.add(control.Func.make([], {"sym_name": Symbol(name), "linkage": "external",
                                            "function_type": LLVMFunctionType(result, params)}, [], [Region()]))

    def add(self, function: control.Func) -> None:
        self.functions[function.sym_name] = function
        self.module.body.block.insert(function)

    def constant(self, content: bytes) -> str:
        """Define constant bytes, aligned to 8; returns their name."""
        if content not in self._constants:
            self._constants[content] = self._global(f"constant{len(self._constants)}", len(content), {
                "value": np.frombuffer(content, np.int8), "constant": True, "linkage": "internal"})
        return self._constants[content]

    def variable(self, name: str, size: int, defined: bool) -> str:
        """Define a zero-initialised variable of `size` bytes, or declare an external one; returns its name."""
        if name not in self._variables:
            self._variables.add(self._global(name, size, {"linkage": "internal" if defined else "external"}))
        return name

    def _global(self, name: str, size: int, attrs: Mapping[str, Any]) -> str:
        self.module.body.block.insert(globals.Global.make([], {
            "sym_name": Symbol(name), "global_type": ArrayType(size, i8), "value": None, "constant": None,
            "alignment": 8, "addr_space": 0, **attrs}, [], [Region()], loc=_MADE))
        return name


class Assembler:
    """Builder of one function. Operations go to the end of the current block, constants and allocas to the first."""

    def __init__(self, builder: ModuleBuilder, name: str, params: Sequence[Type], result: Type | None,
                 public: bool = False) -> None:
        self.builder = builder
        self.function = control.function(name, params, [] if result is None else [result],
                                         linkage="external" if public else "internal")
        builder.add(self.function)
        self.args = list(self.function.args)
        self._head = self.function.body.blocks[0]
        self._constants: dict[tuple[Any, Type], Value] = {}
        self._addresses: dict[str, Value] = {}
        self._block = self.block()
        self.function.body.add(self._block)
        with insertion(self._head, None, _MADE):
            self._start = control.Br((), self._block)

    # -- blocks
    def block(self, *types: Type) -> Block:
        """Create a block with arguments of these types; `start` appends it to the function."""
        return Block(types)

    def start(self, block: Block) -> None:
        """Append `block` to the function and set the insertion point to its end."""
        self._block = self.function.body.add(block)

    def _here(self) -> Any:
        return insertion(self._block, None, _MADE)

    def goto(self, dest: Block, *args: Value) -> None:
        with self._here():
            control.Br(args, dest)

    def branch(self, condition: Value, yes: Block, no: Block, yes_args: Sequence[Value] = (),
               no_args: Sequence[Value] = ()) -> None:
        with self._here():
            control.CondBr(condition, tuple(yes_args), tuple(no_args), yes, no)

    def ret(self, value: Value | None = None) -> None:
        with self._here():
            control.Return(value)

    # -- constants and the stack
    def _constant(self, value: Any, type: Type) -> Value:
        if (value, type) not in self._constants:
            with insertion(self._head, self._start, _MADE):
                self._constants[value, type] = (aggregates.Zero(type).result if type == ptr else
                                                ops.constant(value, type))
        return self._constants[value, type]

    def i64(self, value: int) -> Value:
        return self._constant(value, i64)

    def i32(self, value: int) -> Value:
        return self._constant(value, i32)

    def f64(self, value: float) -> Value:
        return self._constant(value, f64)

    @property
    def true(self) -> Value:
        return self._constant(True, i1)

    @property
    def false(self) -> Value:
        return self._constant(False, i1)

    @property
    def null(self) -> Value:
        return self._constant(0, ptr)

    def address_of(self, name: str) -> Value:
        """The address of a constant or variable of the module."""
        if name not in self._addresses:
            with insertion(self._head, self._start, _MADE):
                self._addresses[name] = globals.AddressOf(Symbol(name), ptr).result
        return self._addresses[name]

    def text(self, text: str) -> Value:
        """The address of a NUL-terminated string constant."""
        return self.address_of(self.builder.constant(text.encode() + bytes(1)))

    def alloca(self, words: int) -> Value:
        """Allocate eight-byte words on the stack."""
        count = self.i64(words)
        with insertion(self._head, self._start, _MADE):
            return memory.Alloca(count, ptr, i64).result

    # -- memory
    def at(self, pointer: Value, offset: int | Value) -> Value:
        """The address `offset` bytes after `pointer`."""
        if isinstance(offset, int) and offset == 0:
            return pointer
        with self._here():
            return memory.element_address(pointer, offset, i8)

    def load(self, type: Type, pointer: Value, offset: int = 0) -> Value:
        address = self.at(pointer, offset)
        with self._here():
            return memory.Load(address, type).result

    def store(self, value: Value, pointer: Value, offset: int = 0) -> None:
        address = self.at(pointer, offset)
        with self._here():
            memory.Store(value, address)

    # -- numbers
    def _binary(self, op: Any, a: Value, b: Value) -> Value:
        with self._here():
            result: Value = op(a, b).result
            return result

    def add(self, a: Value, b: Value) -> Value:
        return self._binary(ops.Add, a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self._binary(ops.Sub, a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self._binary(ops.Mul, a, b)

    def sdiv(self, a: Value, b: Value) -> Value:
        return self._binary(ops.SDiv, a, b)

    def and_(self, a: Value, b: Value) -> Value:
        return self._binary(ops.And, a, b)

    def or_(self, a: Value, b: Value) -> Value:
        return self._binary(ops.Or, a, b)

    def fadd(self, a: Value, b: Value) -> Value:
        return self._binary(ops.FAdd, a, b)

    def fmul(self, a: Value, b: Value) -> Value:
        return self._binary(ops.FMul, a, b)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """An icmp; addresses are compared as integers."""
        if a.type == ptr:
            a, b = self.address(a), self.address(b)
        with self._here():
            return ops.ICmp(predicate, a, b).result

    def compare_floats(self, predicate: str, a: Value, b: Value) -> Value:
        with self._here():
            return ops.FCmp(predicate, a, b).result

    def shift_right(self, a: Value, bits: int) -> Value:
        """Logical shift right."""
        return self._binary(ops.LShr, a, self.i64(bits))

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        with self._here():
            return ops.Select(condition, yes, no).result

    def widen(self, value: Value) -> Value:
        """Zero-extend to i64."""
        with self._here():
            return ops.ZExt(value, i64).result

    def narrow(self, value: Value) -> Value:
        """The low half of an i64."""
        with self._here():
            return ops.Trunc(value, i32).result

    def to_float(self, value: Value) -> Value:
        with self._here():
            return ops.SIToFP(value, f64).result

    def address(self, pointer: Value) -> Value:
        """The pointer as an integer."""
        with self._here():
            return memory.PtrToInt(pointer, i64).result

    def is_null(self, pointer: Value) -> Value:
        return self.compare("eq", self.address(pointer), self.i64(0))

    def not_null(self, pointer: Value) -> Value:
        return self.compare("ne", self.address(pointer), self.i64(0))

    # -- calls
    def call(self, name: str, *args: Value) -> Value:
        """Call a function of the module; the result must not be used if it returns void."""
        with self._here():
            return control.call(self.builder.functions[name], args)  # type: ignore[return-value]

    def call_pointer(self, function: Value, result: Type, *args: Value) -> Value:
        """Call the function at an address."""
        with self._here():
            return control.Call(None, (function, *args), (), (result,)).result
