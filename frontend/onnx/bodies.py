"""Tensors of a model as arrays, and the functions that ONNX defines operators by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from mlc.frontend.dtypes import as_dtype
from mlc.frontend.onnx.values import NUMBERS, OTHER_TYPES, TYPES, Array, Stored, axis_of, element_of, shown
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.ir.sizes import Size

FIELDS = {1: "float_data", 2: "int32_data", 3: "int32_data", 4: "int32_data", 5: "int32_data", 6: "int32_data",
          7: "int64_data", 8: "string_data", 9: "int32_data", 10: "int32_data", 11: "double_data", 12: "uint64_data",
          13: "uint64_data", 14: "float_data", 15: "double_data", 16: "int32_data"}
"""Where a tensor has its elements, if not in its bytes."""
EXTERNAL = 1
LARGEST = 1 << 40
"""Elements that a tensor may claim to have."""

MOST_DIMENSIONS = 64
"""Dimensions of an array of numpy's."""


def wrong(t: Any, reason: str) -> UserError:
    """The error of a tensor that is not as it says."""
    return UserError(f"the tensor {shown(t.name)!r}: {shown(reason)}", code="MLC0840",
                     hint="write the model again: the file is damaged")


def array(t: Any, outside: bytes | memoryview | None = None) -> Array:
    """The elements of a tensor of a model; UserError MLC0840 if it does not have as many as its sizes say.

    Args:
        t: A `TensorProto`.
        outside: Its bytes, if they are in another file.
    """
    if t.data_type not in FIELDS:
        raise UserError(f"the tensor {shown(t.name)!r}: mlc has no tensors of "
                        f"{OTHER_TYPES.get(t.data_type, f'the type {t.data_type}')}", code="MLC0842")
    if t.data_location == EXTERNAL and outside is None:
        raise wrong(t, "its elements are in another file, which this model may not have")
    if any(n < 0 for n in t.dims) or math.prod(n for n in t.dims if n) > LARGEST or len(t.dims) > MOST_DIMENSIONS:
        raise wrong(t, f"it is of the sizes {list(t.dims)}")
    count = math.prod(t.dims)
    if t.data_type == 8:
        found = np.array([s.decode("utf-8", "surrogateescape") for s in t.string_data], np.str_)
    else:
        dtype = as_dtype(TYPES[t.data_type]).dtype
        raw = outside if outside is not None else t.raw_data
        found = _of_bytes(t, raw, dtype, count) if len(raw) else _of_field(t, dtype)
    if found.size != count:
        raise wrong(t, f"it has {found.size} elements, and its sizes are {list(t.dims)}")
    return found.reshape(tuple(t.dims))


def _of_bytes(t: Any, raw: bytes | memoryview, dtype: np.dtype[Any], count: int) -> Array:
    if len(raw) != count * dtype.itemsize:
        raise wrong(t, f"it has {len(raw)} bytes, and its sizes are {list(t.dims)} of {dtype}")
    return np.frombuffer(raw, np.uint8).view(dtype)


def _of_field(t: Any, dtype: np.dtype[Any]) -> Array:
    numbers = getattr(t, FIELDS[t.data_type])
    if t.data_type in (10, 16):
        return np.array(numbers, np.int64).astype(np.uint16).view(dtype)
    if t.data_type in (14, 15):
        return np.array(numbers, np.float32 if t.data_type == 14 else np.float64).view(dtype)
    return np.array(numbers, {"float_data": np.float32, "double_data": np.float64, "int64_data": np.int64,
                              "uint64_data": np.uint64}.get(FIELDS[t.data_type], np.int32)).astype(dtype)


def dense(s: Any) -> Array:
    """A sparse weight as an array."""
    values, at = array(s.values), array(s.indices)
    total = int(np.prod(s.dims, dtype=object))
    if total > LARGEST >> 12 or any(n < 0 for n in s.dims):
        raise wrong(s.values, f"it is of the sizes {list(s.dims)}")
    rows, limits = (at, s.dims) if at.ndim == 2 else (at.reshape(-1, 1), [total])
    if rows.shape != (values.size, len(limits)):
        raise wrong(s.values, f"it has {values.size} elements of the sizes {list(s.dims)}, and indices of the sizes "
                              f"{list(at.shape)}")
    if np.any((rows < 0) | (rows >= np.array(limits, np.int64))):
        raise wrong(s.values, "its indices are outside of its sizes")
    out = np.zeros(tuple(s.dims), values.dtype)
    out.reshape(limits)[tuple(rows.T)] = values.ravel()
    return out


def of_schema(node: Any, protos: Mapping[str, Any], domain: str, version: int,
              inputs: Sequence[Any]) -> tuple[Any, Mapping[str, Any]] | None:
    """The function that ONNX defines an operator by, for these attributes and inputs, and defaults of attributes."""
    schema = _schema(domain, node.op_type, version)
    if schema is None:
        return None
    if "axis" in protos and inputs and hasattr(inputs[0], "shape"):    # bodies take slices, which accept any
        axis_of(protos["axis"].i, len(inputs[0].shape))
    defaults = {n: a.default_value for n, a in schema.attributes.items() if a.default_value.type}
    if versions := [v for v in schema.function_opset_versions if v <= version or domain]:
        return _function(schema.get_function_with_opset_version(max(versions)), domain, max(versions)), defaults
    if versions := [v for v in schema.context_dependent_function_opset_versions if v <= version or domain]:
        found = schema.get_context_dependent_function_with_opset_version(
            max(versions), _concrete(node, protos).SerializeToString(), [_type(x).SerializeToString() for x in inputs])
        return _function(found, domain, max(versions)), defaults
    return None


def has_function(domain: str, name: str, version: int) -> bool:
    """Whether ONNX defines an operator by a function."""
    schema = _schema(domain, name, version)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def _concrete(node: Any, protos: Mapping[str, Any]) -> Any:
    """A node whose attributes are those that its references stand for."""
    from onnx import NodeProto
    out = NodeProto()
    out.CopyFrom(node)
    del out.attribute[:]
    for name, a in protos.items():
        if hasattr(a, "ref_attr_name"):
            out.attribute.add().CopyFrom(a)
            out.attribute[-1].name = name
    return out


def _function(text: bytes, domain: str, version: int) -> Any:
    """A function of a schema; one of another domain than ONNX's own is made of the newest operators."""
    from onnx import FunctionProto, defs
    out = FunctionProto.FromString(text)
    if not any(o.domain in ("", "ai.onnx") for o in out.opset_import):
        out.opset_import.add(domain="", version=defs.onnx_opset_version() if domain else version)
    return out


@cache
def _schema(domain: str, name: str, version: int) -> Any:
    from onnx import defs
    try:
        return defs.get_schema(name, version, domain)
    except defs.SchemaError:
        return None


def _type(x: Any) -> Any:
    """The type of a value, as ONNX writes it."""
    from onnx import TypeProto, helper
    if isinstance(x, Tensor | np.ndarray | Stored):
        string = isinstance(x, np.ndarray) and x.dtype.kind == "U"
        name = "" if string else as_dtype(element_of(x) if isinstance(x, np.ndarray) else x.dtype).name
        return helper.make_tensor_type_proto(NUMBERS.get(name, 8),
                                             [str(n) if isinstance(n, Size) else int(n) for n in x.shape])
    if isinstance(x, list) and x:
        return helper.make_sequence_type_proto(_type(x[0]))
    return TypeProto()
