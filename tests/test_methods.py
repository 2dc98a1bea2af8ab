"""The methods of tensors against PyTorch's, and what is said of those that are not there."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontend import unsupported_api
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserAttributeError, UserError
from tests.public_case import B, C, Case, F, N, P, U, made
from tests.test_public_functions import as_mlc, as_torch, close

torch = pytest.importorskip("torch")

CASES = [
    *(C(n, F(3, 4)) for n in (
        "clone", "contiguous", "short", "char", "positive", "atan", "sinh", "cosh", "asinh", "sinc", "erfc", "frac",
        "deg2rad", "rad2deg", "isposinf", "isneginf", "signbit", "absolute", "negative", "fix", "arctan", "arcsinh",
        "nansum", "nanmean", "aminmax", "count_nonzero", "msort", "median", "nanmedian", "mode", "fliplr", "flipud",
        "rot90", "diag", "diagonal", "diag_embed", "diagflat", "unbind", "sort", "argsort", "nan_to_num", "numel",
        "nelement", "ndimension", "element_size", "is_floating_point", "histc")),
    *(C(n, U(-0.9, 0.9, 5)) for n in ("asin", "acos", "atanh", "erfinv", "arcsin", "arccos", "arctanh")),
    C("acosh", U(1.1, 3, 5)), C("arccosh", U(1.1, 3, 5)), C("logit", U(0.1, 0.9, 5)), C("byte", N(5, 4)),
    *(C(n, F(3, 4), F(3, 4)) for n in (
        "logical_xor", "fmax", "fmin", "fmod", "atan2", "arctan2", "hypot", "copysign", "logaddexp", "logaddexp2",
        "ldexp", "heaviside", "isclose", "dist", "subtract", "multiply", "divide", "true_divide", "not_equal", "less",
        "less_equal", "greater", "greater_equal", "clamp_min", "clamp_max", "inner", "kron", "view_as", "reshape_as",
        "expand_as", "allclose", "equal")),
    *(C(n, N(64, 6), N(5, 6)) for n in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
                                       "bitwise_right_shift")),
    C("bitwise_not", N(9, 5)), C("equal", F(3), F(4)), C("equal", N(3, 4), N(3, 4)), C("xlogy", P(4), P(4)),
    C("float_power", P(4), 2), C("clip", F(9), -0.5, 0.5), C("addcmul", F(4), F(4), F(4), value=0.5),
    C("addcdiv", F(4), F(4), P(4), value=2), C("round", F(4), decimals=1), C("sort", F(3, 4), 0, True),
    C("topk", F(3, 5), 2), C("topk", F(3, 5), 2, 0, largest=False), C("kthvalue", F(3, 4), 2),
    C("quantile", F(9), 0.3), C("nanquantile", F(3, 4), 0.5, 1, True), C("bincount", N(5, 9), None, 7),
    C("take", F(3, 4), N(12, 3)),
    C("tensor_split", F(7, 2), 3), C("hsplit", F(4, 4), 2), C("vsplit", F(4, 4), 2), C("dsplit", F(2, 2, 4), 2),
    C("select", F(3, 4), 1, -2), C("unflatten", F(2, 12), 1, (3, -1)), C("movedim", F(2, 3, 4), 0, 2),
    C("moveaxis", F(2, 3, 4), 0, 2), C("swapaxes", F(2, 3, 4), 0, 2), C("swapdims", F(2, 3, 4), 0, 1),
    C("tile", F(2, 3), 2, 2), C("repeat_interleave", F(2, 3), 2, 1), C("vdot", F(5), F(5)), C("trace", F(4, 3)),
    C("cross", F(4, 3), F(4, 3), 1), C("addmm", F(5), F(3, 4), F(4, 5), beta=0.5, alpha=2),
    C("addmv", F(3), F(3, 4), F(4)), C("addr", F(3, 4), F(3), F(4)), C("baddbmm", F(2, 3, 5), F(2, 3, 4), F(2, 4, 5)),
    C("addbmm", F(3, 5), F(2, 3, 4), F(2, 4, 5)), C("det", F(3, 3)), C("logdet", F(3, 3)), C("slogdet", F(3, 3)),
    C("inverse", F(3, 3)), C("matrix_power", F(3, 3), 3), C("matrix_exp", F(3, 3)), C("new_zeros", N(9, 2), 2, 3),
    C("new_ones", F(2), (2, 3)), C("new_full", F(2), (2, 3), 1.5), C("new_tensor", F(2), [1, 2]),
    C("unfold", F(), 0, 1, 1), C("masked_fill", F(3), B(3), 1.0), C("to", N(3, 4), F(2)), C("to", F(3), "cpu"),
    C("expand_as", F(3, 1), F(2, 3, 4)), C("view_as", F(6), F(2, 3)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.usefixtures("interpreted")
def test_values(case: Case) -> None:
    rng = np.random.default_rng(1)
    args = [made(x, rng) for x in case.args]
    ours, theirs = (getattr(to(args[0]), case.name)(*map(to, args[1:]), **case.keywords) for to in (as_mlc, as_torch))
    if isinstance(theirs, bool | int):
        assert (type(ours), ours) == (type(theirs), theirs)
    else:
        close(ours, theirs)


OWN = {"backward": "has no keep_graph, the schema's name for retain_graph",
       "to": "takes an element type, a tensor or a device in one place", "size": "is a Python tuple",
       "true_divide": "is div", "true_divide_": "is div", "cuda": "takes a device, which the schema leaves out",
       "uniform_": "has a and b for from and to", "random_": "has a and b for from and to",
       "nonzero": "takes as_tuple, which the schema leaves out"}


def test_parameters_are_those_of_pytorch() -> None:
    names = [n for n, _ in inspect.getmembers(mlc.Tensor, inspect.isfunction) if not n.startswith("_") and n not in OWN]
    assert not [name for name in names if not has_parameters_of_pytorch(name)]


def has_parameters_of_pytorch(name: str) -> bool:
    """By their names, where PyTorch tells them; it may have more of them."""
    schemas = torch._C._jit_get_schemas_for_operator("aten::" + name)
    ours = [p.name for p in list(inspect.signature(getattr(mlc.Tensor, name)).parameters.values())[1:]
            if p.kind is not p.VAR_POSITIONAL]
    theirs = {a.name for s in schemas for a in s.arguments}
    if {"sections", "indices", "tensor_indices_or_sections"} & theirs:
        theirs.add("indices_or_sections")
    return not schemas or set(ours) <= theirs


def test_recorded_tensors_have_all_methods() -> None:
    names = [n for n, _ in inspect.getmembers(mlc.Tensor, inspect.isfunction) if n not in unsupported_api.RECORDED]
    assert [n for n in names if not inspect.isfunction(getattr(Tracer, n))] == ["type"]    # the type in the IR
    assert float(mlc.compile(lambda x: x.trace())(mlc.eye(3)).item()) == 3


@pytest.mark.parametrize("where", ["here", "recorded"])
@pytest.mark.parametrize("name, says", [
    ("xpu", "CPU"), ("storage", "x.numpy()")])
def test_names_that_are_absent(where: str, name: str, says: str) -> None:
    def look(x: Any) -> Any:
        assert not hasattr(x, name) and getattr(x, name, 7) == 7
        return getattr(x, name)

    with pytest.raises(UserAttributeError) as caught:
        (look if where == "here" else mlc.compile(look))(mlc.ones(3))
    assert caught.value.code == "MLC0338" and says in str(caught.value) and caught.value.loc.file == __file__


@pytest.mark.parametrize("name", unsupported_api.RECORDED)
def test_tensors_that_are_recorded_have_no_gradient_of_their_own(name: str) -> None:
    with pytest.raises(UserAttributeError, match=r"mlc\.value_and_grad") as caught:
        mlc.grad(lambda x: getattr(x, name))(mlc.ones(3))
    assert caught.value.code == "MLC0338" and caught.value.loc.file == __file__


def test_what_is_absent_is_absent() -> None:
    held = {"Tensor": (unsupported_api.TENSOR, mlc.ones(1)), "Module": (unsupported_api.MODULE, mlc.nn.ReLU()),
            "package": (unsupported_api.PACKAGE, mlc)}
    assert not [(owner, name) for owner, (table, x) in held.items() for name in table if hasattr(x, name)]


@pytest.mark.parametrize("names, module", [(unsupported_api.TENSOR, torch.Tensor),
                                           (unsupported_api.MODULE, torch.nn.Module),
                                           (unsupported_api.PACKAGE, torch)], ids=["Tensor", "Module", "package"])
def test_what_is_absent_is_in_pytorch(names: dict[str, Any], module: Any) -> None:
    assert not [name for name in names if not hasattr(module, name)]


@pytest.mark.parametrize("mistake, error", [
    (lambda x: x.foo, AttributeError),
    (lambda x: mlc.rand_normal, AttributeError),
    (lambda x: mlc.optim.AdamW(1e-3).step(), AttributeError)])
def test_other_mistakes(mistake: Callable[[Any], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        mistake(mlc.ones(3))


@pytest.mark.parametrize("f", [lambda: mlc.ones(3).to("mps"), lambda: mlc.zeros(3, device="xpu"),
                               lambda: mlc.nn.ReLU().to("xla:0"), lambda: mlc.ones(3).to("cuda:x"),
                               lambda: mlc.ones(3).to_device("sum"),
                               lambda: mlc.tensor([1], device=torch.device("meta"))])
def test_there_is_no_such_device(f: Callable[[], Any]) -> None:
    with pytest.raises(UserError, match="there is no device") as caught:
        f()
    assert caught.value.code == "MLC0337" and caught.value.loc.file == __file__


def test_the_cpu_is_a_device() -> None:
    x = mlc.zeros(3, device="cpu")
    assert x.to("cpu") is x and x.to(device=torch.device("cpu")) is x and x.cpu() is x
    assert x.to("cpu", mlc.int64).dtype is mlc.int64 and x.to(dtype="float64").dtype is mlc.float64
    assert mlc.nn.Linear(2, 3).to("cpu", "float64").weight.dtype is mlc.float64
    assert mlc.nn.Linear(2, 3).double().weight.dtype is mlc.float64


def test_a_clone_has_memory_of_its_own() -> None:
    x = mlc.ones(3)
    for y in (x.clone(), x.to(mlc.float32, copy=True)):
        y.array[:] = 2
    np.testing.assert_array_equal(x, [1, 1, 1])


def test_as_contiguous() -> None:
    x = mlc.from_numpy(np.arange(6.0).reshape(2, 3).T)
    assert x.contiguous().numpy().flags.c_contiguous and x.contiguous().contiguous() is not x
    np.testing.assert_array_equal(x, x.contiguous())


def test_names_of_linear_algebra_that_are_missing_say_what_to_use() -> None:
    with pytest.raises(AttributeError, match=r"mlc.linalg has no eig: (.|\n)*mlc.linalg.eigh"):
        mlc.linalg.eig  # noqa: B018
    assert not hasattr(mlc.linalg, "ldl_solve")
