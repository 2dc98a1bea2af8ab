"""Every public function refuses arguments that make no sense with a code, or takes them: nothing else comes out."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.ir.diag import UserError, UserTypeError
from mlc.tools.fuzzing import odd_calls

# What is thrown at optimisers and layers is not theirs alone: numpy and Python warn, too.
pytestmark = pytest.mark.filterwarnings("ignore")


def check(count: int, seed: int) -> None:
    with odd_calls.without_native_code():
        found = odd_calls.faults(count, seed)
    assert not found, f"{len(found)} calls:\n" + "\n".join(f"  {call}: {fault}" for call, fault in found[:20])


def test_a_few_calls() -> None:
    check(1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_calls(seed: int) -> None:
    check(50, seed)


def test_numpy_functions_take_tensors() -> None:
    """Those that mlc has are mlc's; others and writing to an array run on the elements."""
    x = mlc.tensor([1.0, 8.0, 27.0])
    assert isinstance(np.sin(x), mlc.Tensor) and isinstance(np.maximum(x, 2), mlc.Tensor)
    np.testing.assert_array_equal(np.maximum(x, 2), [2, 8, 27])
    np.testing.assert_array_equal(np.cbrt(x), np.cbrt(x.numpy()))
    assert isinstance(np.ones(3, np.float32) + x, mlc.Tensor)
    a = np.ones(3, np.float32)
    assert odd_calls.added_to(a, x) is a
    np.testing.assert_array_equal(a, [2, 9, 28])
    assert np.sum(x).item() == 36 and np.mean(x, 0).item() == 12
    with pytest.raises(UserTypeError, match="MLC0422"):
        a += mlc.ones(2)


def test_a_number_has_no_dimension_to_divide() -> None:
    with pytest.raises(UserError, match="MLC0364"):
        mlc.narrow(0.0, -1, 0, 1)
    with pytest.raises(UserError, match="MLC0364"):
        mlc.unflatten(mlc.tensor(1.5), 0, (1,))


def test_numbers_of_any_length() -> None:
    assert mlc.linspace(1 << 70, -(1 << 63), 2).tolist() == [2.0**70, -2.0**63]
    with pytest.raises(UserError, match="MLC0348"):
        mlc.histogram(mlc.zeros(0), 1 << 70)


ANY: Any = mlc
"""The same without types: what follows has none that fit."""
ODD: list[tuple[str, Callable[[Any], Any]]] = [
    ("MLC0421", lambda x: ANY.linspace([1, 2], slice(1), 0)),
    ("MLC0111", lambda x: ANY.binomial(x, mlc.zeros(4, 4))),
    ("MLC0321", lambda x: ANY.get_default_dtype(1)),
    ("MLC0321", lambda x: ANY.random.fork_rng(x, -7, x)),
    ("MLC0421", lambda x: ANY.nn.functional.feature_dropout(x, p=1 + 2j)),
    ("MLC0356", lambda x: ANY.repeat_interleave(x, x, 3)),
    ("MLC0421", lambda x: ANY.nn.functional.triplet_margin_with_distance_loss(x, x, x, distance_function=0.5)),
    ("MLC0421", lambda x: ANY.nn.ParameterDict(-1.5)),
    ("MLC0421", lambda x: x.bernoulli_((0, 1))),
    ("MLC0421", lambda x: ANY.optim.Adafactor(eps=int)),
    ("MLC0358", lambda x: ANY.pixel_unshuffle(mlc.ones(1, 2, 2), 0)),
    ("MLC0328", lambda x: x.resize_(1 << 70)), ("MLC0328", lambda x: mlc.ones(()).expand(1 << 70))]


@pytest.mark.parametrize("offset", [-1 << 63, 1 << 62, 3])
def test_diagonals_beyond_a_matrix_are_empty(offset: int) -> None:
    assert mlc.ones(3, 2).diagonal(offset).shape == (0,)


@pytest.mark.parametrize("code, call", ODD, ids=[f"{i}-{code}" for i, (code, _) in enumerate(ODD)])
def test_calls_that_make_no_sense_are_refused(code: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(UserError, match=code):
        call(mlc.ones(2, 3))


def test_differences_past_the_size_are_none_and_a_diagonal_may_be_any_integer() -> None:
    x = mlc.tensor([1.0, 4.0, 9.0])
    assert x.diff(5).shape == x.diff(1 << 40).shape == (0,)
    assert mlc.compile(lambda x: x.diff(2), dynamic=True)(x).tolist() == [2.0]
    diagonal: Any = np.int8(1)
    assert x.diag(diagonal).tolist() == np.diag([1.0, 4.0, 9.0], 1).tolist()


def test_axis_is_dim_and_keepdims_keepdim() -> None:
    x: Any = mlc.ones(2, 3)
    f: Any = mlc
    assert x.sum(axis=0).shape == f.sum(x, axis=0).shape == (3,)
    assert x.sum(axis=1, keepdims=True).shape == (2, 1)
    assert f.softmax(x, axis=1).shape == (2, 3)
    with pytest.raises(UserTypeError, match="MLC0321"):
        x.exp(axis=0)




@pytest.mark.parametrize(("f", "code", "text"), [
    (lambda x: ANY.nn.functional.hardshrink(x, None), "MLC0421", "hardshrink: lambd is None, expected a real number"),
    (lambda x: ANY.roll(x, "a"), "MLC0355", "integer"),
    (lambda x: ANY.roll(x.sum(), x, 0), "MLC0344", "no single number"),
    (lambda x: x + None, "MLC0421", "add of a tensor and None"),
    (lambda x: x.permute("a"), "MLC0355", "expected an integer"),
    (lambda x: ANY.split(x.sum(), 1), "MLC0364", "a 0-d tensor has no dimensions"),
    (lambda x: ANY.arange("a"), "MLC0421", "end is str 'a', expected a finite number"),
    (lambda x: ANY.optim.SGD("a"), "MLC0383", "takes a learning rate, found str"),
    (lambda x: ANY.optim.Adam(betas=3), "MLC0421", "betas is int 3, expected two numbers"),
    (lambda x: ANY.optim.SGD(0.1).update({"x": x}, x, {"x": x}), "MLC0421", "state is a tensor, expected a dict"),
    (lambda x: ANY.optim.SGD(0.1).update(m := ANY.nn.Linear(2, 2), m, {}), "MLC0421", "state is Linear"),
    (lambda x: ANY.nn.Sigmoid(1), "MLC0321", "Sigmoid"),
    (lambda x: ANY.grad(3), "MLC0421", "grad: f is int 3, expected a function"),
    (lambda x: ANY.manual_seed("a"), "MLC0355", "seed is str 'a', expected an integer"),
    (lambda x: ANY.nn.Conv2d(1, 2, 3)(mlc.ones(1, 4, 8, 8)), "MLC0367",
     "the input has 4 channels, and a weight of shape [2, 1, 3, 3] in 1 groups takes 1"),
    (lambda x: ANY.nn.functional.conv1d(mlc.ones(1, 4, 8), mlc.ones(3, 2, 3), groups=2), "MLC0367",
     "a weight of shape [3, 2, 3] is not divided into 2 groups"),
    (lambda x: ANY.nn.init.normal(3), "MLC0355", "3 is no shape"),
    (lambda x: ANY.nn.init.eye(3), "MLC0355", "3 is no shape"),
    (lambda x: ANY.nn.init.kaiming_uniform(3), "MLC0355", "3 is no shape"),
    (lambda x: ANY.nn.init.normal((2, "a")), "MLC0355", "size is str 'a'"),
    (lambda x: ANY.load(3), "MLC0421", "path is int 3"),
    (lambda x: ANY.save(mlc.compile(mlc.exp, args=[mlc.spec(2)]), 3), "MLC0421", "path is int 3"),
    (lambda x: ANY.compile(mlc.exp, args=3), "MLC0421", "args is int 3, expected a list or tuple"),
    (lambda x: ANY.compile(mlc.exp, static=3.5), "MLC0421", "static is float 3.5, expected names or positions"),
    (lambda x: ANY.compile(mlc.exp, dynamic="yes"), "MLC0380", "dynamic is 'yes'"),
    (lambda x: ANY.scan(lambda c, x: c, x, x), "MLC0604", "the function returned tensor<3xf32>, expected (carry, y)"),
    (lambda x: ANY.set_num_threads(0), "MLC0379", "the number of threads is 0"),
    (lambda x: ANY.cond(x.sum() > 0, 1, 2, x), "MLC0421", "true_fn is int 1, expected a function"),
])
def test_messages(f: Any, code: str, text: str) -> None:
    with pytest.raises(mlc.UserError) as caught:
        f(mlc.ones(3))
    assert text in str(caught.value) and caught.value.loc.file == __file__
    assert caught.value.code == code


@pytest.mark.parametrize(("f", "code"), [
    (lambda: mlc.rot90(mlc.ones(3), dims=()), "MLC0357"), (lambda: mlc.arange(1 << 70, 0, -7), "MLC0358"),
    (lambda: mlc.triu_indices(1 << 70, 0), "MLC0358"), (lambda: mlc.fft.ifftn(mlc.ones(2), s=(-1, 0)), "MLC0357"),
    (lambda: mlc.nn.functional.cross_entropy(1.0, 2.0, mlc.tensor(1)), "MLC0367"),
    (lambda: mlc.combinations(mlc.ones(3), 1 << 70), "MLC0358"), (lambda: mlc.fft.ifftshift(1.0, 0), "MLC0364"),
    (lambda: mlc.select(mlc.tensor(1), -1, 0), "MLC0364"),
    (lambda: mlc.detect_anomaly(odd=1), "MLC0321"),  # type: ignore[call-arg]
    (lambda: mlc.linspace(-7, "", 3), "MLC0421"), (lambda: mlc.logspace(b"0", 3, 3), "MLC0421"),
    (lambda: mlc.nn.functional.fractional_max_pool2d(mlc.ones(1, 2, 4, 4), 3, output_ratio=""), "MLC0360"),
    (lambda: mlc.repeat_interleave(mlc.ones(2), np.array([None], object)), "MLC0354"),
    (lambda: mlc.ones(2).round_(decimals=-2**63), "MLC0360"), (lambda: mlc.round(mlc.ones(2), decimals=400), "MLC0360"),
    (lambda: mlc.diagonal(mlc.ones(2, 3), 0.5), "MLC0355"),  # type: ignore[arg-type]
    (lambda: mlc.nn.functional.max_pool1d(mlc.ones(1, 1, 4), 2, dilation=9), "MLC0367"),
    (lambda: mlc.nn.functional.unfold(mlc.ones(1, 1, 4, 4), (5, 1)), "MLC0367"),
    (lambda: mlc.compile(lambda x: mlc.nn.functional.unfold(x, 5), dynamic=True)(mlc.ones(1, 1, 4, 4)), "MLC0367"),
    (lambda: mlc.nn.functional.conv2d(mlc.ones(1, 1, 4, 4), mlc.ones(1, 1, 2, 2), dilation=9), "MLC0367"),
    (lambda: mlc.nn.functional.max_unpool1d(mlc.ones(1, 2), mlc.tensor([[0, 1]]), 2, padding=9), "MLC0360"),
    (lambda: mlc.nn.functional.binary_cross_entropy(mlc.tensor([0.5j]), mlc.tensor([1.0])), "MLC0785"),
    (lambda: mlc.histogram(mlc.ones(2), 2, range=(0.0,)), "MLC0357"),
    (lambda: mlc.trapezoid(mlc.ones(3), mlc.ones(5)), "MLC0367"),
    (lambda: mlc.cumulative_trapezoid(mlc.ones(2, 3), mlc.ones(2, 2)), "MLC0367"),
    (lambda: mlc.searchsorted(mlc.ones(2, 3), mlc.ones(3, 3)), "MLC0367"),
    (lambda: mlc.searchsorted(mlc.ones(2, 3), mlc.ones(3)), "MLC0367"),
    (lambda: mlc.searchsorted(mlc.tensor(1), mlc.ones(3)), "MLC0364"),
    (lambda: mlc.bucketize(mlc.ones(3), mlc.ones(1, 3)), "MLC0364"),
    (lambda: mlc.nn.functional.embedding_bag(mlc.tensor([0]), mlc.ones(2, 2), mlc.tensor([[0]])), "MLC0364"),
    (lambda: mlc.histogram(mlc.ones(2), 2, range=(1.0, 0.0)), "MLC0360"),
    (lambda: mlc.histogramdd(mlc.ones(2, 2), 2, range=(0.0, 1.0)), "MLC0357"),
    (lambda: mlc.randint(0, 5, (2,), dtype=mlc.complex64), "MLC0359"),
    (lambda: mlc.multinomial(mlc.ones(2), 0), "MLC0360"), (lambda: mlc.sparse_csr_tensor([], [], []), "MLC0774"),
    (lambda: mlc.sparse_bsr_tensor([0, 1], [0], [[[]]]), "MLC0774"),
    (lambda: mlc.set_printoptions(precision=-1), "MLC0360"), (lambda: mlc.set_printoptions(linewidth=0), "MLC0360"),
])
def test_what_random_calls_found(f: Any, code: str) -> None:
    with pytest.raises(UserError, match=code):
        f()


@pytest.mark.parametrize("labels, steps, spans, code", [
    ([[1], [1]], [3], [1], "MLC0367"), ([[2]], [3], [1], "MLC0340"), ([[-1]], [3], [1], "MLC0340"),
    ([[1]], [4], [1], "MLC0340"), ([[1]], [-1], [1], "MLC0340"), ([[1]], [3], [2], "MLC0340"),
    ([[1]], [3], [-1], "MLC0340"), ([1, 2], [3], [2], "MLC0340")])
def test_labels_and_lengths_that_a_batch_does_not_have(labels: Any, steps: Any, spans: Any, code: str) -> None:
    with pytest.raises(UserError, match=code):
        mlc.nn.functional.ctc_loss(mlc.zeros(3, 1, 2), mlc.tensor(labels), mlc.tensor(steps), mlc.tensor(spans))


def test_labels_behind_a_sequence_are_any_numbers() -> None:
    loss = [mlc.nn.functional.ctc_loss(mlc.zeros(3, 1, 2), mlc.tensor([[1, n]]), [3], [1]).item() for n in (0, -1, 9)]
    assert loss[0] == loss[1] == loss[2]
