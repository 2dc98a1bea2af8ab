"""Functions, calls and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects import x86vector
from mlc.dialects.llvm import tiles
from mlc.dialects.llvm.types import LLVMFunctionType, StructType, function_result, ptr
from mlc.ir.core import Block, Op, Region, ResultType, Symbol, Value
from mlc.ir.diag import IRError
from mlc.ir.interp import aligned
from mlc.ir.types import IntType, Type, VectorType, i1

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Func(Op, name="llvm.func", isolated=True, pure=False):
    """A named function; a declaration if it has no blocks"""

    body: Region
    sym_name: Symbol
    function_type: LLVMFunctionType
    linkage: str = "external"
    passthrough: tuple[Any, ...] | None = None

    def infer(self) -> tuple[Type, ...]:
        self.linkage = self.linkage.removeprefix("#llvm.linkage<").removesuffix(">")
        if not isinstance(self.function_type, LLVMFunctionType):
            self.fail(f"{self.function_type} is no function type of this dialect", code="MLC0168")
        return ()

    def verify_op(self) -> None:
        if self.body.blocks and tuple(a.type for a in self.args) != self.function_type.params:
            self.fail("the entry block's arguments are not the function's parameters", code="MLC0168")

    @property
    def args(self) -> Sequence[Value]:
        return self.body.blocks[0].args

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if name == "linkage" and generic:
            return f"#llvm.linkage<{value}>"
        if name == "nvvm.maxntid" and generic:
            return f"array<i32: {', '.join(map(str, value))}>"
        if name in ("nvvm.kernel", "gpu.kernel") and generic:
            return "unit"
        return super().attr_text(name, str(value) if name == "sym_name" else value, generic)

    def print_form(self, p: Printer) -> None:
        from mlc.ir.printer import attr_text
        linkage = "" if self.linkage == "external" else f" {self.linkage}"
        args = ", ".join(f"{p.name(a)}: {p.type(a.type)}" for a in self.args) if self.body.blocks else \
            p.types(self.function_type.params)
        result = "" if self.function_type.result is None else f" -> {p.type(self.function_type.result)}"
        p.append(f"{linkage} {attr_text(Symbol(self.sym_name), False)}({args}){result}")
        if extra := p.attr_dict(self, ("sym_name", "function_type", "linkage")):
            p.append(f" attributes {extra}")
        if self.body.blocks:
            p.braces(self.body, entry_args=False)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        linkage = parser.word() if parser.token.kind == "word" else "external"
        name = parser.attribute()
        parser.expect("(")
        if parser.at_value():
            args = parser.list_of(parser.typed_arg, ")")
            types = [t for _, t in args]
        else:
            args, types = [], parser.list_of(parser.type, ")")
        result = parser.type() if parser.accept("->") else None
        extra = parser.attr_dict() if parser.accept("attributes") else {}
        body = parser.region(args, isolated=True) if parser.at("{") else Region()
        attrs = {"sym_name": name, "function_type": LLVMFunctionType(result, tuple(types)), "linkage": linkage}
        return parser.build(Func, [], attrs | extra, [], [body])


def function(name: str, params: Sequence[Type], results: Sequence[Type] = (), names: Sequence[str] = (),
             linkage: str = "external") -> Func:
    """A detached function with an empty entry block. Several results are returned as a struct."""
    type = LLVMFunctionType(function_result(results), tuple(params))
    return Func.make([], {"sym_name": Symbol(name), "function_type": type, "linkage": linkage}, [],
                     [Region(Block(params, names))])


def declaration(name: str, params: Sequence[Type], result: Type | None) -> Func:
    """A detached declaration of a function that is defined elsewhere."""
    return Func.make([], {"sym_name": Symbol(name), "function_type": LLVMFunctionType(result, tuple(params)),
                          "linkage": "external"}, [], [Region()])


class Return(Op, name="llvm.return", terminator=True, pure=False):
    """Return this value from the function."""

    value: Value | None = None

    def verify_op(self) -> None:
        function = self.parent_op
        found = None if self.value is None else self.value.type
        if not isinstance(function, Func) or function.function_type.result != found:
            self.fail(f"returns {found}, which is not what the function returns", code="MLC0168")

    def print_form(self, p: Printer) -> None:
        if extra := p.attr_dict(self):
            p.append(" " + extra)
        if self.value is not None:
            p.append(f" {p.name(self.value)} : {p.type(self.value.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        extra = parser.attr_dict() if parser.at("{") else {}
        refs = parser.operand_list()
        types = parser.type_list() if refs and parser.accept(":") else None
        return Return.make(parser.resolve_all(refs, types), extra, None)


class Unreachable(Op, name="llvm.unreachable", terminator=True, pure=False):
    """Marks code that is never reached."""

    def branch(self, frame: Frame) -> tuple[Block, list[Any]]:
        raise IRError("llvm.unreachable is reached", code="MLC0163", loc=self.loc)


class Br(Op, name="llvm.br", terminator=True, pure=False):
    """Branch to `dest`, passing these values as its arguments."""

    args: tuple[Value, ...]
    dest: Block

    def verify_op(self) -> None:
        check_edge(self, self.dest, self.args)

    def branch(self, frame: Frame) -> tuple[Block, list[Any]]:
        return self.dest, frame.all(self.args)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self)
        p.append(f" {edge_text(p, self.dest, self.args)}{' ' + extra if extra else ''}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        dest, args = parse_edge(parser)
        extra = parser.attr_dict() if parser.at("{") else {}
        return Br.make(args, extra, None, successors=[dest])


class CondBr(Op, name="llvm.cond_br", terminator=True, pure=False):
    """Branch to `true_dest` with `true_args` if condition, else to `false_dest` with `false_args`."""

    condition: Value
    true_args: tuple[Value, ...]
    false_args: tuple[Value, ...]
    true_dest: Block
    false_dest: Block

    def infer(self) -> tuple[Type, ...]:
        if self.condition.type != i1:
            self.fail(f"the condition is {self.condition.type}, not i1", code="MLC0168")
        return ()

    def verify_op(self) -> None:
        check_edge(self, self.true_dest, self.true_args)
        check_edge(self, self.false_dest, self.false_args)

    def branch(self, frame: Frame) -> tuple[Block, list[Any]]:
        if frame[self.condition]:
            return self.true_dest, frame.all(self.true_args)
        return self.false_dest, frame.all(self.false_args)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("operandSegmentSizes",))
        p.append(f" {p.name(self.condition)}, {edge_text(p, self.true_dest, self.true_args)}, "
                 f"{edge_text(p, self.false_dest, self.false_args)}{' ' + extra if extra else ''}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        condition = parser.resolve(parser.operand(), i1)
        parser.expect(",")
        yes, yes_args = parse_edge(parser)
        parser.expect(",")
        no, no_args = parse_edge(parser)
        extra = parser.attr_dict() if parser.at("{") else {}
        return CondBr.make([condition, *yes_args, *no_args], extra, None, successors=[yes, no],
                           segments=[1, len(yes_args), len(no_args)])


class Switch(Op, name="llvm.switch", terminator=True, pure=False):
    """Branch to the case that equals `value`, else to the default, which is the first successor.

    `case_operand_segments` has the number of `case_args` of each case.
    """

    value: Value
    default_args: tuple[Value, ...]
    case_args: tuple[Value, ...]
    dests: tuple[Block, ...]
    case_values: np.ndarray[Any, Any]
    case_operand_segments: tuple[int, ...]
    attr_types = {"case_operand_segments": "i32"}

    def infer(self) -> tuple[Type, ...]:
        cases = len(self.successors) - 1
        if not isinstance(self.value.type, IntType) or len(self.case_values) != cases or \
                len(self.case_operand_segments) != cases or sum(self.case_operand_segments) != len(self.case_args):
            self.fail("needs an integer, and a number and a destination per case", code="MLC0168")
        return ()

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if name != "case_values":
            return super().attr_text(name, value, generic)
        from mlc.ir.printer import elements_text
        return elements_text(np.asarray(value), VectorType((len(value),), self.value.type).text(generic))

    def args_of(self, case: int) -> list[Value]:
        """The values passed to a case."""
        start = sum(self.case_operand_segments[:case])
        return list(self.case_args[start: start + self.case_operand_segments[case]])

    def verify_op(self) -> None:
        check_edge(self, self.successors[0], self.default_args)
        for case, dest in enumerate(self.successors[1:]):
            check_edge(self, dest, self.args_of(case))

    def branch(self, frame: Frame) -> tuple[Block, list[Any]]:
        for case, number in enumerate(self.case_values):
            if number == frame[self.value]:
                return self.successors[1 + case], frame.all(self.args_of(case))
        return self.successors[0], frame.all(self.default_args)

    def print_form(self, p: Printer) -> None:
        cases = ", ".join(f"{n}: {edge_text(p, dest, self.args_of(i))}"
                          for i, (n, dest) in enumerate(zip(self.case_values, self.successors[1:])))
        extra = p.attr_dict(self, ("case_values", "case_operand_segments", "operandSegmentSizes"))
        p.append(f" {p.name(self.value)} : {p.type(self.value.type)}, "
                 f"{edge_text(p, self.successors[0], self.default_args)} [{cases}]{' ' + extra if extra else ''}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        from mlc.ir.types import element, to_numpy
        ref, _ = parser.operand(), parser.expect(":")
        value = parser.resolve(ref, parser.type())
        parser.expect(",")
        default, default_args = parse_edge(parser)
        parser.expect("[")
        cases = parser.list_of(lambda: (parser.integer(), parser.expect(":"), parse_edge(parser)), "]")
        extra = parser.attr_dict() if parser.at("{") else {}
        numbers = np.array([c[0] for c in cases], to_numpy(element(value.type)))
        groups = [c[2][1] for c in cases]
        rest = [v for g in groups for v in g]
        return Switch.make([value, *default_args, *rest],
                           {"case_values": numbers, "case_operand_segments": tuple(map(len, groups)), **extra}, None,
                           successors=[default, *(c[2][0] for c in cases)], segments=[1, len(default_args), len(rest)])


def check_edge(op: Op, dest: Block, args: Sequence[Value]) -> None:
    """Check that the values passed to a block have the types of its arguments."""
    if [v.type for v in args] != [a.type for a in dest.args]:
        op.fail(f"gives {', '.join(str(v.type) for v in args) or 'nothing'} to a block that takes "
                f"{', '.join(str(a.type) for a in dest.args) or 'nothing'}", code="MLC0168")


def edge_text(p: Printer, dest: Block, args: Sequence[Value]) -> str:
    """`^bb1(%a, %b : i32, i64)`"""
    return p.label(dest) + (f"({p.values(args)} : {p.types(v.type for v in args)})" if args else "")


def parse_edge(parser: Parser) -> tuple[Block, list[Value]]:
    dest = parser.successor()
    if not parser.accept("("):
        return dest, []
    refs = parser.operand_list()
    parser.expect(":")
    args = parser.resolve_all(refs, parser.type_list())
    parser.expect(")")
    return dest, args


def _aligned_alloc(frame: Frame, alignment: Any, size: Any) -> list[Any]:
    return [frame.interpreter.heap.pointer(aligned(int(size), int(alignment)))]


def _free(frame: Frame, pointer: Any) -> list[Any]:
    pointer.buffer[...] = 0xFF
    return []


EXTERNALS: dict[str, Callable[..., list[Any]]] = {"aligned_alloc": _aligned_alloc, "free": _free}
"""Implementations of C library functions that modules may declare."""


class Call(Op, name="llvm.call", pure=False):
    """result = the value of a function of this module; without a callee, of the one whose address is the first of args
    """

    callee: Symbol | None = None
    args: tuple[Value, ...] = ()
    op_bundle_operands: tuple[Value, ...] = ()
    types: tuple[ResultType, ...] = ()
    op_bundle_sizes: tuple[int, ...] = ()
    attr_types = {"op_bundle_sizes": "i32"}

    def infer(self) -> tuple[Type, ...]:
        if self.callee is None and (not self.args or self.args[0].type != ptr):
            self.fail("without a callee, the first argument is the address of a function", code="MLC0168")
        return tuple(r.type for r in self.results)

    def interpret(self, frame: Frame) -> list[Any]:
        if self.callee is None:
            raise IRError("the function at an address is not known here", code="MLC0168", loc=self.loc)
        callee = frame.interpreter.function(self.callee)
        if not callee.regions[0].blocks:
            if self.callee not in EXTERNALS:
                self.fail(f"@{self.callee} is only declared", code="MLC0168")
            return EXTERNALS[self.callee](frame, *frame.all(self.args))
        return frame.interpreter.call(self.callee, frame.all(self.args))

    def print_form(self, p: Printer) -> None:
        from mlc.ir.printer import attr_text
        direct = self.callee is not None
        called = attr_text(Symbol(self.callee), False) if self.callee is not None else p.name(self.args[0])
        args = self.args if direct else self.args[1:]
        extra = p.attr_dict(self, ("callee", "operandSegmentSizes", "op_bundle_sizes"))
        p.append(f" {called}({p.values(args)}){' ' + extra if extra else ''} : {'' if direct else f'{p.type(ptr)}, '}"
                 f"({p.types(v.type for v in args)}) -> {p.types(r.type for r in self.results) or '()'}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        pointer = [parser.operand()] if parser.at_value() else []
        callee = None if pointer else parser.attribute()
        parser.expect("(")
        refs = parser.list_of(parser.operand, ")")
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        if pointer:
            parser.resolve_all(pointer, [parser.type()])
            parser.expect(",")
        inputs, results = parser.signature()
        args = parser.resolve_all([*pointer, *refs], [*([ptr] if pointer else []), *inputs])
        return parser.build(Call, args, {"callee": callee, **extra}, results, segments=[len(args), 0])


def call(callee: Func, args: Sequence[Value]) -> Value | None:
    """Build a call; returns its result, if any."""
    result = callee.function_type.result
    op = Call(Symbol(callee.sym_name), tuple(args), (), () if result is None else (result,))
    return op.result if op.results else None


class CallIntrinsic(Op, name="llvm.call_intrinsic", pure=False):
    """result = the LLVM intrinsic of this name, for intrinsics without an operation of their own"""

    intrin: str
    args: tuple[Value, ...]
    op_bundle_operands: tuple[Value, ...] = ()
    types: tuple[ResultType, ...] = ()
    op_bundle_sizes: tuple[int, ...] = ()
    attr_types = {"op_bundle_sizes": "i32"}
    format = "$intrin `(` $args `)` attr-dict `:` functional-type"

    def ref(self, *xs: Any) -> Any:
        known = x86vector.INTRINSICS.get(self.intrin) or tiles.INTRINSICS.get(self.intrin)
        if known is not None:
            try:
                found = known(*xs)
            except IndexError as error:                  # of an address
                raise IRError(f"{self.intrin}: {error}", code="MLC0163", loc=self.loc) from None
            return found if self.results else []
        raise IRError(f"the meaning of {self.intrin} is not known here", code="MLC0168", loc=self.loc)


def members(type: Type | None) -> tuple[Type, ...]:
    """The types of the values that a function returns as a single struct."""
    return () if type is None else type.members if isinstance(type, StructType) else (type,)


class InlineAsm(Op, name="llvm.inline_asm", pure=False):
    """result = what the assembly text computes, for instructions without an intrinsic

    Operands and results are bound by LLVM's constraints: `=f` is a result in a float register, a number ties an operand
    to the result of that number, `l` is a 64-bit integer register. Interpreters know the texts of dialects/nvvm.py.
    """

    args: tuple[Value, ...]
    asm_string: str
    constraints: str
    has_side_effects: bool | None = None
    types: tuple[ResultType, ...] = ()

    def infer(self) -> tuple[Type, ...]:
        self.has_side_effects = self.has_side_effects or None          # upstream's unit attribute
        results = sum(text.strip().startswith("=") for text in self.constraints.split(","))
        inputs = sum(not text.strip().startswith(("=", "~")) for text in self.constraints.split(","))
        given = members(self.results[0].type) if self.results else ()
        if results != len(given) or inputs != len(self.args):
            self.fail(f"{self.constraints} binds {results} results and {inputs} operands, not {len(given)} and "
                      f"{len(self.args)}", code="MLC0166")
        return tuple(r.type for r in self.results)

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return "unit" if generic and name == "has_side_effects" else super().attr_text(name, value, generic)

    def ref(self, *xs: Any) -> Any:
        raise IRError(f"the meaning of {self.asm_string} is not known here", code="MLC0168", loc=self.loc)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("asm_string", "constraints", "has_side_effects"))
        effects = " has_side_effects" if self.has_side_effects else ""
        texts = (self.attr_text(name, getattr(self, name), False) for name in ("asm_string", "constraints"))
        p.append(f"{effects}{' ' + extra if extra else ''} {', '.join(texts)} {p.values(self.operands)} : "
                 f"({p.types(v.type for v in self.args)}) -> {p.types(r.type for r in self.results) or '()'}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        effects = True if parser.accept("has_side_effects") else None
        extra = parser.attr_dict() if parser.at("{") else {}
        asm, _, constraints = parser.attribute(), parser.expect(","), parser.attribute()
        refs = parser.operand_list() if parser.at_value() else []
        parser.expect(":")
        inputs, results = parser.signature()
        return parser.build(InlineAsm, parser.resolve_all(refs, inputs), {
            "asm_string": asm, "constraints": constraints, "has_side_effects": effects, **extra}, results)
