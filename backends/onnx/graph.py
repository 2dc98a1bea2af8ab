"""Graphs of ONNX as plain data, and the protocol buffers that are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlc.ir.types import FloatType, IndexType, IntType, ScalarType, TensorType, to_numpy

Array = np.ndarray[Any, Any]
IR_VERSIONS = {20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13}
"""The version of the format itself that each version of the operators came with; programs that run one read it."""
DATA_TYPES = {"f32": 1, "ui8": 2, "i8": 3, "ui16": 4, "i16": 5, "i32": 6, "i64": 7, "i1": 9, "f16": 10, "f64": 11,
              "ui32": 12, "ui64": 13, "bf16": 16}
"""ONNX's numbers of element types (`TensorProto.DataType`)."""


@dataclass
class Graph:
    """A graph: of a model, or of a branch or loop, which may use the values of those around it.

    inputs, outputs  names, whose types are in `types`
    """

    name: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


@dataclass
class Node:
    """One operation. Attributes are numbers, texts, lists of numbers, arrays, or graphs."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attrs: Mapping[str, Any]


@dataclass
class Program:
    """A graph with what it refers to.

    types       of values by name, of which those of inputs and outputs of graphs are written
    constants   arrays by name, with their element types
    """

    graph: Graph
    types: dict[str, TensorType]
    constants: dict[str, tuple[Array, ScalarType]]


def data_type(dtype: ScalarType) -> int:
    """ONNX's number of an element type."""
    assert isinstance(dtype, IntType | FloatType | IndexType)
    return DATA_TYPES["i64" if isinstance(dtype, IndexType) else str(dtype)]


def tensor(array: Array, dtype: ScalarType, name: str = "") -> Any:
    """A `TensorProto` with the bytes of an array."""
    from onnx import TensorProto
    data = np.ascontiguousarray(array, to_numpy(dtype))
    if data.dtype.byteorder == ">":
        data = data.astype(data.dtype.newbyteorder("<"))
    return TensorProto(name=name, data_type=data_type(dtype), dims=array.shape, raw_data=data.tobytes())


def value_info(name: str, type: TensorType) -> Any:
    """A `ValueInfoProto`; a size that is no number is a name (`dim_param`)."""
    from onnx import helper
    return helper.make_tensor_value_info(name, data_type(type.dtype),
                                         [d if isinstance(d, int) else str(d) for d in type.shape])


def graph_proto(graph: Graph, types: Mapping[str, TensorType]) -> Any:
    """A `GraphProto`, without constants."""
    from onnx import helper
    nodes = []
    for number, node in enumerate(graph.nodes):
        attrs = {k: graph_proto(v, types) if isinstance(v, Graph) else v for k, v in node.attrs.items()}
        nodes.append(helper.make_node(node.op, list(node.inputs), list(node.outputs), f"{graph.name}/{number}",
                                      **attrs))
    return helper.make_graph(nodes, graph.name, [value_info(n, types[n]) for n in graph.inputs],
                             [value_info(n, types[n]) for n in graph.outputs])


def model_proto(program: Program, opset: int, producer: str, version: str) -> Any:
    """A `ModelProto`."""
    from onnx import helper
    graph = graph_proto(program.graph, program.types)
    for name, (array, dtype) in program.constants.items():
        graph.initializer.append(tensor(array, dtype, name))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=IR_VERSIONS.get(opset, max(IR_VERSIONS.values())), producer_name=producer,
                             producer_version=version)
