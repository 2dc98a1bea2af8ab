"""Constants, ranges, shapes, and tensors made of sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontend.onnx.folding import count_of_range
from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import dtype_of, element_of, ints, number, refuse
from mlc.frontend.tensor import OPERATIONS as O


@row("Constant")
def constant(*, value: Any = None, sparse_value: Any = None, value_int: int | None = None, value_ints: Any = None,
             value_float: Any = None, value_floats: Any = None, value_string: str | None = None,
             value_strings: Any = None) -> Any:
    if value is not None or sparse_value is not None:
        return sparse_value if value is None else value
    for given, dtype in ((value_int, np.int64), (value_ints, np.int64), (value_float, np.float32),
                         (value_floats, np.float32), (value_string, np.str_), (value_strings, np.str_)):
        if given is not None:
            return np.array(given, dtype)
    refuse("a constant without a value")


@row("Identity", values=("x",))
def identity(x: Any) -> Any:
    return x


@row("ConstantOfShape", known=("shape",))
def constant_of_shape(shape: Any, *, value: Any = None) -> Any:
    if value is None:
        return O["zeros"](ints(shape), dtype="float32")
    return O["full"](ints(shape), number(value), dtype=value.dtype)


@row("Range", known=("start", "limit", "delta"))
def span(start: Any, limit: Any, delta: Any, *, stash_type: int = 1) -> Any:
    dtype = element_of(start)
    if start.dtype == object or limit.dtype == object or delta.dtype == object:
        return O["arange"](number(start), number(limit), number(delta), dtype=dtype)
    start, limit, delta = (x.reshape(()) for x in (start, limit, delta))
    count = count_of_range(start, limit, delta)
    if start.dtype.kind in "iu":
        return O["arange"](int(start), int(limit), int(delta), dtype=dtype)
    return O["arange"](count, dtype=dtype) * float(delta) + float(start)


@row("EyeLike")
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Any:
    wanted = x.dtype if dtype is None else dtype_of(dtype)
    n, m = x.shape
    rows = O["reshape"](O["arange"](n), (n, 1)) + k
    return O["cast"](O["eq"](rows, O["arange"](m)), wanted)


@row("RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike", "Bernoulli", "Multinomial")
def random(*xs: Any, dtype: int = 1, high: float = 1, low: float = 0, mean: float = 0, scale: float = 1,
           seed: float | None = None, shape: Any = None, sample_size: int = 1) -> Any:
    refuse("it draws random numbers, whose generator ONNX does not define")
