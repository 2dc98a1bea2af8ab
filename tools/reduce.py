"""mlc reduce: make a module smaller as long as it fails in the same way.

Failures are those of `mlc opt` and of `mlc run --check`: an error code with the pass that it names, or the signal that
ends the process. Each smaller module is tried in a process of its own, so that crashes and endless loops are failures
like others.

The reducer tries, the largest parts first, to remove functions, to replace operations by an operand or zeros, to return
less, and to take fewer arguments, and keeps a change if the failure persists. This is delta debugging (A. Zeller,
R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mlc.dialects import tensor as tn
from mlc.dialects.func import Func, Return
from mlc.ir.core import Op, before
from mlc.ir.diag import Error
from mlc.ir.files import write_text
from mlc.ir.parser import parse_module
from mlc.ir.passes import reproducer_pipeline
from mlc.ir.printer import to_text
from mlc.ir.types import FloatType, TensorType, i1
from mlc.tools import files, inputs, report

EXAMPLES = """examples:
  mlc reduce bad.mlir --tries 3
  mlc reduce bad.mlir -p 'canonicalize,cse' --tries 3 -o small.mlir
"""
_FAILURE = re.compile(r"error\[(MLC\d+)\]:(?: (pass [\w.-]+))?")


def parser() -> argparse.ArgumentParser:
    p = report.Parser("reduce", "Make a module smaller as long as it fails in the same way.", EXAMPLES)
    add = p.add_argument
    add("file", help="a .mlir file that mlc opt or mlc run --check fails on; - for stdin")
    add("-p", "--pipeline", metavar="PASSES", help="it fails in these passes (default: those that the file holds)")
    add("--check", action="store_true",
        help="it fails under mlc run --check (the default if the file holds the arguments of a call)")
    add("--allow-pass", action="append", default=[], metavar="PACKAGE.MODULE",
        help="import this pass of your own where the file asks for it")
    add("--timeout", type=report.integer(1), default=60, metavar="SECONDS",
        help="longer than this is a failure too (default 60)")
    add("--tries", type=report.integer(1), default=2000, metavar="N", help="try so many modules at most (default 2000)")
    add("-o", "--output", type=report.Replacement, metavar="FILE",
        help="where to write the smaller module (default: stdout)")
    return p


def main(options: argparse.Namespace) -> int:
    text, name = files.read_ir(options.file)
    at = text.find("{-#")
    held = text[at:] if at >= 0 else ""
    has_call = inputs.held_call(text) is not None
    checks = options.check or (has_call and not options.pipeline)
    command = ["run", "--check"] if checks else ["opt"]
    command += ["-p", options.pipeline] if options.pipeline else \
        ["--run-reproducer"] if not checks and reproducer_pipeline(text) is not None else []
    for allowed in options.allow_pass:
        command += ["--allow-pass", allowed]
    module = parse_module(text, name)
    with tempfile.TemporaryDirectory(prefix="mlc-reduce-") as folder:
        found = Reduction(lambda m: failure(to_text(m, locations=True) + held, command, Path(folder), options.timeout),
                          options.tries, _progress if sys.stderr.isatty() else None)
        wanted = found.fails(module)
        if wanted is None:
            raise report.usage_error(f"mlc {' '.join(command)} does not fail on {name}",
                                     "give the passes with -p, or --check", "MLC0391")
        try:
            found.reduce(module, wanted, keep_arguments=has_call)
        finally:                                           # of a search that is stopped, what it has found
            small = found.smallest or module
            print(f"{wanted}: {size(module)} operations became {size(small)}, in {found.tries} trials", file=sys.stderr)
            files.write(options.output, to_text(small, locations=False) + held)
    return 0


def _progress(small: Op, tries: int) -> None:
    print(f"{size(small)} operations after {tries} trials", end="\r", file=sys.stderr, flush=True)


def size(module: Op) -> int:
    return sum(1 for _ in module.walk()) - 1


# -- failures ---------------------------------------------------------------------------------------------------------
def failure(text: str, command: Sequence[str], folder: Path, seconds: int) -> str | None:
    """Description of how a command fails on a text, equal for equal failures; None if it succeeds."""
    write_text(folder / "module.mlir", text)
    own = [os.getcwd()] if any("." in word for word in command) else []        # where passes of the user's own are
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(os.path.abspath, sys.path), *own])}
    try:
        done = subprocess.run([sys.executable, "-P", "-m", "mlc.tools.cli", *command, "module.mlir"], cwd=folder,
                              env=environment, text=True, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no end within {seconds} s"
    if done.returncode < 0:
        return f"signal {signal.Signals(-done.returncode).name}"
    if done.returncode == 0:
        return None
    found = _FAILURE.search(done.stderr)
    return " of ".join(filter(None, found.groups())) if found else f"exit status {done.returncode}"


Place = tuple[int, int]
"""How many things were removed together last, and where in the list: what is before that has yet to be tried."""


class Reduction:
    """The search: `fails` describes how a module fails, `tries` counts its calls.

    most      calls at most
    progress  called with the smallest module so far, and the calls that it took, whenever a smaller one is found
    """

    def __init__(self, fails: Callable[[Op], str | None], most: int,
                 progress: Callable[[Op, int], None] | None = None) -> None:
        self._fails, self.most, self.tries, self.progress = fails, most, 0, progress
        self.smallest: Op | None = None

    def fails(self, module: Op) -> str | None:
        self.tries += 1
        return self._fails(module)

    def reduce(self, module: Op, wanted: str, keep_arguments: bool = False) -> Op:
        """The smallest module found that fails in the same way."""
        steps = [without_functions, without_operations, without_results]
        steps += [] if keep_arguments else [without_arguments]
        changed = True
        while changed:
            changed = False
            for step in steps:
                place: Place | None = None
                while (found := self._first(step(module, place), wanted)) is not None:
                    module, place = found
                    self.smallest, changed = module, True
                    if self.progress is not None:
                        self.progress(module, self.tries)
        return module

    def _first(self, candidates: Iterator[tuple[Op, Place]], wanted: str) -> tuple[Op, Place] | None:
        for candidate, place in candidates:
            if self.tries >= self.most:
                return None
            if self.fails(candidate) == wanted:
                return candidate, place
        return None


# -- reductions -------------------------------------------------------------------------------------------------------
def parts(count: int, place: Place | None = None) -> Iterator[tuple[range, Place]]:
    """All of `count` things, both halves, the quarters, ..., each alone; the last first, since the first are used.

    After a success it goes on at its place: larger parts and later ones have failed.
    """
    length, end = (count, count) if place is None else (min(place[0], count), place[1])
    while length:
        for stop in range(min(end, count), 0, -length):
            start = max(0, stop - length)
            yield range(start, stop), (length, start)
        length, end = length // 2, count


def without_functions(module: Op, place: Place | None) -> Iterator[tuple[Op, Place]]:
    for chosen, here in parts(len(module.regions[0].block), place):
        copy = module.clone()
        for i, op in enumerate(copy.regions[0].block.ops):
            if i in chosen:
                op.erase()
        yield copy, here


def without_operations(module: Op, place: Place | None) -> Iterator[tuple[Op, Place]]:
    for chosen, here in parts(sum(1 for _ in _replaceable(module)), place):
        copy = module.clone()
        ops = [op for i, op in enumerate(_replaceable(copy)) if i in chosen]
        changed = [_replace(op) for op in reversed(ops)]
        if any(changed):
            yield copy, here


def _replaceable(module: Op) -> Iterator[Op]:
    return (op for op in list(module.walk()) if op.parent is not None and not op.terminator and not isinstance(op, Func)
            and not op.symbol_table)


def _replace(op: Op) -> bool:
    """Replace an operation by something simpler, if possible."""
    if not any(r.uses for r in op.results):
        op.erase()
        return True
    same = [next((v for v in op.operands if v.type == r.type), None) for r in op.results]
    if all(v is not None for v in same):
        op.replace_by(*(v for v in same if v is not None))
        return True
    if isinstance(op, tn.Full | tn.Constant) or not all(isinstance(r.type, TensorType) for r in op.results):
        return False
    try:
        with before(op):
            op.replace_by(*(tn.Full(_zero(r.type), r.type.shape, r.type.dtype).result for r in op.results))
    except Error:                                          # a data-dependent size
        return False
    return True


def _zero(type: TensorType) -> int | float | bool:
    return 0.0 if isinstance(type.dtype, FloatType) else False if type.dtype == i1 else 0


def without_results(module: Op, place: Place | None) -> Iterator[tuple[Op, Place]]:
    for number, function in enumerate(module.inside(Func)):
        for i in range(len(function.function_type.results)):
            copy = module.clone()
            changed = list(copy.inside(Func))[number]
            end = changed.body.blocks[-1].terminator
            if isinstance(end, Return):
                end.set_operands([v for j, v in enumerate(end.operands) if j != i])
                changed.update_type()
                yield copy, (1, i)


def without_arguments(module: Op, place: Place | None) -> Iterator[tuple[Op, Place]]:
    for number, function in enumerate(module.inside(Func)):
        unused = [i for i, arg in enumerate(function.args) if not arg.uses]
        for chosen, here in parts(len(unused)):
            copy = module.clone()
            changed = list(copy.inside(Func))[number]
            indices = [unused[j] for j in chosen]
            changed.body.blocks[0].erase_args(indices)
            for name in [n for n, value in changed.attrs.items() if n.startswith("arg_") and isinstance(value, tuple)]:
                changed.attrs[name] = tuple(x for i, x in enumerate(changed.attrs[name]) if i not in indices)
            changed.update_type()
            yield copy, here
