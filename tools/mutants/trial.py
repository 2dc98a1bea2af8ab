"""One run of --check over the fixed programs, the samples of some operations, and, for GPU kernels, some products.

    python -m mlc.tools.mutants.trial --area rule --ops add,sub

It ends at the first thing found, and prints that as one line of JSON: what was run, the code, and the whole message.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import mlc
from mlc import nn
from mlc.dialects import autodiff, func
from mlc.dialects.func import Func
from mlc.ir.core import Op, Symbol, at_end
from mlc.ir.diag import Error, UserError
from mlc.ir.machine import GPU, HOPPER
from mlc.ir.parser import parse_module
from mlc.ir.passes import parse_pipeline
from mlc.ir.types import TensorType, to_numpy
from mlc.passes import pipeline
from mlc.tools import check, cli, inputs
from mlc.tools.fuzzing import kinds, levels, python_programs, rewrites, writes

ROUNDS = 10
"""Random programs for each rule."""
SAMPLES = 12
"""About how many of one operation are run."""
PROGRAMS = Path(__file__).parent / "programs"
CASES = sorted(Path(__file__).resolve().parents[2].glob("tests/cases/canonicalize/*.mlir"))
FIRST: dict[str, tuple[str, ...]] = {
    "derivative": ("functions", "moves", "training"), "transform": ("control", "training"),
    "rule": ("identities", "moves", "numbers", "products"), "merging": ("identities", "moves", "training", "control"),
    "numerics": ("functions", "numbers", "sizes"), "fusion": ("iteration_domains", "memory", "training", "functions"),
    "aliasing": ("reuse", "memory", "control", "sizes"), "loops": ("numbers", "sizes", "moves"),
    "schedule": ("reuse", "moves", "sizes", "products", "memory"), "tails and accesses": ("sizes", "moves", "products"),
    "lowering": ("vectors", "numbers", "moves", "control"), "emission": ("vectors", "numbers", "control", "moves"),
    "call": ("calls", "steps"), "cache key": ("calls", "moves", "steps"), "recorder": ("control", "writes"),
    "state": ("steps", "writes"), "complex": ("complex_numbers",), "quantized": ("quantized",), "images": ("images",),
    "backward": ("backward", "steps"),
}
"""The programs with which a fault of an area is looked for, in this order; the others come last."""


def attended(q: Any, k: Any, v: Any) -> Any:
    """Attention in which queries do not see later keys."""
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def derived(*operands: Any) -> Any:
    """The derivative of that."""
    return mlc.grad(lambda *xs: attended(*xs).float().pow(2).sum(), argnums=(0, 1, 2))(*operands)


KERNELS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "product": (lambda a, b: a @ b, ((33, 70), (70, 37))),
    "tensor cores": (lambda a, b: a @ b, ((40, 160), (160, 24))),
    "rows": (lambda x: mlc.softmax(x, 1), ((5, 130),)),
    "columns": (lambda x: x.sum(0), ((70, 33),)),
    "transposed": (lambda x: x.T * 2 + x.sum(1), ((33, 65),)),
    "long": (lambda x: x.cumsum(0) + x, ((1000,),)),
    "updates": (lambda x, u: x.index_add(0, (u[:, 0] * 9).long() % 70, u), ((70, 33), (600, 33))),
    "last updates": (lambda x, u: x.index_copy(0, (u[:, 0] * 9).long() % 300, u), ((300, 3), (1100, 3))),
    "attention": (nn.functional.scaled_dot_product_attention, ((1, 33, 64), (1, 150, 64), (1, 150, 32))),
    "causal attention": (attended, ((1, 150, 16),) * 3), "derivative of attention": (derived, ((1, 70, 16),) * 3),
}
"""Functions, and the shapes of their arguments, whose kernels for a GPU have blocks that stick out."""
LOOPS = ("dot_general", "reduce_sum", "softmax", "add", "reduce_max", "cumulative", "scatter", "scatter_along", "take",
         "windows")
"""Operations whose samples run on the GPU: of every structure of loops."""
NARROW = ("tensor cores", "attention", "causal attention", "derivative of attention")
"""Those of bfloat16, also for warpgroups."""
RANDOM: dict[str, tuple[tuple[str, ...], str, int]] = {
    "rule": (("tensor",), "dead_argument_elimination", 120),
    "transform": (("derivatives", "functions"), "cse", 120), "merging": (("functions", "tensor"), "fuse", 120),
    "numerics": (("tensor", "derivatives"), "fix_numerics", 120),
    "fusion": (("tensor", "functions", "graphs"), "bufferize", 150),
    "aliasing": (("functions", "functions", "tensor", "graphs"), "bufferize", 400),
    "loops": (("tensor",), "tensor_to_loop", 60),
    "schedule": (("tensor",), "loop_to_scf", 40), "tails and accesses": (("tensor",), "loop_to_scf", 40),
    "lowering": (("tensor", "functions"), "scf_to_llvm", 30), "emission": (("tensor", "functions"), "native", 24),
}
"""Of what forms, as far down as which pass, and how many random programs are run for an area."""
PYTHON = {"recorder": 60, "backward": 40, "state": 40, "call": 20, "derivative": 20, "aliasing": 20, "cache key": 60}
"""How many random Python programs are run for an area, of which all but every fourth write."""
DIVIDED = 150
"""How many random programs are divided among ranks."""


def programs(area: str) -> list[Path]:
    """Those that are about an area: Python programs, and modules with a @main."""
    return [next(PROGRAMS.glob(f"{name}.*")) for name in FIRST.get(area, ())]


def samples(names: Sequence[str]) -> Iterator[tuple[str, Op, list[Any]]]:
    """The samples of operations: which, as a module, and on what."""
    from tests.op_samples import samples_of  # in the tree alone, as the faults are
    for name in names:
        for sample in various(samples_of(f"tensor.{name}"), SAMPLES):
            module, _ = sample.build()
            yield str(sample), module, sample.arguments()


def various(samples: Sequence[Any], count: int) -> Iterator[Any]:
    """As many samples, each of which has most pairs of options and types that none before it has."""
    left = {i: set(itertools.combinations(sorted(
        f"{k} {v}" for k, v in (*sample.build()[1].attrs.items(), *enumerate(sample.types))), 2)) for i, sample in
        enumerate(samples)}
    for _ in range(min(count, len(samples))):
        best = max(left, key=lambda i: len(left[i]))
        taken = left.pop(best)
        left = {i: pairs - taken for i, pairs in left.items()}
        yield samples[best]


def with_derivative(module: Op, arrays: Sequence[Any]) -> tuple[Op, list[Any]] | None:
    """A module whose @main takes the derivative of that of another, in float64 numbers."""
    module = module.clone()
    source = module.regions[0].block.first
    assert isinstance(source, Func)
    wrt = [i for i, a in enumerate(source.args) if autodiff.has_cotangent(a.type)]
    given = [t for t in source.function_type.results if isinstance(t, TensorType) and autodiff.has_cotangent(t)]
    if not wrt or not given or not all(t.is_static for t in given):
        return None
    source.sym_name, source.sym_visibility = Symbol("f"), "private"
    main = func.function("main", [*(a.type for a in source.args), *given])
    module.regions[0].block.insert(main)
    count = len(source.args)
    with at_end(main.block):
        func.Return(tuple(autodiff.vjp(source, main.args[:count], main.args[count:], wrt)))
    main.update_type()
    rng = np.random.default_rng(0)
    return module, [*arrays, *(np.asarray(rng.uniform(0.5, 1.5, t.shape)).astype(to_numpy(t.dtype)) for t in given)]


def checked(module: Op, arrays: Sequence[Any], machine: str) -> None:
    """InternalError where a pass, or native code, changes what a module means."""
    if machine == "cpu":
        check.check(module, "main", arrays, keep=False)
    else:
        gpu = HOPPER if machine == "hopper" else GPU
        check.Check(module, "main", arrays, keep=False).run(pipeline.steps("llvm", machine=gpu, products="mma"))


def of_samples(names: Sequence[str], how: str) -> tuple[str, str] | None:
    """(which sample, what is wrong with it), of the first that is wrong: its derivative, or on the cpu or the gpu."""
    for name, module, arrays in samples(names):
        try:
            if how != "grad":
                checked(module, arrays, how)
            elif (pair := with_derivative(module, arrays)) is not None:
                check.Check(pair[0], "main", pair[1], keep=False).run(parse_pipeline("grad"))
        except UserError:                                  # the sample means an error, and the code gives that too
            continue
        except Error as error:
            return name, str(error)
    return None


def of_kernels() -> tuple[str, str] | None:
    """The same of KERNELS, on the gpu."""
    rng = np.random.default_rng(0)
    for name, (function, shapes) in KERNELS.items():
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        if name in NARROW:
            arrays = [a.astype(ml_dtypes.bfloat16) for a in arrays]
        try:
            for machine in ("gpu", "hopper")[: 1 + (name in NARROW)]:
                checked(mlc.lower(function, args=arrays, level="trace").module, arrays, machine)
        except Error as error:
            return name, str(error)
    return None


def of_cases(paths: Sequence[Path]) -> tuple[str, str] | None:
    """The same of file cases of canonicalize, in which every rule fires: each on random arrays."""
    for path in paths:
        for text in re.split(r"^// -----$", path.read_text(encoding="utf-8"), flags=re.M):
            if "error:" in text or "func.func" not in text:
                continue
            module = parse_module(text, str(path))
            for entry, type in inputs.entries(module).items():
                try:
                    arrays = inputs.random_arrays(type.inputs, 0, {})
                    check.Check(module.clone(), entry, arrays, keep=False).run(parse_pipeline("canonicalize"))
                except UserError:
                    continue
                except Error as error:
                    return path.stem, str(error)
    return None


def of_random_rewrites() -> tuple[str, str] | None:
    """The same of random programs around each rule."""
    for subject in range(len(rewrites.subjects())):
        for seed in range(ROUNDS):
            found = levels.examine_rewrites(rewrites.generate_for(subject, seed))
            if found is not None:
                return f"rewrites {subject} {seed}", found.message
    return None


def of_random_programs(area: str) -> tuple[str, str] | None:
    """The same of random programs, compared where a level ends, and after every pass where that differs."""
    forms, depth, count = RANDOM.get(area, ((), "", 0))
    for seed in range(count):
        name = forms[seed % len(forms)]
        native = depth == "native"
        found = levels.examine(kinds.FORMS[name][1](seed), "llvm" if native else depth, native)
        if found is not None:
            return f"{name} {seed}", found.message
    return None


def of_python_programs(area: str) -> tuple[str, str] | None:
    """The same of random Python programs: what is compiled, and gradients, are those of plain Python."""
    for number in range(PYTHON.get(area, 0)):
        seed = 3 * number if area == "cache key" else number           # of which all are compiled for all sizes
        found = python_programs.examine_safely((writes if number % 4 else python_programs).generate(seed))
        if found is not None:
            return f"python {seed}", f"error[MLC0903]: {found.message}"
    return None


def of_divided_programs(area: str) -> tuple[str, str] | None:
    """The same of random programs that are divided among the ranks of a mesh."""
    from tests import sharded_program
    for seed in range(DIVIDED if area == "distributed" else 0):
        if (said := sharded_program.examine(seed)) not in ("", "-"):
            return f"divided {seed}", f"error[MLC0901]: {said}"
    return None


def of_programs(paths: Sequence[Path]) -> tuple[str, str] | None:
    """The same of programs, as `mlc run --check` runs them."""
    for path in paths:
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = cli.main(["run", "--check", str(path)])
        if status:
            return path.stem, "\n".join(line for line in said.getvalue().splitlines() if not line.startswith(
                ("checking", "  ")) or line.startswith(("  note", "  help")))
    return None


def main() -> None:
    p = argparse.ArgumentParser("trial")
    p.add_argument("--area", default="")
    p.add_argument("--ops", default="")
    options = p.parse_args()
    os.environ["MLC_CACHE"] = "0"
    started = time.monotonic()
    names = options.ops.split(",") if options.ops else []
    if options.area == "gpu":
        found = of_samples(LOOPS, "gpu") or of_kernels()
    else:
        area, found = options.area, None
        if area == "rule":
            found = of_random_programs(area) or of_cases(CASES) or of_random_rewrites()
        first = programs(area)
        found = (found or of_samples(names, "grad" if area == "derivative" else "cpu") or of_python_programs(area)
                 or of_divided_programs(area)
                 or (of_random_programs(area) if area != "rule" else None) or of_programs(first)) or of_programs(
            sorted({*PROGRAMS.glob("*.py"), *PROGRAMS.glob("*.mlir")} - {*first, PROGRAMS / "__init__.py"}))
    print(json.dumps({"found": found, "seconds": round(time.monotonic() - started, 1)}))


if __name__ == "__main__":
    main()
