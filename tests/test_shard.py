"""Shardings and collectives: every tensor operation, divided in every way its rule allows, equals the whole one."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from mlc.dialects.func import Func
from mlc.dialects.shard import ranks
from mlc.dialects.shard.mesh import Mesh, Sharding
from mlc.ir.core import REGISTRY, Op
from mlc.ir.diag import IRError, UserError
from mlc.ir.interp import Interpreter
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.ir.types import ComplexType
from tests.op_samples import NUMBERS, Sample, samples_of
from tests.sharded_program import difference, divided, examine, on_all_ranks, ways

MESHES = tuple(map(Mesh.of, ({"a": 2}, {"a": 3}, {"a": 2, "b": 3}, {"a": 7})))


def static(sample: Sample) -> Op:
    """A sample as a module of primitives, with numbers for its symbols."""
    whole = sample.build()[0].clone(env=NUMBERS)
    Pipeline(parse_pipeline("decompose")).run(whole)
    return whole


LONG = {"tensor.eigh", "tensor.lu", "tensor.matrix_exp", "tensor.pinv", "tensor.qr", "tensor.svd"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in sorted(REGISTRY)
                                  if n.startswith("tensor.") and samples_of(n)])
def test_every_operation_divided_equals_the_whole(name: str) -> None:
    """One way for each sample, on one of the meshes that divide its sizes."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for sample in samples_of(name):
        whole = static(sample)
        types = next(whole.inside(Func)).function_type
        meshes = [m for m in MESHES if any(len(list(ways(t, m))) > 1 for t in types.inputs)]
        if not meshes or any(isinstance(r.type, ComplexType) for op in whole.walk() for r in op.results):
            continue
        args, mesh = sample.arguments(), meshes[rng.integers(len(meshes))]
        chosen = [c[rng.integers(len(c))] for t in (*types.inputs, *types.results) for c in [list(ways(t, mesh))]]
        rank = divided(whole.clone(), mesh, chosen[:len(args)], chosen[len(args):], "propagate-shardings,partition")
        for got, want in zip(on_all_ranks(rank, args), Interpreter(whole).call("main", args), strict=True):
            assert difference(got, np.asarray(want)) is None


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 4000), marks=pytest.mark.slow)],
                         ids=["few", "many"])
def test_random_programs_divided_equal_one_device(seeds: range) -> None:
    verdicts = [(seed, examine(seed)) for seed in seeds]
    assert [v for v in verdicts if v[1] not in ("", "-")] == []
    assert sum(v == "" for _, v in verdicts) > len(seeds) / 3


MESH = '#shard.mesh<axes = ["d"], sizes = [2]>'


def ranks_with(*bodies: str) -> list[Op]:
    """A program of a tensor<2xf32> for each of two ranks."""
    return [parse_module("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                         + body.replace("MESH", f'mesh = {MESH}, axes = ["d"]')
                         + "\n  func.return %r : tensor<2xf32>\n}", "p.mlir") for body in bodies]


REDUCE = "%r = shard.all_reduce %x {MESH} : tensor<2xf32>"
START = "%q = shard.all_reduce_start %x {MESH} : (tensor<2xf32>) -> !shard.request<tensor<2xf32>>"
WAIT = "%r = shard.wait %q : (!shard.request<tensor<2xf32>>) -> tensor<2xf32>"
NEG = "%r = tensor.neg %x : tensor<2xf32>"


@pytest.mark.parametrize(("bodies", "code", "message"), [
    ((REDUCE, "%r = shard.all_reduce %x {MESH, kind = \"max\"} : tensor<2xf32>"), "MLC0965", "rank"),
    ((REDUCE, "%r = tensor.neg %x : tensor<2xf32>"), "MLC0966", "waits at shard.all_reduce along d for rank 1"),
    ((REDUCE, "%y = tensor.neg %x : tensor<2xf32>\n" + REDUCE.replace("%r", "%a") + "\n" + REDUCE), "MLC0966",
     "rank 1 waits at shard.all_reduce along d for rank 0"),
    ((f"{START}\n{WAIT}", REDUCE), "MLC0965", "rank . is at shard.all_reduce.* of tensor<2xf32> along d"),
    ((f"{START}\n{WAIT}", NEG), "MLC0966", "rank 0 waits at shard.all_reduce_start along d for rank 1"),
    ((f"{START}\n{NEG}",) * 2, "MLC0989", "rank . never waits for its request"),
    ((f"{START}\n{WAIT.replace('%r', '%a')}\n{WAIT}",) * 2, "MLC0989", "rank . has waited for this request before"),
    ((f"{START}\n{REDUCE.replace('%r', '%a')}\n{WAIT}", f"{REDUCE.replace('%r', '%a')}\n{START}\n{WAIT}"), "MLC0965",
     "shard.all_reduce_start of"),
], ids=["another kind", "one does not take part", "one does so twice", "one waits at once", "one does not begin",
        "never waited for", "waited for twice", "another order"])
def test_mismatched_collectives_are_found_before_anything_runs(bodies: tuple[str, ...], code: str,
                                                               message: str) -> None:
    x = np.ones(2, np.float32)
    with pytest.raises(IRError, match=message) as error:
        ranks.interpret_each(ranks_with(*bodies), "main", [[x], [x]])
    assert error.value.code == code


def test_a_rank_computes_while_a_collective_is_on_its_way() -> None:
    """Rank 1 begins what rank 0 waits for only after it has received another one, which is no deadlock."""
    module, = ranks_with(f"{START}\n%a = shard.all_reduce %x {{MESH, kind = \"max\"}} : tensor<2xf32>\n{WAIT}")
    x = np.ones(2, np.float32)
    assert [out[0].tolist() for out in ranks.interpret_each([module] * 2, "main", [[x], [2 * x]])] == [[3, 3]] * 2


def test_one_rank_cannot_be_interpreted_alone() -> None:
    with pytest.raises(IRError, match="needs all ranks of the mesh"):
        Interpreter(ranks_with(REDUCE)[0]).call("main", [np.ones(2, np.float32)])


@pytest.mark.parametrize(("axes", "message"), [({}, "no mesh"), ({"a": 0}, "no mesh"), ({"a": True}, "no mesh")])
def test_meshes_without_ranks_are_refused(axes: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Mesh.of(axes)


def test_ranks_are_numbered_in_row_major_order() -> None:
    mesh = Mesh.of({"a": 2, "b": 3})
    assert [mesh.coordinates(r) for r in range(6)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert mesh.group(4, ("a",)) == (1, 4) and mesh.group(4, ("b",)) == (3, 4, 5)
    assert mesh.group(0, ("b", "a")) == (0, 3, 1, 4, 2, 5) and mesh.position(3, ("b", "a")) == 1
    assert Sharding((("b",), ("a",))).piece((6, 4), mesh, 4) == (slice(2, 4), slice(2, 4))
