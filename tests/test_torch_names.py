"""PyTorch's basic names: devices, sizes, tensor types, limits of dtypes, questions about tensors."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc

torch = pytest.importorskip("torch")
ANY: Any = mlc
"""The package without the types of its parameters."""


def plain(x: Any) -> Any:
    """A result in a form that both libraries share."""
    if isinstance(x, mlc.Tensor | torch.Tensor):
        return tuple(x.shape), plain(x.dtype), x.tolist()
    if isinstance(x, mlc.DType | torch.dtype | mlc.device | torch.device):
        return str(x).removeprefix("torch.").removeprefix("mlc.")
    if isinstance(x, tuple):
        return tuple(map(plain, x))
    return x.replace("torch.", "mlc.") if isinstance(x, str) else x


SAME: list[Callable[[Any], Any]] = [
    lambda m: m.device("cpu"), lambda m: m.device("cuda:1").type, lambda m: m.device("cuda:1").index,
    lambda m: m.device("cuda").index, lambda m: m.device("cuda", 1) == m.device("cuda:1"),
    lambda m: m.device("mps").type,
    lambda m: m.zeros(2, device=m.device("cpu")), lambda m: m.ones(2).to(m.device("cpu")),
    lambda m: m.zeros(2).device == m.device("cpu"), lambda m: m.zeros(2).device.type, lambda m: m.zeros(2).is_cpu,
    lambda m: m.Size([2, 3]).numel(), lambda m: m.Size((2, 3)) == (2, 3), lambda m: m.Size([2, 3, 4])[1:].numel(),
    lambda m: (m.Size([2]) + m.Size([3])).numel(), lambda m: ((1,) + 2 * m.Size([2, 3]) * 2).numel(),
    lambda m: m.zeros(m.Size([2, 1])), lambda m: m.Size([2, 3])[0],
    lambda m: m.Tensor(2, 3).shape, lambda m: m.Tensor(4).shape, lambda m: m.Tensor(), lambda m: m.Tensor([1, 2]),
    lambda m: m.Tensor([[True, 2], [3.5, 4]]), lambda m: m.Tensor((3,)), lambda m: m.Tensor(m.Size([2, 3])).shape,
    lambda m: m.LongTensor([1, 2]), lambda m: m.LongTensor(2, 3).shape, lambda m: m.HalfTensor([1.5]),
    lambda m: m.DoubleTensor([[0.1]]), lambda m: m.ByteTensor([1, 0]).bool(), lambda m: m.BoolTensor([True, False]),
    lambda m: m.BFloat16Tensor([1.5]), lambda m: m.IntTensor([]), lambda m: m.CharTensor([-1]),
    lambda m: m.ShortTensor([7]),
    lambda m: m.FloatTensor([1]).type(), lambda m: m.zeros(2, dtype=m.int8).type(), lambda m: m.ones(2).type(m.int32),
    lambda m: m.ones(2).type(m.LongTensor), lambda m: m.ones(2).type("torch.DoubleTensor"),
    lambda m: isinstance(m.zeros(2), m.FloatTensor), lambda m: isinstance(m.zeros(2), m.LongTensor),
    lambda m: m.is_tensor(m.zeros(2)), lambda m: m.is_tensor([1]), lambda m: m.is_floating_point(m.zeros(2)),
    lambda m: m.is_signed(m.zeros(2, dtype=m.uint8)), lambda m: m.is_nonzero(m.ones(1)),
    lambda m: m.numel(m.zeros(2, 3)),
    lambda m: m.is_same_size(m.zeros(2), m.zeros(3)), lambda m: m.typename(m.zeros(2)), lambda m: m.typename(3),
    lambda m: m.get_default_dtype(), lambda m: m.broadcast_shapes((2, 1), (3,)), lambda m: m.scalar_tensor(3),
    lambda m: m.promote_types(m.uint8, m.int8), lambda m: m.can_cast(m.float64, m.int32),
    lambda m: m.can_cast(m.int64, m.uint8), lambda m: m.can_cast(m.int8, m.bool),
    lambda m: m.result_type(m.zeros(2, dtype=m.int32), 1.0), lambda m: m.result_type(m.tensor(1.0), m.zeros(2).long()),
    lambda m: m.result_type(m.zeros(2).half(), m.tensor(1.0).double()), lambda m: m.result_type(1, 2.0),
    lambda m: m.result_type(m.tensor([1]), True), lambda m: m.result_type(m.tensor(2), m.tensor(True)),
    lambda m: (m.float, m.double, m.half, m.long, m.int, m.short), lambda m: isinstance(m.float16, m.dtype),
    lambda m: (m.pi, m.e, m.inf, m.newaxis), lambda m: m.zeros(2, 3)[:, m.newaxis].shape,
    lambda m: m.zeros(2, 3, 4).stride(), lambda m: m.zeros(2, 3, 4).stride(-2), lambda m: m.zeros(2).storage_offset(),
    lambda m: m.zeros(2, 3).is_contiguous(), lambda m: m.zeros(2).get_device(), lambda m: m.zeros(()).stride(),
    lambda m: m.ones(2).is_signed(), lambda m: m.ones(1).is_nonzero(), lambda m: m.ones(2).ger(m.ones(3)),
    lambda m: m.tensor([-1.0, 2.0]).prelu(m.tensor([0.5])), lambda m: m.tensor([0.3, 2.0]).hardshrink(),
    lambda m: m.tensor([[1.0, 2.0], [3.0, 5.0]]).cov(), lambda m: m.backends.mps.is_available(),
    lambda m: m.conv1d(m.ones(1, 1, 4), m.ones(1, 1, 2)), lambda m: m.max_pool2d(m.ones(1, 1, 4, 4), 2),
    lambda m: m.group_norm(m.zeros(1, 4, 2), 2), lambda m: m.pixel_shuffle(m.ones(1, 4, 1, 1), 2),
]


@pytest.mark.parametrize("f", SAME, ids=range(len(SAME)))
def test_the_result_is_that_of_torch(f: Callable[[Any], Any]) -> None:
    assert plain(f(mlc)) == plain(f(torch))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_limits_of_floats(name: str) -> None:
    ours, theirs = mlc.finfo(name), torch.finfo(getattr(torch, name))
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "dtype"):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert mlc.finfo().dtype == torch.finfo().dtype


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_limits_of_integers(name: str) -> None:
    ours, theirs = mlc.iinfo(name), torch.iinfo(getattr(torch, name))
    assert (ours.bits, ours.min, ours.max, ours.dtype) == (theirs.bits, theirs.min, theirs.max, theirs.dtype)


def test_a_device_is_the_string_of_its_name() -> None:
    d = mlc.device("cuda", 1)
    assert d == "cuda:1" and hash(d) == hash("cuda:1") and copy.deepcopy(pickle.loads(pickle.dumps(d))) == d  # noqa: S301
    assert isinstance(mlc.zeros(2).device, mlc.device) and mlc.zeros(2, device=torch.device("cpu")).device == "cpu"
    assert mlc.device(0) == "cuda:0" and mlc.device(d) == d


def test_an_array_is_wrapped() -> None:
    array = np.arange(6.0).reshape(2, 3)
    x = mlc.Tensor(array.T)
    assert x.data_ptr() == array.ctypes.data and x.dtype is mlc.float64
    assert x.stride() == (1, 3) and not x.is_contiguous()


def test_the_legacy_types_of_every_dtype() -> None:
    for name in ("Float", "Double", "Half", "BFloat16", "Int", "Long", "Short", "Char", "Byte", "Bool"):
        kind, theirs = getattr(mlc, f"{name}Tensor"), getattr(torch, f"{name}Tensor")
        assert kind(2).dtype.name == str(theirs(2).dtype).removeprefix("torch.") and isinstance(kind(2), kind)
        assert copy.deepcopy(kind) is kind and kind(2).type() == repr(kind) == f"mlc.{name}Tensor"


def test_how_tensors_are_shown() -> None:
    x = mlc.tensor([1 / 3, 2000.0])
    try:
        mlc.set_printoptions(precision=2, sci_mode=True)
        assert repr(x) == "tensor([3.33e-01, 2.00e+03], dtype=mlc.float32)"
        assert repr(x.bfloat16()) == "tensor([3.34e-01, 2.00e+03], dtype=mlc.bfloat16)"
        mlc.set_printoptions(sci_mode=False)
        assert repr(x) == "tensor([   0.33, 2000.  ], dtype=mlc.float32)"
        mlc.set_printoptions(threshold=5, edgeitems=1)
        assert repr(mlc.zeros(9)) == "tensor([0., ..., 0.], dtype=mlc.float32)"
    finally:
        mlc.set_printoptions(profile="default")
    assert repr(x) == "tensor([3.3333334e-01, 2.0000000e+03], dtype=mlc.float32)"
    assert repr(mlc.tensor([1 / 3, 2]).bfloat16()) == "tensor([0.333984, 2.      ], dtype=mlc.bfloat16)"


@pytest.mark.parametrize("wrong, code", [
    (lambda: mlc.device("tpu"), "MLC0337"), (lambda: mlc.device("cuda:x"), "MLC0337"),
    (lambda: mlc.device("cuda:0", 1), "MLC0337"), (lambda: mlc.zeros(2).to(mlc.device("mps")), "MLC0337"),
    (lambda: mlc.Size(3), "MLC0355"), (lambda: mlc.Size([2, 1.5]), "MLC0355"), (lambda: mlc.Size("ab"), "MLC0355"),
    (lambda: mlc.Tensor(-1), "MLC0358"), (lambda: mlc.Tensor("a"), "MLC0345"), (lambda: mlc.Tensor(2, "a"), "MLC0355"),
    (lambda: mlc.LongTensor([1 << 70]), "MLC0348"), (lambda: mlc.finfo(mlc.int8), "MLC0359"),
    (lambda: mlc.iinfo(mlc.float32), "MLC0354"), (lambda: mlc.iinfo("integer8"), "MLC0342"),
    (lambda: mlc.set_default_dtype(mlc.float64), "MLC0719"), (lambda: ANY.numel(3), "MLC0421"),
    (lambda: mlc.set_printoptions(profile="long"), "MLC0360"), (lambda: mlc.is_nonzero(mlc.ones(2)), "MLC0344"),
    (lambda: mlc.broadcast_shapes((2,), (3,)), "MLC0111"), (lambda: mlc.ones(2).stride(1), "MLC0356")])
def test_what_makes_no_sense(wrong: Callable[[], Any], code: str) -> None:
    with pytest.raises(mlc.UserError, match=code):
        wrong()


def test_shapes_and_devices_within_a_recorded_function() -> None:
    def f(x: Any) -> Any:
        d = mlc.device("cpu")
        return x.to(d) + mlc.zeros(x.shape, device=x.device) + mlc.is_floating_point(x) + mlc.numel(x)

    assert mlc.compile(f)(mlc.ones(2, 3)).tolist() == [[8.0] * 3] * 2
    with pytest.raises(mlc.UserError):
        mlc.compile(lambda x: x.stride())(mlc.ones(2))


def test_memory_formats_are_accepted() -> None:
    def f(m: Any) -> Any:
        x = m.ones(2, 3, 4, 4).to(memory_format=m.channels_last).contiguous(memory_format=m.contiguous_format)
        y = m.zeros_like(x, memory_format=m.preserve_format) + x.clone(memory_format=m.preserve_format)
        layer = m.nn.Conv2d(3, 1, 3).to(memory_format=m.channels_last)
        return y, x.is_contiguous(memory_format=m.contiguous_format), m.ones(1, 1, 2, 2).is_contiguous(
            memory_format=m.channels_last), layer(y).shape, m.ones(2, 2, 2).is_contiguous(memory_format=m.channels_last)

    assert plain(f(mlc)) == plain(f(torch))
    assert pickle.loads(pickle.dumps(mlc.channels_last)) is mlc.channels_last  # noqa: S301
    with pytest.raises(mlc.UserError, match="MLC0360"):
        ANY.ones(2).clone(memory_format="channels_last")


def test_a_device_is_a_scope() -> None:
    with mlc.device("cpu"):
        assert mlc.zeros(1).device == "cpu"
    with pytest.raises(mlc.UserError, match="MLC0337"), mlc.device("cuda"):
        pass


def test_a_prefix_is_removed_from_a_state() -> None:
    def f(m: Any) -> Any:
        state = {f"module.{name}": 1 for name in m.nn.Linear(2, 2).state_dict()} | {"other": 2}
        m.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
        return tuple(state.items())

    assert f(mlc) == f(torch)
