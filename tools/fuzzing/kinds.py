"""The kinds of tests that `mlc fuzz` derives from a seed, and the reduction of a failure to a small reproducer."""

from __future__ import annotations

import importlib
import importlib.util
import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from mlc.ir.core import Op
from mlc.ir.parser import parse_module
from mlc.ir.passes import parse_pipeline
from mlc.ir.printer import to_text
from mlc.tools import child, inputs
from mlc.tools.fuzzing import (
    derivatives,
    functions,
    graphs,
    invalid,
    levels,
    odd_calls,
    programs,
    python_programs,
    rewrites,
    writes,
)
from mlc.tools.fuzzing.levels import Failure
from mlc.tools.fuzzing.programs import Program
from mlc.tools.reduce import Reduction

DEPTHS = (("fuse", 10), ("bufferize", 6), ("outline", 1), ("llvm", 3))
"""How far down programs are lowered, and how often: the lower levels cost the most and find the fewest faults."""
NATIVE_EVERY = 50
"""One seed in this many is lowered to native code."""
FORMS: dict[str, tuple[int, Callable[[int], Program]]] = {
    "tensor": (5, programs.generate), "functions": (2, functions.generate), "derivatives": (2, derivatives.generate),
    "graphs": (1, graphs.generate)}
REDUCTIONS = 300
"""Limit on the number of smaller modules tried."""


def valid(seed: int) -> Failure | None:
    """A valid program, which must give the same results at all levels, in all ways of running it, and in PyTorch."""
    rng = random.Random(f"valid {seed}")
    form = rng.choices((*FORMS, "rewrites", "python"), (*(weight for weight, _ in FORMS.values()), 3, 1))[0]
    if form == "python":
        return python_programs.examine_all((writes if rng.random() < 0.4 else python_programs).generate(seed))
    if form == "rewrites":
        return levels.examine_rewrites(rewrites.generate(seed))
    depth = rng.choices([d for d, _ in DEPTHS], [w for _, w in DEPTHS])[0]
    run_native = seed % NATIVE_EVERY == 0
    return levels.examine(FORMS[form][1](seed), "llvm" if run_native else depth, run_native)


def calls(seed: int) -> Failure | None:
    """One call of one public function with arbitrary arguments."""
    rng = random.Random(f"calls {seed}")
    name, f = rng.choice(_public())
    call = odd_calls.drawn(name, f, rng)
    with odd_calls.without_native_code():
        found = odd_calls.fault(call, recorded=rng.random() < 0.5)
    return Failure(levels.key_of(found, name), f"{call}: {found}", f"{call}\n", ".txt") if found else None


@cache
def _public() -> list[tuple[str, Callable[..., object]]]:
    return sorted(odd_calls.public_functions().items())


KINDS: dict[str, Callable[[int], Failure | None]] = {"valid": valid, "invalid": invalid.examine, "calls": calls}


def prepare(kind: str) -> None:
    """Import the modules that programs of a kind need, before child processes are forked."""
    if kind == "valid":
        importlib.import_module("mlc.backends.executable")
        if importlib.util.find_spec("torch") is not None:
            importlib.import_module("torch").set_num_threads(1)
    elif kind == "invalid":
        for number in range(invalid.CORPUS):
            invalid.corpus(number)
    else:
        _public()


def reduced(failure: Failure, seconds: float) -> Failure:
    """Reduce the module of a failure, if a pass is at fault."""
    held = inputs.held_call(failure.text) if failure.steps else None
    if held is None:
        return failure
    step, = parse_pipeline(failure.steps)
    at = failure.text.index("{-#")
    start = parse_module(failure.text, "failure.mlir")
    _, arrays, _ = held

    def fails(module: Op) -> str | None:
        return child.ask(lambda: levels.fails_again(module, arrays, step, failure.exact), seconds)

    search = Reduction(fails, REDUCTIONS)
    wanted = search.fails(start)
    if wanted is None:
        return failure
    small = to_text(search.reduce(start, wanted, keep_arguments=True), locations=False)
    heading = re.match(r"(//.*\n)*", failure.text)
    return replace(failure, text=f"{heading[0] if heading else ''}{small}\n{failure.text[at:]}")
