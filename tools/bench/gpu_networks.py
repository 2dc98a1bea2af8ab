"""Whole networks on a GPU, against PyTorch: forward passes and training steps.

    python -m mlc.tools.bench.gpu_networks
    python -m mlc.tools.bench.gpu_networks gpt2:8:bf16:train:512 resnet50:32:f32 --kernels --inductor

A row is NETWORK:BATCH:PRECISION[:train][:LENGTH]; precisions are f32, tf32 (products of f32 on tensor cores) and bf16
(autocast). Both libraries have the same weights and data. A time is that of one of many calls under way, the best of
three rounds; `apart` is the largest difference of the results of the first call, relative to the largest number. With
--kernels, the time of the kernels of a call as PyTorch's profiler sees them, for both libraries.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlc
from mlc.tools.bench.library import Library
from mlc.tools.bench.networks import NETWORKS

ROWS = ("gpt2:8:f32:512", "gpt2:8:bf16:512", "gpt2:8:bf16:train:512", "bert_base:16:bf16", "vit_tiny:32:f32:train",
        "resnet50:32:f32", "resnet50:32:bf16")
WORDS = {"gpt2": 50257, "bert_base": 30522}


@dataclass(frozen=True)
class Row:
    """One network, as it is run."""

    network: str
    batch: int
    precision: str
    train: bool = False
    length: int = 0

    @classmethod
    def parse(cls, text: str) -> Row:
        """Parse the text of a row; ValueError if it is none."""
        name, batch, precision, *more = text.split(":")
        lengths = [int(word) for word in more if word != "train"]
        if name not in NETWORKS or precision not in ("f32", "tf32", "bf16") or len(lengths) > 1 or (
                lengths and name not in WORDS):
            raise ValueError(text)
        return cls(name, int(batch), precision, "train" in more, *lengths)

    def step(self, library: str) -> Callable[[], Any]:
        """A call of the network in a library, on the device; its weights and data are there."""
        a, what = Library(library), NETWORKS[self.network]
        module = what.module(a).to("cuda")
        data = [x.to("cuda") for x in ((a.integers(WORDS[self.network], self.batch, self.length),) if self.length
                                       else what.data(a, self.batch))]

        def scope() -> Any:
            return a.lib.autocast("cuda", dtype=a.lib.bfloat16) if self.precision == "bf16" else nullcontext()

        if not self.train:
            module.eval()

            def forward(*data: Any) -> Any:
                with a.lib.no_grad(), scope():
                    return module(*data)

            return self.bound(library, forward, data)
        optimizer = a.optim.AdamW(module.parameters(), lr=1e-3)

        def step(*data: Any) -> Any:
            optimizer.zero_grad()
            with scope():
                loss = what.loss(a, module(*data))
            loss.backward()
            optimizer.step()
            return loss

        return self.bound(library, step, data)

    def bound(self, library: str, f: Callable[..., Any], data: Sequence[Any]) -> Callable[[], Any]:
        if library == "mlc":
            f = mlc.compile(f, graph=True, matmul_precision="tf32" if self.precision == "tf32" else None)
        return lambda: f(*data)


def milliseconds(call: Callable[[], Any], wait: Callable[[], None]) -> float:
    """Time of one of many calls under way."""
    call()
    wait()
    started = time.perf_counter()
    call()
    wait()
    count, best = min(200, max(2, int(0.3 / (time.perf_counter() - started)))), float("inf")
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        best = min(best, (time.perf_counter() - started) / count)
    return 1e3 * best


def show_kernels(call: Callable[[], Any], wait: Callable[[], None], most: int) -> None:
    """The kernels of a call, by their time."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
        call()
        wait()
    rows: dict[str, list[float]] = defaultdict(list)
    for event in profiler.events():
        if event.device_type.name == "CUDA":
            rows[event.name].append(event.device_time / 1e3)
    print(f"    {sum(map(len, rows.values()))} kernels, {sum(map(sum, rows.values())):.2f} ms")
    for name, times in sorted(rows.items(), key=lambda row: -sum(row[1]))[:most]:
        print(f"    {sum(times):9.3f} ms {len(times):5} x {name[:90]}")


def numbers(result: Any) -> np.ndarray[Any, Any]:
    """The numbers of a result, on the host."""
    out: np.ndarray[Any, Any] = np.asarray(result.detach().float().cpu().numpy())
    return out


def main(argv: Sequence[str] | None = None) -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.gpu_networks", description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="*", default=ROWS, help="NETWORK:BATCH:PRECISION[:train][:LENGTH]")
    parser.add_argument("--kernels", type=int, nargs="?", const=12, default=0, help="the slowest kernels of a call")
    parser.add_argument("--inductor", action="store_true", help="torch.compile, too")
    options = parser.parse_args(argv)
    import torch
    if not torch.cuda.is_available() or mlc.cuda.why_not() is not None:
        print(f"no device: {mlc.cuda.why_not() or 'PyTorch sees none'}", file=sys.stderr)
        return 1
    print(f"{torch.cuda.get_device_name()}, mlc {mlc.__version__}, torch {torch.__version__}; ms per call")
    try:
        rows = [(text, Row.parse(text)) for text in options.rows]
    except ValueError as error:
        parser.error(f"{error} is no row: NETWORK:BATCH:PRECISION[:train][:LENGTH]; there are {', '.join(NETWORKS)}")
    for text, row in rows:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = row.precision == "tf32"
        theirs = row.step("torch")
        wanted = numbers(theirs())
        times = {"torch": milliseconds(theirs, torch.cuda.synchronize)}
        if options.kernels:
            show_kernels(theirs, torch.cuda.synchronize, options.kernels)
        if options.inductor:
            times["inductor"] = milliseconds(torch.compile(theirs), torch.cuda.synchronize)
        started = time.perf_counter()
        ours = row.step("mlc")
        found = numbers(ours())
        first = time.perf_counter() - started
        times["mlc"] = milliseconds(ours, mlc.cuda.synchronize)
        apart = float(np.abs(found - wanted).max() / np.abs(wanted).max())
        measured = "".join(f"  {name} {ms:8.2f}" for name, ms in times.items())
        print(f"{text:28}{measured}  torch/mlc {times['torch'] / times['mlc']:.2f}  first call {first:.1f} s  "
              f"apart {apart:.1e}", flush=True)
        if options.kernels:
            show_kernels(ours, mlc.cuda.synchronize, options.kernels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
