"""Reading ONNX files, which may come from anyone: each defect is one UserError, and nothing outside the folder is read.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.frontend.location import user_loc
from mlc.frontend.onnx import bodies
from mlc.frontend.onnx.values import OTHER_TYPES, TYPES, Array, shown
from mlc.ir.diag import UserError

DEEPEST = 200
"""Messages within messages that are looked at."""
HINT = "write the model again, and try onnx.checker.check_model on it"


@dataclass
class Model:
    """A model that has been read and checked.

    proto      the `ModelProto`
    opsets     per domain the version of its operators; that of ONNX is empty
    functions  the functions of the model by domain, name and overload
    weights    the arrays that are in the model, by name
    inputs     the inputs that a call gives: name and `TypeProto`
    types      per value of the graph, ONNX's number of its element type, where that is known
    """

    proto: Any
    opsets: dict[str, int]
    functions: dict[tuple[str, str, str], Any]
    weights: dict[str, Array]
    inputs: list[tuple[str, Any]]
    types: dict[str, int]

    @property
    def outputs(self) -> list[str]:
        return [o.name for o in self.proto.graph.output]


def damaged(reason: str, hint: str = HINT) -> UserError:
    """The error of a file that is no model."""
    return UserError(reason, code="MLC0840", loc=user_loc(), hint=hint)


def read(source: Any) -> Model:
    """The model in a file, in bytes, or in a `ModelProto`; UserError MLC0840 or MLC0845 if it is none."""
    if importlib.util.find_spec("onnx") is None:
        raise UserError("the package onnx, which reads models, is not installed", code="MLC0847", loc=user_loc(),
                        hint="pip install 'mlc[onnx]'")
    folder = None
    if isinstance(source, str | os.PathLike):
        folder = os.path.dirname(os.path.abspath(source))
        with open(source, "rb") as file:
            content = file.read()
        proto = _parsed(content, os.fspath(source))
    elif isinstance(source, bytes | bytearray):
        proto = _parsed(bytes(source), "these bytes")
    elif hasattr(source, "graph") and hasattr(source, "opset_import"):
        proto = source
    else:
        raise damaged(f"a {type(source).__name__} is no ONNX model",
                      "pass the name of a file, its bytes, or an onnx.ModelProto")
    return _checked(proto, folder)


def _parsed(content: bytes, name: str) -> Any:
    from google.protobuf.message import DecodeError
    from onnx import ModelProto
    try:
        return ModelProto.FromString(content)
    except (DecodeError, RecursionError) as error:
        raise damaged(f"{name} is no ONNX model: {error}") from None


STRING, MESSAGE = 9, 11                                    # kinds of fields of protobuf


def _texts_are_text(message: Any, depth: int = 0) -> bool:
    """Whether all texts in a message are UTF-8; others protobuf gives as bytes."""
    for kind, x in message.ListFields():
        if kind.type not in (STRING, MESSAGE) or depth > DEEPEST:
            continue
        for part in x if kind.is_repeated else [x]:
            if isinstance(part, bytes) or (kind.type == MESSAGE and not _texts_are_text(part, depth + 1)):
                return False
    return True


def _check_splits(proto: Any) -> None:
    """Refuse a Split into other numbers of parts than it has outputs, which onnx would make a list of in any length."""
    pending = [*proto.graph.node, *(n for f in proto.functions for n in f.node)]
    while pending:
        node = pending.pop()
        for a in node.attribute:
            if node.op_type == "Split" and a.name == "num_outputs" and a.i != len(node.output):
                raise damaged(f"the node {shown(node.name)!r} (Split) has {len(node.output)} outputs, and num_outputs "
                              f"is {a.i}")
            pending += [n for g in (a.g, *a.graphs) for n in g.node]


def _checked(proto: Any, folder: str | None) -> Model:
    from onnx import checker, defs, shape_inference
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in proto.opset_import}
    newest = defs.onnx_opset_version()
    if not _texts_are_text(proto):
        raise damaged("a name in the model is no text in UTF-8")
    if not proto.HasField("graph"):
        raise damaged("the model has no graph")
    if opsets.get("", 1) > newest:
        raise damaged(f"the model is of the operators of version {opsets['']}, and the newest that the installed onnx "
                      f"knows is {newest}", "install a newer onnx")
    _check_splits(proto)
    weights = _weights(proto.graph, folder)
    inside = _without_weights(proto)
    try:
        checker.check_model(inside)
        inferred = shape_inference.infer_shapes(inside)
    except (checker.ValidationError, shape_inference.InferenceError, ValueError, RuntimeError) as error:
        raise damaged(f"the model is not valid: {shown(str(error).strip().splitlines()[0])}") from None
    except MemoryError:
        raise damaged("the model is not valid: its sizes or attributes take more memory than there is") from None
    types = {v.name: v.type.tensor_type.elem_type for v in (*inferred.graph.value_info, *inferred.graph.output)
             if v.type.WhichOneof("value") == "tensor_type"}
    functions = {("" if f.domain == "ai.onnx" else f.domain, f.name, f.overload): f for f in proto.functions}
    inputs = [(i.name, i.type) for i in proto.graph.input if i.name not in weights]
    return Model(proto, opsets, functions, weights, inputs, types)


LARGEST_CHECKED = 1 << 16
"""Bytes of a weight that onnx's checker gets to see; larger ones have been checked here, and become inputs for it."""


def _without_weights(proto: Any) -> Any:
    """The model without its large weights, which are inputs of it."""
    from onnx import ModelProto, TensorProto, helper
    large = [t for t in proto.graph.initializer
             if t.data_location == TensorProto.EXTERNAL or t.ByteSize() > LARGEST_CHECKED]
    if not large:
        return proto
    out = ModelProto()
    out.CopyFrom(proto)
    names = {t.name for t in large}
    given = {i.name for i in proto.graph.input}
    kept = [t for t in out.graph.initializer if t.name not in names]
    del out.graph.initializer[:]
    out.graph.initializer.extend(kept)
    out.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in large
                           if t.name not in given)
    return out


def _weights(graph: Any, folder: str | None) -> dict[str, Array]:
    out: dict[str, Array] = {}
    for t in graph.initializer:
        if t.name in out:
            raise damaged(f"two weights are named {t.name!r}")
        out[t.name] = bodies.array(t, _outside(t, folder) if t.data_location == bodies.EXTERNAL else None)
    for s in graph.sparse_initializer:
        out[s.values.name] = bodies.dense(s)
    return out


def _outside(t: Any, folder: str | None) -> memoryview:
    """The bytes of a weight that is in another file, which must be in the folder of the model."""
    def wrong(reason: str) -> UserError:
        return UserError(f"the weight {shown(t.name)!r}: {reason}", code="MLC0845", loc=user_loc(),
                         hint="keep the files of the weights in the folder of the model")
    given = {e.key: e.value for e in t.external_data}
    location = given.get("location", "")
    if folder is None:
        raise wrong("it is in another file, and the model is in none")
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, location.replace("\0", "")))
    if not location or os.path.isabs(location) or "\0" in location or os.path.commonpath([root, path]) != root:
        raise wrong(f"its file {shown(location)!r} is not in the folder of the model")
    if not os.path.isfile(path):
        raise wrong(f"there is no file {shown(location)!r}")
    total = os.path.getsize(path)
    start, length = _count(given.get("offset", "0")), _count(given.get("length", str(total)))
    length = total - (start or 0) if "length" not in given else length
    if start is None or length is None or length < 0 or start + length > total:
        raise wrong(f"it takes the bytes from {given.get('offset', 0)} on of {location!r}, which has {total}")
    if not length:
        return memoryview(b"")
    return memoryview(np.memmap(path, np.uint8, "r", start, (length,)))  # type: ignore[arg-type]


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def type_text(proto: Any) -> str:
    """A type, such as float32[B, 3]."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        t = proto.tensor_type
        name = TYPES.get(t.elem_type) or OTHER_TYPES.get(t.elem_type, "?")
        if not t.HasField("shape"):
            return f"{name}[...]"
        sizes = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in t.shape.dim]
        return f"{name}[{', '.join(sizes)}]"
    if kind == "sequence_type":
        return f"sequence of {type_text(proto.sequence_type.elem_type)}"
    return f"optional {type_text(proto.optional_type.elem_type)}" if kind == "optional_type" else str(kind)

