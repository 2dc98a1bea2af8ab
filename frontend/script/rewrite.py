"""Rewrites the syntax tree of a function so that each `if`, loop, `and` and call goes through the runtime.

    if x > 0:                  def _mlc_then_1(): nonlocal y; y = x
        y = x           ->     def _mlc_else_1(): nonlocal y; y = -x
    else:                      def _mlc_get_1(): return (y,)
        y = -x                 def _mlc_set_1(_mlc_v): nonlocal y; y, = _mlc_v
                               _mlc_.if_(x > 0, _mlc_then_1, _mlc_else_1,
                                         _mlc_.Variables(_mlc_get_1, _mlc_set_1, ('y',), ('y',), ()), False)

New nodes have the positions of those they replace, so errors and operations have the user's lines.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from mlc.frontend.script import jumps, liveness
from mlc.frontend.script.jumps import SCOPES
from mlc.frontend.script.liveness import Names, stores

RUNTIME = "_mlc_"
N = TypeVar("N", bound=ast.AST)
Body = list[ast.stmt]


def rewrite_function(node: ast.FunctionDef) -> ast.FunctionDef:
    """The rewritten function; its decorators, annotations and defaults are unchanged."""
    _Rewriter(node.args, node.body).function(node)
    return node


def rewrite_lambda(node: ast.Lambda) -> ast.Lambda:
    rewriter = _Rewriter(node.args, [])
    node.body = rewriter.visit(node.body)
    return ast.fix_missing_locations(node)


def is_plain(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a function is not a generator: it has no `yield` of its own."""
    work: list[ast.AST] = list(node.body) if isinstance(node.body, list) else [node.body]
    while work:
        n = work.pop()
        if isinstance(n, ast.Yield | ast.YieldFrom | ast.Await):
            return False
        work += [] if isinstance(n, SCOPES) else ast.iter_child_nodes(n)
    return True


def define(name: str, args: Sequence[str], body: Body) -> ast.FunctionDef:
    """The definition of a function."""
    out = ast.FunctionDef(name, _arguments(*args), body or [ast.Pass()], [])
    out.type_params = []  # type: ignore[attr-defined]           # which Python 3.12 asks for
    return out


def _name(id: str) -> ast.Name:
    return ast.Name(id, ast.Load())


def _runtime(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_name(RUNTIME), name, ast.Load()), list(args), [])


def _parts(targets: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """The targets of a statement, also those in parentheses and brackets."""
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            yield from _parts(target.elts)
        else:
            yield target


def _thunk(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(_arguments(), body)


def _arguments(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _constant(x: Any) -> ast.expr:
    return ast.Tuple([_constant(v) for v in x], ast.Load()) if isinstance(x, tuple) else ast.Constant(x)


def _names_of(args: ast.arguments) -> list[str]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *([args.vararg] if args.vararg else []),
             *([args.kwarg] if args.kwarg else [])]
    return [a.arg for a in every]


def _bind_exceptions(body: Sequence[ast.stmt]) -> None:
    """Make the names of exceptions variables, which the parts of a function share, as Python's reference says.

        except E as name:              except E as _mlc_caught_1:
            ...                            name = _mlc_caught_1
                               ->          try: ...
                                           finally: name = None; del name
    """
    handlers = [h for s in jumps.statements(body) for h in getattr(s, "handlers", ()) if h.name]
    for number, handler in enumerate(handlers):
        name, handler.name = handler.name, f"_mlc_caught_{number}"
        bound, cleared = (ast.Assign([ast.Name(name, ast.Store())], value)
                          for value in (_name(handler.name), ast.Constant(None)))
        deleted = ast.Delete([ast.Name(name, ast.Del())])
        handler.body = [_place(s, handler) for s in (bound, ast.Try(handler.body, [], [], [cleared, deleted]))]


_CHEAP = (ast.Name, ast.Constant, ast.UnaryOp, ast.BinOp, ast.Compare, ast.BoolOp, ast.operator, ast.unaryop,
          ast.boolop, ast.cmpop, ast.Load)
_FREE = (ast.Name, ast.Constant, ast.UnaryOp, ast.unaryop, ast.Load)


def _is_cheap(node: ast.expr) -> bool:
    """Whether an expression on tensors may be evaluated speculatively: it neither calls nor indexes."""
    return all(isinstance(n, _CHEAP) for n in ast.walk(node))


def _is_free(node: ast.expr) -> bool:
    """The same where derivatives may be taken: it reads only existing values."""
    return all(isinstance(n, _FREE) for n in ast.walk(node))


def _binds(*nodes: ast.expr) -> bool:
    """Whether an expression assigns a variable, which a function of its own could not."""
    return any(isinstance(n, ast.NamedExpr) for node in nodes for n in ast.walk(node))


class _Rewriter(ast.NodeTransformer):
    """Rewriter of one function; each nested function has its own."""

    def __init__(self, args: ast.arguments, body: Body) -> None:
        every = list(jumps.statements(body))
        self.parameters = _names_of(args)
        self.globals = frozenset(n for s in every if isinstance(s, ast.Global) for n in s.names)
        self.nonlocals = frozenset(n for s in every if isinstance(s, ast.Nonlocal) for n in s.names)
        self.shared = liveness.assigned_within(body) & (stores(body) | set(self.parameters))
        self.states: set[str] = set()                      # variables that some if or loop assigns
        self.handlers = 0
        self.count = 0
        self.unsure: set[ast.Name] = set()

    def function(self, node: ast.FunctionDef) -> None:
        doc = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        body = jumps.without_jumps(node.body[len(doc):] or [ast.copy_location(ast.Pass(), node)])
        _bind_exceptions(body)
        liveness.mark(body, self.globals | self.nonlocals)
        local = stores(body) - self.globals - self.nonlocals
        self.unsure = liveness.unsure(body, [*self.parameters, *self.shared], local)
        found = self.block(body)
        declared = self.declared(self.globals, self.nonlocals)
        empty = sorted((self.states | {n.id for n in self.unsure}) - set(self.parameters) - self.globals
                       - self.nonlocals)
        start: Body = []
        if empty:
            undefined = ast.Attribute(_name(RUNTIME), "UNDEFINED", ast.Load())
            start = [ast.copy_location(ast.Assign([ast.Name(n, ast.Store()) for n in empty], undefined), body[0])]
        node.body = [*doc, *declared, *start, *found]
        ast.fix_missing_locations(node)

    def block(self, body: Sequence[ast.stmt]) -> Body:
        out: Body = []
        for s in body:
            found = self.visit(s)
            new = found if isinstance(found, list) else [found]
            for x in new:
                _place(x, s)
            out += new
        return out

    # -- functions and classes within -----------------------------------------------------------------------------
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return rewrite_function(node) if is_plain(node) else node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.body = [self.visit(s) if isinstance(s, ast.FunctionDef) else s for s in node.body]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return rewrite_lambda(node) if is_plain(node) else node

    # -- statements -----------------------------------------------------------------------------------------------
    def part(self, name: str, body: Body, written: Names, *args: str) -> ast.FunctionDef:
        """A nested function that runs a part of this one on its variables."""
        return define(name, args, [*self.declared(written & self.globals, written - self.globals), *body])

    def declared(self, globals: Names, nonlocals: Names) -> Body:
        return [kind(sorted(names)) for kind, names in ((ast.Global, globals), (ast.Nonlocal, nonlocals)) if names]

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.stmt:
        return ast.Pass()                                  # declared at the beginning, and in each part

    visit_Nonlocal = visit_Global

    def state(self, node: Any, written: Names) -> tuple[Body, ast.expr]:
        """Functions that get and set the variables, and the `Variables` object for the runtime."""
        names = tuple(sorted(written))
        wanted = [_constant(tuple(sorted(getattr(node, which, frozenset()) & written))) for which in ("live", "head")]
        get = self.part(f"_mlc_get_{self.count}", [ast.Return(_tuple(names, ast.Load()))], frozenset())
        put = self.part(f"_mlc_set_{self.count}",
                        [ast.Assign([_tuple(names, ast.Store())], _name("_mlc_v"))] if names else [], written, "_mlc_v")
        return [get, put], _runtime("Variables", _name(get.name), _name(put.name), _constant(names), *wanted)

    def written(self, *nodes: Any) -> Names:
        found = frozenset().union(*(stores(n) for n in nodes)) | self.shared
        self.states |= found
        return found

    def visit_If(self, node: Any) -> Body:
        self.count += 1
        n, written = self.count, self.written(node.body, node.orelse)
        functions, variables = self.state(node, written)
        test = self.test(node.test)
        then = self.part(f"_mlc_then_{n}", self.block(node.body), written)
        otherwise = self.part(f"_mlc_else_{n}", self.block(node.orelse), written)
        call = _runtime("if_", test, _name(then.name), _name(otherwise.name), variables, _constant(self.handlers > 0))
        return [then, otherwise, *functions, _place(ast.Expr(call), node.test)]

    def visit_While(self, node: Any) -> Body:
        self.count += 1
        n, written = self.count, self.written(node.body, node.test)
        functions, variables = self.state(node, written)
        goes_on = self.test(node.test)
        if stops := jumps.stops_of(node):
            goes_on = _runtime("and_", _runtime("not_", self.any(stops)), _thunk(goes_on), _constant(False))
        test = self.part(f"_mlc_test_{n}", [_place(ast.Return(goes_on), node.test)], stores(node.test))
        body = self.part(f"_mlc_body_{n}", self.block(node.body), written)
        call = _runtime("while_", _name(test.name), _name(body.name), variables, _constant(self.handlers > 0))
        orelse = self.block(node.orelse)
        return [test, body, *functions, _place(ast.Expr(call), node.test), *orelse]

    def visit_For(self, node: Any) -> Body:
        self.count += 1
        n, written = self.count, self.written(node.body, node.target)
        functions, variables = self.state(node, written)
        assign = _place(ast.Assign([self.visit(node.target)], _name("_mlc_item")), node.target)
        body = self.part(f"_mlc_body_{n}", [assign, *self.block(node.body)], written, "_mlc_item")
        stops = jumps.stops_of(node)
        stop: ast.expr = _thunk(self.any(stops)) if stops else ast.Constant(None)
        call = _runtime("for_", self.visit(node.iter), _name(body.name), stop, variables, _constant(self.handlers > 0))
        return [body, *functions, _place(ast.Expr(call), node.iter)]

    def any(self, flags: Sequence[str]) -> ast.expr:
        out: ast.expr = _name(flags[0])
        for flag in flags[1:]:
            out = _runtime("or_", out, _thunk(_name(flag)), _constant(True))
        return out

    def visit_Try(self, node: ast.Try) -> ast.Try:
        self.handlers += bool(node.handlers)
        node.body = self.block(node.body)
        self.handlers -= bool(node.handlers)
        for handler in node.handlers:
            handler.body = self.block(handler.body)
        node.orelse, node.finalbody = self.block(node.orelse), self.block(node.finalbody)
        return node

    def visit_With(self, node: ast.With) -> ast.With:
        for item in node.items:
            item.context_expr = self.visit(item.context_expr)
            item.optional_vars = self.visit(item.optional_vars) if item.optional_vars is not None else None
        node.body = self.block(node.body)
        return node

    def visit_Match(self, node: ast.Match) -> ast.Match:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.guard = self.visit(case.guard) if case.guard is not None else None
            case.body = self.block(case.body)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        message = _thunk(self.visit(node.msg)) if node.msg is not None else ast.Constant(None)
        guarded = _constant(self.handlers > 0)
        return _place(ast.Expr(_runtime("assert_", self.test(node.test), message, guarded)), node.test)

    def visit_Raise(self, node: ast.Raise) -> Body:
        return [ast.Expr(_runtime("raises")), self.generic_visit(node)]  # type: ignore[list-item]

    def visit_Delete(self, node: ast.Delete) -> Body:
        undefined = ast.Attribute(_name(RUNTIME), "UNDEFINED", ast.Load())
        out: Body = []
        for target in _parts(node.targets):
            if isinstance(target, ast.Name) and target.id not in self.globals:
                out += [ast.Expr(self.visit(ast.copy_location(_name(target.id), target))),
                        ast.Assign([ast.Name(target.id, ast.Store())], undefined)]
            else:
                out.append(ast.Delete([self.visit(target)]))
        return out

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        return self.generic_visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Body:
        grows: Body = []
        if isinstance(node.target, ast.Name):
            grows = [ast.Expr(_runtime("grows", self.visit(ast.copy_location(_name(node.target.id), node.target))))]
        return [*grows, self.generic_visit(node)]  # type: ignore[list-item]

    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> ast.expr:
        """Report an assignment to a part of an object to the runtime."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = _place(_runtime("changed", node.value, _constant(getattr(node, "attr", None))), node.value)
        return node

    visit_Subscript = visit_Attribute

    # -- expressions ----------------------------------------------------------------------------------------------
    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node not in self.unsure:
            return node
        return _place(_runtime("use", _name(node.id), _constant(node.id)), node)

    def test(self, node: ast.expr) -> ast.expr:
        """An expression in a boolean context, where operands of `and` and `or` may be of different types."""
        return self.visit_BoolOp(node, True) if isinstance(node, ast.BoolOp) else self.visit(node)

    def visit_BoolOp(self, node: ast.BoolOp, truth: bool = False) -> ast.expr:
        plain = [_is_cheap(x) for x in node.values]
        if _binds(*node.values[1:]):
            return self.generic_visit(node)  # type: ignore[return-value]
        values = [_place(_runtime("truths", self.test(x)), x) if truth else self.visit(x) for x in node.values]
        out = values[-1]
        which = "and_" if isinstance(node.op, ast.And) else "or_"
        for i in range(len(values) - 2, -1, -1):
            out = _runtime(which, values[i], _thunk(out), _constant(all(plain[i + 1:])))
        return _place(out, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if not isinstance(node.op, ast.Not):
            return self.generic_visit(node)  # type: ignore[return-value]
        return _place(_runtime("not_", self.test(node.operand)), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if _binds(node.body, node.orelse):
            return self.generic_visit(node)  # type: ignore[return-value]
        free = _is_free(node.body) and _is_free(node.orelse)
        return _place(_runtime("choose", self.test(node.test), _thunk(self.visit(node.body)),
                               _thunk(self.visit(node.orelse)), _constant(free)), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operands = [node.left, *node.comparators]
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot) and not any(
                isinstance(x, ast.Constant) for x in operands):
            found = _runtime("same", *map(self.visit, operands))
            return _place(found if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(ast.Not(), found), node)
        if len(node.ops) == 1 or _binds(*node.comparators[1:]):
            return self.generic_visit(node)  # type: ignore[return-value]
        cheap = all(map(_is_cheap, node.comparators))
        pairs: list[ast.expr] = []
        for op, right in zip(node.ops, node.comparators):
            compare = ast.Lambda(_arguments("_mlc_a", "_mlc_b"), ast.Compare(_name("_mlc_a"), [op], [_name("_mlc_b")]))
            pairs.append(ast.Tuple([compare, _thunk(self.visit(right))], ast.Load()))
        return _place(_runtime("chain", self.visit(node.left), _constant(cheap), *pairs), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.parameters:
            node.args = [_name("__class__"), _name(self.parameters[0])]
            return _place(node, node)
        func = _place(_runtime("callee", self.visit(node.func)), node.func)
        node.args = [self.visit(x) for x in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        node.func = func
        return node


def _tuple(names: Sequence[str], context: ast.expr_context) -> ast.expr:
    return ast.Tuple([ast.Name(n, context) for n in names], context)


def _place(node: N, at: ast.AST) -> N:
    """Copy the position of a node to the parts of another that have none."""
    ast.copy_location(node, at) if not hasattr(node, "lineno") else None
    work: list[ast.AST] = [node]
    while work:
        n = work.pop()
        for child in ast.iter_child_nodes(n):
            if "lineno" in child._attributes and not hasattr(child, "lineno"):
                ast.copy_location(child, n if hasattr(n, "lineno") else at)
            work.append(child)
    return node
