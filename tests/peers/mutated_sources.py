"""Valid model files, which `mutated_files` mutates."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ONNX = {
    "loop": """<ir_version: 8, opset_import: ["": 17]> f (int64 n, float[2] x) => (float[2] y, float[k, 2] s)
        <bool go = {1}, float[2] w = {1, 2}> {
            y, s = Loop (n, go, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] u, float[2] t) {
                d = Identity(c)
                u = Add(v, w)
                t = Mul(u, v)
            }>
        }""",
    "branch": """<ir_version: 8, opset_import: ["": 17]> f (bool c, float[N, 2] x) => (float[N, 2] y) {
            y = If (c) <then_branch = a () => (float[N, 2] p) { p = Neg(x) },
                        else_branch = b () => (float[N, 2] q) { q = Exp(x) }>
        }""",
    "function": """<ir_version: 8, opset_import: ["": 17, "mine": 1]> f (float[2] x) => (float[2] y) {
            y = mine.twice <by = 3.0> (x)
        }
        <domain: "mine", opset_import: ["": 17]> twice <by> (v) => (w) {
            k = Constant <value_float: float = @by> ()
            w = Mul(v, k)
        }""",
    "sizes": """<ir_version: 8, opset_import: ["": 17]> f (float[N, 3, 4] x) => (float[N, M] y, int64[2] s)
        <int64[1] minus = {-1}, int64[1] zero = {0}, int64[1] one = {1}, float[12, 5] w, float[5] b> {
            shape = Shape(x)
            n = Slice(shape, zero, one)
            s = Concat <axis = 0> (n, minus)
            flat = Reshape(x, s)
            y = Relu(flat)
        }""",
    "outside": "",
}
"""Models of loops, branches, functions and computed sizes, in ONNX's own text; `outside` has its weights in a file."""


@cache
def onnx_models() -> list[tuple[str, bytes]]:
    """Models of ONNX's tests, and those above."""
    import onnx
    from onnx import parser
    from onnx.backend.test.loader import load_model_tests
    found = []
    for name, text in ONNX.items():
        model = parser.parse_model(text or ONNX["loop"])
        if not text:
            t = model.graph.initializer[1]
            t.ClearField("float_data")
            t.ClearField("raw_data")
            t.data_location = 1
            t.external_data.add(key="location", value="weights.bin")
        found.append((name, model.SerializeToString()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
            for case in load_model_tests(kind=kind):
                model = case.model or (onnx.load(Path(case.model_dir) / "model.onnx") if case.model_dir else None)
                if model is not None and model.ByteSize() < 1 << 16:
                    found.append((f"{kind}/{case.name}", model.SerializeToString()))
    return found


@cache
def stablehlo_texts() -> list[tuple[str, bytes]]:
    """Programs of JAX as it prints them, and as its exports have them; functions of mlc's, in the generic form."""
    import jax
    from jax import export

    import mlc
    from tests.peers import jax_programs as programs
    found = []
    for name, (f, args) in programs.IN.items():
        found.append((f"jax/{name}", jax.jit(f).lower(*args).as_text().encode()))
    for name, f, shapes, names in SYMBOLIC:
        given = export.symbolic_args_specs([jax.ShapeDtypeStruct(s, "float32") for s in shapes], names)
        found.append((f"jax/{name}", str(export.export(jax.jit(f))(*given).mlir_module()).encode()))
    for name, (f, args) in programs.OUT.items():
        found.append((f"mlc/{name}", mlc.stablehlo.text(f, [mlc.tensor(a) for a in args]).encode()))
    return found


def _rows(x: Any, y: Any) -> Any:
    import jax.numpy as jnp
    return jnp.concatenate([x.reshape(-1), jnp.arange(x.shape[0]) * y.sum()])


def _shares(x: Any) -> Any:
    import jax
    return jax.nn.softmax(x @ x.T) / x.shape[0]


SYMBOLIC = (("symbolic_rows", _rows, [(2, 3), (4,)], ["n, 3", "m"]),
            ("symbolic_shares", _shares, [(2, 3)], ["n, 3"]))
"""Programs with symbolic sizes: the function, the shapes of its arguments, and the names of their sizes."""


@cache
def artifacts() -> list[tuple[str, bytes]]:
    """The same programs as portable artifacts."""
    from jaxlib.mlir.dialects import stablehlo
    version = stablehlo.get_current_version()
    found = []
    for name, text in stablehlo_texts():
        if b"chlo." not in text and b"sdy." not in text:    # dialects that an artifact has not
            found.append((name, stablehlo.serialize_portable_artifact_str(text.decode(), version)))
    return found


def checkout(folder: Path) -> list[tuple[str, bytes]]:
    """The smaller files of StableHLO's tests, without the comparisons of their results."""
    from tests.peers.stablehlo_suite import tests
    found = []
    for name, text in tests(folder):
        kept = [line for line in text.splitlines() if "check." not in line and not line.startswith("// ")]
        if len(text) < 1 << 14:
            found.append((name, "\n".join(kept).encode()))
    return found


@cache
def torch_programs() -> list[tuple[str, bytes]]:
    """Programs of `torch.export`."""
    import torch
    from torch import nn
    batch = {0: torch.export.Dim("n")}
    models: list[tuple[str, Any, Any, Any]] = [
        ("linear", nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)), torch.ones(2, 3), (batch,)),
        ("convolution", nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten()),
         torch.ones(1, 1, 5, 5), None),
        ("table", nn.Embedding(5, 3), torch.zeros(2, dtype=torch.int64), None)]
    found = []
    for name, model, x, sizes in models:
        file = io.BytesIO()
        torch.export.save(torch.export.export(model.eval(), (x,), dynamic_shapes=sizes), file)
        found.append((name, file.getvalue()))
    return found


SOURCES: dict[str, Callable[[], list[tuple[str, bytes]]]] = {
    "onnx": onnx_models, "stablehlo": stablehlo_texts, "bytecode": artifacts, "pt2": torch_programs}
"""Per format its valid files."""
