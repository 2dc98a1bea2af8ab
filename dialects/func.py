"""func: functions, calls and returns, with upstream's names, syntax and semantics."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from typing import TYPE_CHECKING, Any

from mlc.ir.abi import REPLACES
from mlc.ir.core import Block, Op, Region, ResultType, Symbol, Value, builder, caller_loc
from mlc.ir.diag import IRError
from mlc.ir.sizes import Dim, Size, sym, symbol_name, symbols
from mlc.ir.symbols import lookup, nearest_table
from mlc.ir.types import FunctionType, ShapedType, TensorType, Type, bind_symbols, substitute

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


CONSTANTS = "constants"
"""Attribute of a public function: the numbers of the arguments that are the same tensors in all of its calls."""

UPDATES = "updates"
"""Attribute of a public function: per result, the number of the argument whose new elements it has, `REPLACES`, or -1.
Once buffers are assigned, only where the result may be written over the argument."""

COLD = "cold"
"""Attribute of a function that runs once and not in each call, as what it computes of constants is kept: its code is to
be small rather than fast, as LLVM's attribute of this name says."""

WRITTEN_AT = "written_at"
"""Attribute of a private function that is equal to another one but for the lines that its operations are of: a number
that keeps them two, so that errors and profiles name the lines of each. Equal kernels of theirs share code."""

Places = tuple[tuple[str, int, int] | None, ...]


class Func(Op, name="func.func", isolated=True, pure=False):
    """A named function, isolated from above; a private one without a body declares what another module defines."""

    body: Region
    sym_name: Symbol
    function_type: FunctionType
    sym_visibility: str | None = None

    @property
    def block(self) -> Block:
        if self.is_declaration:
            self.fail(f"@{self.sym_name} has no body here", code="MLC0108",
                      hint="functions of other modules can be called from level low on")
        return self.body.block

    @property
    def args(self) -> Sequence[Value]:
        return self.body.blocks[0].args

    @property
    def is_declaration(self) -> bool:
        """Whether another module defines the function."""
        return not self.body.blocks

    @property
    def is_public(self) -> bool:
        return self.sym_visibility != "private"

    def update_type(self) -> None:
        """Update `function_type` to the arguments and results of the body, after a pass changed them."""
        returned = self.body.blocks[-1].terminator.operands
        self.function_type = FunctionType(tuple(a.type for a in self.args), tuple(v.type for v in returned))

    def verify_op(self) -> None:
        if self.is_declaration:
            if self.is_public:
                self.fail("a function without a body is private", code="MLC0108")
            return
        if tuple(a.type for a in self.args) != self.function_type.inputs:
            self.fail("the entry block's arguments are not the function's inputs", code="MLC0108")
        self._check_numbers("donate", "the function may overwrite")
        self._check_numbers(CONSTANTS, "is the same in every call")
        self._check_numbers(UPDATES, "gets new elements", {-1, REPLACES})
        if both := {*self.attrs.get("donate", ())}.intersection(self.attrs.get(CONSTANTS, ())):
            self.fail(f"argument {min(both)} is donated and a constant", code="MLC0116")
        if CONSTANTS in self.attrs and not self.is_public:
            self.fail("a private function has no constants: its calls tell", code="MLC0116")

    def _check_numbers(self, name: str, what: str, none: Set[int] = frozenset()) -> None:
        """Refuse an attribute that is no list of arguments, and of numbers that stand for `none`."""
        numbers = self.attrs.get(name, ())
        fits = isinstance(numbers, tuple) and all(type(i) is int and (i in none or 0 <= i < len(self.args))
                                                  for i in numbers)
        arguments = [i for i in numbers if i not in none] if fits else []
        if not fits or len({*arguments}) < len(arguments):
            self.fail(f"{name} = {numbers} are not distinct indices of its {len(self.args)} arguments", code="MLC0116",
                      hint=f"list each argument that {what} once, by its index from 0")

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return super().attr_text(name, str(value) if name == "sym_name" else value, generic)

    def print_form(self, p: Printer) -> None:
        from mlc.ir.printer import attr_text
        private = " private" if self.sym_visibility == "private" else ""
        args = (p.types(self.function_type.inputs) if self.is_declaration else
                ", ".join(f"{p.name(a)}: {p.type(a.type)}" for a in self.args))
        results = p.types(self.function_type.results)
        arrow = "" if not results else f" -> {results}" if len(self.function_type.results) == 1 else f" -> ({results})"
        p.append(f"{private} {attr_text(Symbol(self.sym_name), False)}({args}){arrow}")
        if extra := p.attr_dict(self, ("sym_name", "function_type", "sym_visibility")):
            p.append(f" attributes {extra}")
        if not self.is_declaration:
            p.braces(self.body, entry_args=False)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        visibility = "private" if parser.accept("private") else "public" if parser.accept("public") else None
        name = parser.symbol("a function name such as @f")
        parser.expect("(")
        first = parser.token
        named = parser.at_value() or parser.at(")") or visibility != "private"
        args = parser.list_of(parser.typed_arg, ")") if named else []
        inputs = [t for _, t in args] if named else parser.list_of(parser.type, ")")
        results: list[Type] = []
        if parser.accept("->"):
            results = parser.list_of(parser.type, ")") if parser.accept("(") else [parser.type()]
        extra = parser.attr_dict() if parser.accept("attributes") else {}
        type = FunctionType(tuple(inputs), tuple(results))
        if not named and parser.at("{"):
            parser.fail("expected an argument such as %x", token=first)
        declared = not named or (not args and visibility == "private" and not parser.at("{"))
        body = Region() if declared else parser.region(args, isolated=True)
        return parser.build(Func, [], {"sym_name": name, "function_type": type, "sym_visibility": visibility,
                                       **extra}, [], [body])


def declaration(name: str, type: FunctionType) -> Func:
    """A detached declaration of a function that another module defines."""
    return Func.make([], {"sym_name": Symbol(name), "function_type": type, "sym_visibility": "private"}, [],
                     [Region()])


def function(name: str, inputs: Sequence[Type], names: Sequence[str] = (), private: bool = False) -> Func:
    """A detached function with an empty body; call `update_type` once it has its return."""
    return Func.make([], {"sym_name": Symbol(name), "function_type": FunctionType(tuple(inputs), ()),
                          "sym_visibility": "private" if private else None}, [], [Region(Block(inputs, names))],
                     loc=builder.loc or caller_loc())


def places(function: Func) -> Places:
    """The places of the operations of a function; None for those on its own line, which is that of a call of a layer
    of this package, and which `Loc.called` replaces by the line of each call."""
    own = function.loc.file, function.loc.line
    return tuple([None if (op.loc.file, op.loc.line) == own else (op.loc.file, op.loc.line, op.loc.col)
                  for op in function.walk()])


class Return(Op, name="func.return", terminator=True, pure=False):
    """Return these values from the function."""

    values: tuple[Value, ...]

    def verify_op(self) -> None:
        function = self.parent_op
        if not isinstance(function, Func):
            self.fail("is outside of a function", code="MLC0108")
        elif tuple(v.type for v in self.values) != function.function_type.results:
            self.fail("the values are not of the function's result types", code="MLC0108")

    def print_form(self, p: Printer) -> None:
        if self.operands:
            p.append(f" {p.values(self.operands)} : {p.types(v.type for v in self.operands)}")
        if extra := p.attr_dict(self):
            p.append(" " + extra)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        refs = parser.operand_list()
        types = parser.type_list() if refs and parser.accept(":") else None
        extra = parser.attr_dict() if parser.at("{") else {}
        return Return.make(parser.resolve_all(refs, types), extra, [])


class Call(Op, name="func.call", pure=False, effects_of_callee=True):
    """Call a function of this module."""

    callee: Symbol
    args: tuple[Value, ...]
    types: tuple[ResultType, ...]
    format = "$callee `(` $args `)` attr-dict `:` functional-type"

    def verify_op(self) -> None:
        check_call(self, self.callee, [v.type for v in self.args], [r.type for r in self.results])

    def interpret(self, frame: Frame) -> list[Any]:
        return frame.interpreter.call(self.callee, frame.all(self.operands))


def check_call(op: Op, name: str, inputs: Sequence[Type], results: Sequence[Type]) -> None:
    """Raise IRError unless the operands and results of a call match the type of function `name`."""
    function = function_named(op, name)
    if function is None:
        return                                   # the verifier reports undefined names
    try:
        expected = result_types(function, inputs)
    except IRError as error:
        raise IRError(f"{op.name} @{name}: {error.message}", code="MLC0120", loc=op.loc,
                      notes=(f"@{name} is defined at {function.loc}",)) from None
    if tuple(results) != expected:
        op.fail(f"@{name} returns ({', '.join(map(str, expected))}), not ({', '.join(map(str, results))})",
                code="MLC0120")


def function_named(op: Op, name: str) -> Func | None:
    """The function of this name in the module of `op`, if there is one."""
    table = nearest_table(op)
    found = lookup(table, name) if table is not None else None
    return found if isinstance(found, Func) else None


def functions(module: Op) -> list[Func]:
    """The functions of a module, in order."""
    return [op for op in module.regions[0].block if isinstance(op, Func)]


def result_types(function: Func, inputs: Sequence[Type]) -> tuple[Type, ...]:
    """The result types of a call with arguments of types `inputs`, with the function's size symbols substituted.

    Raises IRError if `inputs` do not match, or if a size of a result would be negative.
    """
    type = function.function_type
    env = bind_symbols(type.inputs, inputs)
    types = tuple(substitute(t, env) for t in type.results)
    for declared, actual in zip(type.results, types):
        if isinstance(actual, ShapedType) and any(isinstance(d, int) and d < 0 for d in actual.shape):
            raise IRError(f"@{function.sym_name} returns {declared}, which would be {actual} here", code="MLC0120")
    return types


def call(function: Func, args: Sequence[Value]) -> Sequence[Value]:
    """Build a call of `function`; returns its results."""
    return Call(function.sym_name, tuple(args), result_types(function, [v.type for v in args])).results


def splice(function: Func, args: Sequence[Value]) -> list[Value]:
    """Inline `function`, whose body is a single block, at the insertion point; returns its results for `args`."""
    env = bind_symbols([a.type for a in function.args], [v.type for v in args])
    renamed = {name: size for name, size in env.items() if symbol_name(size) != name}
    if bound := [op.attrs["size"] for op in function.walk() if op.binds_size]:
        renamed |= _fresh_sizes(function, bound)
    mapping: dict[Value, Value] = dict(zip(function.args, args))
    assert builder.block is not None, "no insertion point"
    for op in function.block:
        if op.terminator:
            return [mapping.get(v, v) for v in op.operands]
        builder.block.insert(op.clone(mapping, env=renamed), builder.before)
    raise AssertionError(f"@{function.sym_name} does not return")


def _fresh_sizes(callee: Func, bound: Sequence[Size]) -> dict[str, Dim]:
    """Fresh names for sizes bound inside `callee`, unused in its module and in that of the insertion point."""
    taken = size_names(callee.parent_op or callee)
    if builder.block is not None and (around := builder.block.parent_op) is not None:
        taken |= size_names(_root(around))
    out: dict[str, Dim] = {}
    for size in bound:
        name = free_name(str(size), taken)
        taken.add(name)
        out[str(size)] = sym(name)
    return out


def _root(op: Op) -> Op:
    while (outer := op.parent_op) is not None:
        op = outer
    return op


def size_names(op: Op) -> set[str]:
    """The size symbols that the functions in `op` bind, by their arguments or by operations."""
    functions = [f for f in op.walk() if isinstance(f, Func)]
    types = [a.type for f in functions for block in f.body.blocks for a in block.args]
    names = {str(inner.attrs["size"]) for inner in op.walk() if inner.binds_size}
    return names | {n for t in types if isinstance(t, TensorType) for d in t.shape for n in symbols(d)}


def free_name(name: str, taken: Collection[str]) -> str:
    """`name`, or the first of `name_0`, `name_1`, ... that is not taken."""
    if name not in taken:
        return name
    return next(n for i in range(len(taken) + 1) if (n := f"{name}_{i}") not in taken)


def free_symbol(block: Block, name: str) -> Symbol:
    """`name`, with a suffix if needed to differ from every symbol in the block of a module."""
    return Symbol(free_name(name, {str(op.attrs.get("sym_name")) for op in block}))


def references(op: Op) -> list[Symbol]:
    """The symbols that `op` and nested operations refer to, each once."""
    out: dict[Symbol, None] = {}
    for inner in op.walk():
        for name, value in inner.attrs.items():
            if isinstance(value, Symbol):
                if inner is not op or name != "sym_name":
                    out[value] = None
            elif isinstance(value, tuple):
                out.update((v, None) for v in value if isinstance(v, Symbol))
    return list(out)


def callees_first(module: Op) -> list[Func]:
    """The functions of a module in post-order of the call graph: callees before callers, except in cycles."""
    table = {f.sym_name: f for f in functions(module)}
    if len(table) < 2:
        return list(table.values())
    out: dict[Func, None] = {}
    seen: set[Func] = set()
    for root in table.values():
        work = [(root, iter(references(root)))] if root not in seen else []
        seen.add(root)
        while work:
            function, names = work[-1]
            following = next((table[n] for n in names if n in table and table[n] not in seen), None)
            if following is None:
                out[function] = None
                work.pop()
            else:
                seen.add(following)
                work.append((following, iter(references(following))))
    return list(out)


def callee(call: Call) -> Func:
    """The callee of a call."""
    from mlc.dialects.builtin import Module
    found = lookup(call.enclosing(Module), call.callee)
    if isinstance(found, Func):
        return found
    call.fail(f"@{call.callee} is not defined", code="MLC0106")
    raise AssertionError
