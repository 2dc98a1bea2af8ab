"""The IR itself: values, operations, blocks, regions, uses, and the place where new operations go.

An operation class is its whole definition. Annotated fields say what it is made of:

    x: Value                       one operand
    x: Value | None                an operand that may be absent
    xs: tuple[Value, ...]          any number of operands
    body: Region                   a region                     bodies: tuple[Region, ...]
    dest: Block                    a successor block
    type: ResultType               the type of a result that operands do not determine (tuple[ResultType, ...])
    anything else                  an attribute: int, float, str, bool, Type, Symbol, tuple, dict, numpy array

`infer` gives the result types; it is shape rule and verifier in one and runs at construction, so an ill-typed
operation cannot exist and the error points at the line that asked for it. Constructing an operation inserts it at
the current insertion point (`at_end`, `before`, `after`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from mlc.ir.diag import UNKNOWN, Error, IRError, Loc
from mlc.ir.sizes import Dim
from mlc.ir.types import Type, substitute, substitute_attr

O = TypeVar("O", bound="Op")
ResultType = Type
"""Annotation of a constructor argument that is a result's type and not an attribute."""


class Symbol(str):
    """The name of a function or global, printed `@name`; `outer::inner` of one in a module within `@outer::@inner`."""

    __slots__ = ()


class Value:
    """What an operation or a block argument defines. `uses` maps (operation, operand index) to None, in order."""

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
        """The operation that made this value; None for a block argument."""
        return None

    @property
    def users(self) -> list[Op]:
        """The operations that use this value, each once, in order of first use."""
        return list(dict.fromkeys(op for op, _ in self.uses))

    def replace_by(self, other: Value) -> None:
        """Make every use of this value a use of `other`."""
        for op, i in list(self.uses):
            op.set_operand(i, other)

    # Operators build operations of the type's own dialect: see `OPERATORS`.
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
        super().__init__(type)
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
    """Build the operation that the Python operator `name` means for the first `Value` among `args`."""
    dialect = next(a for a in args if isinstance(a, Value)).type.dialect
    return OPERATORS[f"{dialect}.{name}"](*args)


class Block:
    """A list of operations, the last of which may be a terminator, and the values it takes as arguments."""

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

    def erase_arg(self, index: int) -> None:
        self.erase_args([index])

    def erase_args(self, indices: Collection[int]) -> None:
        """Remove the arguments of these numbers."""
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

    def insert(self, op: Op, before: Op | None = None) -> None:
        """Put a detached `op` before another of this block, or at the end."""
        assert op.parent is None, f"{op.name} is already in a block"
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

    __slots__ = ("blocks", "parent")

    def __init__(self, *blocks: Block) -> None:
        self.blocks: list[Block] = []
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


class _Builder(threading.local):
    """Where the next operation goes, and the location it gets (None: the caller's line), in this thread."""

    block: Block | None = None
    before: Op | None = None
    loc: Loc | None = None


builder = _Builder()


@contextmanager
def insertion(block: Block | None, before: Op | None = None, loc: Loc | None = None) -> Iterator[None]:
    """Within, new operations go into `block` before `before` (or at the end) and get `loc` if one is given."""
    saved = builder.block, builder.before, builder.loc
    builder.block, builder.before = block, before
    if loc is not None:
        builder.loc = loc
    try:
        yield
    finally:
        builder.block, builder.before, builder.loc = saved


def at_end(block: Block, loc: Loc | None = None) -> Any:
    """`with at_end(block): ...` appends what is built to `block`."""
    return insertion(block, None, loc)


def before(op: Op, loc: Loc | None = None) -> Any:
    """`with before(op): ...` puts what is built before `op`, at its location unless another is given."""
    return insertion(op.parent, op, loc or op.loc)


def after(op: Op, loc: Loc | None = None) -> Any:
    return insertion(op.parent, op.next, loc or op.loc)


@contextmanager
def located(loc: Loc) -> Iterator[None]:
    """Within, new operations get the location `loc`."""
    saved, builder.loc = builder.loc, loc
    try:
        yield
    finally:
        builder.loc = saved


def caller_loc() -> Loc:
    """The nearest frame that is outside this package's folders."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("mlc."):
        frame = frame.f_back
    return Loc(frame.f_code.co_filename, frame.f_lineno)


REGISTRY: dict[str, type[Op]] = {}
"""Every operation class by its name."""


class _Field:
    """Descriptor of a field: its position among operands, regions or successors, or its attribute name."""

    __slots__ = ("default", "index", "kind", "name", "shape")

    def __init__(self, name: str, kind: str, shape: str, default: Any) -> None:
        self.name = name
        self.kind = kind                 # operand | attr | region | successor | type
        self.shape = shape               # one | optional | many; for an attribute, its annotation
        self.default = default
        self.index = 0                   # position among the fields of its kind

    def __get__(self, op: Op | None, owner: type | None = None) -> Any:
        if op is None:
            return self.default if self.default is not _MISSING else self
        if self.kind == "attr":
            return op.attrs.get(self.name, None if self.default is _MISSING else self.default)
        if self.kind == "operand":
            if op.segments is None:
                return op.operands[self.index]
            start = sum(op.segments[: self.index])
            group = op.operands[start: start + op.segments[self.index]]
            return tuple(group) if self.shape == "many" else group[0] if group else None
        if self.kind == "region":
            return op.regions[self.index] if self.shape == "one" else op.regions[self.index:]
        if self.kind == "successor":
            return op.successors[self.index] if self.shape == "one" else op.successors[self.index:]
        return op.results[self.index].type if self.shape == "one" else tuple(r.type for r in op.results)

    def __set__(self, op: Op, value: Any) -> None:
        if self.kind != "attr":
            raise AttributeError(f"{op.name}.{self.name} is not an attribute; use set_operand or rebuild the op")
        op.attrs[self.name] = value


_MISSING: Any = object()
_OPERAND = {"Value": "one", "Value | None": "optional", "tuple[Value, ...]": "many"}
_REGION = {"Region": "one", "tuple[Region, ...]": "many"}
_BLOCK = {"Block": "one", "tuple[Block, ...]": "many"}
_TYPE = {"ResultType": "one", "tuple[ResultType, ...]": "many"}


def _field(name: str, annotation: str, default: Any) -> _Field:
    for kind, table in (("operand", _OPERAND), ("region", _REGION), ("successor", _BLOCK), ("type", _TYPE)):
        if annotation in table:
            return _Field(name, kind, table[annotation], default)
    return _Field(name, "attr", annotation, default)


@dataclass_transform(eq_default=False, kw_only_default=False, field_specifiers=())
class Op:
    """One operation. The facets a class may give, besides its fields:

    infer()        the result type(s)                     -- raises IRError if the operands do not fit
    ref(*xs)       the meaning, in numpy                  -- the interpreter, and the oracle of every test
    interpret(f)   the meaning of an op with regions, memory or control, in terms of a frame
    fold()         a constant or value equal to the result, or None
    vjp(*cts)      cotangents of the operands             -- emits operations of the same dialect
    verify_op()    what infer cannot see: attributes against regions, parents, symbols
    """

    name: ClassVar[str] = ""
    fields: ClassVar[tuple[_Field, ...]] = ()
    pure: ClassVar[bool] = True              # no effect but its results: may be merged, moved and removed
    reads: ClassVar[bool] = False            # not pure, but only reads memory: may be removed where unused
    effects_inside: ClassVar[bool] = False   # not pure, but has only the effects of the operations inside it
    blocks_gradient: ClassVar[bool] = False  # its results count as constants for derivatives
    terminator: ClassVar[bool] = False
    commutative: ClassVar[bool] = False
    isolated: ClassVar[bool] = False         # regions see no value from outside
    symbol_table: ClassVar[bool] = False     # `sym_name`s inside are unique and visible to `Symbol`s below
    format: ClassVar[str] = ""               # pretty form, see ir/assembly.py; "" derives one from the fields
    enums: ClassVar[dict[str, tuple[str, ...]]] = {}       # attributes that upstream writes as a number
    attr_types: ClassVar[dict[str, str]] = {}              # integer attributes that are not i64 upstream
    _variadic: ClassVar[bool] = False
    operand_fields: ClassVar[tuple[_Field, ...]] = ()
    attr_fields: ClassVar[tuple[_Field, ...]] = ()
    attr_defaults: ClassVar[dict[str, Any]] = {}

    __slots__ = ("attrs", "loc", "next", "operands", "parent", "prev", "regions", "results", "segments",
                 "successors")

    def __init_subclass__(cls, name: str = "", **traits: Any) -> None:
        super().__init_subclass__()
        for trait, value in traits.items():
            assert hasattr(Op, trait), f"unknown trait {trait}"
            setattr(cls, trait, value)
        own = []
        for field_name, annotation in cls.__annotations__.items():
            annotation = annotation if isinstance(annotation, str) else annotation.__name__
            if annotation.startswith("ClassVar"):
                continue
            field = _field(field_name, annotation, cls.__dict__.get(field_name, _MISSING))
            setattr(cls, field_name, field)
            own.append(field)
        inherited = tuple(f for f in cls.fields if f.name not in {g.name for g in own})
        cls.fields = inherited + tuple(own)
        for kind in ("operand", "attr", "region", "successor", "type"):
            for i, field in enumerate(f for f in cls.fields if f.kind == kind):
                field.index = i
        cls.operand_fields = tuple(f for f in cls.fields if f.kind == "operand")
        cls.attr_fields = tuple(f for f in cls.fields if f.kind == "attr")
        cls.attr_defaults = {f.name: f.default for f in cls.attr_fields if f.default is not _MISSING}
        cls._variadic = any(f.shape != "one" for f in cls.operand_fields)
        if name:
            cls.name = name
            if name in REGISTRY and REGISTRY[name].__module__ != cls.__module__:
                raise ImportError(f"{name} is defined by {REGISTRY[name].__module__} and {cls.__module__}: import "
                                  "dialects as mlc.dialects..., not by their folder")
            REGISTRY[name] = cls

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        if len(args) > len(cls.fields):
            raise TypeError(f"{cls.name} takes {len(cls.fields)} arguments, got {len(args)}")
        bound = kwargs
        for field, value in zip(cls.fields, args):
            if field.name in bound:
                raise TypeError(f"{cls.name} got {field.name} twice")
            bound[field.name] = value
        operands: list[Value] = []
        segments: list[int] = []
        attrs: dict[str, Any] = {}
        regions: list[Region] = []
        successors: list[Block] = []
        types: tuple[Type, ...] | None = None
        for field in cls.fields:
            value = bound.pop(field.name, field.default)
            if value is _MISSING:
                if field.shape == "optional":
                    value = None
                else:
                    raise TypeError(f"{cls.name} needs {field.name}")
            if field.kind == "operand":
                group = (value,) if field.shape == "one" else () if value is None else \
                    (value,) if field.shape == "optional" else value
                operands += group
                segments.append(len(group))
            elif field.kind == "attr":
                attrs[field.name] = value
            elif field.kind == "type":
                types = (value,) if field.shape == "one" else tuple(value)
            elif field.kind == "region":
                regions += (value,) if field.shape == "one" else value
            else:
                successors += (value,) if field.shape == "one" else value
        if bound:
            raise TypeError(f"{cls.name} has no field {', '.join(bound)}")
        self._setup(operands, attrs, regions, successors, types, segments if cls._variadic else None,
                    builder.loc or caller_loc())
        if builder.block is not None:
            builder.block.insert(self, builder.before)

    @classmethod
    def make(cls: type[O], operands: Sequence[Value], attrs: dict[str, Any], types: Sequence[Type] | None,
             regions: Sequence[Region] = (), successors: Sequence[Block] = (), segments: Sequence[int] | None = None,
             loc: Loc = UNKNOWN) -> O:
        """Build from parts, detached: for the parser and for cloning. `types` is checked against `infer`."""
        op = cls.__new__(cls)
        if segments is None and cls._variadic:
            segments = cls._default_segments(len(operands))
        op._setup(list(operands), attrs, list(regions), list(successors), tuple(types) if types is not None else None,
                  list(segments) if segments is not None else None, loc)
        return op

    @classmethod
    def _default_segments(cls, count: int) -> list[int]:
        """The operand groups when at most one field is not a single operand."""
        flexible = [f for f in cls.operand_fields if f.shape != "one"]
        if len(flexible) != 1:
            raise IRError(f"{cls.name} needs operandSegmentSizes", code="MLC0101")
        rest = count - (len(cls.operand_fields) - 1)
        return [1 if f.shape == "one" else rest for f in cls.operand_fields]

    def _setup(self, operands: list[Value], attrs: dict[str, Any], regions: list[Region], successors: list[Block],
               types: tuple[Type, ...] | None, segments: list[int] | None, loc: Loc) -> None:
        self.parent: Block | None = None
        self.prev: Op | None = None
        self.next: Op | None = None
        self.loc = loc
        self.attrs = attrs
        self.operands = operands
        self.segments = segments
        self.regions = tuple(regions)
        self.successors = successors
        self.results: tuple[OpResult, ...] = ()
        if types is not None:
            self.results = tuple([OpResult(t, self, i) for i, t in enumerate(types)])
        self._check_counts()
        for region in regions:
            assert region.parent is None, "the region already belongs to an operation"
            region.parent = self
        inferred = self._infer()
        if types is None or not any(f.kind == "type" for f in self.fields):
            if types is not None and types != inferred:
                raise IRError(f"{self.name}: result is {_types(types)}, but the operands give {_types(inferred)}",
                              code="MLC0102", loc=loc)
            if types is None:
                self.results = tuple([OpResult(t, self, i) for i, t in enumerate(inferred)])
        for i, value in enumerate(operands):
            value.uses[(self, i)] = None

    def _check_counts(self) -> None:
        expected = len(self.operand_fields)
        if self.segments is None:
            if len(self.operands) != expected:
                self.fail(f"takes {expected} operands, got {len(self.operands)}", code="MLC0101")
        elif (len(self.segments) != expected or sum(self.segments) != len(self.operands)
              or any(n < 0 or (f.shape == "one" and n != 1) or (f.shape == "optional" and n > 1)
                     for f, n in zip(self.operand_fields, self.segments))):
            self.fail(f"operand groups {self.segments} do not fit {len(self.operands)} operands", code="MLC0101")
        for value in self.operands:
            if not isinstance(value, Value):
                raise TypeError(f"{self.name}: operand {value!r} is not an IR value")

    def _infer(self) -> tuple[Type, ...]:
        try:
            out = self.infer()
        except Error as error:
            if error.loc is UNKNOWN:
                error.loc = self.loc
            raise
        return out if isinstance(out, tuple) else (out,)

    # -- facets a class overrides ---------------------------------------------------------------------------------
    def infer(self) -> Type | tuple[Type, ...]:
        """The result types; the default is what a `ResultType` field was given, or none."""
        return tuple(r.type for r in self.results)

    def verify_op(self) -> None:
        """Raise IRError for what `infer` cannot see."""

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        """The text of one attribute, where upstream's differs from what the Python value suggests."""
        from mlc.ir.printer import attr_text
        return attr_text(value, generic, self.attr_types.get(name, "i64"))

    def ref(self, *xs: Any) -> Any:
        raise NotImplementedError(f"{self.name} has no meaning in numpy")

    def fold(self) -> Value | np.ndarray[Any, Any] | None:
        return None

    def vjp(self, *cts: Any) -> list[Value | None]:
        raise IRError(f"{self.name} has no derivative", code="MLC0130", loc=self.loc)

    # -- reading --------------------------------------------------------------------------------------------------
    @property
    def result(self) -> OpResult:
        """The only result."""
        assert len(self.results) == 1, f"{self.name} has {len(self.results)} results"
        return self.results[0]

    @property
    def parent_op(self) -> Op | None:
        return self.parent.parent_op if self.parent is not None else None

    def walk(self) -> Iterator[Op]:
        """This operation and all inside it, outer before inner, in textual order; safe to erase what is yielded."""
        yield self
        for region in self.regions:
            for block in region.blocks:
                for op in block:
                    if op.regions:
                        yield from op.walk()
                    else:                        # most operations: a generator for each would cost more than the walk
                        yield op

    def inside(self, cls: type[O]) -> Iterator[O]:
        """Every operation of class `cls` within this one."""
        for op in self.walk():
            if isinstance(op, cls):
                yield op

    def enclosing(self, cls: type[O]) -> O:
        """The nearest ancestor of class `cls`."""
        op = self.parent_op
        while op is not None and not isinstance(op, cls):
            op = op.parent_op
        assert op is not None, f"{self.name} is not inside a {cls.__name__}"
        return op

    def fail(self, message: str, code: str = "", hint: str | None = None) -> None:
        """Raise an IRError about this operation."""
        raise IRError(f"{self.name}: {message}", code=code, loc=self.loc, hint=hint)

    # -- changing -------------------------------------------------------------------------------------------------
    def set_operand(self, index: int, value: Value) -> None:
        del self.operands[index].uses[(self, index)]
        self.operands[index] = value
        value.uses[(self, index)] = None

    def set_operands(self, values: Sequence[Value], segments: Sequence[int] | None = None) -> None:
        """Replace all operands; `segments` regroups them when there are several variadic fields."""
        for i, value in enumerate(self.operands):
            del value.uses[(self, i)]
        self.operands = list(values)
        if self._variadic:
            self.segments = list(segments) if segments is not None else self._default_segments(len(values))
        for i, value in enumerate(values):
            value.uses[(self, i)] = None

    def detach(self) -> Op:
        """Take this operation out of its block; it keeps its operands."""
        block = self.parent
        assert block is not None, f"{self.name} is not in a block"
        if self.prev is None:
            block.first = self.next
        else:
            self.prev.next = self.next
        if self.next is None:
            block.last = self.prev
        else:
            self.next.prev = self.prev
        self.parent = self.prev = self.next = None
        return self

    def erase(self) -> None:
        """Remove this operation and all inside it; its results must be unused."""
        for r in self.results:
            assert not r.uses, f"erasing {self.name}, whose result is used by {r.users[0].name}"
        if self.parent is not None:
            self.detach()
        self.drop_uses()

    def drop_uses(self) -> None:
        """Forget the operands of this operation and of all inside it, which then stand in no block any more."""
        for op in list(self.walk()):
            for i, value in enumerate(op.operands):
                value.uses.pop((op, i), None)
            op.operands = []
            op.parent = None                     # work-lists that still hold it see that it is gone

    def replace_by(self, *values: Value) -> None:
        """Let `values` stand for the results, and erase this operation."""
        assert len(values) == len(self.results), f"{self.name}: {len(values)} values for {len(self.results)} results"
        for old, new in zip(self.results, values):
            if old.name and not new.name:
                new.name = old.name
            old.replace_by(new)
        self.erase()

    def move_before(self, op: Op) -> None:
        self.detach()
        assert op.parent is not None
        op.parent.insert(self, op)

    def clone(self, mapping: dict[Value, Value] | None = None, blocks: dict[Block, Block] | None = None,
              env: Mapping[str, Dim] | None = None) -> Op:
        """A detached copy; operands found in `mapping` are replaced, and results are added to it.

        `env` gives sizes that take the place of size symbols, in types and attributes.
        """
        mapping = {} if mapping is None else mapping
        blocks = {} if blocks is None else blocks
        regions = [clone_region(r, mapping, blocks, env) for r in self.regions]
        attrs, types = dict(self.attrs), [r.type for r in self.results]
        if env:
            attrs = {k: substitute_attr(v, env) for k, v in attrs.items()}
            types = [substitute(t, env) for t in types]
        copy = type(self).make([mapping.get(v, v) for v in self.operands], attrs, types, regions,
                               [blocks.get(b, b) for b in self.successors], self.segments, self.loc)
        for old, new in zip(self.results, copy.results):
            new.name = old.name
            mapping[old] = new
        return copy

    def insert_clone(self, mapping: dict[Value, Value]) -> Op:
        """`clone`, inserted at the current insertion point."""
        copy = self.clone(mapping)
        assert builder.block is not None, "no insertion point"
        builder.block.insert(copy, builder.before)
        return copy

    def __str__(self) -> str:
        from mlc.ir.printer import op_line
        return op_line(self)

    __repr__ = __str__


def _types(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def clone_region(region: Region, mapping: dict[Value, Value], blocks: dict[Block, Block] | None = None,
                 env: Mapping[str, Dim] | None = None) -> Region:
    """A copy of a region. Blocks and arguments are made first, so that uses before definitions resolve."""
    blocks = {} if blocks is None else blocks
    out = Region()
    for block in region.blocks:
        copy = out.add(Block())
        blocks[block] = copy
        for arg in block.args:
            mapping[arg] = copy.add_arg(substitute(arg.type, env) if env else arg.type, arg.name, arg.loc)
    pending: list[tuple[Op, Op]] = []
    for block in region.blocks:
        for op in block:
            blocks[block].insert(op.clone(mapping, blocks, env))
            copy_op = blocks[block].last
            assert copy_op is not None
            pending.append((op, copy_op))
    for old, new in pending:                    # operands defined later in another block were not mapped yet
        for i, value in enumerate(old.operands):
            if mapping.get(value, value) is not new.operands[i]:
                new.set_operand(i, mapping[value])
    return out
