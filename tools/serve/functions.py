"""Compiled functions that are served: files of `mlc.save`, and modules of `mlc compile -o NAME.so`."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc import artifact, extension
from mlc.ir.diag import UserError
from mlc.ir.types import to_numpy
from mlc.saved_function import Loaded
from mlc.tools.serve.errors import ApiError
from mlc.tools.serve.worker import Limits

Array = np.ndarray[Any, Any]

DATATYPES = {"bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
             "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16",
             "bfloat16": "BF16", "float32": "FP32", "float64": "FP64"}
"""Types of elements by their names in the Open Inference Protocol."""
_ARRAY = re.compile(r"^(?P<path>\S+): (?P<type>\w+)(\[(?P<shape>[^\]]*)\])?$")


@dataclass(frozen=True)
class Described:
    """An array that a function takes or gives; -1 in the shape is any size."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Function:
    """A function on arrays."""

    inputs: tuple[Described, ...]
    outputs: tuple[Described, ...]
    call: Callable[[Sequence[Array]], Sequence[Array]]


class FunctionWorker:
    """A compiled function that is served, in a thread of its own.

    name      of the model in requests
    path      its file
    function  its arrays and code
    limits    of the server
    """

    kind = "function"

    def __init__(self, name: str, path: str, function: Function, limits: Limits) -> None:
        self.name, self.path, self.function, self.limits = name, path, function, limits
        self.state, self.reason = "loading", ""
        self.calls = self.pending = 0
        self._last: Future[Any] | None = None              # the last call: the others have ended when it has
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, f"mlc-{name}")

    def start(self) -> None:
        """Take requests."""
        self.state = "ready"

    @property
    def ready(self) -> bool:
        """Whether it takes requests."""
        return self.state == "ready"

    def check_ready(self) -> None:
        """Refuse a request that it cannot take now."""
        if not self.ready:
            raise ApiError(503, f"the model {self.name} is {self.state}")

    async def infer(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """The results of a call."""
        self.check_ready()
        if self.pending >= self.limits.queue:
            raise ApiError(429, f"{self.pending} requests wait already", None, "MLC0918")
        self.pending += 1
        try:
            self._last = self._thread.submit(self.function.call, arrays)
            return await asyncio.wrap_future(self._last)
        finally:
            self.pending -= 1
            self.calls += 1

    def stop(self, reason: str = "") -> None:
        """End the thread once its requests are answered."""
        self._thread.shutdown(wait=False)
        self.state = "stopped"

    def join(self, seconds: float) -> None:
        """Wait for what the thread computes, for some seconds at most."""
        if self._last is not None:
            wait([self._last], seconds)


def functions_of(name: str, path: str, limits: Limits) -> list[FunctionWorker]:
    """The functions of a file: one under its own name, several as NAME.FUNCTION."""
    found = _of_module(path) if extension.is_module(path) else {"": _of_artifact(path)}
    return [FunctionWorker(name if len(found) == 1 else f"{name}.{own}", path, function, limits)
            for own, function in found.items()]


def _of_artifact(path: str) -> Function:
    loaded = artifact.load(path)
    if not isinstance(loaded, Loaded):
        raise not_served(f"{path} holds data and no compiled function")
    inputs, outputs = loaded.described()
    return Function(tuple(_described(n, to_numpy(t.dtype).name, t.shape) for n, t in inputs),
                    tuple(_described(f"output{i}", to_numpy(t.dtype).name, t.shape) for i, t in enumerate(outputs)),
                    loaded.call_flat)


def _described(name: str, dtype: str, shape: Sequence[Any]) -> Described:
    if dtype not in DATATYPES:
        raise not_served(f"{name} is of {dtype}, and the protocol has no such type")
    return Described(name, DATATYPES[dtype], tuple(n if isinstance(n, int) else -1 for n in shape))


def _of_module(path: str) -> dict[str, Function]:
    module = extension.load(path)
    found = {}
    for name in [n for n in dir(module) if not n.startswith("_")]:
        found[name] = _of_function(getattr(module, name), name, path)
    return found


def _of_function(function: Any, name: str, path: str) -> Function:
    """A function of a module, whose documentation has a line for each array."""
    inputs: list[Described] = []
    outputs: list[Described] = []
    for line in (function.__doc__ or "").splitlines():
        if (match := _ARRAY.match(line)) is None:
            continue
        where, dtype = match["path"], match["type"]
        shape = [int(n) if n.isdecimal() else n for n in re.split(r",\s*", match["shape"] or "") if n]
        if "[" in where.removeprefix("returns") and not re.fullmatch(r"returns\[\d+\]", where):
            raise not_served(f"{path}: {name} has arrays in containers ({where}), and the protocol has none")
        of_result = where.startswith("returns")
        label = f"output{len(outputs)}" if of_result else where
        (outputs if of_result else inputs).append(_described(label, dtype, shape))

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        result = function(*arrays)
        return result if isinstance(result, tuple | list) else (result,)

    return Function(tuple(inputs), tuple(outputs), call)


def not_served(message: str) -> UserError:
    """The error for a file that the protocol cannot serve."""
    return UserError(message, code="MLC0921", hint="serve functions on arrays, which give an array or several")
