"""Operations, and re-exports of values, blocks, regions and insertion points.

A class defines an operation completely. Annotated fields declare its parts:

    x: Value                       one operand
    x: Value | None                an operand that may be absent
    xs: tuple[Value, ...]          any number of operands
    body: Region                   a region                     bodies: tuple[Region, ...]
    dest: Block                    a successor block
    type: ResultType               the type of a result that the operands do not determine (tuple[ResultType, ...])
    anything else                  an attribute: int, float, str, bool, Type, Symbol, tuple, dict, numpy array

`infer` returns the result types. It is shape inference and verifier in one and runs at construction, so an ill-typed
operation cannot exist, and the error points at the line that constructs it. A new operation is inserted at the
current insertion point (`at_end`, `before`, `after`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar, dataclass_transform

import numpy as np

from mlc.ir.diag import UNKNOWN, Error, IRError, Loc
from mlc.ir.fields import MISSING, Field, declared
from mlc.ir.insertion import after, at_end, before, builder, caller_loc, insertion, located
from mlc.ir.sizes import Dim
from mlc.ir.types import Type, substitute, substitute_attr
from mlc.ir.values import OPERATORS, Block, BlockArg, OpResult, Region, Value, operator

__all__ = ["OPERATORS", "REGISTRY", "Block", "BlockArg", "Op", "OpResult", "Region", "ResultType", "Symbol", "Value",
           "after", "at_end", "before", "builder", "caller_loc", "clone_region", "insertion", "located", "operator"]

O = TypeVar("O", bound="Op")
BatchResult = Value | Sequence[Value] | None
ResultType = Type
"""Annotation of a constructor argument that is the type of a result and not an attribute."""


class Symbol(str):
    """A symbol reference, printed `@name`; a nested one, `outer::inner`, is printed `@outer::@inner`."""

    __slots__ = ()


REGISTRY: dict[str, type[Op]] = {}
"""Every operation class by its name."""


@dataclass_transform(eq_default=False, kw_only_default=False, field_specifiers=())
class Op:
    """An operation. Besides its fields, a class may define:

    infer()        the result type(s)                     -- raises IRError if the operands are invalid
    ref(*xs)       the semantics, in numpy                -- the interpreter, and the oracle of every test
    interpret(f)   the semantics of an op with regions, memory or control flow, on a frame of the interpreter
    fold()         a constant or value equal to the result, or None
    vjp(*cts)      cotangents of the operands             -- emits operations of the same dialect
    jvp(*tangents) tangents of the results                -- only if they cannot be derived by transposing the vjp
    vmap(...)      the batching rule                      -- emits operations of the same dialect
    verify_op()    checks beyond `infer`: consistency of attributes with regions, parents, symbols
    """

    name: ClassVar[str] = ""
    fields: ClassVar[tuple[Field, ...]] = ()
    pure: ClassVar[bool]                     # no side effects: may be merged, moved and removed; no default
    reads: ClassVar[bool] = False            # not pure, but only reads memory: may be removed if unused
    effects_inside: ClassVar[bool] = False   # not pure, but has only the side effects of nested operations
    effects_of_callee: ClassVar[bool] = False  # not pure, but has only the side effects of its callee
    binds_size: ClassVar[bool] = False       # its attribute `size` is a symbol for a data-dependent size
    blocks_gradient: ClassVar[bool] = False  # its results are constants for differentiation
    terminator: ClassVar[bool] = False
    commutative: ClassVar[bool] = False
    isolated: ClassVar[bool] = False         # isolated from above: regions use no outer value
    symbol_table: ClassVar[bool] = False     # `sym_name`s inside are unique and visible to `Symbol`s below
    format: ClassVar[str] = ""               # pretty form, see ir/assembly.py; "" derives one from the fields
    enums: ClassVar[dict[str, tuple[str, ...]]] = {}       # attributes that upstream writes as a number
    attr_types: ClassVar[dict[str, str]] = {}              # integer attributes that are not i64 upstream
    _layout: ClassVar[tuple[tuple[str, str, str], ...]] = ()   # name, kind and shape of each field
    _variadic: ClassVar[bool] = False
    _declares_types: ClassVar[bool] = False
    operand_fields: ClassVar[tuple[Field, ...]] = ()
    attr_fields: ClassVar[tuple[Field, ...]] = ()
    attr_defaults: ClassVar[dict[str, Any]] = {}

    __slots__ = ("attrs", "loc", "next", "operands", "parent", "prev", "regions", "results", "segments",
                 "successors")

    def __init_subclass__(cls, name: str = "", **traits: Any) -> None:
        super().__init_subclass__()
        for trait, value in traits.items():
            assert trait in Op.__annotations__, f"unknown trait {trait}"
            setattr(cls, trait, value)
        own = []
        for field_name, annotation in cls.__annotations__.items():
            annotation = annotation if isinstance(annotation, str) else annotation.__name__
            if annotation.startswith("ClassVar"):
                continue
            field = declared(field_name, annotation, cls.__dict__.get(field_name, MISSING))
            setattr(cls, field_name, field)
            own.append(field)
        inherited = tuple(f for f in cls.fields if f.name not in {g.name for g in own})
        cls.fields = inherited + tuple(own)
        for kind in ("operand", "attr", "region", "successor", "type"):
            for i, field in enumerate(f for f in cls.fields if f.kind == kind):
                field.index = i
        cls.operand_fields = tuple(f for f in cls.fields if f.kind == "operand")
        cls.attr_fields = tuple(f for f in cls.fields if f.kind == "attr")
        cls.attr_defaults = {f.name: f.default for f in cls.attr_fields if f.default is not MISSING}
        cls._layout = tuple((f.name, f.kind, f.shape) for f in cls.fields)
        cls._variadic = any(f.shape != "one" for f in cls.operand_fields)
        cls._declares_types = any(f.kind == "type" for f in cls.fields)
        if name:
            cls.name = name
            if name in REGISTRY and REGISTRY[name].__module__ != cls.__module__:
                raise ImportError(f"{name} is defined by {REGISTRY[name].__module__} and {cls.__module__}: import "
                                  "dialects as mlc.dialects..., not by their folder")
            REGISTRY[name] = cls

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        if kwargs or len(args) != len(cls.fields):
            args = cls._bound(args, kwargs)
        operands: list[Value] = []
        segments: list[int] = []
        attrs: dict[str, Any] = {}
        regions: list[Region] = []
        successors: list[Block] = []
        types: tuple[Type, ...] | None = None
        for (name, kind, shape), value in zip(cls._layout, args):
            if kind == "attr":
                attrs[name] = value
            elif kind == "operand":
                if shape == "one":
                    operands.append(value)
                    segments.append(1)
                else:
                    group = value if shape == "many" else () if value is None else (value,)
                    operands += group
                    segments.append(len(group))
            elif kind == "type":
                types = (value,) if shape == "one" else tuple(value)
            elif kind == "region":
                regions += (value,) if shape == "one" else value
            else:
                successors += (value,) if shape == "one" else value
        self._setup(operands, attrs, regions, successors, types, segments if cls._variadic else None,
                    builder.loc or caller_loc())
        if (block := builder.block) is not None:
            block.insert(self, builder.before)

    @classmethod
    def _bound(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """One value per field, in order: the argument, or the default."""
        if len(args) > len(cls.fields):
            raise TypeError(f"{cls.name} takes {len(cls.fields)} arguments, got {len(args)}")
        for field in cls.fields[: len(args)]:
            if field.name in kwargs:
                raise TypeError(f"{cls.name} got {field.name} twice")
        out = list(args)
        for field in cls.fields[len(args):]:
            value = kwargs.pop(field.name, field.default)
            if value is MISSING and field.shape != "optional":
                raise TypeError(f"{cls.name} needs {field.name}")
            out.append(None if value is MISSING else value)
        if kwargs:
            raise TypeError(f"{cls.name} has no field {', '.join(kwargs)}")
        return tuple(out)

    @classmethod
    def make(cls: type[O], operands: Sequence[Value], attrs: dict[str, Any], types: Sequence[Type] | None,
             regions: Sequence[Region] = (), successors: Sequence[Block] = (), segments: Sequence[int] | None = None,
             loc: Loc = UNKNOWN) -> O:
        """Build a detached operation from its parts, when parsing or cloning. `types` is checked against `infer`."""
        op = cls.__new__(cls)
        if segments is None and cls._variadic:
            segments = cls._default_segments(len(operands))
        op._setup(list(operands), attrs, list(regions), list(successors), tuple(types) if types is not None else None,
                  list(segments) if segments is not None else None, loc)
        return op

    @classmethod
    def _default_segments(cls, count: int) -> list[int]:
        """Segment sizes when a single operand field is variadic or optional."""
        flexible = [f for f in cls.operand_fields if f.shape != "one"]
        if len(flexible) != 1:
            raise IRError(f"{cls.name} needs operandSegmentSizes", code="MLC0101")
        size = count - (len(cls.operand_fields) - 1)
        return [1 if f.shape == "one" else size for f in cls.operand_fields]

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
        if segments is not None or len(operands) != len(self.operand_fields):
            self.check_counts()
        for value in operands:
            if not isinstance(value, Value):
                raise TypeError(f"{self.name}: operand {value!r} is not an IR value")
        for region in regions:
            assert region.parent is None, "the region already belongs to an operation"
            region.parent = self
        inferred = self.inferred()
        if types is None:
            self.results = (OpResult(inferred[0], self, 0),) if len(inferred) == 1 else tuple(
                [OpResult(t, self, i) for i, t in enumerate(inferred)])
        elif types != inferred and not self._declares_types:
            raise IRError(f"{self.name}: result is {_types(types)}, but the operands give {_types(inferred)}",
                          code="MLC0102", loc=loc)
        for i, value in enumerate(operands):
            value.uses[(self, i)] = None

    def check_counts(self) -> None:
        """Raise IRError unless the number of operands matches the declaration of the class."""
        expected = len(self.operand_fields)
        if self.segments is None:
            if len(self.operands) != expected:
                self.fail(f"takes {expected} operands, got {len(self.operands)}", code="MLC0101")
        elif (len(self.segments) != expected or sum(self.segments) != len(self.operands)
              or any(n < 0 or (f.shape == "one" and n != 1) or (f.shape == "optional" and n > 1)
                     for f, n in zip(self.operand_fields, self.segments))):
            self.fail(f"operand groups {self.segments} do not fit {len(self.operands)} operands", code="MLC0101")

    def inferred(self) -> tuple[Type, ...]:
        """The result types that `infer` returns."""
        try:
            out = self.infer()
        except Error as error:                             # size arithmetic knows only its caller's location
            error.loc = self.loc
            raise
        return out if isinstance(out, tuple) else (out,)

    # -- methods that a class overrides ---------------------------------------------------------------------------
    def infer(self) -> Type | tuple[Type, ...]:
        """The result types; by default those of the `ResultType` fields."""
        return tuple(r.type for r in self.results)

    def verify_op(self) -> None:
        """Check invariants beyond `infer`; raises IRError."""

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        """The text of an attribute; overridden if upstream's differs from the default for its Python type."""
        from mlc.ir.printer import attr_text
        return attr_text(value, generic, self.attr_types.get(name, "i64"))

    def ref(self, *xs: Any) -> Any:
        raise NotImplementedError(f"{self.name} has no meaning in numpy")

    def fold(self) -> Value | np.ndarray[Any, Any] | None:
        return None

    def vjp(self, *cts: Any) -> list[Value | None]:
        raise IRError(f"{self.name} has no derivative", code="MLC0130", loc=self.loc)

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> BatchResult:
        """Batching rule: the results of `batch_size` instances of this operation, stacked along a new first axis.

        A `batched` operand has that axis too; the others are shared by all batch elements. None if the class has no
        rule for this case: the operation is then decomposed, or applied to one batch element after the other.
        """
        return None

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
        """This operation and all nested ones in pre-order; the operation just yielded may be erased."""
        yield self
        blocks = [iter(block) for region in reversed(self.regions) for block in reversed(region.blocks)]
        while blocks:                            # a stack: nested generators would pass each op through each level
            for op in blocks[-1]:
                yield op
                if op.regions:
                    blocks += [iter(block) for region in reversed(op.regions) for block in reversed(region.blocks)]
                    break
            else:
                blocks.pop()

    def inside(self, cls: type[O] | tuple[type[O], ...]) -> Iterator[O]:
        """All operations of a class, or of one of several, among this one and those nested in it."""
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

    def fail(self, message: str, code: str = "", hint: str | None = None) -> NoReturn:
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
        """Remove this operation and all nested ones; its results must be unused."""
        for r in self.results:
            assert not r.uses, f"erasing {self.name}, whose result is used by {r.users[0].name}"
        if self.parent is not None:
            self.detach()
        self.drop_uses()

    def drop_uses(self) -> None:
        """Drop all operands of this operation and of nested ones, and unlink them from their blocks.

        This breaks reference cycles, so that they are freed at once and not by the cycle collector.
        """
        for op in list(self.walk()) if self.regions else (self,):
            for i, value in enumerate(op.operands):
                value.uses.pop((op, i), None)
            op.operands = []
            op.results = ()
            op.parent = op.prev = op.next = None     # work-lists that still hold it see that it is erased
            for region in op.regions:
                for block in region.blocks:
                    block.first = block.last = None

    def replace_by(self, *values: Value) -> None:
        """Replace all uses of the results by `values`, and erase this operation."""
        assert len(values) == len(self.results), f"{self.name}: {len(values)} values for {len(self.results)} results"
        for old, new in zip(self.results, values):
            if old.name and not new.name:
                new.name = old.name
            old.replace_by(new)
        self.erase()

    def fuse_locations(self, equal: Op) -> None:
        """Have this operation and the nested ones also stand for those of an equal one, which is about to go."""
        for own, other in zip(self.walk(), equal.walk()):
            own.loc = own.loc.with_fused(other.loc)

    def move_before(self, op: Op) -> None:
        self.detach()
        assert op.parent is not None
        op.parent.insert(self, op)

    def clone(self, mapping: dict[Value, Value] | None = None, blocks: dict[Block, Block] | None = None,
              env: Mapping[str, Dim] | None = None) -> Op:
        """A detached copy. Operands are mapped through `mapping`, to which the results are added.

        `env` substitutes size symbols, in types and attributes.
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

    def _repr_html_(self) -> str:
        from mlc.ir.html import module
        from mlc.ir.printer import to_text
        return module(to_text(self) if self.regions else f"{self}\n")


def _types(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def clone_region(region: Region, mapping: dict[Value, Value], blocks: dict[Block, Block] | None = None,
                 env: Mapping[str, Dim] | None = None) -> Region:
    """A copy of a region. Blocks and arguments are created first, so that uses before definitions resolve."""
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
