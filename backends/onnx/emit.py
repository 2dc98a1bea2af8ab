"""Writes a module of the tensor dialect as a graph of ONNX.

takes  what the frontend records (`passes/forms.py`, TENSOR)
gives  a graph of the operators of one version, and the constants that it uses

Composites that ONNX has are one node; the others are expanded to primitives. Values of scalars (of scf and arith) are
arrays without dimensions, indices are i64. An operation without a row is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlc.backends.onnx import control, elementwise, indexing, moving, networks, reductions  # noqa: F401 - the table
from mlc.backends.onnx.graph import Graph, Program
from mlc.backends.onnx.writer import KEPT, Scope, Writer, array_type, refused
from mlc.dialects.func import Func
from mlc.ir.core import Op
from mlc.ir.passes import parse_pipeline
from mlc.ir.sizes import sym
from mlc.ir.types import ComplexType, TensorType, i64
from mlc.passes import decompose


@dataclass
class Result:
    """A result of a model.

    number  of the result of the function
    name    in the model
    sizes   axes that are padded, each with the number of the result that is its true size
    """

    number: int
    name: str
    sizes: Sequence[tuple[int, int]] = ()


def lower(module: Op) -> None:
    """Lower what the frontend records to what `emit` takes: composites that ONNX has are kept."""
    for step in parse_pipeline("constrain_sizes,decompose_complex,grad,inline{all=true},canonicalize,cse,"
                               "dead_argument_elimination"):
        step.transform.run(module, **dict(step.options))
    decompose.expand(module, lambda op: op.name in KEPT and KEPT[op.name](op))
    for step in parse_pipeline("canonicalize,cse"):
        step.transform.run(module, **dict(step.options))


def emit(module: Op, opset: int, inputs: Sequence[str], results: Sequence[Result] | None = None,
         name: str = "main") -> Program:
    """The graph of a module's function main.

    Args:
        module: Module of the tensor dialect, as the frontend records it; it is lowered in place.
        opset: The version of the operators.
        inputs: Names of the arguments.
        results: The results of the model; None for those of the function, named `output_0` and so on.
        name: Name of the graph.

    Returns:
        The graph, its types and its constants. Its inputs are all arguments.

    Raises:
        UserError: An operation, a type or a size has no counterpart (MLC0848).
    """
    check_arrays(module)
    lower(module)
    w = Writer(opset)
    w.functions = {str(f.sym_name): f for f in module.inside(Func)}
    main = w.functions["main"]
    for value, given in zip(main.args, inputs, strict=True):
        type = array_type(value.type, main)
        w.names[value], w.types[given] = given, type
    if results is None:
        count = len(main.function_type.results)
        results = [Result(i, f"output_{i}" if count > 1 else "output") for i in range(count)]
    w.types.update({r.name: TensorType((), i64) for r in results})         # so that no other value is named so
    graph = Graph(name, list(inputs))
    w.scopes.append(Scope(graph))
    for given in inputs:
        w.bind(given)
    found = w.block(main.block)
    w.finish([_unpadded(w, found, r) for r in results], main)
    program = w.program(graph)
    rename(program, dict(zip(graph.outputs, [r.name for r in results])))
    return program


def check_arrays(module: Op) -> None:
    """Refuse arguments and results that ONNX has no type for: complex numbers, which are pairs of floats inside."""
    main = next(f for f in module.inside(Func) if f.sym_name == "main")
    for type in (*main.function_type.inputs, *main.function_type.results):
        if isinstance(getattr(type, "dtype", type), ComplexType):
            raise refused(None, f"an argument or result is a {type}", "pass and return the real and imaginary parts")


def _unpadded(w: Writer, found: Sequence[str], wanted: Result) -> str:
    """A result without the elements behind its true sizes."""
    x = found[wanted.number]
    for axis, number in wanted.sizes:
        size = w.reshape(found[number], (1,))
        x = w.slice(x, axis, w.constant([0], i64), size, sym(f"{wanted.name}_{axis}".replace(".", "_")))
    return x


def rename(program: Program, names: Mapping[str, str]) -> None:
    """Give values of the outermost graph other names."""
    for old, new in names.items():
        program.types[new] = program.types[old]
    work = [program.graph]
    while work:
        graph = work.pop()
        graph.outputs = [names.get(n, n) for n in graph.outputs]
        for node in graph.nodes:
            node.inputs = [names.get(n, n) for n in node.inputs]
            node.outputs = [names.get(n, n) for n in node.outputs]
            work += [v for v in node.attrs.values() if isinstance(v, Graph)]
