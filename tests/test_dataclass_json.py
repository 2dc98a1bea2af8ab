"""Files whose head says something else than its writer did, under a right checksum: made by whoever means harm."""
from __future__ import annotations

import copy
import hashlib
import json
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import artifact, extension, nn
from mlc.backends.checksummed import CorruptFile, pack, unpack
from mlc.backends.cpu.targets import host
from mlc.backends.dataclass_json import from_json, to_json
from mlc.backends.extension import container
from mlc.backends.target import Target
from mlc.ir.abi import Interface
from mlc.ir.diag import Error
from mlc.ir.parser import Parser
from mlc.ir.sizes import sym

VALUES: tuple[Any, ...] = (None, True, -1, 0, 3, 1 << 70, 1.5, float("nan"), "", "x", "\ud800", "../x", "tensor<", [],
                           {}, [[]], [3], {"x": 3}, {"type": "(f32"}, {"size": "N"}, "9" * 5000)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each part of some JSON."""
    yield path
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(value, (*path, key))


def changed(head: Any, draw: random.Random) -> Any:
    """The same with one part replaced, removed, doubled or added."""
    out = copy.deepcopy(head)
    path = draw.choice([p for p in places(head) if p])
    holder, last, way = out, path[-1], draw.random()
    for step in path[:-1]:
        holder = holder[step]
    if way < 0.1:
        del holder[last]
    elif way < 0.2 and isinstance(holder, list):
        holder.insert(last, copy.deepcopy(holder[last]))
    elif way < 0.25 and isinstance(holder, dict):
        holder[str(draw.choice(VALUES))] = draw.choice(VALUES)
    else:
        holder[last] = copy.deepcopy(draw.choice(VALUES))
    return out


class Net(nn.Module):
    def __init__(self) -> None:
        self.linear = nn.Linear(4, 3)
        self.calls: Any
        self.register_buffer("calls", mlc.zeros(1))

    def forward(self, x: Any) -> Any:
        self.calls = self.calls + 1
        return {"a": self.linear(x), "b": [1.5, x]}


Rewrite = Callable[[Any], bytes]


def model(path: Path) -> tuple[Any, Rewrite]:
    """The head of a saved model, and what makes the file of another."""
    mlc.save(mlc.compile(Net()), path, args=[mlc.spec("B", 4)], targets=["host", "cuda:sm_90"])
    head, views = unpack(artifact.MAGIC, path.read_bytes())
    pieces = {name: bytes(piece) for name, piece in views.items()}
    return head, lambda other: b"".join(pack(artifact.MAGIC, other, pieces))


def module(path: Path) -> tuple[Any, Rewrite]:
    """The same of a module that Python imports."""
    extension.write(path, {"f": mlc.compile(mlc.exp, args=[mlc.spec("B", 4)])})
    data, foot = path.read_bytes(), container._FOOT.size
    _, size, _, _ = container._FOOT.unpack(data[-foot:])
    code = data[:-foot - size]

    def file(other: Any) -> bytes:
        raw = json.dumps(other).encode()
        rest = struct.pack("<IQ8s", len(raw), len(code) + len(raw) + foot, container.MAGIC)
        return code + raw + hashlib.sha256(code + raw + rest).digest() + rest

    return json.loads(data[-foot - size:-foot]), file


def weights(path: Path) -> tuple[Any, Rewrite]:
    """The same of a safetensors file."""
    nn.save_safetensors(path, {"a": np.ones((2, 3), np.float32), "b": np.ones(3, np.int8), "c": np.float64(1)})
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")

    def file(other: Any) -> bytes:
        raw = json.dumps(other).encode()
        return len(raw).to_bytes(8, "little") + raw + data[start:]

    return json.loads(data[8:start]), file


KINDS: dict[str, tuple[Callable[[Path], tuple[Any, Rewrite]], Callable[[Path], Any]]] = {
    "model": (model, artifact.describe), "module": (module, extension.describe),
    "weights": (weights, nn.load_safetensors)}


@pytest.mark.parametrize("trials", [150, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_headers_are_read_or_refused(kind: str, trials: int, tmp_path: Path) -> None:
    """Reading a file with any header is an error with a code or gives validated data."""
    make, read = KINDS[kind]
    path, draw = tmp_path / "file", random.Random(trials)
    head, file = make(path)
    refused = 0
    for _ in range(trials):
        path.write_bytes(file(changed(head, draw)))
        try:
            read(path)
        except Error as error:
            assert error.code in ("MLC0571", "MLC0387", "MLC0392", "MLC0562"), error
            refused += 1
    assert refused > trials // 3


@pytest.mark.parametrize("shape", [[1] * 70, [0, 1 << 62, 1 << 62]])
def test_shapes_that_no_tensor_has(shape: list[int], tmp_path: Path) -> None:
    raw = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 if shape[0] else 0]}}).encode()
    (tmp_path / "file").write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(4 if shape[0] else 0))
    with pytest.raises(mlc.UserError, match="MLC0387"):
        nn.load_safetensors(tmp_path / "file")


@pytest.mark.parametrize("beside", ["../weights", "/etc/passwd", "..", "a\0b"])
def test_weights_beside_a_module_lie_beside_it(beside: str, tmp_path: Path) -> None:
    head, file = module(tmp_path / "file.so")
    (tmp_path / "file.so").write_bytes(file({**head, "beside": beside, "weights": 3}))
    with pytest.raises(mlc.UserError, match=r"MLC0571.*the file of its weights is called"):
        extension.checked(tmp_path / "file.so")


def test_what_is_encoded_is_decoded() -> None:
    type = Parser("(tensor<Nx3xf32>) -> tensor<(N + 1)xf32>", "test").type()
    interface = Interface("f", type, ("N",), (-1,), size_constraints=(sym("N") - 1,), constraint_sites=("f.py:1",),  # type: ignore[arg-type]
                          work=-1)
    for value in (interface, host()):
        assert from_json(json.loads(json.dumps(to_json(value))), value.__class__) == value
    known = to_json(host())
    machines = ({"vector_bits": 512}, {**known["machine"], "vector_bits": True}, {**known["machine"], "parts": -1})
    wrong: tuple[Any, ...] = (None, [], {}, {**known, "more": 1}, *({**known, "machine": m} for m in machines))
    for data in wrong:
        with pytest.raises(CorruptFile):
            from_json(data, Target)
