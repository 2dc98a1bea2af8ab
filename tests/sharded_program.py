"""Random programs, divided among the ranks of random meshes in random ways, against one device."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as tn
from mlc.dialects.func import Func
from mlc.dialects.shard import ranks
from mlc.dialects.shard.mesh import Mesh, Sharding
from mlc.dialects.tensor.reduce import Reduce
from mlc.ir.core import Op
from mlc.ir.interp import Interpreter
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.ir.types import ComplexType, FloatType, TensorType, to_numpy
from mlc.passes import pipeline
from mlc.tools.fuzzing import graphs, programs
from tests.arrays import Array

MESHES = ({"a": 2}, {"a": 3}, {"a": 2, "b": 3}, {"a": 2, "b": 2}, {"a": 5}, {"a": 7}, {"a": 2, "b": 2, "c": 2})
OVERLAPPED = {"overlap_collectives": "overlap_collectives{call=0,flops=1000000}"}
"""A pass, and what has it do something in small programs."""
STEPS = tn.Sign, tn.Floor, tn.Ceil, tn.Round, tn.Compare, tn.Rem
"""Operations that a difference of rounding changes by more than that."""


def divided(module: Op, mesh: Mesh, args: Sequence[Sharding], results: Sequence[Sharding | None] = (),
            passes: str = "") -> Op:
    """@main of a module as the program of one rank, by all passes for meshes or by these."""
    function = next(op for op in module.inside(Func) if op.sym_name == "main")
    function.attrs |= {"mesh": mesh, "arg_shardings": tuple(args), "result_shardings": tuple(results)}
    text = [passes] if passes else [OVERLAPPED.get(row, row) for _, row, _ in pipeline.DISTRIBUTED]
    Pipeline([step for row in text for step in parse_pipeline(row)]).run(module)
    return module


def program_of(module: Op, name: str) -> Any:
    """A function, or that of the first position of a pipeline which replaced it; None if there is neither."""
    return next((op for op in module.inside(Func) if op.sym_name in (name, f"{name}_position_0")), None)


def is_of_one_rank(function: Op) -> bool:
    """Whether a function is the program of one rank, so that it takes and gives shards."""
    return "partitioned" in function.attrs


def on_all_ranks(module: Op, args: Sequence[Any], name: str = "main") -> list[Array]:
    """The results of a partitioned function, put together from those of all ranks."""
    attrs = program_of(module, name).attrs
    mesh: Mesh = attrs["mesh"]
    split = "position" in attrs                            # before, there are no ranks without a shard
    shardings = [s if split else s.everywhere for s in attrs["arg_shardings"]]
    pieces = zip(*(ranks.shards(np.asarray(x), s, mesh) for x, s in zip(args, shardings)))
    out = ranks.interpret(module, name, mesh, list(pieces) if args else [()] * mesh.ranks)
    return [ranks.joined([np.asarray(of_rank[i]) for of_rank in out], s, mesh)
            for i, s in enumerate(attrs["result_shardings"])]


def ways(type: Any, mesh: Mesh) -> Iterator[Sharding]:
    """The shardings of a tensor along at most one dimension per axis of a mesh."""
    for at in itertools.product([None, *range(type.rank)], repeat=len(mesh.axes)):
        dims = tuple(tuple(axis for axis, d in zip(mesh.axes, at) if d == n) for n in range(type.rank))
        if Sharding(dims).problem(type.shape, mesh) is None:
            yield Sharding(dims)


def difference(got: Array, want: Array) -> str | None:
    """How two results differ; None if they are equal, but that sums of floats are added in another order."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    if want.dtype.kind in "biu":
        return None if np.array_equal(got, want) else f"{got} for {want}"
    tolerance = {2: 5e-2, 4: 1e-4, 8: 1e-10}[want.dtype.itemsize]
    wide, exact = got.astype(np.float64), want.astype(np.float64)
    scale = np.max(np.abs(exact), initial=1e-6, where=np.isfinite(exact))
    close = np.isclose(wide, exact, tolerance, tolerance * scale, equal_nan=True)
    close &= (wide != 0) | (exact != 0) | (np.signbit(wide) == np.signbit(exact))
    return None if close.all() else f"{got[~close][:4]} for {want[~close][:4]}"


def examine(seed: int) -> str:
    """A fault of the random program of a seed, divided in a random way; "" if there is none, "-" if it is not divided
    at all."""
    generator = (graphs.GraphGenerator if seed % 3 == 2 else programs.Generator)(seed)
    symbolic, rng = generator.make(), random.Random(seed)
    module = symbolic.clone(env=generator.numbers)
    main = next(module.inside(Func))
    main.attrs.pop("donate", None)
    Pipeline(parse_pipeline("decompose-complex,grad,decompose")).run(module)
    if any(isinstance(v.type, TensorType) and isinstance(v.type.dtype, ComplexType)
           for op in module.walk() for v in op.results):
        return "-"
    if _steps_at_rounded_numbers(module):
        return "-"
    main = next(module.inside(Func))
    numbers = np.random.default_rng(seed)
    args = [_friendly(numbers, a.type) for a in main.args]
    mesh = Mesh.of(rng.choice(MESHES))
    choices = [list(ways(a.type, mesh)) for a in main.args]
    results = [rng.choice([None, *ways(t, mesh)]) for t in main.function_type.results]
    chosen = [rng.choice(c) for c in choices]
    if all(s.is_replicated for s in chosen):
        return "-"
    overflows: list[Op] = []                               # a sum in parts may then be another infinity, or NaN

    def watch(op: Op, results: Sequence[Any]) -> None:
        if _is_infinite_sum(op, results):
            overflows.append(op)

    try:
        expected = Interpreter(module, watch).call("main", args)
    except Exception as error:                             # such as an index out of range: on every rank as well
        return "-" if "MLC" in str(error) else f"one device: {error}"
    rank = divided(module.clone(), mesh, chosen, results)
    for i, (got, want) in enumerate(zip(on_all_ranks(rank, args), expected, strict=True)):
        found = difference(got, np.asarray(want))
        if found is not None:
            where = f"{dict(zip(mesh.axes, mesh.sizes))}, {[str(s) for s in chosen]}"
            return "-" if overflows else f"result {i} on {where}: {found}"
    return ""


def _is_infinite_sum(op: Op, results: Sequence[Any]) -> bool:
    return isinstance(op, Reduce | tn.DotGeneral | tn.Cumulative) and any(
        np.isinf(np.asarray(x, np.float64)).any() for x in results)


def _steps_at_rounded_numbers(module: Op) -> bool:
    """Whether a program multiplies by fractions, as a Fourier transform does, whose sums depend on their order, and has
    a step such as a sign, which gives something else on either side of a number."""
    fractions = any(isinstance(op, tn.Constant) and op.value.dtype.kind == "f" and np.any(op.value % 1)
                    for op in module.walk())
    return fractions and any(isinstance(op, STEPS) for op in module.walk())


def _friendly(numbers: np.random.Generator, type: Any) -> Array:
    """Small integers, so that sums of floats are exact in any order."""
    low = 0 if not isinstance(type.dtype, FloatType) and getattr(type.dtype, "unsigned", False) else -3
    out = np.asarray(numbers.integers(low, 4, type.shape))
    return out > 0 if to_numpy(type.dtype) == np.bool_ else out.astype(to_numpy(type.dtype))
