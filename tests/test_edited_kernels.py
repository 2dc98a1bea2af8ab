"""An edit of what fuse writes on a kernel is refused by the verifier, or its code computes what the text says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mlc.dialects.func import Func
from mlc.dialects.tensor.iteration import single
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir.affine import AffineMap, dim
from mlc.ir.core import Op
from mlc.ir.diag import Error
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from tests.arrays import difference

SHARES = """func.func @main(%x: tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4xf32>) {
  %0 = tensor.reduce_sum %x {axes = [1]} : (tensor<4x9xf32>) -> tensor<4xf32>
  %1 = tensor.reshape %0 : tensor<4xf32> to tensor<4x1xf32>
  %2 = tensor.div %x, %1 : (tensor<4x9xf32>, tensor<4x1xf32>) -> tensor<4x9xf32>
  %3 = tensor.exp %2 : tensor<4x9xf32>
  %4 = tensor.reduce_sum %3 {axes = [1]} : (tensor<4x9xf32>) -> tensor<4xf32>
  %5 = tensor.reshape %4 : tensor<4xf32> to tensor<4x1xf32>
  %6 = tensor.div %3, %5 : (tensor<4x9xf32>, tensor<4x1xf32>) -> tensor<4x9xf32>
  func.return %6, %4 : tensor<4x9xf32>, tensor<4xf32>
}"""
PREFIXES = """func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = tensor.cumulative %x {kind = "add", axis = 1} : tensor<3x3xf32>
  %1 = tensor.mul %0, %x : tensor<3x3xf32>
  func.return %1 : tensor<3x3xf32>
}"""
PRODUCT = """func.func @main(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : tensor<4x4xf32>
  %1 = tensor.add %0, %x : tensor<4x4xf32>
  func.return %1 : tensor<4x4xf32>
}"""
TURNED = """func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = tensor.transpose %x {perm = [1, 0]} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = tensor.add %0, %x : tensor<3x3xf32>
  func.return %1 : tensor<3x3xf32>
}"""

LISTS: dict[str, tuple[Any, ...]] = {
    "domain": (0, 1, 5, -1), "iterator_types": ("parallel", "reduction", "scan", "scatter"), "stores": (-1, 0, 1, 2, 3),
    "last_reads": (-1, 0, 1, 2, 3)}
"""Of each list on a kernel the entries that stand in place of each of its own."""
OF_OPERATIONS: list[dict[str, Any]] = [
    {"stage": 0}, {"stage": 1}, {"stage": 1, "materialize": 0}, {"stage": 1, "materialize": 7},
    {"stage": 1, "materialize": "scratch"}, {"stage": 0, "materialize": "scratch"}, {"materialize": "scratch"},
    {"stage": "0"}, {"stage": None, "materialize": None}]


def edits(kernel: Kernel) -> Iterator[tuple[Op, dict[str, Any]]]:
    """Operations, and attributes to set on them; None takes one away."""
    for name, values in LISTS.items():
        own = kernel.attrs.get(name, ())
        yield kernel, {name: ()}
        yield kernel, {name: (*own, values[1])}
        yield from ((kernel, {name: (*own[:i], value, *own[i + 1:])}) for i in range(len(own)) for value in values)
    yield from ((kernel, {"stages": n}) for n in (-1, 0, 1, 2, 3, 10**9))
    dims = len(kernel.domain)
    for i, map in enumerate(kernel.indexing_maps):
        for results in (map.results[::-1], map.results[1:], (0,) * len(map.results), tuple(e + 1 for e in map.results),
                        (*map.results, dim(0))):
            other = AffineMap.get(dims, results)
            yield kernel, {"indexing_maps": (*kernel.indexing_maps[:i], other, *kernel.indexing_maps[i + 1:])}
    for op in kernel.body.block:
        yield from ((op, attrs) for attrs in OF_OPERATIONS if not op.terminator)


def follow(kernel: Kernel) -> None:
    """Set what follows from the rest of a contract: the maps of operands, and when each is read last."""
    if 0 < kernel.stages < 9 and len(kernel.domain) == 2:
        reads = kernel.staging().reads().values()
        maps = tuple(single({at for _, at in found}, kernel.iteration_domain()) for found in reads)
        kernel.indexing_maps = (*maps, *kernel.indexing_maps[len(kernel.ins):])
        kernel.last_reads = tuple(max((stage for stage, _ in found), default=0) for found in reads)


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("program", [
    pytest.param(SHARES, id="shares", marks=pytest.mark.slow), pytest.param(PREFIXES, id="scan"),
    pytest.param(PRODUCT, id="product"), pytest.param(TURNED, id="turned")])
def test_an_edit_is_refused_or_obeyed(program: str, follows: bool) -> None:
    """Also where what follows from the edit is edited with it, so that only the edit itself can be wrong."""
    fused = parse_module(program)
    Pipeline(["fix_numerics", "fuse"]).run(fused)
    rng = np.random.default_rng(0)
    arguments = [rng.uniform(0.5, 1, a.type.shape).astype("f4") for a in next(fused.inside(Func)).args]
    dump = to_text(fused)
    refused = obeyed = 0
    for number in range(len([*edits(next(fused.inside(Kernel)))])):
        module = parse_module(dump)
        kernel = next(module.inside(Kernel))
        op, attrs = [*edits(kernel)][number]
        op.attrs = {k: v for k, v in (op.attrs | attrs).items() if v is not None}
        try:
            if follows:
                follow(kernel)
        except (LookupError, TypeError, ValueError, Error):
            continue                                     # nothing follows from what makes no sense
        try:
            edited = parse_module(to_text(module))
            verify(edited)
        except Error as error:
            assert error.code in ("MLC0101", "MLC0116", "MLC0143", "MLC0144") and error.loc.line, (attrs, error)
            refused += 1
            continue
        meaning = run_function(edited, "main", arguments)
        Pipeline(["bufferize", "tensor_to_loop", "vectorize", "loop_to_scf"]).run(edited)
        found = run_function(edited, "main", arguments)
        assert all(difference(a, b, "bits") is None for a, b in zip(found, meaning, strict=True)), attrs
        obeyed += 1
    assert refused > 40 and obeyed, (refused, obeyed)
