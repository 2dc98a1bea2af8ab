"""Emission of LLVM IR text from the llvm dialect: one table row per operation.

Constants have no row, since they are printed as operands. Block arguments become phis. The output is text, not an
object model: LLVM's parser verifies it, and the rows serve every LLVM target.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from mlc.backends import emit_nvvm
from mlc.backends.emulation import emulate
from mlc.backends.line_table import LineTable, SourceTable
from mlc.dialects import arith, llvm
from mlc.ir.core import Block, Op, Value
from mlc.ir.diag import BackendError
from mlc.ir.types import FloatType, IntType, Type, VectorType, bf16, f16, f64, i1, i32, to_numpy


class TargetLike(Protocol):
    """The properties of `backends.target.Target` that emission depends on."""

    @property
    def triple(self) -> str: ...
    @property
    def cpu(self) -> str: ...
    @property
    def feature_string(self) -> str: ...
    @property
    def vector_bits(self) -> int: ...


@dataclass(frozen=True)
class Part:
    """Emission options of a part of a module.

    names    new names of symbols, where they differ
    seen     its functions and globals that other parts use
    outside  functions and globals of other parts that it uses
    hints    whether values keep their names; without them equal functions have equal texts
    lines    numbers of operations, for the line table of the code (backends/line_table.py)
    sources  whether the table has the lines of the program instead, for debuggers
    """

    names: Mapping[str, str] = field(default_factory=dict)
    seen: Collection[str] = ()
    outside: Sequence[Op] = ()
    hints: bool = True
    lines: Mapping[Op, int] = field(default_factory=dict)
    sources: bool = False


def emit(module: Op, target: TargetLike, part: Part | None = None) -> str:
    """The LLVM IR of a module of the llvm dialect, for a target."""
    return emit_part(list(module.regions[0].block), target, part or Part())


def emit_part(ops: Sequence[Op], target: TargetLike, part: Part) -> str:
    """The LLVM IR of some functions and globals of a module."""
    declared: dict[str, str] = {}
    parts = [f'target triple = "{target.triple}"\n']
    table: LineTable | None = SourceTable() if part.sources else None
    if part.lines:
        table = LineTable(part.lines, target.triple.startswith("nvptx"))
    bodies = []
    for op in ops:
        if isinstance(op, llvm.Global):
            parts.append(_global(op, part))
        elif isinstance(op, llvm.Func):
            bodies.append(_Writer(op, declared, part, table).text())
        else:
            raise _no_row(op)
    parts += [_declaration(op, part) for op in part.outside]
    defined = {op.attrs["sym_name"] for op in (*ops, *part.outside) if not _only_declared(op)}
    declarations = "".join(f"{text}\n" for name, text in sorted(declared.items()) if name not in defined)
    text = "\n".join([*parts, *bodies, declarations, _attributes(target), *([table.text()] if table else [])])
    return emulate(text, target.feature_string.split(",")) if target.triple.startswith("x86") else text


def _attributes(target: TargetLike) -> str:
    return (f'attributes #0 = {{ nounwind "target-cpu"="{target.cpu}" "target-features"="{target.feature_string}" '
            f'"prefer-vector-width"="{target.vector_bits}" }}\n')


def _no_row(op: Op) -> BackendError:
    return BackendError(f"{op.name} cannot be written as LLVM IR", code="MLC0550", loc=op.loc)


def _only_declared(op: Op) -> bool:
    return isinstance(op, llvm.Func) and not op.body.blocks


# -- types and constants ----------------------------------------------------------------------------------------------
_FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}


def type_text(type: Type | None) -> str:
    """The LLVM IR text of a type."""
    match type:
        case None:
            return "void"
        case IntType(width=width):
            return f"i{width}"
        case FloatType(name=name):
            return _FLOATS[name]
        case llvm.AmxType():
            return "x86_amx"
        case llvm.PtrType(space=space):
            return f"ptr addrspace({space})" if space else "ptr"
        case VectorType(shape=(lanes,), dtype=dtype):
            return f"<{lanes} x {type_text(dtype)}>"
        case llvm.StructType(members=members):
            return "{ " + ", ".join(map(type_text, members)) + " }"
        case llvm.ArrayType(count=count, element=inner):
            return f"[{count} x {type_text(inner)}]"
    raise BackendError(f"{type} is not an LLVM type", code="MLC0550")


def _mangled(type: Type) -> str:
    """A type as mangled in the name of an intrinsic."""
    if isinstance(type, VectorType):
        return f"v{type.shape[0]}{_mangled(type.dtype)}"
    return f"p{type.space}" if isinstance(type, llvm.PtrType) else str(type)


def _number_text(value: Any, type: Type) -> str:
    """One element; floats are written as hexadecimal bits, f32 as the equal f64 that LLVM expects, to preserve NaNs."""
    if not isinstance(type, FloatType):
        return ("true" if value else "false") if type == i1 else str(int(value))
    array = np.asarray(value, to_numpy(type))
    bits = int(array.view({16: np.uint16, 32: np.uint32, 64: np.uint64}[type.width]))
    if type in (f16, bf16):
        return f"0x{'H' if type == f16 else 'R'}{bits:04X}"
    if type != f64:
        bits = (bits >> 31 << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29) if np.isnan(array) else \
            int(array.astype(np.float64).view(np.uint64))
    return f"0x{bits:016X}"


def constant_text(value: Any, type: Type) -> str:
    """A number, or a vector of numbers, as an operand."""
    if not isinstance(type, VectorType):
        return _number_text(value, type)
    dtype, scalar = type.dtype, type_text(type.dtype)
    lanes = np.broadcast_to(np.asarray(value, to_numpy(dtype)), type.shape)
    texts = [_number_text(x, dtype) for x in lanes]
    if len(set(texts)) == 1:
        return f"splat ({scalar} {texts[0]})"
    return "<" + ", ".join(f"{scalar} {t}" for t in texts) + ">"


def _symbol(name: str) -> str:
    """`@name`, quoted if necessary."""
    if re.fullmatch(r"[A-Za-z$._-][\w$.-]*", name):
        return f"@{name}"
    return '@"' + "".join(c if c.isalnum() and c.isascii() else "".join(f"\\{b:02X}" for b in c.encode())
                          for c in name) + '"'


def _linkage(op: llvm.Func | llvm.Global, part: Part) -> str:
    return "hidden " if op.sym_name in part.seen and op.linkage != "external" else \
        "" if op.linkage == "external" else f"{op.linkage} "


def _name(name: str, part: Part) -> str:
    return _symbol(part.names.get(name, name))


def _declaration(op: Op, part: Part) -> str:
    """A function or global that another part of the module defines."""
    if isinstance(op, llvm.Func):
        type = op.function_type
        return (f"declare hidden {type_text(type.result)} {_name(op.sym_name, part)}"
                f"({', '.join(map(type_text, type.params))})\n")
    assert isinstance(op, llvm.Global)
    kind = "constant" if op.constant else "global"
    return f"{_name(op.sym_name, part)} = external hidden {kind} [{llvm.size_of(op.global_type)} x i8]\n"


def _global(op: llvm.Global, part: Part) -> str:
    """A global as an array of bytes; loads have types of their own."""
    size = llvm.size_of(op.global_type)
    if op.value is None:
        body = "" if op.linkage == "external" else "poison" if op.addr_space else "zeroinitializer"
    else:
        raw = np.ascontiguousarray(op.value.astype(op.value.dtype.newbyteorder("<"))).tobytes()
        body = f'c"{_escaped(raw)}"' if any(raw) else "zeroinitializer"
    kind = "constant" if op.constant else "global"
    external = "external " if op.value is None and op.linkage == "external" else _linkage(op, part)
    align = f", align {op.alignment}" if op.alignment else ""
    kind = f"addrspace({op.addr_space}) {kind}" if op.addr_space else kind
    return f"{_name(op.sym_name, part)} = {external}{kind} [{size} x i8] {body}{align}\n"


_BYTES = [chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in range(256)]


def _escaped(raw: bytes) -> str:
    return "".join([_BYTES[b] for b in raw])


# -- functions --------------------------------------------------------------------------------------------------------
class _Writer:
    """Emitter of one function: names of values and blocks, and declarations of what it calls."""

    def __init__(self, function: llvm.Func, declared: dict[str, str], part: Part, table: LineTable | None) -> None:
        self.function = function
        self.declared = declared
        self.part = part
        self.table = table
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.labels = {block: f"b{i}" for i, block in enumerate(function.body.blocks)}
        self.count = 0

    # operands
    def v(self, value: Value) -> str:
        """A value as an operand, without its type."""
        if (name := self.names.get(value)) is None:
            name = self.names[value] = self._inline(value.op) or self._fresh(value.name)
        return name

    def t(self, value: Value) -> str:
        """A value as an operand, with its type."""
        return f"{type_text(value.type)} {self.v(value)}"

    def ts(self, values: Sequence[Value]) -> str:
        return ", ".join([self.t(v) for v in values])

    def label(self, block: Block) -> str:
        return f"label %{self.labels[block]}"

    def _inline(self, op: Op | None) -> str | None:
        """The operand text of an operation that is not an instruction."""
        match op:
            case llvm.Constant():
                return constant_text(op.value, op.type)
            case llvm.Undef():
                return "undef"
            case llvm.Poison():
                return "poison"
            case llvm.Zero():
                type = op.result.type
                return "null" if isinstance(type, llvm.PtrType) else \
                    _number_text(0, type) if isinstance(type, IntType | FloatType) else "zeroinitializer"
            case llvm.AddressOf():
                return self.symbol(op.global_name)
        return None

    def _fresh(self, hint: str) -> str:
        if self.part.hints and re.fullmatch(r"[A-Za-z_]\w*", hint) and not re.fullmatch(r"b\d+(\.\w+)?|v\d+", hint):
            name, n = hint, 0
            while name in self.taken:
                n += 1
                name = f"{hint}.{n}"
            self.taken.add(name)
            return f"%{name}"
        self.count += 1
        return f"%v{self.count - 1}"

    def declare(self, name: str, result: Type | None, params: Sequence[Type]) -> str:
        """Declare a function or intrinsic in the module; returns its symbol."""
        self.declared[name] = f"declare {type_text(result)} {self.symbol(name)}({', '.join(map(type_text, params))})"
        return self.symbol(name)

    def symbol(self, name: str) -> str:
        """A function or global of the module, or an intrinsic, as an operand."""
        return _name(name, self.part)

    def intrinsic(self, op: Op, name: str, overloads: Sequence[Type], tail: Sequence[tuple[Type, str]] = (),
                  operands: Sequence[Value] | None = None) -> str:
        """A call of @llvm.NAME.TYPES with the operands of `op` and constants after them."""
        operands = op.operands if operands is None else operands
        result = op.results[0].type if op.results else None
        full = ".".join(["llvm", name, *map(_mangled, overloads)])
        symbol = self.declare(full, result, [*(v.type for v in operands), *(t for t, _ in tail)])
        args = ", ".join([*(self.t(v) for v in operands), *(f"{type_text(t)} {text}" for t, text in tail)])
        return f"call {type_text(result)} {symbol}({args})"

    # the function
    def text(self) -> str:
        op = self.function
        type = op.function_type
        if not op.body.blocks:
            self.declare(op.sym_name, type.result, type.params)
            return ""
        kernel = "ptx_kernel " if op.attrs.get("nvvm.kernel") else ""
        head = (f"define {_linkage(op, self.part)}{kernel}{type_text(type.result)} {self.symbol(op.sym_name)}"
                f"({self.ts(op.args)})")
        extra = "".join(" " + (f'"{a[0]}"="{a[1]}"' if isinstance(a, tuple) else a) for a in op.passthrough or ())
        if threads := op.attrs.get("nvvm.maxntid"):
            extra += f' "nvvm.maxntid"="{",".join(map(str, threads))}"'
        if blocks := op.attrs.get("nvvm.minctasm"):
            extra += f' "nvvm.minctasm"="{blocks}"'
        lines = [f"{head}{extra} #0{self.table.function(op, op.sym_name) if self.table else ''} {{"]
        edges = self._edges()
        for block in op.body.blocks:
            lines.append(f"{self.labels[block]}:")
            if block is not op.body.blocks[0]:
                lines += self._phis(block, edges)
            for inner in block:
                if (line := self._line(inner)) is not None:
                    lines.append(f"  {line}{self.table.at(inner) if self.table else ''}")
            lines += self._split_edges(block)
        return "\n".join([*lines, "}\n"])

    def _line(self, op: Op) -> str | None:
        row = ROWS.get(type(op))
        if row is not None:
            text = row(self, op)
            return f"{self.v(op.results[0])} = {text}" if op.results else text
        if op.results and self._inline(op) is not None:
            return None
        raise _no_row(op)

    # A phi identifies its predecessors by label. If a block branches to the same block several times with different
    # values, all edges but the first are split.
    def _edges(self) -> dict[Block, list[tuple[str, Sequence[Value]]]]:
        """For each block, the predecessor label and the argument values of each incoming edge."""
        out: dict[Block, list[tuple[str, Sequence[Value]]]] = {b: [] for b in self.function.body.blocks}
        for block in self.function.body.blocks:
            for dest, args, via in self._outgoing(block):
                out[dest].append((via or self.labels[block], args))
        return out

    def _outgoing(self, block: Block) -> Iterator[tuple[Block, Sequence[Value], str]]:
        """The outgoing edges of a block: destination, values, and the label of the split block, if any."""
        seen: set[Block] = set()
        for i, (dest, args) in enumerate(_targets(block.terminator)):
            yield dest, args, f"{self.labels[block]}.{i}" if dest in seen and dest.args else ""
            seen.add(dest)

    def _phis(self, block: Block, edges: dict[Block, list[tuple[str, Sequence[Value]]]]) -> Iterator[str]:
        for i, arg in enumerate(block.args):
            incoming = ", ".join(f"[ {self.v(args[i])}, %{label} ]" for label, args in edges[block])
            yield f"  {self.v(arg)} = phi {type_text(arg.type)} {incoming}"

    def _split_edges(self, block: Block) -> Iterator[str]:
        for dest, _, via in self._outgoing(block):
            if via:
                at = self.table.at(block.terminator) if self.table else ""
                yield f"{via}:\n  br {self.label(dest)}{at}"

    def targets(self, block: Block) -> list[str]:
        """The labels of a terminator's successors, in order."""
        return [f"label %{via}" if via else self.label(dest) for dest, _, via in self._outgoing(block)]


def _targets(op: Op) -> list[tuple[Block, Sequence[Value]]]:
    """The successors of a terminator, with their operands."""
    match op:
        case llvm.Br():
            return [(op.dest, op.args)]
        case llvm.CondBr():
            return [(op.true_dest, op.true_args), (op.false_dest, op.false_args)]
        case llvm.Switch():
            return [(op.successors[0], op.default_args),
                    *((dest, op.args_of(i)) for i, dest in enumerate(op.successors[1:]))]
    return []


# -- the table --------------------------------------------------------------------------------------------------------
Row = Callable[[_Writer, Any], str]


def _two(opcode: str) -> Row:
    return lambda w, o: f"{opcode} {w.t(o.operands[0])}, {w.v(o.operands[1])}"


def _cast(opcode: str) -> Row:
    return lambda w, o: f"{opcode} {w.t(o.operands[0])} to {type_text(o.results[0].type)}"


def _call_of(name: str) -> Row:
    """An intrinsic overloaded on its first operand."""
    return lambda w, o: w.intrinsic(o, name, [o.operands[0].type])


def _aligned(op: Any) -> str:
    return f", align {op.alignment}" if op.alignment else ""


def _gep(w: _Writer, o: llvm.GetElementPtr) -> str:
    indices = ", ".join(w.t(n) if isinstance(n, Value) else f"i32 {n}" for n in o.indices)
    return f"getelementptr {type_text(o.elem_type)}, {w.t(o.base)}, {indices}"


def _masked(w: _Writer, o: Any, name: str, order: Sequence[Value], lanes: Value, address: Value) -> str:
    """A call of a masked memory intrinsic, with the alignment after the address."""
    at = next(i for i, v in enumerate(order) if v is address) + 1
    result = o.results[0].type if o.results else None
    symbol = w.declare(f"llvm.masked.{name}.{_mangled(lanes.type)}.{_mangled(address.type)}", result,
                       [*(v.type for v in order[:at]), i32, *(v.type for v in order[at:])])
    args = [*map(w.t, order[:at]), f"i32 {o.alignment}", *map(w.t, order[at:])]
    return f"call {type_text(result)} {symbol}({', '.join(args)})"


def _call(w: _Writer, o: llvm.Call) -> str:
    result = o.results[0].type if o.results else None
    called, args = (w.symbol(o.callee), o.args) if o.callee is not None else (w.v(o.args[0]), o.args[1:])
    return f"call {type_text(result)} {called}({w.ts(args)})"


def _call_intrinsic(w: _Writer, o: llvm.CallIntrinsic) -> str:
    result = o.results[0].type if o.results else None
    return f"call {type_text(result)} {w.declare(o.intrin, result, [v.type for v in o.args])}({w.ts(o.args)})"


def _switch(w: _Writer, o: llvm.Switch) -> str:
    assert o.parent is not None
    default, *dests = w.targets(o.parent)
    cases = " ".join(f"{type_text(o.value.type)} {n}, {dest}" for n, dest in zip(o.case_values, dests))
    return f"switch {w.t(o.value)}, {default} [ {cases} ]"


def _branch(w: _Writer, o: Any) -> str:
    if isinstance(o, llvm.Br):
        return f"br {w.label(o.dest)}"
    return f"br {w.t(o.condition)}, {', '.join(w.targets(o.parent))}"


def _shuffle(w: _Writer, o: llvm.ShuffleVector) -> str:
    mask = "zeroinitializer" if not any(o.mask) else \
        "<" + ", ".join("i32 poison" if m < 0 else f"i32 {m}" for m in o.mask) + ">"
    return f"shufflevector {w.t(o.v1)}, {w.t(o.v2)}, <{len(o.mask)} x i32> {mask}"


def _inline_asm(w: _Writer, op: llvm.InlineAsm) -> str:
    result = type_text(op.results[0].type if op.results else None)
    effects = " sideeffect" if op.has_side_effects else ""
    asm, constraints = (_escaped(text.encode()) for text in (op.asm_string, op.constraints))
    return f'call {result} asm{effects} "{asm}", "{constraints}"({w.ts(op.args)}) convergent'


def _of_name(cls: type[Op]) -> Row:
    """The row of a binary instruction, cast or intrinsic with the name of the operation."""
    name = cls.name.removeprefix("llvm.")
    if name.startswith("intr."):
        return _call_of(name.removeprefix("intr."))
    return _cast(name) if issubclass(cls, arith.Cast) else _two(name)


def _exp2(w: _Writer, o: llvm.Exp2) -> str:
    """The instruction of a GPU, in a kernel for one; code for a CPU may not call the C library."""
    if not w.function.attrs.get("nvvm.kernel"):
        raise _no_row(o)
    return w.intrinsic(o, "nvvm.ex2.approx.ftz.f", ())


ROWS: dict[type[Op], Row] = {
    **{cls: _of_name(cls) for cls in (*llvm.INSTRUCTIONS.values(), *llvm.Reduce.__subclasses__())},
    llvm.FNeg: lambda w, o: f"fneg {w.t(o.x)}", llvm.Exp2: _exp2,
    llvm.ICmp: lambda w, o: f"icmp {o.predicate} {w.t(o.lhs)}, {w.v(o.rhs)}",
    llvm.FCmp: lambda w, o: f"fcmp {o.predicate.removeprefix('_')} {w.t(o.lhs)}, {w.v(o.rhs)}",
    llvm.Select: lambda w, o: f"select {w.ts(o.operands)}",
    llvm.Freeze: lambda w, o: f"freeze {w.t(o.x)}",
    llvm.Bitcast: _cast("bitcast"),
    llvm.AddrSpaceCast: _cast("addrspacecast"), llvm.PtrToInt: _cast("ptrtoint"), llvm.IntToPtr: _cast("inttoptr"),
    llvm.InsertElement: lambda w, o: f"insertelement {w.ts(o.operands)}",
    llvm.ExtractElement: lambda w, o: f"extractelement {w.ts(o.operands)}",
    llvm.ShuffleVector: _shuffle,
    llvm.InsertValue: lambda w, o: f"insertvalue {w.t(o.container)}, {w.t(o.value)}, {', '.join(map(str, o.position))}",
    llvm.ExtractValue: lambda w, o: f"extractvalue {w.t(o.container)}, {', '.join(map(str, o.position))}",
    llvm.Load: lambda w, o: f"load {type_text(o.results[0].type)}, {w.t(o.addr)}{_aligned(o)}",
    llvm.Store: lambda w, o: f"store {w.t(o.value)}, {w.t(o.addr)}{_aligned(o)}",
    llvm.AtomicRMW: lambda w, o: f"atomicrmw {o.bin_op.lstrip('_')} {w.ts(o.operands)} {o.ordering}{_aligned(o)}",
    llvm.Alloca: lambda w, o: f"alloca {type_text(o.elem_type)}, {w.t(o.count)}{_aligned(o)}",
    llvm.GetElementPtr: _gep,
    llvm.MaskedLoad: lambda w, o: _masked(w, o, "load", o.operands, o.pass_thru, o.data),
    llvm.MaskedGather: lambda w, o: _masked(w, o, "gather", o.operands, o.pass_thru, o.data),
    llvm.MaskedStore: lambda w, o: _masked(w, o, "store", o.operands, o.value, o.data),
    llvm.MaskedScatter: lambda w, o: _masked(w, o, "scatter", o.operands, o.value, o.data),
    llvm.MemCpy: lambda w, o: w.intrinsic(o, "memcpy", [llvm.ptr, llvm.ptr, o.len.type], [(i1, "false")]),
    llvm.MemSet: lambda w, o: w.intrinsic(o, "memset", [llvm.ptr, o.len.type], [(i1, "false")]),
    llvm.Prefetch: lambda w, o: w.intrinsic(o, "prefetch", [llvm.ptr],
                                            [(i32, str(n)) for n in (o.rw, o.hint, o.cache)]),
    llvm.Br: _branch, llvm.CondBr: _branch, llvm.Switch: _switch,
    llvm.Return: lambda w, o: "ret void" if o.value is None else f"ret {w.t(o.value)}",
    llvm.Unreachable: lambda w, o: "unreachable",
    llvm.Call: _call, llvm.CallIntrinsic: _call_intrinsic,
    llvm.InlineAsm: _inline_asm,
    **emit_nvvm.ROWS,
}
"""LLVM IR of each operation, after `%result = `."""


