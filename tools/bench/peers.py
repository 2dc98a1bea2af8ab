"""The ways in which a network is run: mlc, and other frameworks and runtimes where they are installed.

Each makes a call out of a network: a function of no arguments whose result is read by `arrays`. All of them use the
same number of threads, float32, bfloat16 or integers of 8 bits, and memory of their own.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from mlc.tools.bench.library import Library
from mlc.tools.bench.networks import Network

Call = Callable[[], Any]


@dataclass(frozen=True)
class Prepared:
    """A call, and the seconds of compiling that were spent before its first time."""

    call: Call
    seconds: float = 0.0


class Peer:
    """A way to run a network.

    name      in tables and on the command line
    packages  those that it needs
    """

    name: str
    packages: Sequence[str]

    def missing(self) -> str | None:
        """The package that is not installed, if there is one."""
        return next((p for p in self.packages if importlib.util.find_spec(p) is None), None)

    def forward(self, network: Network, batch: int, threads: int, number: str = "f32") -> Prepared | None:
        """A call of the network in evaluation, with products of f32, bf16 or int8, for which the data of the call show
        the ranges; None if this peer runs no such."""
        return None

    def step(self, network: Network, batch: int, threads: int) -> Prepared | None:
        """A training step with stochastic gradient descent and momentum, whose result is the loss; None if this peer
        trains nothing."""
        return None

    def function(self, f: Callable[..., Any], arrays: Sequence[Any], threads: int) -> Prepared | None:
        """A call of a function of a library and arrays; None if this peer runs no functions."""
        return None

    def onnx(self, model: bytes | str, feeds: dict[str, Any], threads: int) -> Prepared | None:
        """A call of a model of ONNX, or of the file of one; None if this peer reads none."""
        return None


class _Framework(Peer):
    """PyTorch or mlc: the same lines in both."""

    library: str
    numbers: tuple[str, ...] = ("f32", "bf16")

    def compiled(self, f: Any) -> Any:
        """A module or a function, compiled."""
        return f

    def set_threads(self, a: Library, threads: int) -> None:
        a.lib.set_num_threads(threads)

    def quantized(self, model: Any, data: tuple[Any, ...]) -> Any:
        """The model with products of int8, calibrated with the arguments of a call."""
        raise NotImplementedError

    def forward(self, network: Network, batch: int, threads: int, number: str = "f32") -> Prepared | None:
        if number not in self.numbers:
            return None
        a = Library(self.library)
        self.set_threads(a, threads)
        model, data = network.module(a).eval(), network.data(a, batch)

        def narrow(*data: Any) -> Any:
            with a.lib.autocast("cpu", a.lib.bfloat16):
                return model(*data)

        f = self.compiled(narrow if number == "bf16" else self.quantized(model, data) if number == "int8" else model)

        def call() -> Any:
            with a.lib.no_grad():
                return f(*data)
        return Prepared(call)

    def step(self, network: Network, batch: int, threads: int) -> Prepared:
        a = Library(self.library)
        self.set_threads(a, threads)
        model, data = network.module(a).train(), network.data(a, batch)
        optimizer = a.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
        f = self.training(a, lambda *data: network.loss(a, model(*data)), optimizer)
        return Prepared(lambda: f(*data))

    def training(self, a: Library, loss: Any, optimizer: Any) -> Any:
        """The step, compiled."""
        return a.training(loss, optimizer)

    def function(self, f: Callable[..., Any], arrays: Sequence[Any], threads: int) -> Prepared | None:
        a = Library(self.library)
        self.set_threads(a, threads)
        tensors = [a.lib.tensor(x.astype(np.float32)).bfloat16() if x.dtype == ml_dtypes.bfloat16 else a.lib.tensor(x)
                   for x in arrays]
        compiled = self.compiled(lambda *given: f(a, *given))
        return Prepared(lambda: compiled(*tensors))


class Mlc(_Framework):
    name, packages, library = "mlc", ("mlc",), "mlc"
    numbers = ("f32", "bf16", "int8")

    def quantized(self, model: Any, data: tuple[Any, ...]) -> Any:
        import mlc
        return mlc.quantization.quantize(model, [data])

    def compiled(self, f: Any) -> Any:
        import mlc
        # weights are constants, and 16 bits are not rounded between two operations, as in a runtime's model
        return mlc.compile(f, freeze=True, excess_precision=True)

    def training(self, a: Library, loss: Any, optimizer: Any) -> Any:
        return a.lib.compile(a.training(loss, optimizer))


class Torch(_Framework):
    name, packages, library = "torch", ("torch",), "torch"


class Inductor(_Framework):
    name, packages, library = "inductor", ("torch",), "torch"

    def compiled(self, f: Any) -> Any:
        import torch
        import torch._inductor.config as config
        config.force_disable_caches = True                 # the first call is to be one of a fresh machine
        return torch.compile(f)

    def training(self, a: Library, loss: Any, optimizer: Any) -> Any:
        return a.training(self.compiled(loss), optimizer)


def onnx_model(network: Network, batch: int) -> tuple[bytes, dict[str, Any]]:
    """A network as PyTorch's exporter writes it, and the arrays of a call."""
    import torch
    a = Library("torch")
    model, data = network.module(a).eval(), network.data(a, batch)
    out = io.BytesIO()
    names = [f"x{i}" for i in range(len(data))]
    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, data, out, input_names=names, dynamo=False, opset_version=17)
    return out.getvalue(), {n: x.numpy() for n, x in zip(names, data)}


def onnx_int8(model: bytes, feeds: dict[str, Any]) -> bytes:
    """A model of ONNX with products of int8, by ONNX Runtime's post-training quantisation: activations without sign and
    weights with a scale for each channel, as pairs of QuantizeLinear and DequantizeLinear."""
    import onnx
    from onnxruntime import quantization as q

    class Reader(q.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = iter([feeds])

        def get_next(self) -> dict[str, Any] | None:
            return next(self.left, None)

    with tempfile.TemporaryDirectory() as folder, _quiet():
        before, ready, after = (os.path.join(folder, f"{name}.onnx") for name in ("before", "ready", "after"))
        onnx.save(onnx.load_from_string(model), before)
        q.shape_inference.quant_pre_process(before, ready, skip_symbolic_shape=True)
        q.quantize_static(ready, after, Reader(), quant_format=q.QuantFormat.QDQ, per_channel=True,
                          activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8,
                          op_types_to_quantize=["Conv", "MatMul", "Gemm", "Add"])
        with open(after, "rb") as file:
            return file.read()


@contextmanager
def _quiet() -> Iterator[None]:
    """Within, nothing is logged."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class _Runtime(Peer):
    """A runtime for models of ONNX, with products of some kinds of numbers."""

    numbers: tuple[str, ...] = ("f32",)

    def forward(self, network: Network, batch: int, threads: int, number: str = "f32") -> Prepared | None:
        if number not in self.numbers:
            return None
        model, feeds = onnx_model(network, batch)
        return self.session(onnx_int8(model, feeds) if number == "int8" else model, feeds, threads, number)

    def onnx(self, model: bytes | str, feeds: dict[str, Any], threads: int) -> Prepared | None:
        return self.session(model, feeds, threads, "f32")

    def session(self, model: bytes | str, feeds: dict[str, Any], threads: int, number: str) -> Prepared:
        """A call of a model whose products are of a kind of numbers."""
        raise NotImplementedError


class Numpy(Peer):
    """Functions that are written with operators and methods of arrays, on one thread or on those of its BLAS."""

    name, packages = "numpy", ("numpy",)

    def function(self, f: Callable[..., Any], arrays: Sequence[Any], threads: int) -> Prepared | None:
        if any(x.dtype == ml_dtypes.bfloat16 for x in arrays):          # its products of bf16 are no comparison
            return None
        try:
            f(None, *arrays)
        except (AttributeError, TypeError):                # it takes a function of a library
            return None
        return Prepared(lambda: f(None, *arrays))


class OnnxRuntime(_Runtime):
    name, packages = "onnxruntime", ("onnxruntime", "onnx", "torch")
    numbers = ("f32", "int8")

    def session(self, model: bytes | str, feeds: dict[str, Any], threads: int, number: str) -> Prepared:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        start = time.perf_counter()
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return Prepared(lambda: session.run(None, feeds), time.perf_counter() - start)


class OpenVino(_Runtime):
    name, packages = "openvino", ("openvino", "onnx", "torch")
    numbers = ("f32", "bf16", "int8")

    def session(self, model: bytes | str, feeds: dict[str, Any], threads: int, number: str) -> Prepared:
        import openvino
        core, start = openvino.Core(), time.perf_counter()
        compiled = core.compile_model(core.read_model(model), "CPU", {
            "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if number == "bf16" else "f32"})
        request = compiled.create_infer_request()
        return Prepared(lambda: list(request.infer(feeds, share_inputs=True, share_outputs=True).values()),
                        time.perf_counter() - start)


PEERS: dict[str, Peer] = {p.name: p for p in (Mlc(), Torch(), Inductor(), OnnxRuntime(), OpenVino(), Numpy())}


def arrays(result: Any) -> list[np.ndarray[Any, Any]]:
    """The result of a call as arrays."""
    if isinstance(result, list | tuple):
        return [a for x in result for a in arrays(x)]
    if isinstance(result, np.ndarray):
        return [result]
    result = result.detach()
    return [np.asarray((result.float() if "bfloat16" in str(result.dtype) else result).numpy())]
