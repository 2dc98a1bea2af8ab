"""SSA values, and the blocks and regions that contain operations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mlc.ir.diag import UNKNOWN, Loc
from mlc.ir.types import Type

if TYPE_CHECKING:
    from mlc.ir.core import Op


class Value:
    """Result of an operation or argument of a block. `uses` maps (operation, operand index) to None, in order."""

    __slots__ = ("name", "type", "uses")
    type: Any
    name: str
    uses: dict[tuple[Op, int], None]

    def __init__(self, type: Type, name: str = "") -> None:
        self.type = type
        self.name = name
        self.uses = {}

    @property
    def owner(self) -> Op | Block:
        raise NotImplementedError

    @property
    def op(self) -> Op | None:
        """The defining operation; None for a block argument."""
        return None

    @property
    def users(self) -> list[Op]:
        """The operations that use this value, each once, in order of first use."""
        return list(dict.fromkeys(op for op, _ in self.uses))

    def replace_by(self, other: Value) -> None:
        """Make every use of this value a use of `other`."""
        for op, i in list(self.uses):
            op.set_operand(i, other)

    # Python operators build operations of the type's dialect: see `OPERATORS`.
    def __add__(self, other: Any) -> Value:
        return operator("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return operator("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return operator("sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return operator("sub", other, self)

    def __mul__(self, other: Any) -> Value:
        return operator("mul", self, other)

    def __rmul__(self, other: Any) -> Value:
        return operator("mul", other, self)

    def __truediv__(self, other: Any) -> Value:
        return operator("div", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return operator("div", other, self)

    def __neg__(self) -> Value:
        return operator("neg", self)


class OpResult(Value):
    __slots__ = ("_op", "index")

    def __init__(self, type: Type, op: Op, index: int) -> None:
        self.type = type                         # as in Value, inlined: most objects of a compilation are results
        self.name = ""
        self.uses = {}
        self._op = op
        self.index = index

    @property
    def owner(self) -> Op:
        return self._op

    @property
    def op(self) -> Op:
        return self._op


class BlockArg(Value):
    __slots__ = ("block", "index", "loc")

    def __init__(self, type: Type, block: Block, index: int, name: str = "", loc: Loc = UNKNOWN) -> None:
        super().__init__(type, name)
        self.block = block
        self.index = index
        self.loc = loc

    @property
    def owner(self) -> Block:
        return self.block


OPERATORS: dict[str, Callable[..., Value]] = {}
"""`dialect.name` -> builder, for Python operators on values; filled by the dialects."""


def operator(name: str, *args: Any) -> Value:
    """Build the operation for the Python operator `name`, in the dialect of the first `Value` among `args`."""
    dialect = next(a for a in args if isinstance(a, Value)).type.dialect
    return OPERATORS[f"{dialect}.{name}"](*args)


class Block:
    """A list of operations, the last of which may be a terminator, and block arguments."""

    __slots__ = ("args", "first", "last", "region")

    def __init__(self, arg_types: Iterable[Type] = (), names: Sequence[str] = ()) -> None:
        self.args: list[BlockArg] = []
        self.first: Op | None = None
        self.last: Op | None = None
        self.region: Region | None = None
        for i, type in enumerate(arg_types):
            self.add_arg(type, names[i] if i < len(names) else "")

    def add_arg(self, type: Type, name: str = "", loc: Loc = UNKNOWN) -> BlockArg:
        arg = BlockArg(type, self, len(self.args), name, loc)
        self.args.append(arg)
        return arg

    def erase_args(self, indices: Collection[int]) -> None:
        """Remove the arguments with these indices."""
        assert not any(self.args[i].uses for i in indices), "erasing a block argument that is used"
        self.args = [arg for arg in self.args if arg.index not in indices]
        for i, arg in enumerate(self.args):
            arg.index = i

    def __iter__(self) -> Iterator[Op]:
        """The operations in order; the one just yielded may be erased, and others inserted after it are seen."""
        op = self.first
        while op is not None:
            following = op.next
            yield op
            op = op.next if op.parent is self else following

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def ops(self) -> list[Op]:
        return list(self)

    @property
    def terminator(self) -> Op:
        assert self.last is not None, "empty block"
        return self.last

    @property
    def parent_op(self) -> Op | None:
        return self.region.parent if self.region is not None else None

    def ancestor_of(self, op: Op) -> Op:
        """The operation of this block that is `op`, or has it inside."""
        while op.parent is not self:
            assert op.parent_op is not None, "the operation is not in the block"
            op = op.parent_op
        return op

    def insert(self, op: Op, before: Op | None = None) -> None:
        """Insert a detached `op` before another operation of this block, or at the end."""
        assert op.parent is None, f"{op.name} is already in a block"
        assert before is None or before.parent is self, f"{before.name} is not in this block"
        previous = before.prev if before is not None else self.last
        op.parent, op.prev, op.next = self, previous, before
        if previous is None:
            self.first = op
        else:
            previous.next = op
        if before is None:
            self.last = op
        else:
            before.prev = op


class Region:
    """A list of blocks that belongs to an operation; control enters at the first."""

    __slots__ = ("blocks", "parent", "symbols")

    def __init__(self, *blocks: Block) -> None:
        self.blocks: list[Block] = []
        self.symbols: dict[str, Op] = {}         # see ir/symbols.py
        self.parent: Op | None = None
        for block in blocks:
            self.add(block)

    def add(self, block: Block) -> Block:
        assert block.region is None, "the block is already in a region"
        block.region = self
        self.blocks.append(block)
        return block

    @property
    def block(self) -> Block:
        """The only block."""
        assert len(self.blocks) == 1, f"expected one block, found {len(self.blocks)}"
        return self.blocks[0]
