"""llvm, globals: constant data of a module, and its address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.llvm.memory import heap
from mlc.dialects.llvm.types import ArrayType, PtrType, size_of
from mlc.dialects.memref import fresh
from mlc.ir.core import Op, Region, ResultType, Symbol
from mlc.ir.types import Type, from_numpy, i8

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Global(Op, name="llvm.mlir.global", pure=False):
    """Memory with a name, there before the program starts; `constant` if nobody writes it"""

    body: Region
    sym_name: Symbol
    global_type: Type
    linkage: str = "internal"
    value: np.ndarray[Any, Any] | None = None
    constant: bool | None = None
    alignment: int | None = None
    addr_space: int = 0
    attr_types = {"addr_space": "i32"}

    def infer(self) -> tuple[Type, ...]:
        self.constant = self.constant or None               # upstream's unit attribute: there or not
        self.linkage = self.linkage.removeprefix("#llvm.linkage<").removesuffix(">")
        shape, type = [], self.global_type
        while isinstance(type, ArrayType):
            shape.append(type.count)
            type = type.element
        if self.value is not None and (self.value.shape != tuple(shape) or from_numpy(self.value.dtype) != type):
            self.fail(f"an array of {self.value.dtype}{list(self.value.shape)} is no {self.global_type}",
                      code="MLC0167")
        if self.body.blocks:
            self.fail("has a value or none, but no code that computes it", code="MLC0167")
        return ()

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if generic and name in ("constant", "linkage"):
            return "unit" if name == "constant" else f"#llvm.linkage<{value}>"
        return super().attr_text(name, str(value) if name == "sym_name" else value, generic)

    def print_form(self, p: Printer) -> None:
        from mlc.ir.printer import attr_text
        value = "" if self.value is None else self.attr_text("value", self.value, False)
        extra = p.attr_dict(self, ("sym_name", "global_type", "linkage", "value", "constant"))
        p.append(f" {self.linkage}{' constant' if self.constant else ''} {attr_text(Symbol(self.sym_name), False)}"
                 f"({value}){' ' + extra if extra else ''} : {p.type(self.global_type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        attrs: dict[str, Any] = {"linkage": parser.word("a linkage such as internal"),
                                 "constant": parser.accept("constant"), "sym_name": parser.attribute()}
        parser.expect("(")
        if not parser.at(")"):
            attrs["value"] = parser.attribute()
        parser.expect(")")
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        return parser.build(Global, [], {**attrs, "global_type": parser.type(), **extra}, [], [Region()])


class AddressOf(Op, name="llvm.mlir.addressof", pure=True):
    """result = the address of a global"""

    global_name: Symbol
    type: ResultType
    format = "$global_name attr-dict `:` type(result)"

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, PtrType):
            self.fail(f"the address of a global is no {type}", code="MLC0167")
        return type

    def interpret(self, frame: Frame) -> Any:
        interpreter = frame.interpreter
        key = f"llvm.global {self.global_name}"
        if key not in interpreter.globals:
            held = interpreter.function(self.global_name)
            assert isinstance(held, Global), f"@{self.global_name} is no global"
            memory = fresh((size_of(held.global_type),), i8, held.alignment or 16)
            if held.value is not None:
                memory.view(np.uint8)[...] = np.ascontiguousarray(held.value).reshape(-1).view(np.uint8)
            interpreter.globals[key] = heap(interpreter).pointer(memory)
        return interpreter.globals[key]
