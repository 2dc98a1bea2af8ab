"""Attributes of nodes as Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlc.frontend.onnx import bodies
from mlc.ir.diag import UserError

FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TENSORS, GRAPHS = range(1, 11)
SPARSE, TYPE_PROTO = 11, 13

FLAGS = frozenset({
    "align_corners", "allowzero", "antialias", "broadcast", "ceil_mode", "center_point_box", "count_include_pad",
    "detect_negative", "detect_positive", "exclude_outside", "exclusive", "fmod", "input_forget", "interleaved",
    "inverse", "is_causal", "is_test", "keepdims", "largest", "layout", "linear_before_reset", "new_axis",
    "noop_with_empty_axes", "onesided", "output_sequence", "periodic", "reverse", "saturate", "select_last_index",
    "sorted", "spatial", "storage_order", "training_mode", "transA", "transB", "upper"})
"""Attributes of ONNX's own operators that are 0 or 1; of other numbers some runtimes take 2 for 1, others for 0."""


def resolved(node: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a node by name: those of the function around it (`given`), where it refers to them."""
    return {a.name: given[a.ref_attr_name] if a.ref_attr_name else a for a in node.attribute
            if not a.ref_attr_name or a.ref_attr_name in given}


def value(a: Any, body: Callable[[Any], Any]) -> Any:
    """The value of an attribute; one that has been translated is returned as it is."""
    if not hasattr(a, "ref_attr_name"):
        return a
    if a.type in (INTS, FLOATS):
        return list(a.ints if a.type == INTS else a.floats)
    if a.type in (FLOAT, INT):
        return a.f if a.type == FLOAT else a.i
    if a.type == STRING:
        return text(a.s)
    if a.type == STRINGS:
        return [text(s) for s in a.strings]
    if a.type == TENSOR:
        return bodies.array(a.t)
    if a.type == SPARSE:
        return bodies.dense(a.sparse_tensor)
    if a.type == GRAPH:
        return body(a.g)
    if a.type == TYPE_PROTO:
        return a.tp
    raise UserError(f"mlc does not translate the attribute {a.name}, of the type {a.type}", code="MLC0842")


def text(s: bytes) -> str:
    """A string; bytes that are no UTF-8 are kept apart."""
    return s.decode("utf-8", "surrogateescape")


def check_flags(given: Mapping[str, Any]) -> None:
    """Refuse the attributes of one of ONNX's own operators if a flag among them is neither 0 nor 1."""
    for name in FLAGS & set(given):
        if given[name] not in (0, 1):
            raise UserError(f"the attribute {name} is {given[name]!r}, and is 0 or 1", code="MLC0842")
