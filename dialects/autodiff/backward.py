"""autodiff, backward: cotangents of values by the operations of the same block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mlc.dialects import func
from mlc.dialects.autodiff.attributes import has_cotangent
from mlc.dialects.autodiff.operations import EXPANDED_BY
from mlc.dialects.builtin import Module
from mlc.ir.core import Op, Value, at_end
from mlc.ir.passes import find_pass
from mlc.ir.types import Type

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


class Backward(Op, name="autodiff.backward", pure=False):
    """results[i] = sum_j cotangents[j] * d of[j] / d wrt[i], by the operations of this block

    The values `of` are computed in this block, or are its arguments. A value that is computed outside of it is a
    constant, unless it is one of `wrt` itself. What `Tensor.backward` records: the forward part stays where it is.

        %dw = autodiff.backward of %y cotangents %dy wrt %w : (tensor<f32>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    """

    of: tuple[Value, ...]
    cotangents: tuple[Value, ...]
    wrt: tuple[Value, ...]
    format = "`of` $of `cotangents` $cotangents `wrt` $wrt attr-dict `:` functional-type"

    def infer(self) -> tuple[Type, ...]:
        return tuple(v.type for v in self.wrt)

    def verify_op(self) -> None:
        types = [v.type for v in self.of]
        if [v.type for v in self.cotangents] != types:
            self.fail(f"the cotangents have types ({_listed(self.cotangents)}), the values that they are of "
                      f"({_listed(self.of)})", code="MLC0131")
        for value in (*self.of, *self.wrt):
            if not has_cotangent(value.type):
                self.fail(f"a value of type {value.type} has no derivative", code="MLC0131")
        for value in self.of:
            home = value.op.parent if value.op is not None else value.owner
            if home is not self.parent:
                self.fail("a value that cotangents are given of is computed outside of this block", code="MLC0131")

    def leading(self) -> list[Op]:
        """The operations of the block that compute the values `of`, in their order."""
        needed, out = set(self.of), list[Op]()
        op = self.prev
        while op is not None:
            if any(r in needed for r in op.results):
                out.append(op)
                needed.update(_reads(op))
            op = op.prev
        return out[::-1]

    def interpret(self, frame: Frame) -> list[Any]:
        """Interpret the expansion of a function of the operations that lead to `of`."""
        module = frame.interpreter.module.clone()
        assert isinstance(module, Module)
        ops = self.leading()
        own = {v for op in ops for inner in op.walk() for v in _defines(inner)}
        block = self.parent
        assert block is not None
        read = [v for op in ops for v in _reads(op)]
        free = dict.fromkeys(v for v in (*_arguments(self), *block.args, *read, *self.cotangents, *self.of, *self.wrt)
                             if v not in own and v in frame.env)
        entry = func.function(func.free_symbol(module.body.block, "backward"), [v.type for v in free])
        mapping: dict[Value, Value] = dict(zip(free, entry.args))
        with at_end(entry.block, self.loc):
            for op in ops:
                op.insert_clone(mapping)
            made = self.insert_clone(mapping)
            func.Return(tuple(made.results))
        entry.update_type()
        module.body.block.insert(entry)
        for name in EXPANDED_BY:
            find_pass(name).run(module)
        return frame.interpreter.another(module).run(entry.sym_name, frame.all([*free]))


def _reads(op: Op) -> Iterator[Value]:
    """The operands of an operation and of those in its regions."""
    for inner in op.walk():
        yield from inner.operands


def _defines(op: Op) -> Iterator[Value]:
    """The results of an operation, and the arguments of its blocks."""
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args


def _arguments(op: Op) -> Sequence[Value]:
    """The arguments of the function that an operation is in, which bind its sizes."""
    around = op.parent_op
    while around is not None and not isinstance(around, func.Func):
        around = around.parent_op
    return around.args if around is not None else ()


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(str(v.type) for v in values)
