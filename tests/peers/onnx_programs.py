"""Functions and modules of mlc's that go out as ONNX, for `tests.peers.onnx_export` and the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mlc
from mlc import nn

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def cnn() -> Any:
    layers = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                           nn.Linear(64, 5))
    layers(mlc.tensor(floats(4, 3, 8, 8)))                 # statistics of their own
    return layers.eval()


def sgd_step(params: Any, x: Any, y: Any) -> Any:
    """A training step: the new parameters, and the loss."""
    def loss(p: Any) -> Any:
        hidden = mlc.tanh(x @ p["w"] + p["b"])
        return nn.functional.cross_entropy(hidden, y)
    value, gradients = mlc.value_and_grad(loss)(params)
    return {k: p - 0.1 * gradients[k] for k, p in params.items()}, value


def newton(x: Any) -> Any:
    """Square roots, in as many steps as the numbers need."""
    return mlc.while_loop(lambda y: mlc.any(mlc.abs(y * y - x) > 1e-3 * x), lambda y: (y + x / y) / 2, x)


def sums(x: Any) -> Any:
    return mlc.scan(lambda carry, row: (carry * 0.5 + row, carry.sum()), mlc.zeros(3), x)


def either(x: Any) -> Any:
    return mlc.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x)


def orders(x: Any) -> Any:
    values, places = mlc.topk(x, 2)
    return mlc.sort(x, dim=1).values, values, places, mlc.cumsum(x, 1), mlc.argmax(x, 1), mlc.argsort(x, dim=0)


def integers(a: Any, b: Any) -> Any:
    return a // b, a % b, mlc.fmod(a, b), mlc.bitwise_xor(a, b), a << 2, a >> 1


def extrema(a: Any, b: Any) -> Any:
    return mlc.maximum(a, b), mlc.minimum(a, b), mlc.amax(a, 0), mlc.argmax(a, 0), mlc.where(mlc.isnan(a), b, a)


INTEGERS = np.array([7, -7, 7, -7, 0], np.int32), np.array([2, 2, -2, -2, 3], np.int32)
X, NANS = floats(4, 3), np.array([1, np.nan, -np.inf, 3], np.float32)
LSTM, TRANSFORMER = nn.LSTM(3, 5, batch_first=True), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
PROGRAMS: dict[str, Callable[[], tuple[Any, tuple[Any, ...], Any]]] = {
    "mlp": lambda: (nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)), (X,), ({0: "B"},)),
    "cnn": lambda: (cnn(), (floats(2, 3, 8, 8),), ({0: "B"},)),
    "lstm": lambda: (lambda x: LSTM(x)[0], (floats(2, 4, 3),), None),
    "transformer": lambda: (TRANSFORMER, (floats(2, 4, 8),), ({0: "B"},)),
    "embedding": lambda: (nn.Embedding(7, 3), (np.array([[1, 2], [6, 0]]),), ({0: "B", 1: "S"},)),
    "derivative": lambda: (mlc.value_and_grad(lambda x: mlc.sum(mlc.tanh(x) ** 2)), (X,), None),
    "step": lambda: (sgd_step, ({"w": floats(3, 4), "b": floats(4)}, X, np.array([0, 1, 2, 3])), None),
    "while": lambda: (newton, (np.abs(X) + 1,), None),
    "scan": lambda: (sums, (X,), None),
    "cond": lambda: (either, (X,), None),
    "orders": lambda: (orders, (X,), None),
    "integers": lambda: (integers, INTEGERS, None),
    "extrema": lambda: (extrema, (NANS, NANS[::-1].copy()), None),
    "softmax": lambda: (lambda x: mlc.softmax(x.reshape(-1, 3), 1).sum(0), (X,), ({0: "B"},)),
}
"""Per name a function or module, the arguments of a call, and what is symbolic (`dynamic_shapes`)."""


def session(model: Any) -> Any:
    """A model in ONNX Runtime."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def outputs(model: Any, arrays: list[Array]) -> list[Array]:
    """The results of ONNX Runtime for the inputs that have no value in the model."""
    running = session(model)
    return list(running.run(None, dict(zip([i.name for i in running.get_inputs()], arrays))))


def difference(name: str) -> str:
    """The first difference of a program that went out, ran under ONNX Runtime, and came in again; empty for none."""
    import onnx

    from mlc import tree
    f, args, shapes = PROGRAMS[name]()
    model = mlc.onnx.export(f, args, dynamic_shapes=shapes)
    onnx.checker.check_model(model, full_check=True)
    arrays = [np.asarray(x) for x in tree.leaves(args)]
    expected = [np.asarray(x) for x in tree.leaves(mlc.compile(f)(*tree.map(mlc.tensor, args)))]
    loaded = mlc.onnx.load(model)
    again = [np.asarray(x) for x in tree.leaves(loaded(*arrays))]
    for where, found in (("ONNX Runtime", outputs(model, arrays)), ("mlc.onnx.load", again)):
        if len(found) != len(expected):
            return f"{where} gives {len(found)} results in place of {len(expected)}"
        for i, (a, b) in enumerate(zip(found, expected)):
            if a.dtype != b.dtype or a.shape != b.shape:
                return f"result {i} of {where} is a {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
            if not np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True):
                return f"result {i} of {where} is {np.abs(a - b).max()} off"
    return ""
