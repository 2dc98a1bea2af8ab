"""A row for the function of a file, beside the programs that its format is from."""

from __future__ import annotations

import argparse
import time
from typing import Any

from mlc.tools import run
from mlc.tools.bench.peers import Inductor, Mlc, OnnxRuntime, OpenVino, Peer, Prepared, Torch
from mlc.tools.bench.rows import Row


def row(file: str, options: argparse.Namespace) -> Row:
    """The row of `FILE[:FUNCTION]`, called with random arrays.

    PyTorch runs programs of torch.export, ONNX Runtime and OpenVINO models of ONNX.
    """
    given = argparse.Namespace(file=file, entry=None, args=options.args, sizes=options.sizes, inputs=None, seed=0,
                               pipeline=None, allow_pass=[])
    path, name = run.named(given)
    found = run.call_in_file(path, name, given)

    def prepare(peer: Peer, threads: int) -> Prepared | None:
        if isinstance(peer, Mlc):
            return _compiled(found, threads)
        if path.endswith(".onnx") and isinstance(peer, OnnxRuntime | OpenVino):
            return _onnx(peer, path, found.given, threads)
        if path.endswith(".pt2") and isinstance(peer, Torch | Inductor):
            return _exported(peer, path, found.given, threads)
        return None

    return Row(file, "files", prepare)


def _compiled(found: run.CallInFile, threads: int) -> Prepared:
    import mlc
    from mlc.backends.cpu.targets import host
    from mlc.backends.executable import build
    from mlc.ir.passes import Pipeline
    from mlc.passes import pipeline
    from mlc.tools import inputs
    mlc.set_num_threads(threads)
    start, module, arrays = time.perf_counter(), found.module, found.arrays
    Pipeline(found.steps).run(module)
    if not inputs.has_interface(module, found.entry):
        raise run.no_interface(found.entry, inputs.entries(module)[found.entry])
    pipeline.resume(module, "llvm", host().machine)
    native = build(module, host()).entry(found.entry)
    return Prepared(lambda: native.call(arrays), time.perf_counter() - start)


def _onnx(peer: Peer, path: str, arrays: list[Any], threads: int) -> Prepared | None:
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    weights = {t.name for t in graph.initializer}
    names = [x.name for x in graph.input if x.name not in weights]
    return peer.onnx(path, dict(zip(names, arrays)), threads)


def _exported(peer: Torch | Inductor, path: str, arrays: list[Any], threads: int) -> Prepared:
    import torch
    from torch.utils import _pytree as pytree
    torch.set_num_threads(threads)
    program = torch.export.load(path)
    args, keywords = pytree.tree_unflatten([torch.tensor(x) for x in arrays], program.call_spec.in_spec)
    f = peer.compiled(program.module())

    def call() -> Any:
        with torch.no_grad():
            return f(*args, **keywords)
    return Prepared(call)
