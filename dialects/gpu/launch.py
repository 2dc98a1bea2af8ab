"""gpu, launch: kernel launches on a grid of thread blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.dialects.builtin import Module
from mlc.dialects.gpu.module import Func, GPUModule
from mlc.dialects.gpu.simt import launch
from mlc.ir.core import Op, Symbol, Value
from mlc.ir.symbols import lookup
from mlc.ir.types import Type, i32, index

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Launch(Op, name="gpu.launch_func", pure=False):
    """For every thread of a grid of blocks with these sizes along x, y and z: kernel(args)

    An empty grid or block does nothing. Blocks run in any order, or concurrently.
    """

    dependencies: tuple[Value, ...]
    grid_x: Value
    grid_y: Value
    grid_z: Value
    block_x: Value
    block_y: Value
    block_z: Value
    cluster_x: Value | None
    cluster_y: Value | None
    cluster_z: Value | None
    dynamic_shared_memory_size: Value | None
    args: tuple[Value, ...]
    object: Value | None
    kernel: Symbol

    @property
    def grid(self) -> tuple[Value, ...]:
        return self.grid_x, self.grid_y, self.grid_z

    @property
    def threads(self) -> tuple[Value, ...]:
        return self.block_x, self.block_y, self.block_z

    def infer(self) -> tuple[Type, ...]:
        if any(v.type != index for v in (*self.grid, *self.threads)):
            self.fail("the numbers of blocks and threads must be indices", code="MLC0180")
        if self.dependencies or self.cluster_x or self.cluster_y or self.cluster_z or self.object:
            self.fail("launches here have no dependencies, clusters or object", code="MLC0180")
        if self.dynamic_shared_memory_size is not None and self.dynamic_shared_memory_size.type != i32:
            self.fail("the size of dynamic shared memory is an i32", code="MLC0180")
        return ()

    def callee(self) -> Op:
        """The kernel: a gpu.func, or the function that it was lowered to."""
        module, _, name = self.kernel.partition("::")
        holder = lookup(self.enclosing(Module), module)
        if isinstance(holder, GPUModule) and (found := lookup(holder, name)) is not None:
            return found
        self.fail(f"{self.kernel} is no kernel of a gpu.module here", code="MLC0180")
        raise AssertionError

    def verify_op(self) -> None:
        kernel = self.callee()
        types = tuple(v.type for v in self.args)
        if isinstance(kernel, Func) and types != kernel.function_type.inputs:
            self.fail(f"passes ({', '.join(map(str, types))}), but @{kernel.sym_name} takes "
                      f"({', '.join(map(str, kernel.function_type.inputs))})", code="MLC0180")

    def interpret(self, frame: Frame) -> list[Any]:
        launch(self, frame)
        return []

    def print_form(self, p: Printer) -> None:
        kernel = self.attr_text("kernel", self.kernel, False)
        p.append(f" {kernel} blocks in ({p.values(self.grid)}) threads in ({p.values(self.threads)})")
        if self.dynamic_shared_memory_size is not None:
            p.append(f" dynamic_shared_memory_size {p.name(self.dynamic_shared_memory_size)}")
        if self.args:
            p.append(f" args({', '.join(f'{p.name(v)} : {p.type(v.type)}' for v in self.args)})")
        if extra := p.attr_dict(self, ("kernel", "operandSegmentSizes")):
            p.append(" " + extra)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        kernel = parser.symbol("a kernel such as @kernels::@k")
        numbers = []
        for word in ("blocks", "threads"):
            for text in (word, "in", "("):
                parser.expect(text)
            group = parser.list_of(parser.operand, ")")
            if len(group) != 3:
                parser.fail(f"{word} in (x, y, z) has three numbers", "MLC0209")
            numbers += parser.resolve_all(group, [index] * 3)
        dynamic = [parser.resolve(parser.operand(), i32)] if parser.accept("dynamic_shared_memory_size") else []
        args: list[Value] = []

        def argument() -> Value:
            ref = parser.operand()
            parser.expect(":")
            return parser.resolve(ref, parser.type())

        if parser.accept("args"):
            parser.expect("(")
            args = parser.list_of(argument, ")")
        extra = parser.attr_dict() if parser.at("{") else {}
        segments = [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, len(dynamic), len(args), 0]
        return parser.build(Launch, [*numbers, *dynamic, *args], {"kernel": kernel, **extra}, [], segments=segments)
