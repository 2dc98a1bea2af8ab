"""Functions that tests build into modules: one for each thing that a call may have."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import mlc
from mlc import nn


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Box:
    content: Any


class Net(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        self.scale = nn.Parameter(mlc.ones(3))

    def forward(self, x: mlc.Tensor) -> mlc.Tensor:
        out: mlc.Tensor = self.layers(x) * self.scale
        return out


mlc.manual_seed(0)
model = Net()
net = mlc.compile(model, args=[mlc.spec("B", 6)])


def plain(x: mlc.spec("B", 16), w: mlc.spec(16, 4)):  # type: ignore[valid-type, no-untyped-def]
    """A layer."""
    return mlc.relu(x @ w)


def pick(x: mlc.spec("B", 3), i: mlc.spec("N", dtype="int64")):  # type: ignore[valid-type, no-untyped-def]
    return x[i]


def checked(x: mlc.spec("N")):  # type: ignore[valid-type, no-untyped-def]
    assert x.sum() > 0, "100% of nothing"
    return x


def halves(x: mlc.spec("2*B"), y: mlc.spec("B")):  # type: ignore[valid-type, no-untyped-def]
    return x.reshape(2, -1) * y


def scaled(x: mlc.spec("N"), factor: mlc.spec(), *,  # type: ignore[valid-type, no-untyped-def]
           times: mlc.spec(dtype="int32"), how: str = "plain"):  # type: ignore[valid-type]
    return x * factor * times if how == "plain" else x


def trees(params, x):  # type: ignore[no-untyped-def]
    w, (b, none) = params["w"], params["rest"]
    assert none is None
    return {"y": [x @ w + b[0], (b[1], None)], 3: "three", "count": 2, "half": 0.5, "yes": True, "pair": Pair(w, x),
            "box": Box(x)}


tree = mlc.compile(trees, args=[{"w": mlc.spec(3, 2), "rest": ([mlc.spec(2), mlc.spec()], None)}, mlc.spec("N", 3)])


def update(params, grads):  # type: ignore[no-untyped-def]
    return {"w": params["w"] - 0.5 * grads}, (grads * grads).sum()


updated = mlc.compile(update, donate="params", args=[{"w": mlc.spec("N")}, mlc.spec("N")])


def layers(module: Net, x: mlc.Tensor) -> Any:
    return module, module(x)


through = mlc.compile(layers, args=[model, mlc.spec("B", 6)])


def long_work(x: mlc.spec("N", "N")):  # type: ignore[valid-type, no-untyped-def]
    return x @ x @ x


KINDS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
         "float64", "bfloat16")


def flipped(xs):  # type: ignore[no-untyped-def]
    return {kind: mlc.flip(x, 0) for kind, x in xs.items()}


flips = mlc.compile(flipped, args=[{kind: mlc.spec("N", 2, dtype=kind) for kind in KINDS}])

def noise(key: mlc.spec(2, dtype="uint32"), x: mlc.spec("N")):  # type: ignore[valid-type, no-untyped-def]
    """A step with a random state: (the next state, x with noise)"""
    key, use = mlc.random.split(key)
    return key, x * mlc.random.uniform(use, x.shape)


def narrowed(x: mlc.spec("N")):  # type: ignore[valid-type, no-untyped-def]
    return x.narrow(0, 2, 8) * 2


def groups(x: mlc.spec("N"), y: mlc.spec("M")):  # type: ignore[valid-type, no-untyped-def]
    return mlc.arange(x.shape[0] // y.shape[0]).sum()


def outer(x: mlc.spec("N", 0), y: mlc.spec("M", 0)):  # type: ignore[valid-type, no-untyped-def]
    return x @ y.T


def many(xs):  # type: ignore[no-untyped-def]
    return [x + x for x in xs]


FUNCTIONS: dict[str, Any] = {
    "net": net, "plain": mlc.compile(plain), "pick": mlc.compile(pick), "halves": mlc.compile(halves),
    "scaled": mlc.compile(scaled), "tree": tree, "updated": updated, "through": through,
    "checked": mlc.compile(checked),
    "long_work": mlc.compile(long_work), "flips": flips, "noise": mlc.compile(noise),
    "narrowed": mlc.compile(narrowed), "groups": mlc.compile(groups), "outer": mlc.compile(outer),
    "many": mlc.compile(many, args=[[mlc.spec("N")] * 70])}


def layered(params, x):  # type: ignore[no-untyped-def]
    b, (scale,) = params["b"]
    return (x @ params["w"] + b) * scale
