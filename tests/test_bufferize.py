"""Buffers: an independent simulation of the arena, over random programs. Cases are in tests/cases/bufferize.

The simulation knows nothing of the plan. It watches a bufferized program run and remembers, for every byte of the
arena, which value was written there last; a kernel that reads a value must find it whole.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.dialects import loop, memref
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import module
from mlc.dialects.func import Return, function
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir.core import Op, Value, at_end
from mlc.ir.diag import IRError
from mlc.ir.interp import run_function, start_of
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.ir.printer import to_text
from mlc.ir.sizes import evaluate
from mlc.passes import pipeline
from mlc.passes.bufferize import ALIGNMENT
from mlc.tools.fuzzing.programs import Program, generate
from tests.op_samples import t

Array = np.ndarray[Any, Any]


def lowered(program: Program, last: str) -> Op:
    """A program after the pass `last`."""
    steps = pipeline.steps()
    names = [s.transform.name for s in steps]
    return Pipeline(steps[: names.index(last) + 1]).run(program.module())


class Arena:
    """Who wrote each byte last. `watch` is called by the interpreter after every operation."""

    def __init__(self) -> None:
        self.root: dict[Value, Value] = {}              # of a view of a view, the view of the arena
        self.span: dict[Value, tuple[int, int]] = {}    # addresses of a view of the arena
        self.owner: dict[int, Value] = {}
        self.written: set[Value] = set()
        self.shared = 0                                 # bytes that have had two owners

    def watch(self, op: Op, results: Sequence[Any]) -> None:
        if isinstance(op, memref.View):
            self.root[op.result] = op.result
            start = start_of(results[0])
            assert start % ALIGNMENT == 0, "values start on a boundary"
            self.span[op.result] = start, start + results[0].nbytes
        elif isinstance(op, memref.ReinterpretCast | memref.Cast) and op.operands[0] in self.root:
            self.root[op.results[0]] = self.root[op.operands[0]]
        elif isinstance(op, Kernel):
            for v in op.ins:
                self.read(op, v)
            for v in op.outs:
                self.write(op, v)

    def read(self, op: Kernel, v: Value) -> None:
        if (root := self.root.get(v)) is not None:
            assert all(self.owner.get(a) is root for a in range(*self.span[root])), f"{op.label} reads what is gone"

    def write(self, op: Kernel, v: Value) -> None:
        if (root := self.root.get(v)) is not None:
            assert root not in self.written, "a value is written by one kernel"
            self.written.add(root)
            for address in range(*self.span[root]):
                self.shared += address in self.owner
                self.owner[address] = root


def relay(seed: int) -> Program:
    """Vectors of many sizes, each a product of an earlier one with a matrix, so that they die at random times."""
    rng = random.Random(seed)
    sizes = {"3": 3, "17": 17, "40": 40, "100": 100, "B": 7, "N": 37}
    inside, main = module(), function("main", [t("Bx3xf32"), t("Nx3xf32")])
    inside.body.block.insert(main)
    with at_end(main.block):
        vectors = {"3": [tn.Reshape(main.block.add_arg(t("3x1xf32")), (3,)).result]}
        arguments = [(7, 3), (37, 3), (3, 1)]
        for _ in range(24):
            old, new = rng.choice(list(vectors)), rng.choice(list(sizes))
            x = rng.choice(vectors[old][-2:])
            matrix = main.block.add_arg(t(f"{old}x{new}xf32"))
            arguments.append((sizes[old], sizes[new]))
            y = tn.DotGeneral(x, matrix, (), ((0, 0),)).result
            if new in vectors and rng.random() < 0.4:                # in place, where that one dies
                y = tn.Add(y, rng.choice(vectors[new])).result
            vectors.setdefault(new, []).append(y)
        Return((vectors[new][-1], tn.ReduceSum(vectors["3"][-1], (0,)).result))
    main.update_type()
    numbers = np.random.default_rng(seed)
    return Program(seed, to_text(inside), tuple(numbers.standard_normal(s).astype("f4") for s in arguments))


def test_no_value_is_overwritten_while_it_is_read() -> None:
    shared = kept = 0
    for program in (*map(generate, range(30)), *map(relay, range(30))):
        if writes_pieces(program):                         # whose values are written by several kernels
            continue
        arena = Arena()
        run_function(lowered(program, "bufferize"), "main", program.arguments, arena.watch)
        kept += len(arena.owner)
        shared += arena.shared
    assert shared > kept / 10, "space is shared often enough for this to be a test"


def test_weights_outlive_a_convolution_by_channels_that_adds_what_they_are_a_part_of() -> None:
    def f(x: Any, image: Any, matrix: Any) -> Any:
        sums = x.sum(-1)
        weight = sums[0, :, :3, :3].reshape(4, 1, 3, 3)
        return (mlc.nn.functional.conv2d(image, weight, None, 1, 1, 1, 4) + sums) @ matrix

    rng = np.random.default_rng(0)
    arguments = [rng.integers(-2, 3, shape).astype("f4") for shape in ((1, 4, 9, 9, 5), (1, 4, 9, 9), (9, 7))]
    eager = f(*map(mlc.tensor, arguments)).numpy()
    np.testing.assert_array_equal(mlc.compile(f)(*map(mlc.tensor, arguments)).numpy(), eager)


def test_the_simulation_sees_a_bad_plan() -> None:
    """With every value at the start of the arena some program reads what is gone."""
    with pytest.raises(AssertionError, match="reads what is gone"):
        for program in map(relay, range(10)):
            bad = lowered(program, "bufferize")
            for f in bad.regions[0].block:
                views = [op for op in f.walk() if isinstance(op, memref.View)]
                for view in views[1:]:
                    view.set_operand(1, views[0].operands[1])
            run_function(bad, "main", program.arguments, Arena().watch)


def writes_pieces(program: Program) -> bool:
    """Whether a program writes values piece by piece or again: pieces in place, and what a search carries in a loop."""
    return "dynamic_update_slice" in program.text or "search_sorted" in program.text


@pytest.mark.parametrize("last", ["tensor_to_loop", "coalesce_dimensions"])
def test_every_element_is_stored_once(last: str) -> None:
    """The points of a kernel's domain and the elements of each of its results are the same in number, one each."""
    stores = 0
    for seed in range(60):
        program = generate(seed)
        if writes_pieces(program):
            continue
        env = symbols_of(program)
        for kernel in lowered(program, last).inside(loop.Kernel):
            extents = tuple(evaluate(d, env) for d in kernel.domain)
            for store in kernel.inside(loop.Store):
                points = loop.Activation(env, extents)
                for d, extent in enumerate(extents):
                    points.axis(d, np.arange(extent if d < kernel.parallel else 1))
                shape = points.shape(range(kernel.parallel))
                place = [np.broadcast_to(points.evaluate(e, ()), shape).ravel() for e in store.map.results]
                found = {tuple(p) for p in np.transpose(place).tolist()} if place else {()}
                count = int(np.prod([int(p.max(initial=-1)) + 1 for p in place], dtype=np.int64))
                assert len(found) == count == int(np.prod(shape))
                stores += 1
    assert stores > 100


def symbols_of(program: Program) -> dict[str, int]:
    """The number of every symbol, read off the arguments."""
    main = program.module().body.block.first
    assert main is not None
    return {str(d): n for a, x in zip(main.regions[0].block.args, program.arguments)
            for d, n in zip(a.type.shape, x.shape) if not isinstance(d, int)}


# -- data-dependent sizes ---------------------------------------------------------------------------------------------
NAMED = """
  %w = tensor.bind_size %n {bound = "B", size = "k"} : (tensor<i64>) -> tensor<kx0xi1>
  %y = tensor.slice %x {starts = [0], stops = ["k"], steps = [1]} : (tensor<Bxf32>) -> tensor<kxf32>"""
REFUSED = {
    "the data-dependent size k is not known here": ("tensor<kxf32>", NAMED + """
  %z = tensor.neg %y : tensor<kxf32>
  func.return %z : tensor<kxf32>"""),
    "func.func: the data-dependent size k - 1 is not provably non-negative": ("tensor<1xf32>", NAMED + """
  %z = tensor.slice %y {starts = [0], stops = [1], steps = [1]} : (tensor<kxf32>) -> tensor<1xf32>
  func.return %z : tensor<1xf32>"""),
    "tensor.bind_size: the size k is bound here already": ("tensor<f32>", NAMED + """
  %v = tensor.bind_size %n {bound = "B", size = "k"} : (tensor<i64>) -> tensor<kx0xi1>
  %z = tensor.reduce_sum %y {axes = [0]} : (tensor<kxf32>) -> tensor<f32>
  func.return %z : tensor<f32>"""),
    "tensor.iota: the size k is no size of an argument": ("tensor<f32>", """
  %w = tensor.bind_size %n {size = "k"} : (tensor<i64>) -> tensor<kx0xi1>
  %y = tensor.iota {axis = 0} : tensor<kxf32>
  %z = tensor.reduce_sum %y {axes = [0]} : (tensor<kxf32>) -> tensor<f32>
  func.return %z : tensor<f32>"""),
}


@pytest.mark.parametrize("says", REFUSED)
def test_sizes_that_do_not_reach(says: str) -> None:
    result, body = REFUSED[says]
    text = f"func.func @f(%x: tensor<Bxf32>, %n: tensor<i64>) -> {result} {{{body}\n}}"
    with pytest.raises(IRError) as caught:
        Pipeline(parse_pipeline("fix_numerics,fuse,bufferize")).run(parse_module(text))
    assert caught.value.code == "MLC0161" and says in str(caught.value)


def test_sizes_that_only_the_data_tell_share_memory() -> None:
    """Vectors of such a size that do not live at once lie in one place, which holds the greatest."""
    f = mlc.compile(lambda x: (x[x > 0].cumsum(0) + x[x > 0]).sort().values.cumsum(0).sum(), args=[mlc.spec("N")])
    assert f.compiled.peak_bytes(N=1000) < 5 * 8 * 1000
