"""Runs an ONNX graph on mlc's tensors.

Recorded as any other function, the run is the import: what the IR means is what mlc's public functions mean. What is
known while recording (constants, sizes, and arithmetic on them) stays in numpy arrays, by `folding`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mlc.frontend.dtypes import as_dtype
from mlc.frontend.onnx import bodies, folding
from mlc.frontend.onnx.attributes import check_flags, resolved, value
from mlc.frontend.onnx.table import EXTRA, Row, find
from mlc.frontend.onnx.values import TYPES, NeedsValue, StepsOf, Stored, element_of, is_trained, known, tensor
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError

DEEPEST = 64
"""Graphs within graphs, and functions within functions."""
UNFIT = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""Exceptions of a row for attributes and inputs that are not what its operator takes."""


REFUSED = object()
"""Stands for a value that a node which is refused would compute."""


class DependsOnRefused(Exception):
    """A node needs a value that is REFUSED."""


@dataclass
class Scope:
    """Names of values in a graph, and the graph or function around it.

    values      per name its value
    opsets      per domain the version of its operator set
    around      the scope that names are looked up in next
    given       attributes of a function that is called
    depth       how many scopes are around it
    """

    values: dict[str, Any]
    opsets: Mapping[str, int]
    around: Scope | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    depth: int = 0

    def find(self, name: str) -> Any:
        at: Scope | None = self
        while at is not None:
            if name in at.values:
                if at.values[name] is REFUSED:
                    raise DependsOnRefused
                return at.values[name]
            at = at.around
        raise UserError(f"the value {name!r} is used before a node computes it", code="MLC0840",
                        hint="nodes are in the order of their execution, without cycles")


class Interpreter:
    """One run of a graph.

    functions  the functions of the model, per domain, name and overload
    types      per value of the main graph, ONNX's number of its element type, where it is known
    refused    the errors of nodes of the main graph, if the run goes on after them; None if it ends with the first
    origins    per tensor, the inputs of the model that it is computed from; with the tensor, which stays alive
    """

    def __init__(self, functions: Mapping[tuple[str, str, str], Any], types: Mapping[str, int],
                 refused: list[UserError] | None = None) -> None:
        self.functions, self.types, self.refused = functions, types, refused
        self.origins: dict[int, tuple[Any, frozenset[str]]] = {}
        self.steps = StepsOf()

    def run(self, graph: Any, inputs: Mapping[str, Any], opsets: Mapping[str, int]) -> list[Any]:
        """The results of the main graph for its inputs and weights."""
        for name, x in inputs.items():
            for leaf in x if isinstance(x, list) else [x]:
                if isinstance(leaf, Tensor):
                    self.origins[id(leaf)] = leaf, frozenset([name])
        scope = Scope(dict(inputs), opsets)
        self.nodes(graph.node, scope, self.types)
        if self.refused:
            raise self.refused[0]
        return [scope.find(output.name) for output in graph.output]

    def nodes(self, nodes: Sequence[Any], scope: Scope, types: Mapping[str, int]) -> None:
        """Evaluate nodes in a scope."""
        if scope.depth > DEEPEST:
            raise UserError(f"graphs and functions are nested more than {DEEPEST} deep", code="MLC0840")
        for node in nodes:
            try:
                results = self.node(node, scope)
                for name, result in zip(node.output, results):
                    if name:
                        check_type(node, name, result, types.get(name))
            except (UserError, DependsOnRefused) as error:
                if self.refused is None or scope.depth:
                    raise
                if isinstance(error, UserError):
                    self.refused.append(error)
                results = (REFUSED,) * len(node.output)
            scope.values |= {name: result for name, result in zip(node.output, results) if name}

    def body(self, graph: Any, scope: Scope) -> Any:
        """A graph that is an attribute, as a function of its inputs which sees the values around it."""
        def call(*inputs: Any) -> list[Any]:
            if len(inputs) != len(graph.input):
                raise UserError(f"a graph of {len(graph.input)} inputs is given {len(inputs)}", code="MLC0842")
            own = Scope(dict(zip((i.name for i in graph.input), inputs)), scope.opsets, scope, scope.given,
                        scope.depth + 1)
            own.values |= {t.name: bodies.array(t) for t in graph.initializer}
            self.nodes(graph.node, own, {})
            return [own.find(output.name) for output in graph.output]
        call.graph = graph  # type: ignore[attr-defined]
        return call

    def node(self, node: Any, scope: Scope) -> tuple[Any, ...]:
        """The results of a node."""
        with self.explained(node):
            inputs = [scope.find(n) if n else None for n in node.input]
            while inputs and inputs[-1] is None and not node.input[len(inputs) - 1]:
                inputs.pop()
            protos = resolved(node, scope.given)
            given = {n: value(a, lambda graph: self.body(graph, scope)) for n, a in protos.items()}
            out = self.result(node, inputs, protos, given, scope)
            results = out if isinstance(out, tuple) else (out,)
            if len([n for n in node.output if n]) > len(results):
                raise UserError(f"{len(node.output)} outputs are asked for, and mlc has {len(results)} of them",
                                code="MLC0842")
            for x in flat(results):
                check_size(node, x)
            self.note(results, inputs)
            return results

    def result(self, node: Any, inputs: list[Any], protos: dict[str, Any], given: dict[str, Any], scope: Scope) -> Any:
        """The result of a node for its inputs and attributes: a fold, a row, or the body of a function."""
        passed = {n: given[n] if callable(given[n]) else a for n, a in protos.items()}
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (function := self.functions.get((domain, node.op_type, node.overload))) is not None:
            return self.call(function, inputs, passed, scope, node.output)
        check_flags(given)
        version = scope.opsets.get(domain)
        if version is None:
            raise UserError(f"the model names no version of the operators of {domain or 'ONNX'!r}", code="MLC0840")
        row, fold = find(domain, node.op_type, version), folding.find(domain, node.op_type, version, inputs)
        if fold is not None:
            try:
                return self.folded(fold, row, node, inputs, given, version)
            except folding.Unfolded:
                pass
        if row is not None:
            return self.called(row, node, inputs, given, version)
        found = bodies.of_schema(node, protos, domain, version, inputs)
        if found is None:
            raise UserError(f"mlc does not run {domain + '.' if domain else ''}{node.op_type} of version {version}",
                            code="MLC0841")
        function, defaults = found
        return self.call(function, inputs, {**defaults, **passed}, scope, node.output)

    def folded(self, fold: folding.Fold, row: Row | None, node: Any, inputs: list[Any], given: dict[str, Any],
               version: int) -> Any:
        """The result of a fold. What it makes of trained weights is a number for what decides about sizes only."""
        if node.op_type in folding.ON_SHAPES:
            return fold(*inputs, **given)
        counted = {"outputs": len(node.output)} if node.op_type in folding.COUNTING else {}
        if row is None or not any(map(is_trained, inputs)):
            return fold(*(x if x is None else known(x, "") for x in inputs), **given, **counted)
        found = fold(*(x.array if isinstance(x, Stored) else x for x in inputs), **given, **counted)
        computed = self.called(row, node, inputs, given, version)
        weights = tuple({id(w): w for x in inputs if isinstance(x, Stored) for w in x.made_of or (x,)}.values())
        if isinstance(found, tuple):
            return tuple(Stored(x, partial(tensor, y), weights) for x, y in zip(found, computed))
        return Stored(found, partial(tensor, computed), weights)

    def called(self, row: Row, node: Any, inputs: list[Any], given: dict[str, Any], version: int) -> Any:
        """The result of a row."""
        for name in EXTRA & set(row.signature.parameters):
            given[name] = {"opset": version, "outputs": len(node.output), "steps_of": self.steps}[name]
        unknown = set(given) - set(row.signature.parameters)
        if unknown:
            raise UserError(f"mlc does not translate the attribute {min(unknown)}", code="MLC0842")
        bound = row.signature.bind(*inputs, **given)
        for name, x in bound.arguments.items():
            if row.signature.parameters[name].kind is row.signature.parameters[name].KEYWORD_ONLY or x is None:
                continue
            if name in row.known:
                bound.arguments[name] = known(x, name)
            elif name not in row.values:
                bound.arguments[name] = tuple(map(tensor, x)) if isinstance(x, tuple) else tensor(x)
        return row.f(*bound.args, **bound.kwargs)

    def call(self, function: Any, inputs: list[Any], given: Mapping[str, Any], scope: Scope,
             asked: Sequence[str]) -> tuple[Any, ...]:
        """The results of a function's body; None for those that are not asked for."""
        defaults = {a.name: a for a in getattr(function, "attribute_proto", ())}
        own = Scope(dict.fromkeys(function.input) | dict(zip(function.input, inputs)),
                    {("" if o.domain == "ai.onnx" else o.domain): o.version for o in function.opset_import},
                    None, {**defaults, **given}, scope.depth + 1)
        if len(inputs) > len(function.input):
            raise UserError(f"the function takes {len(function.input)} inputs, not {len(inputs)}", code="MLC0842")
        self.nodes(function.node, own, {})
        return tuple(own.find(n) if name else None for n, name in zip(function.output, asked))

    def note(self, results: Sequence[Any], inputs: Sequence[Any]) -> None:
        """Remember what inputs of the model the results of a node are computed from."""
        names = frozenset(n for x in flat(inputs) for n in self.origin(x))
        for x in flat(results):
            if isinstance(x, Tensor) and id(x) not in self.origins:
                self.origins[id(x)] = x, names

    def origin(self, x: Any) -> frozenset[str]:
        """Names of the inputs of the model that a value is computed from."""
        found = self.origins.get(id(x))
        return found[1] if found is not None and found[0] is x else frozenset()

    @contextmanager
    def explained(self, node: Any) -> Iterator[None]:
        """Errors with the name of a node."""
        place = f"the node {node.name or ', '.join(node.output)!r} ({node.op_type})"
        try:
            yield
        except NeedsValue as error:
            if error.inputs is None:
                error.inputs = self.origin(error.value)
                named = ", ".join(sorted(error.inputs))
                error.hint = f"give the values of {named} as mlc.onnx.load(model, constants={{...}})" if named else (
                    "write the model with numbers in place of the symbolic sizes that it may depend on")
            error.notes += (place,)
            raise
        except UserError as error:
            error.notes += (place,)
            raise
        except UNFIT as error:
            raise UserError(f"its inputs or attributes are not what the operator takes: {error}", code="MLC0842",
                            notes=(place,)) from error


def missing(model: Any) -> list[str]:
    """The operators of a model that have no row and no function, each with how often it occurs, also in graphs."""
    found = Counter[str]()

    def visit(nodes: Sequence[Any], opsets: Mapping[str, int]) -> None:
        for node in nodes:
            domain = "" if node.domain == "ai.onnx" else node.domain
            version = opsets.get(domain)
            if version is None or not ((domain, node.op_type, node.overload) in model.functions
                                       or node.op_type in folding.FOLDS or find(domain, node.op_type, version)
                                       or bodies.has_function(domain, node.op_type, version)):
                found[f"{domain + '.' if domain else ''}{node.op_type}, version {version}"] += 1
            for a in node.attribute:
                for graph in (a.g, *a.graphs):
                    visit(graph.node, opsets)
    visit(model.proto.graph.node, model.opsets)
    for function in model.functions.values():
        visit(function.node, {("" if o.domain == "ai.onnx" else o.domain): o.version for o in function.opset_import})
    return [f"{name}: mlc has no such operator, in {count} node{'s' if count > 1 else ''}"
            for name, count in found.most_common()]


def flat(values: Sequence[Any]) -> Iterator[Any]:
    """Values, and those in sequences among them."""
    for x in values:
        if isinstance(x, list):
            yield from flat(x)
        else:
            yield x


LARGEST_RESULT = 1 << 48
"""Elements of a result that a model may compute."""


def check_size(node: Any, x: Any) -> None:
    """Refuse a result that no machine has memory for, before its size is computed with."""
    if isinstance(x, Tensor | np.ndarray) and math.prod(n for n in x.shape if isinstance(n, int)) > LARGEST_RESULT:
        raise UserError(f"a result of the sizes {list(x.shape)}", code="MLC0842")


def check_type(node: Any, name: str, x: Any, expected: int | None) -> None:
    """Refuse a result of another type than ONNX infers: that would be a wrong answer later on."""
    if expected not in TYPES or not isinstance(x, Tensor | np.ndarray) or getattr(x.dtype, "kind", "") == "U":
        return
    found = as_dtype(element_of(x) if isinstance(x, np.ndarray) else x.dtype).name
    if found != TYPES[expected]:
        raise UserError(f"mlc gives {found}, ONNX {TYPES[expected]}", code="MLC0842",
                        notes=(f"the value {name!r} ({node.op_type})",))
