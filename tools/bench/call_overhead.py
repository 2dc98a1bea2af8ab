"""Call overhead: a compiled addition of three small arrays beside numpy's and torch's, in one process.

    python -m mlc.tools.bench.call_overhead [--size N] [--rounds R] [--json]

Rounds alternate between the calls, so that all see the same machine; of each, the best round counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

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
    parser.add_argument("--size", type=int, default=16, help="elements of each array (16)")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of 20,000 calls each (20)")
    parser.add_argument("--json", action="store_true", help="print numbers for programs")
    options = parser.parse_args(argv)
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
