"""Affine expressions and maps: their algebra, their text, and what passes ask of them."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlc.dialects.tensor.iteration import delinear, linear
from mlc.ir import sizes
from mlc.ir.affine import (
    AffineExpr,
    AffineMap,
    Algebra,
    Numbers,
    dim,
    dims_of,
    fold,
    is_multiple_of,
    step_along,
    tile,
    tiles_of,
)
from mlc.ir.affine_syntax import parse_map
from mlc.ir.diag import IRError, ParseError
from mlc.ir.parser import parse_module
from mlc.ir.printer import to_text
from mlc.ir.sizes import AffineDim, IndexTile, Leaf, evaluate, leaves, substitute, sym, symbols
from tests.upstream import verify_text

DIMS, TILES = 3, 2
LEAVES: list[Leaf] = [*map(AffineDim, range(DIMS)), *map(IndexTile, range(TILES)), "B", "N"]
OF_LEAVES: list[AffineExpr] = [*map(dim, range(DIMS)), *map(tile, range(TILES)), sym("B"), sym("N")]
EXPRS = st.recursive(
    st.one_of(st.sampled_from(OF_LEAVES), st.integers(-5, 5)),
    lambda e: st.one_of(st.tuples(e, e).map(lambda t: t[0] + t[1]), st.tuples(e, e).map(lambda t: t[0] - t[1]),
                        st.tuples(e, st.integers(-3, 3)).map(lambda t: t[0] * t[1]),
                        st.tuples(e, st.integers(1, 4)).map(lambda t: t[0] // t[1]),
                        st.tuples(e, st.integers(1, 4)).map(lambda t: t[0] % t[1])), max_leaves=6)
POINTS = st.fixed_dictionaries({leaf: st.integers(0, 9) for leaf in LEAVES})


def maps(least: int = 0, most: int = 3) -> st.SearchStrategy[AffineMap]:
    """Maps with so many results."""
    return st.lists(EXPRS, min_size=least, max_size=most).map(lambda exprs: AffineMap.get(DIMS, exprs, TILES))


def at(map: AffineMap, point: dict[Leaf, int]) -> tuple[int, ...]:
    return map.evaluate([point[AffineDim(d)] for d in range(map.dims)], [point[IndexTile(t)] for t in range(TILES)],
                        {"B": point["B"], "N": point["N"]})


@given(EXPRS, st.integers(1, 4), st.integers(-9, 9), POINTS)
@settings(max_examples=60, deadline=None)
def test_multiples_and_constants_leave_a_quotient(a: AffineExpr, n: int, c: int, point: dict[Leaf, int]) -> None:
    assert evaluate((a * n + c) // n, point) == evaluate(a, point) + c // n
    assert evaluate((a * n + c) % n, point) == c % n


@given(EXPRS, EXPRS, POINTS)
@settings(max_examples=60, deadline=None)
def test_an_expression_is_what_its_arithmetic_says(a: AffineExpr, b: AffineExpr, point: dict[Leaf, int]) -> None:
    x, y = evaluate(a, point), evaluate(b, point)
    assert [evaluate(e, point) for e in (a + b, a - b, a * b)] == [x + y, x - y, x * y]
    assert [evaluate(e, point) for e in (a // 3, a % 3)] == [x // 3, x % 3]
    assert fold(a, Numbers(point.__getitem__)) == x
    assert a - a == 0 and a + b == b + a and (a == b) is (a - b == 0)
    assert substitute(a, {}) == a and leaves(a) <= set(LEAVES)


@given(maps(), POINTS)
@settings(max_examples=60, deadline=None)
def test_text_reads_back(map: AffineMap, point: dict[Leaf, int]) -> None:
    text = str(map)
    again = parse_map(text.removeprefix("affine_map<").removesuffix(">"))
    assert again == map and str(again) == text and at(again, point) == at(map, point)


@given(maps(), maps(DIMS, DIMS), POINTS)
@settings(max_examples=60, deadline=None)
def test_composing_is_evaluating_twice(outer: AffineMap, inner: AffineMap, point: dict[Leaf, int]) -> None:
    named = {"B": point["B"], "N": point["N"]}
    tiles = [point[IndexTile(0)], point[IndexTile(1)], 7, 8]
    between = at(inner, point)
    both = outer.compose(inner).evaluate([point[AffineDim(d)] for d in range(DIMS)], tiles, named)
    assert both == outer.evaluate(between, tiles[2:], named)


@given(maps(), POINTS)
@settings(max_examples=40, deadline=None)
def test_replacing_and_dropping(map: AffineMap, point: dict[Leaf, int]) -> None:
    moved = map.replace_dims({0: dim(0) + 1})
    assert at(moved, {**point, AffineDim(0): point[AffineDim(0)] - 1}) == at(map, point)
    assert map.used_dims == dims_of(*map.results)
    sized = map.substitute({"B": 5, "N": sym("B")})
    assert at(sized, point) == at(map, {**point, "B": 5, "N": point["B"]})
    for i in range(len(map.results)):
        assert map.drop_result(i).results == (*map.results[:i], *map.results[i + 1:])


def test_atoms_are_what_they_are_whatever_they_are_called() -> None:
    assert dim(0) != sym("d0") and dim(0) != tile(0) and dim(1) == dim(1)
    assert symbols(dim(0) + sym("B")) == {"B"} and tiles_of(dim(0) + tile(1)) == {1}
    assert AffineDim(3) is AffineDim(3) and copy.deepcopy(AffineDim(3)) is AffineDim(3)
    assert copy.deepcopy(dim(2) // 3) == dim(2) // 3


def test_identities() -> None:
    identity, swapped = AffineMap.identity(2), AffineMap.get(2, (dim(1), dim(0)))
    assert identity.is_identity and not swapped.is_identity
    assert swapped.compose(swapped) == identity


PLACES = st.builds(lambda a, b, c: a * dim(0) + b * dim(1) + c, st.integers(0, 2), st.integers(0, 8),
                   st.integers(-6, 8))
QUOTIENTS = st.builds(lambda place, den, floor: place // den if floor else place % den, PLACES,
                      st.sampled_from((2, 4, 8)), st.booleans())


@given(QUOTIENTS, QUOTIENTS, st.sampled_from((1, 2, 4, 8)), POINTS)
@settings(max_examples=200, deadline=None)
def test_a_step_is_the_difference_within_a_run(a: AffineExpr, b: AffineExpr, run: int, point: dict[Leaf, int]) -> None:
    for e in (a, a + b, a // 2 + 3 * dim(0)):
        if (step := step_along(e, 0, run)) is not None:
            runs = [{**point, AffineDim(0): run * point[AffineDim(0)] + i} for i in range(run)]
            found = [evaluate(e, p) for p in runs]
            assert {y - x for x, y in zip(found, found[1:])} <= {evaluate(step, point)}


def test_steps_and_multiples() -> None:
    place = 6 * dim(0) + sym("N") * dim(1) + dim(2) % 2
    assert [step_along(place, d) for d in (0, 1, 2, 3, -1)] == [6, sym("N"), None, 0, 0]
    assert is_multiple_of(6 * dim(0) + 3, 3) and not is_multiple_of(6 * dim(0) + 4, 3)


def test_points_at_once() -> None:
    rows, columns = np.arange(4)[:, None], np.arange(6)[None]
    place, = AffineMap.get(2, (sym("N") * dim(0) + dim(1) // 2,)).evaluate((rows, columns), symbols={"N": 3})
    np.testing.assert_array_equal(place, 3 * rows + columns // 2)


@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 1, 7), (sizes.sym("B"), 3, 4), (6,)])
def test_positions_are_row_major(shape: tuple[sizes.Dim, ...]) -> None:
    """And the index at a position has that position."""
    known = [2 if not isinstance(n, int) else n for n in shape]
    strides = [int(np.prod(known[axis + 1:])) for axis in range(len(known))]
    assert linear([*map(dim, range(len(shape)))], shape) == sum(dim(axis) * s for axis, s in enumerate(strides))
    assert sizes.joined(linear(delinear(dim(0), shape), shape)) == dim(0)


def test_an_algebra_may_say_when_its_parts_are_put_together() -> None:
    """An atom that stands in a term twice is asked for once."""
    class Written(Algebra[str]):
        def __init__(self) -> None:
            self.log: list[str] = []

        def constant(self, value: int) -> str:
            return str(value)

        def leaf(self, leaf: Leaf) -> str:
            self.log.append(f"{leaf}")
            return str(leaf)

        def add(self, a: str, b: str) -> str:
            self.log.append("+")
            return f"({a} + {b})"

        def multiply(self, a: str, b: str) -> str:
            self.log.append("*")
            return f"({a} * {b})"

    algebra = Written()
    assert fold(2 * dim(0) * dim(0) * dim(1) + dim(1) + 7, algebra) == "(((((d0 * d0) * d1) * 2) + d1) + 7)"
    assert algebra.log == ["d0", "*", "d1", "*", "*", "d1", "+", "+"]


@pytest.mark.parametrize(("text", "code", "message"), [
    ("(d0) -> (d1)", "MLC0156", "d1 is not a dimension, index tile or symbol"),
    ("(d0)[B] -> (N)", "MLC0156", "N is not a dimension"),
    ("(d1, d0) -> (d0)", "MLC0156", "the dimensions of an affine map are d0, d1"),
    ("(t0, d0) -> (d0)", "MLC0156", "its index tiles after them"),
    ("(x) -> (x)", "MLC0156", "the dimensions of an affine map are"),
    ("(d0)[B, B] -> (d0)", "MLC0156", "'B' is not a valid symbol name, or is repeated"),
    ("(d0)[t7] -> (d0)", "MLC0156", "'t7' is not a valid symbol name"),
    ("(d0) -> (d0 mod 0)", "MLC0156", "division by zero"),
    ("(d0) -> (d0, )", "MLC0156", "bad affine expression"),
    ("d0 -> d0", "MLC0156", "bad affine map"),
    (f"({', '.join(f'd{i}' for i in range(300))}) -> ()", "MLC0204", "300 names"),
])
def test_bad_texts_are_refused(text: str, code: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse_map(text)
    assert caught.value.code == code


def test_a_map_of_more_than_it_takes_is_refused() -> None:
    with pytest.raises(IRError, match=r"d1 is not a dimension, index tile or symbol of affine_map<\(d0\) -> \(d1\)>"):
        AffineMap.get(1, (dim(1),))
    with pytest.raises(IRError, match="takes 1 dimensions, not the 2 results"):
        AffineMap.identity(1).compose(AffineMap.identity(2))


KERNEL = """func.func @f(%n: index, %x: memref<?x5xf32>, %y: memref<?x5xf32>) {
  loop.kernel %n {symbols = ["NAME"], domain = ["NAME", 5], iterator_types = ["parallel", "parallel"],
    schedule = #loop.schedule<tile = [1, 1], thread_dims = 1, grain_size = "NAME + 1">} : (index) -> () {
    %0 = loop.index {map = affine_map<(d0, d1)[NAME] -> (NAME*d0 - (d1 floordiv 2) + 4)>}
      : () -> !loop.tile<d0xd1xindex>
    %1 = loop.load %x, %0 {map = affine_map<(d0, d1, t0) -> (t0 mod 7, -d1 + 4)>, operandSegmentSizes = [1, 1, 0]}
      : (memref<?x5xf32>, !loop.tile<d0xd1xindex>) -> !loop.tile<d0xd1xf32>
    loop.store %1, %y {map = affine_map<(d0, d1) -> (d0, d1)>, operandSegmentSizes = [1, 1, 0, 0]}
      : (!loop.tile<d0xd1xf32>, memref<?x5xf32>) -> ()
    loop.end
  }
  func.return
}"""


@pytest.mark.parametrize("name", ["B", "n_2", "vector", "i0", "f32", "dense"])
def test_upstream_reads_maps(name: str) -> None:
    module = parse_module(KERNEL.replace("NAME", name))
    text = to_text(module, generic=True)
    verify_text(text, unregistered=True)
    assert to_text(parse_module(text), generic=True) == text


def test_a_wrong_map_is_reported_where_it_stands() -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(KERNEL.replace("(t0 mod 7", "(t1 mod 7"), "kernel.mlir")
    assert (caught.value.code, caught.value.loc.line) == ("MLC0156", 6)
