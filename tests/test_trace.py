"""Trees, tracing, locations, and what users are told when they go wrong."""
from __future__ import annotations

import linecache
import runpy
from collections import OrderedDict, namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend import eager, tree
from mlc.frontend.location import user_loc
from mlc.ir.core import Op
from mlc.ir.diag import Error, UserError, UserIndexError, UserTypeError
from mlc.ir.sizes import sym

HERE = __file__
Pair = namedtuple("Pair", "left right")


@dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any


def line_of(text: str) -> tuple[int, int]:
    """(line, column) of the only line of this file that has `text` followed by `# here`."""
    found = [(n, s.index(text) + 1) for n, s in enumerate(linecache.getlines(HERE), 1) if text in s and "# here" in s]
    assert len(found) == 1, found
    return found[0]


def module_of(f: Any, *args: Any) -> Op:
    return mlc.lower(f, args, "trace").module


# -- trees ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [
    1, None, [], (), {}, [1, (2, 3)], {"b": 1, "a": [2, None]}, Pair(1, [2]), Frozen(1, {"x": 2}), [[[]], 3],
])
def test_tree_round_trip(value: Any) -> None:
    leaves, structure = tree.flatten(value)
    assert structure.unflatten(leaves) == value
    assert len(tree.paths(value)) == len(leaves) == structure.leaf_count
    assert hash(structure) == hash(tree.flatten(value)[1])


def test_tree_of_a_module() -> None:
    m = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.LeakyReLU(0.5))
    leaves, structure = tree.flatten(m)
    assert [x.shape for x in leaves] == [(3, 2), (3,)]
    assert tree.paths(m, "m") == ["m[0].weight", "m[0].bias"]
    assert tree.names(m) == ["0.weight", "0.bias"]
    again = structure.unflatten(leaves)
    assert isinstance(again[0], nn.Linear) and again[2].negative_slope == 0.5 and again[0].weight is leaves[0]
    other = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.LeakyReLU(0.25))
    assert tree.flatten(other)[1] != structure


def test_tree_map_matches_dicts_by_key() -> None:
    assert tree.map(lambda a, b: a - b, {"x": 5, "y": 7}, {"y": 1, "x": 2}) == {"x": 3, "y": 6}
    assert tree.map(lambda a, b: a + b, OrderedDict(x=1), {"x": 2}) == {"x": 3}
    with pytest.raises(UserTypeError, match=r"differ at tree\['x'\]: list of 1 and a leaf"):
        tree.map(lambda a, b: a, {"x": [1]}, {"x": 1})


def test_tree_that_contains_itself() -> None:
    x: list[Any] = []
    x.append(x)
    with pytest.raises(UserTypeError, match="MLC0376"):
        tree.flatten(x)


# -- locations --------------------------------------------------------------------------------------------------------
def test_the_standard_library_is_no_place_in_a_program() -> None:
    """Where it calls mlc, the line is that of its caller."""
    @contextmanager
    def nothing() -> Iterator[None]:
        yield

    assert nothing()(user_loc)().file == HERE


def test_every_operation_has_the_users_line_and_column() -> None:
    def f(x: Any) -> Any:
        y = mlc.softmax(x, dim=1) * 2  # here
        return y.sum()

    ops = list(module_of(f, mlc.spec(2, 3)).walk())
    line, column = line_of("mlc.softmax(x, dim=1)")
    at = {op.name: op.loc for op in ops}
    assert (at["tensor.softmax"].file, at["tensor.softmax"].line, at["tensor.softmax"].col) == (HERE, line, column)
    assert at["tensor.mul"].line == line and at["tensor.reduce_sum"].line == line + 1
    assert all(op.loc.file == HERE for op in ops if op.name.startswith("tensor."))


def error_of(f: Any, *args: Any) -> Error:
    with pytest.raises(Error) as info:
        f(*args)
    return info.value


def test_shape_error_in_a_recorded_function() -> None:
    def f(x: Any, w: Any) -> Any:
        y = x * 2
        return mlc.matmul(y, w)  # here

    error = error_of(mlc.compile(f), mlc.zeros(2, 128), mlc.zeros(64, 3))
    line, column = line_of("mlc.matmul(y, w)")
    assert str(error).startswith(f"{HERE}:{line}:{column}: error[MLC0367]: matmul: inner sizes differ: 128 and 64")
    assert f"operand 0: tensor<2x128xf32> from {HERE}:{line - 1}:" in str(error)
    assert "operand 1: tensor<64x3xf32> from the argument w" in str(error) and "^" in str(error)


def test_error_inside_a_module_names_the_users_line() -> None:
    layer = nn.Linear(4, 2)

    def f(x: Any) -> Any:
        return layer(x)  # here

    error = error_of(mlc.compile(f), mlc.zeros(3, 5))
    assert error.loc.line == line_of("layer(x)")[0]
    assert "linear: inner sizes differ: the input has 5 features, the weight takes 4" in str(error)


def test_the_same_error_at_once_outside_compile() -> None:
    error = error_of(lambda: mlc.zeros(2, 3) + mlc.zeros(4))  # here
    assert error.loc.line == line_of("mlc.zeros(2, 3) + mlc.zeros(4)")[0]
    assert "add: shapes [2, 3] and [4] do not broadcast" in str(error)


@pytest.mark.parametrize("use, code", [
    (lambda x: x in (1, 2), "MLC0350"), (lambda x: [1, 2][int(x)], "MLC0350"), (lambda x: x.numpy(), "MLC0350"),
    (lambda x: x.item(), "MLC0350"), (lambda x: [1, 2][x.sum()], "MLC0350"), (np.asarray, "MLC0350"),
    (lambda x: x.tolist(), "MLC0350"),
])
def test_a_recorded_tensor_has_no_elements(use: Any, code: str) -> None:
    error = error_of(mlc.compile(lambda x: use(x) and x), mlc.ones(()))
    assert isinstance(error, UserError) and error.code == code and error.hint and error.loc.file == HERE


def test_a_leaked_tracer() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x * 2)
        return x

    mlc.grad(lambda x: keep(x).sum())(mlc.ones(2))
    assert error_of(lambda: kept[0] + 1).code == "MLC0351"
    assert error_of(mlc.compile(lambda x: x + kept[0]), mlc.ones(2)).code == "MLC0351"
    assert error_of(mlc.compile(lambda x: x), kept[0]).code == "MLC0351"


@pytest.mark.parametrize("f, kind, text", [
    (lambda x: mlc.softmax(x, dim=5), UserIndexError, "dim = 5 is out of range for a tensor of 2 dimensions"),
    (lambda x: x.reshape(4), UserError, "6 elements do not fit shape [4]"),
    (lambda x: x.reshape(-1, 4), UserError, "6 elements do not fit shape [-1, 4]"),
    (lambda x: x[5], UserIndexError, "out of "),
    (lambda x: x[0, 0, 0], UserIndexError, "3 indices for 2 dimensions"),
    (lambda x: x[True, 0], UserTypeError, "one truth value is no index"),
    (lambda x: x & 1, UserTypeError, "bitwise_and is not defined on mlc.float32"),
    (lambda x: mlc.where(x, 1, 2), UserTypeError, "expected mlc.bool"),
    (lambda x: mlc.cat([x, mlc.zeros(2, 2)]), UserError, "does not fit"),
    (lambda x: mlc.mean(x.long()), UserTypeError, "mean needs floats, found mlc.int64"),
    (lambda x: mlc.einsum("ij,jk", x), UserError, "about 2 operands, got 1"),
    (lambda x: mlc.zeros(2, -3), UserError, "-3 is no size"),
    (lambda x: x.to("float31"), UserTypeError, "neither an element type nor a device"),
    (lambda x: x.sum(dim=(0, 0)), UserError, "twice"),
    (lambda x: mlc.amax(x[:0], 0), UserError, "maximum of no elements"),
    (lambda x: mlc.chunk(x, 0), UserError, "chunks = 0"),
    (lambda x: nn.functional.mse_loss(x, x[0]), UserError, "shapes [2, 3] and [3]"),
    (lambda x: nn.functional.cross_entropy(x, mlc.tensor([0, 1, 2])), UserError, "one class for each sample"),
])
def test_mistakes(f: Any, kind: type[Error], text: str) -> None:
    for run in (f, mlc.compile(f)):
        error = error_of(run, mlc.ones(2, 3))
        assert isinstance(error, kind) and text in error.message, error
        assert error.loc.file == HERE and error.code.startswith("MLC0")


def test_an_index_out_of_range_is_found_when_it_runs() -> None:
    def f(x: Any, i: Any) -> Any:
        return x.index_select(0, i)  # here

    compiled = mlc.compile(f)
    assert compiled(mlc.arange(4), mlc.tensor([3, -1])).tolist() == [3, 3]
    for run in (compiled, f):
        error = error_of(run, mlc.arange(4), mlc.tensor([0, 4]))
        assert isinstance(error, IndexError) and error.loc.line == line_of("x.index_select(0, i)")[0]


# -- functions --------------------------------------------------------------------------------------------------------
def test_equal_modules_are_one_function() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 3))
    module = module_of(lambda m, x: m(x), model, mlc.spec("B", 4))
    names = [str(op.attrs["sym_name"]) for op in module.regions[0].block]
    assert names.count("main") == 1 and names.count("Linear") == 1 and names.count("Linear_1") == 1
    calls = [str(op.attrs["callee"]) for op in module.walk() if op.name == "func.call"]
    assert calls.count("Linear") == 2 and calls.count("Linear_1") == 1


STACK = """class Stack(nn.Module):
    def forward(self, x, w, i):
        for _ in range(5):
            x = mlc.tanh(x @ w) @ w
        return x.index_select(0, i)
"""


@pytest.fixture
def two_files(tmp_path: Path) -> list[Any]:
    """The same module in two files, at other lines, each of which is called twice by a function."""
    found = []
    for name, before in (("first.py", ""), ("second.py", "# another file\n\n")):
        path = tmp_path / name
        path.write_text(before + STACK)
        found.append(runpy.run_path(str(path), {"mlc": mlc, "nn": nn})["Stack"]())
    return found


def calls_each_twice(stacks: list[Any]) -> Any:
    def f(x: Any, w: Any, i: Any, j: Any) -> Any:
        for stack, index in zip([stacks[0]] * 2 + [stacks[-1]] * 2, (i, i, j, j)):
            x = stack(x, w, index)
        return x
    return f


def test_equal_functions_of_two_files_have_lines_of_their_own(two_files: list[Any]) -> None:
    f = mlc.compile(calls_each_twice(two_files))
    x, good, bad = mlc.ones(4, 4), mlc.arange(4), mlc.arange(4) + 1
    for indices, file, line in (((bad, good), "first.py", 5), ((good, bad), "second.py", 7)):
        loc = error_of(f, x, x, *indices).loc
        assert (Path(loc.file).name, loc.line) == (file, line)


def test_copies_of_a_file_have_places_of_their_own(tmp_path: Path) -> None:
    """Python holds their code objects for equal."""
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text("def f(x, y):\n    return x @ y\n")
        error = error_of(runpy.run_path(str(tmp_path / name))["f"], mlc.ones(2, 3), mlc.ones(2, 3))
        assert (Path(error.loc.file).name, error.loc.line) == (name, 2)


def test_derivatives_of_equal_functions_of_two_files_have_lines_of_their_own(two_files: list[Any]) -> None:
    f, integers = calls_each_twice(two_files), [mlc.spec(4, dtype=mlc.int64)] * 2
    batched = mlc.vmap(f, in_dims=(0, None, None, None))
    for g, x in ((mlc.grad(lambda *xs: f(*xs).sum()), mlc.spec(4, 4)), (batched, mlc.spec(3, 4, 4))):
        module = mlc.lower(g, [x, mlc.spec(4, 4), *integers], "tensor").module
        lines = [(Path(op.loc.file).name, op.loc.line) for op in module.walk() if op.name == "tensor.dot_general"]
        assert lines.count(("first.py", 4)) == lines.count(("second.py", 6)) > 0, lines


def test_kernels_of_equal_functions_of_two_files_are_compiled_once(two_files: list[Any]) -> None:
    args = [mlc.spec(4, 4), mlc.spec(4, 4), *[mlc.spec(4, dtype=mlc.int64)] * 2]
    both, one = (mlc.lower(calls_each_twice(stacks), args, "loop").module for stacks in (two_files, two_files[:1]))
    labels = [[op.attrs["label"] for op in module.walk() if op.name == "loop.kernel"] for module in (both, one)]
    assert labels[0] == [*labels[1], "add_compare_select_take"], "what may fail has its line in its code"


def test_a_function_is_told_the_sizes_it_uses() -> None:
    class Scale(nn.Module):
        def __init__(self, n: Any) -> None:
            self.n = n

        def forward(self, y: Any) -> Any:
            return y * self.n

    def f(x: Any) -> Any:
        return Scale(x.shape[0])(x.sum())

    compiled = mlc.compile(f, args=[mlc.spec("B")])
    assert compiled(mlc.ones(5)).item() == 25 and compiled(mlc.ones(7)).item() == 49
    assert len(compiled.entries) == 1


def test_sizes_are_polynomials() -> None:
    def f(x: Any) -> Any:
        assert x.shape == (sym("B"), 6) and x.reshape(-1).shape == (6 * sym("B"),)
        return x.reshape(-1, 2)[1:].sum() / x.shape[0]

    compiled = mlc.compile(f, args=[mlc.spec("B", 6)])
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    assert compiled(x).item() == x.reshape(-1, 2)[1:].sum() / 5


def test_two_symbols_do_not_broadcast() -> None:
    error = error_of(mlc.compile(lambda x, y: x + y, args=[mlc.spec("N"), mlc.spec("M")]), mlc.ones(3), mlc.ones(3))
    assert "shapes [N] and [M] do not broadcast" in error.message and "symbolic" in (error.hint or "")


def test_eager_kernels_serve_many_shapes() -> None:
    before = len(eager._kernels)
    for n in range(2, 12):
        assert (mlc.ones(n, 13) * 3.5).sum().item() == 13 * 3.5 * n
    assert len(eager._kernels) - before <= 4        # n and 13 apart, equal, for each of the two operations


def test_python_numbers_are_no_part_of_an_eager_kernel() -> None:
    mlc.ones(3) * 0.5
    before = len(eager._by_shape)
    for i in range(20):
        assert (mlc.ones(3) * (i / 7)).dtype is mlc.float32
    assert len(eager._by_shape) == before
