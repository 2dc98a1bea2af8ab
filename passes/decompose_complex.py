"""Replace complex tensors by their real and imaginary parts.

takes  TENSOR
gives  REAL: no complex type is left
why    derivatives, fusion and code generation work on real numbers only

Within a block a complex value is two tensors, its parts. At the boundaries of functions, loops and branches it is one
tensor with both parts side by side along a new last axis: the layout of complex numbers in memory, so that a caller
passes an array as it is. `complex_args` and `complex_results` of a public function list those of its arguments and
results; the call contract gives them their complex types again. Operations are replaced by the rules of their classes
(`on_parts`).

Since derivatives are taken afterwards, the cotangent of a complex value is the pair of the cotangents of its parts.
Read as a complex number it is the conjugate Wirtinger derivative, PyTorch's convention.
"""

from __future__ import annotations

from mlc.dialects import tensor
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import TensorOp
from mlc.dialects.tensor.complex import joined, split
from mlc.dialects.tensor.parts import Parts, decomposed
from mlc.ir.abi import COMPLEX_ARGS, COMPLEX_RESULTS
from mlc.ir.core import Block, Op, Value, after, insertion
from mlc.ir.core import before as before_op
from mlc.ir.diag import IRError
from mlc.ir.passes import Pass
from mlc.ir.types import ComplexType, TensorType, Type
from mlc.passes.forms import REAL, TENSOR


def run(module: Op) -> None:
    """Decompose every complex value of the module."""
    if _has_complex(module):
        _Decomposition(module).run()


def _has_complex(module: Op) -> bool:
    """Whether a value of the module is complex."""
    for op in module.walk():
        for result in op.results:
            if _is_complex(result.type):
                return True
        for region in op.regions:
            if any(_is_complex(arg.type) for block in region.blocks for arg in block.args):
                return True
    return False


def _is_complex(type: Type) -> bool:
    return isinstance(type, TensorType) and isinstance(type.dtype, ComplexType)


def interleaved(type: Type) -> Type:
    """The type of a complex tensor at a boundary, with both parts along a new last axis; other types as they are."""
    if isinstance(type, TensorType) and isinstance(type.dtype, ComplexType):
        return TensorType((*type.shape, 2), type.dtype.part)
    return type


class _Decomposition:
    """The decomposition of one module.

    parts   of each complex value that is used: its parts
    whole   of each complex value that crosses a boundary: the tensor with both
    old     operations that are replaced, in order
    """

    def __init__(self, module: Op) -> None:
        self.module = module
        self.parts: dict[Value, Parts] = {}
        self.whole: dict[Value, Value] = {}
        self.old: list[Op] = []

    def run(self) -> None:
        functions = [op for op in self.module.walk() if isinstance(op, Func)]
        for function in functions:
            self._mark(function)
        self._block(self.module.regions[0].block)
        for op in reversed(self.old):
            op.erase()
        for function in functions:
            function.update_type()

    def _mark(self, function: Func) -> None:
        """Note which arguments and results of a public function are complex."""
        if function.is_public:
            for name, types in ((COMPLEX_ARGS, [a.type for a in function.args]),
                                (COMPLEX_RESULTS, list(function.function_type.results))):
                if found := tuple(i for i, type in enumerate(types) if _is_complex(type)):
                    function.attrs[name] = found

    def _block(self, block: Block) -> None:
        for arg in block.args:
            self._retype(arg)
        for op in block.ops:
            self._op(op)

    def _retype(self, value: Value) -> None:
        """Give a value that crosses a boundary its type there."""
        if _is_complex(value.type):
            value.type = interleaved(value.type)
            self.whole[value] = value

    def _op(self, op: Op) -> None:
        if isinstance(op, TensorOp) and not op.regions and self._touches(op):
            self._replace(op)
            return
        for i, value in enumerate(op.operands):
            if value in self.whole or value in self.parts:
                op.set_operand(i, self._whole(value))
        for result in op.results:
            self._retype(result)
        for region in op.regions:
            for block in region.blocks:
                self._block(block)

    def _touches(self, op: Op) -> bool:
        return any(v in self.whole or v in self.parts for v in op.operands) or any(
            _is_complex(r.type) for r in op.results)

    def _replace(self, op: TensorOp) -> None:
        if type(op).on_parts is decomposed:
            self._decompose(op)
            return
        with before_op(op, op.loc.through("decompose_complex")):
            out = self._computed(op)
        result = op.results[0]
        if isinstance(out, Parts):
            self.parts[result] = out
        else:
            result.replace_by(out)
        self.old.append(op)

    def _computed(self, op: TensorOp) -> Parts | Value:
        if isinstance(op, tensor.Constant):
            return Parts(tensor.Constant(op.value.real.copy()).result, tensor.Constant(op.value.imag.copy()).result)
        if isinstance(op, tensor.Full):
            assert isinstance(op.dtype, ComplexType)
            number = complex(op.value)
            return Parts(*(tensor.Full(x, op.shape, op.dtype.part).result for x in (number.real, number.imag)))
        if op.on_parts is None or len(op.results) != 1:
            raise IRError(f"{op.name}: is not defined on complex elements", code="MLC0785", loc=op.loc)
        operands = [self._parts(v) if v in self.whole or v in self.parts else v for v in op.operands]
        return op.on_parts(*operands)  # type: ignore[no-any-return]

    def _decompose(self, op: TensorOp) -> None:
        """Replace a composite by its decomposition, on complex values, and then these by their parts."""
        for i, value in enumerate(op.operands):
            if value in self.whole and not _is_complex(value.type):
                with before_op(op):
                    typed = tensor.ViewAsComplex(value)
                self.parts[typed.result] = self._parts(value)
                self.old.append(typed)
                op.set_operand(i, typed.result)
        previous = op.prev
        with before_op(op, op.loc.through("decompose_complex")):
            made = op.decompose()  # type: ignore[attr-defined]
        for result, value in zip(op.results, (made,) if isinstance(made, Value) else made):
            result.replace_by(value)
        assert op.parent is not None
        following = op.parent.first if previous is None else previous.next
        while following is not op:
            assert following is not None
            here, following = following, following.next
            self._op(here)
        self.old.append(op)

    def _parts(self, value: Value) -> Parts:
        """The parts of a value, computed next to its definition."""
        if value not in self.parts:
            owner = value.owner
            with insertion(owner, owner.first) if isinstance(owner, Block) else after(owner):
                self.parts[value] = split(self.whole[value])
        return self.parts[value]

    def _whole(self, value: Value) -> Value:
        """The tensor with both parts of a value, computed next to its definition."""
        if value not in self.whole:
            assert value.op is not None
            with before_op(value.op, value.op.loc):
                self.whole[value] = joined(self.parts[value])
        return self.whole[value]


PASS = Pass(run, takes=TENSOR, gives=REAL)
