"""gpu, module: GPU modules and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from mlc.ir.core import Block, Op, Region, Symbol, Value
from mlc.ir.types import FunctionType, MemRefType, Type

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


STATIC_SHARED, ALIGNMENT = 48 << 10, 16
"""Bytes of static shared memory of a block, and the alignment of shared buffers."""
ALIGNED = "gpu.shared_alignment"
"""Attribute of kernels whose shared buffers have a greater alignment."""


class GPUModule(Op, name="gpu.module", isolated=True, symbol_table=True, pure=False):
    """Functions that are compiled for a GPU, as one compilation unit."""

    body: Region
    sym_name: Symbol

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return super().attr_text(name, str(value) if name == "sym_name" else value, generic)

    def print_form(self, p: Printer) -> None:
        p.append(f" @{self.sym_name}")
        if extra := p.attr_dict(self, ("sym_name",)):
            p.append(f" attributes {extra}")
        p.braces(self.body)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        name = parser.symbol("a module name such as @kernels")
        extra = parser.attr_dict() if parser.accept("attributes") else {}
        return parser.build(GPUModule, [], {"sym_name": name, **extra}, [], [parser.region(isolated=True)])


class Func(Op, name="gpu.func", isolated=True, pure=False):
    """Function executed by each thread.

    The last `workgroup_attributions` arguments of its body are shared memory of a block, uninitialized for every block;
    if it exceeds 48 KiB or has an alignment of its own, launches request all of it as dynamic shared memory.
    `known_block_size` is the number of threads of a block along x, y and z.
    """

    body: Region
    function_type: FunctionType
    kernel: bool | None = None                  # upstream's unit attribute
    workgroup_attributions: int = 0
    known_block_size: tuple[int, ...] | None = None

    @property
    def sym_name(self) -> Symbol:
        """The name of the kernel, which upstream does not declare as an attribute of this operation."""
        return self.attrs["sym_name"]  # type: ignore[no-any-return]

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def args(self) -> Sequence[Value]:
        """Arguments that a launch passes."""
        args = self.body.blocks[0].args
        return args[: len(args) - self.workgroup_attributions]

    @property
    def shared(self) -> Sequence[Value]:
        """The shared memory of a block."""
        args = self.body.blocks[0].args
        return args[len(args) - self.workgroup_attributions:]

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return sum(size for _, size in self.placed())

    @property
    def alignment(self) -> int:
        """The alignment of shared buffers."""
        return int(self.attrs.get(ALIGNED, ALIGNMENT))

    def placed(self) -> list[tuple[int, int]]:
        """The place of each shared buffer, in bytes from the first, and its size, rounded up to the alignment."""
        out, at = list[tuple[int, int]](), 0
        for v in self.shared:
            size = -(-prod(v.type.shape) * v.type.dtype.itemsize // self.alignment) * self.alignment
            out.append((at, size))
            at += size
        return out

    @property
    def dynamic_bytes(self) -> int:
        """Bytes of dynamic shared memory that a launch has to request: all, if they exceed the static limit, or if
        matrix descriptors tell addresses in them."""
        return self.shared_bytes if self.shared_bytes > STATIC_SHARED or self.alignment > ALIGNMENT else 0

    def share(self, type: MemRefType) -> Value:
        """Add a shared memory buffer."""
        memory = self.body.blocks[0].add_arg(MemRefType(type.shape, type.dtype, space="workgroup"), "shared")
        self.workgroup_attributions += 1
        return memory

    def verify_op(self) -> None:
        if not isinstance(self.parent_op, GPUModule):
            self.fail("stands outside of a gpu.module", code="MLC0180")
        if self.function_type != FunctionType(tuple(a.type for a in self.args), ()):
            self.fail("the arguments are not the function's inputs, or it has results", code="MLC0180")
        for v in self.shared:
            if not isinstance(v.type, MemRefType) or v.type.space != "workgroup" or None in v.type.shape:
                self.fail(f"{v.type} is no memory of known size in the workgroup's space", code="MLC0180")
        aligned = self.attrs.get(ALIGNED, ALIGNMENT)
        if not isinstance(aligned, int) or aligned < ALIGNMENT or aligned & (aligned - 1):
            self.fail(f"{ALIGNED} = {aligned} is no power of two of at least {ALIGNMENT}", code="MLC0180")
        size = self.known_block_size
        if size is not None and (len(size) != 3 or any(n < 1 for n in size)):
            self.fail("a block has a positive number of threads along x, y and z", code="MLC0180")

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if name == "known_block_size" and generic:
            return f"array<i32: {', '.join(map(str, value))}>"
        if name == "kernel" and generic:
            return "unit"
        return super().attr_text(name, str(value) if name == "sym_name" else value, generic)

    def print_form(self, p: Printer) -> None:
        def typed(values: Sequence[Value]) -> str:
            return ", ".join(f"{p.name(v)}: {p.type(v.type)}" for v in values)

        p.append(f" @{self.sym_name}({typed(self.args)})")
        if self.shared:
            p.append(f" workgroup({typed(self.shared)})")
        if self.kernel:
            p.append(" kernel")
        if extra := p.attr_dict(self, ("sym_name", "function_type", "kernel", "workgroup_attributions")):
            p.append(f" attributes {extra}")
        p.braces(self.body, entry_args=False)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        name = parser.symbol("a kernel name such as @k")
        parser.expect("(")
        args = parser.list_of(parser.typed_arg, ")")
        shared = []
        if parser.accept("workgroup"):
            parser.expect("(")
            shared = parser.list_of(parser.typed_arg, ")")
        kernel = True if parser.accept("kernel") else None
        extra = parser.attr_dict() if parser.accept("attributes") else {}
        type = FunctionType(tuple(t for _, t in args), ())
        return parser.build(Func, [], {"sym_name": name, "function_type": type, "kernel": kernel,
                                       "workgroup_attributions": len(shared), **extra}, [],
                            [parser.region([*args, *shared], isolated=True)])


def function(name: str, inputs: Sequence[Type], names: Sequence[str] = ()) -> Func:
    """A detached kernel with an empty body; end it with Return."""
    return Func.make([], {"sym_name": Symbol(name), "function_type": FunctionType(tuple(inputs), ()), "kernel": True,
                          "workgroup_attributions": 0, "known_block_size": None}, [], [Region(Block(inputs, names))])


class Return(Op, name="gpu.return", terminator=True, pure=False):
    """Terminates a thread."""

    format = "attr-dict"

    def verify_op(self) -> None:
        if not isinstance(self.parent_op, Func):
            self.fail("stands outside of a gpu.func", code="MLC0180")
