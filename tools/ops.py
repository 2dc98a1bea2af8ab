"""mlc ops: every operation with its operands, attributes, facets and equation; or all about one."""

from __future__ import annotations

import argparse
import inspect
from enum import Enum
from typing import Any

from mlc.dialects import expansions, load_all
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.dialects.tensor.traits import FACTS
from mlc.ir.core import REGISTRY, Op
from mlc.ir.diag import UserError
from mlc.ir.rewrite import rules_for
from mlc.tools import layout, report
from mlc.tools.layout import table

EXAMPLES = """examples:
  mlc ops
  mlc ops tensor.exp
  mlc ops arith
"""
FACETS = ("infer", "ref", "interpret", "fold", "vjp", "vmap", "decompose", "verify_op")
"""Methods that an operation class may define, see ir/core.py."""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("ops", "List the operations, or explain one.", EXAMPLES)
    p.add_argument("name", nargs="?", help="an operation, or a dialect")
    return p


def main(options: argparse.Namespace) -> int:
    load_all()
    if options.name is None:
        print(listing(REGISTRY))
    elif options.name in REGISTRY:
        print(describe(REGISTRY[options.name]))
    elif chosen := {n: c for n, c in REGISTRY.items() if n.split(".")[0] == options.name}:
        print(listing(chosen))
    else:
        raise _unknown(options.name)
    return 0


def _unknown(name: str) -> UserError:
    from difflib import get_close_matches
    near = get_close_matches(name, REGISTRY, 1) or [n for n in REGISTRY if n.endswith("." + name)][:1]
    return report.usage_error(f"there is no operation or dialect {name!r}",
                              f"did you mean {near[0]}?" if near else "see mlc ops", "MLC0395")


def listing(ops: dict[str, type[Op]]) -> str:
    rows: list[tuple[str, ...]] = [("operation", "operands", "attributes", "facets", "meaning")]
    for name, cls in sorted(ops.items()):
        operands = [f.name + {"one": "", "optional": "?", "many": "..."}[f.shape] for f in cls.operand_fields]
        rows.append((name, " ".join(operands), " ".join(f.name for f in cls.attr_fields), " ".join(facets(cls)),
                     equation(cls)))
    if width := layout.terminal_width():                   # what there is no room for, `mlc ops NAME` says
        rows = [(name, meaning) for name, *_, meaning in rows]
    return "\n".join(table(rows, width))


def facets(cls: type[Op]) -> list[str]:
    """The facets that the class or its family defines."""
    return [f for f in FACETS if getattr(cls, f, None) is not getattr(Op, f, None)]


def equation(cls: type[Op]) -> str:
    """The first line of the class's own docstring."""
    doc = cls.__dict__.get("__doc__") or ""
    return doc.strip().splitlines()[0] if doc.strip() else ""


def describe(cls: type[Op]) -> str:
    """The full description of an operation."""
    lines = [cls.name, ""]
    docs = [c.__dict__.get("__doc__") for c in cls.__mro__[:cls.__mro__.index(Op)]]
    if doc := next(filter(None, docs), None):
        lines += [inspect.cleandoc(doc), ""]
    defaults = cls.attr_defaults
    for f in cls.fields:
        kind = {"attr": f.shape, "operand": {"one": "operand", "optional": "operand, may be absent",
                                             "many": "operands"}[f.shape] if f.kind == "operand" else ""}
        default = f" = {defaults[f.name]}" if f.name in defaults else ""
        what = kind.get(f.kind) or {"one": f.kind, "many": f.kind + "s"}[f.shape]
        lines.append(f"  {f.name}: {what}{default}")
    traits = [t for t in ("pure", "reads", "effects_inside", "effects_of_callee", "terminator", "commutative",
                          "isolated", "symbol_table", "blocks_gradient") if getattr(cls, t)]
    traits += [f"{fact}={_fact_text(getattr(cls, fact))}" for fact in FACTS if hasattr(cls, fact)]
    lines += ["", "traits: " + (", ".join(traits) or "none")]
    if defined := [*facets(cls), *_computed(cls)]:
        lines += table([("  " + facet, *_origin(cls, facet)) for facet in defined])
    if missing := [f for f in ("fold", "vjp") if f not in facets(cls)]:
        lines.append("without: " + ", ".join(missing))
    rules = rules_for(cls, fast=True)
    lines += [f"rule {r.name}{' (only with fast)' if r.fast else ''}: {r.equation}" for r in rules] or ["no rules"]
    lines.append(f"defined in {cls.__module__.removeprefix('mlc.').replace('.', '/')}")
    return "\n".join(lines)


def _fact_text(fact: object) -> str:
    """Text of a trait of a class; a trait that depends on the operands is a property."""
    return "by operands" if isinstance(fact, property) else str(fact.value if isinstance(fact, Enum) else fact)


def _computed(cls: type[Op]) -> list[str]:
    """`expand`, if compiled code computes an elementwise operation by it."""
    return ["expand"] if issubclass(cls, Elementwise) and cls.has_expansion() else []


def _origin(cls: type[Op], facet: str) -> tuple[str, str]:
    """The class and the method that define a facet, and where: of a family's derivative or expansion, that of the
    operation."""
    owner, name = cls, facet
    if facet == "vjp":
        base = next(b for b in cls.__mro__ if facet in b.__dict__)
        own = next(((b, rule) for rule in ("partial", "partials") for b in cls.__mro__ if rule in b.__dict__
                    and b is not base), None)
        owner, name = own or (cls, facet)
    method: Any = next(b for b in owner.__mro__ if name in b.__dict__)
    function = method.__dict__[name]
    if facet == "expand" and method is Elementwise:
        function = getattr(expansions, cls.name.removeprefix("tensor."))
        return function.__name__, _place(function)
    return f"{method.__name__}.{name}", _place(function)


def _place(function: Any) -> str:
    """Where a method or function is defined; that of a family that makes it is where the family is."""
    function = getattr(function, "__func__", getattr(function, "fget", None) or function)
    code = inspect.unwrap(function).__code__
    file = str(function.__module__).removeprefix("mlc.").replace(".", "/")
    return f"{file}.py:{code.co_firstlineno}"
