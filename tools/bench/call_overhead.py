"""Call overhead: a compiled addition of three small arrays beside numpy's and torch's, in one process.

    python -m mlc.tools.bench.call_overhead [--eager] [--size N] [--rounds R] [--json]

With --eager, eager operations beside torch's, recorded for `backward` and not, with the number of Python functions that
each calls. Rounds alternate between the calls, so that all see the same machine; of each, the best round counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mlc
from mlc.backends.cpu.callable import make_callable, make_dispatcher
from mlc.backends.executable import build
from mlc.ir.parser import parse_module

ADD = """
module {
  llvm.func @add_entry(%ctx: !llvm.ptr, %args: !llvm.ptr, %sizes: !llvm.ptr, %results: !llvm.ptr) -> i32 attributes {
      interface = "(tensor<Nxf32>, tensor<Nxf32>) -> tensor<Nxf32>", symbols = ["N"], aliases = [ALIAS]} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %ok = llvm.mlir.constant(0 : i32) : i32
    %n = llvm.load %sizes : !llvm.ptr -> i64
    %x = llvm.load %args : !llvm.ptr -> !llvm.ptr
    %second = llvm.getelementptr %args[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %y = llvm.load %second : !llvm.ptr -> !llvm.ptr
    %z = llvm.load %results : !llvm.ptr -> !llvm.ptr
    llvm.br ^head(%zero : i64)
  ^head(%i: i64):
    %more = llvm.icmp slt %i, %n : i64
    llvm.cond_br %more, ^body, ^done
  ^body:
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %a = llvm.load %p : !llvm.ptr -> f32
    %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %b = llvm.load %q : !llvm.ptr -> f32
    %c = llvm.fadd %a, %b : f32
    %r = llvm.getelementptr %z[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %c, %r : f32, !llvm.ptr
    %j = llvm.add %i, %one : i64
    llvm.br ^head(%j : i64)
  ^done:
    llvm.return %ok : i32
  }
}
"""


class Tensor:
    """The least that a front end's tensor is: an object with a slot for its array."""

    __slots__ = ("_array", "_autograd")

    def __init__(self, array: Any) -> None:
        self._array = array


Call = tuple[Callable[..., Any], tuple[Any, ...]]


def compiled_calls(x: Any, y: Any, out: Any) -> dict[str, Call]:
    """The ways into one compiled addition. All but the last take the emitted wrapper."""
    fresh, taken = (build(parse_module(ADD.replace("ALIAS", alias)), opt_level=3).entry("add") for alias in ("-1", "1"))

    def slow(*args: Any) -> Any:
        raise AssertionError("the fast path was not taken")

    arrays = make_callable(fresh, slow, "ndarray")
    dispatcher = make_dispatcher(arrays)
    tensors = make_callable(fresh, slow, "tensor", Tensor)
    donated = make_callable(taken, slow, "ndarray")
    if arrays.fast_path != "yes":
        sys.exit(f"call_overhead: there is no fast path: {arrays.fast_path}")
    return {
        "compiled, 2 arrays in, 1 allocated": (arrays, (x, y)),
        "compiled, through a dispatcher": (dispatcher, (x, y)),
        "compiled, the second array donated": (donated, (x, out)),
        "compiled, tensors in and out": (tensors, (Tensor(x), Tensor(y))),
        "compiled, the careful way (Entry.call)": (fresh.call, ([x, y],)),
    }


def peers(x: Any, y: Any, out: Any) -> dict[str, Call]:
    """The same addition by others, and a Python function that does nothing."""
    calls: dict[str, Call] = {
        "an empty Python function": (lambda a, b: None, (x, y)),
        "numpy.add(x, y)": (np.add, (x, y)),
        "numpy.add(x, y, out)": (np.add, (x, y, out)),
    }
    try:
        import torch
    except ImportError:
        return calls
    torch.set_num_threads(1)
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    calls["torch.add(x, y)"] = (torch.add, (a, b))
    return calls


CHAIN = 100
"""Number of operations in a chain."""


def eager_calls(lib: Any, size: int) -> dict[str, Callable[[], Any]]:
    """Eager operations of a library on a few elements, by what they do."""
    x, y, v, m = lib.ones(size), lib.ones(size), lib.ones(size), lib.ones(4, 4)
    w = lib.ones(size, requires_grad=True)

    def set_element() -> None:
        v[3] = 1.0

    def without_gradient() -> Any:
        with lib.no_grad():
            return w * y

    def chain() -> Any:
        z = w
        for _ in range(CHAIN):
            z = z * y
        return z

    calls: dict[str, Callable[[], Any]] = {
        "x * y": lambda: x * y, "x * 2.0": lambda: x * 2.0, "x.relu()": lambda: x.relu(), "x.sum()": lambda: x.sum(),
        "m @ m": lambda: m @ m, "m.t() @ m": lambda: m.t() @ m, "x.add_(y)": lambda: x.add_(y),
        "x[3] = 1.0": set_element, "m[1]": lambda: m[1], "m.t()": lambda: m.t(), "m.view(16)": lambda: m.view(16),
        "w * y, recorded": lambda: w * y, "w.view(-1), recorded": lambda: w.view(-1),
        "w * y in no_grad": without_gradient, f"{CHAIN} products, recorded": chain,
        f"{CHAIN} products, forward and backward": lambda: chain().sum().backward()}
    return calls


def python_calls(call: Callable[[], Any]) -> int:
    """The number of Python functions that run in a call."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count - 1


def compare_eager(size: int, rounds: int, as_json: bool) -> None:
    """Print what eager operations take, beside torch's."""
    calls = {f"mlc: {name}": (call, ()) for name, call in eager_calls(mlc, size).items()}
    try:
        import torch
    except ImportError:
        theirs: dict[str, Call] = {}
    else:
        torch.set_num_threads(1)
        theirs = {f"torch: {name}": (call, ()) for name, call in eager_calls(torch, size).items()}
    for call, _ in 2 * list(calls.values()):               # the first compiles
        call()
    counts = {name: python_calls(call) for name, (call, _) in calls.items()}
    times = best_ns(calls | theirs, rounds, 200)
    if as_json:
        print(json.dumps({name: round(ns, 1) for name, ns in times.items()}))
        return
    print(f"{'':40} {'mlc us':>9} {'torch us':>9} {'ratio':>7} {'Python calls':>13}")
    for name, ns in list(times.items())[:len(calls)]:
        other = times.get(name.replace("mlc:", "torch:", 1))
        beside = "" if other is None else f"{other / 1e3:9.2f} {ns / other:7.2f}"
        print(f"{name.removeprefix('mlc: '):40} {ns / 1e3:9.2f} {beside:17} {counts[name]:13}")


def best_ns(calls: dict[str, Call], rounds: int, count: int = 20_000) -> dict[str, float]:
    """Nanoseconds of one call, the loop around it included."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, (call, args) in calls.items():
            repeat = range(count)
            start = time.perf_counter_ns()
            for _ in repeat:
                call(*args)
            best[name] = min(best[name], (time.perf_counter_ns() - start) / count)
    return best


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="call_overhead", description=__doc__.splitlines()[0])
    parser.add_argument("--eager", action="store_true", help="eager operations beside torch's")
    parser.add_argument("--size", type=int, default=16, help="elements of each array (16)")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of 20,000 calls each, of 200 with --eager (20)")
    parser.add_argument("--json", action="store_true", help="print numbers for programs")
    options = parser.parse_args(argv)
    if options.eager:
        compare_eager(options.size, options.rounds, options.json)
        return 0
    x, y, out = (np.ones(options.size, np.float32) for _ in range(3))
    times = best_ns(compiled_calls(x, y, out) | peers(x, y, out), options.rounds)
    if options.json:
        print(json.dumps({name: round(ns, 1) for name, ns in times.items()}))
        return 0
    reference = times["numpy.add(x, y)"]
    for name, ns in times.items():
        print(f"{name:40} {ns:9.1f} ns {ns / reference:7.2f} x numpy.add")
    return 0


if __name__ == "__main__":
    sys.exit(main())
