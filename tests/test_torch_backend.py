"""`torch.compile(model, backend="mlc")`, and `mlc.torch.export`."""
from __future__ import annotations

import math
import operator
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import mlc
from mlc.backends import image
from mlc.backends.cpu import threads
from mlc.backends.cpu.toolchain import Toolchain
from mlc.backends.load import Library
from mlc.frontend.fx import support, symbolic, table
from mlc.ir.sizes import sym
from mlc.torch.memory import order_of
from mlc.torch.reports import reports

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """PyTorch forgets what it has compiled, and starts from one seed."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(f: Any, dynamic: bool | None = None, **options: Any) -> Any:
    return torch.compile(f, backend=mlc.torch.backend, options=options, dynamic=dynamic)


def steps(f: Callable[..., Any], model: nn.Module, *args: torch.Tensor) -> list[torch.Tensor]:
    """The result of a model, its gradients, and its buffers after the call."""
    model.zero_grad()
    out = f(*args)
    out.square().mean().backward()
    return [out.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None),
            *(b.clone() for b in model.buffers())]


# -- the table --------------------------------------------------------------------------------------------------------
def test_every_row_is_an_operator_of_pytorch() -> None:
    table.find("aten.add.Tensor")
    for name in table.TABLE:
        found: Any = torch.ops
        for part in name.split("."):
            found = getattr(found, part)


def test_overloads_that_write_have_no_row() -> None:
    assert table.find(torch.ops.aten.add.Tensor) is not None
    assert table.find(torch.ops.aten.add.out) is None


def test_the_backend_is_an_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["torch_dynamo_backends"] == {"mlc": "mlc.torch:backend"}


@pytest.mark.parametrize("column_major", [False, True])
@pytest.mark.slow
def test_determinants_and_their_gradients(column_major: bool) -> None:
    """The backward graph uses the factors of the forward graph: of the transpose, if that is how memory is."""
    x = torch.randn(2, 4, 4)
    x = x.mT if column_major else x
    for f in (torch.linalg.det, lambda x: torch.linalg.slogdet(x)[1],
              lambda x: torch.linalg.solve_ex(x, torch.ones(2, 4))[0]):
        slopes = []
        for g in (f, compiled(f, fallback=False)):
            at = x.detach().requires_grad_()
            slopes.append(torch.autograd.grad(g(at).sum(), at)[0])
        torch.testing.assert_close(slopes[1], slopes[0], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_bags_weight_norms_and_distances_train_as_in_pytorch() -> None:
    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.bag = nn.EmbeddingBag(6, 4, padding_idx=1, mode="sum")
            self.layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))

        def forward(self, indices: torch.Tensor, offsets: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
            return torch.pdist(self.layer(self.bag(indices, offsets, factors)))

    model = Model()
    args = torch.tensor([0, 2, 1, 4, 3, 0]), torch.tensor([0, 2, 5]), torch.rand(6)
    torch.testing.assert_close(steps(compiled(model, fallback=False), model, *args), steps(model, model, *args))


# -- models -----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_network_of_layers_trains_as_in_pytorch() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    fast, x = compiled(model), torch.randn(5, 8)
    torch.testing.assert_close(steps(fast, model, x), steps(model, model, x))
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x))
    assert [g.kind for g in reports(fast)] == ["forward", "backward", "inference"]
    with pytest.raises(mlc.UserError) as error:
        mlc.torch.report(torch.relu)
    assert error.value.code == "MLC0792"
    assert mlc.torch.report(fast).startswith("3 graphs, 100 % of ")


def test_a_convolutional_network_trains_as_in_pytorch() -> None:
    """Statistics of batches, pooling, and images that are channels-last."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(64, 3))
    x = torch.randn(4, 3, 16, 16).to(memory_format=torch.channels_last)
    state = {name: p.clone() for name, p in model.state_dict().items()}
    ours = steps(compiled(model, fallback=False), model, x)
    model.load_state_dict(state)
    torch.testing.assert_close(ours, steps(model, model, x), rtol=1e-5, atol=1e-5)


def test_results_have_the_strides_of_pytorch() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) * 2

    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    out = compiled(f)(x)
    assert out.stride() == f(x).stride()
    torch.testing.assert_close(out, f(x))


def test_results_that_are_views_of_each_other_stay_so() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(x)
        return y[1:], y, y.permute(0, 2, 1)

    x = torch.randn(2, 3, 4)
    rows, whole, turned = compiled(f)(x)
    torch.testing.assert_close((rows, whole, turned), f(x))
    whole.zero_()
    assert not rows.any() and not turned.any()


@pytest.mark.parametrize("f", [
    lambda x: (x * 2).unbind(1), lambda x: ((y := x * 2)[:2], y[1:]), lambda x: ((x + 1).unsqueeze(0).expand(2, 3, 4),),
    lambda x: ((z := torch.complex(x, x + 1)), torch.view_as_real(z), z.imag, z.conj()),
    lambda x: torch.nn.functional.conv2d(x.view(1, 3, 2, 2).to(memory_format=torch.channels_last),
                                         torch.ones(4, 3, 1, 1)).chunk(2, 1)])
def test_results_that_are_views_of_what_is_no_result_share_memory(f: Any) -> None:
    x = torch.randn(3, 4)
    got, want = compiled(f)(x), f(x)
    assert [t.stride() for t in got] == [t.stride() for t in want]
    if len(got) > 1:
        got[0].add_(1), want[0].add_(1)
    torch.testing.assert_close(tuple(got), tuple(want))


def test_one_compilation_serves_all_sizes() -> None:
    model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))
    fast = compiled(model, dynamic=True)
    for n in (3, 5, 7):
        x = torch.randn(n, 8)
        torch.testing.assert_close(steps(fast, model, x), steps(model, model, x))
    assert len(reports(fast)) == 2


def test_sizes_that_no_tensor_has() -> None:
    """The gradient of a mean needs sizes of the argument, and not the argument."""
    fast = compiled(lambda x: x.mean((1, 2)), dynamic=True, fallback=False)
    for h, w in ((3, 4), (5, 7)):
        x = torch.randn(2, h, w, 3, requires_grad=True)
        fast(x).square().sum().backward()
        ours, x.grad = x.grad, None
        x.mean((1, 2)).square().sum().backward()
        torch.testing.assert_close(ours, x.grad)
    fast = compiled(lambda x, n: x * abs(n), dynamic=True)
    for n in (2, 5, -5, -2):
        torch.testing.assert_close(fast(x.detach(), n), x.detach() * abs(n))


def test_bfloat16_and_autocast() -> None:
    model, x = nn.Linear(8, 4), torch.randn(3, 8)
    fast = compiled(model, fallback=False)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        ours, theirs = fast(x), model(x)
    assert ours.dtype is torch.bfloat16
    torch.testing.assert_close(ours, theirs)


# -- semantics --------------------------------------------------------------------------------------------------------
def test_writes_and_views_of_arguments_are_seen() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x[1:, ::2] += y[1:, ::2]
        x.t()[0].mul_(2)
        return x.view(-1)[3:] + 1

    x, y = torch.randn(4, 6), torch.randn(6, 4).t()
    given, base = x.clone(), torch.zeros(5, 6)
    base[1:] = x
    assert torch.equal(f(given, y), compiled(f, fallback=False)(base[1:], y))
    assert torch.equal(base[1:], given)


def test_arguments_share_memory_and_strides_with_gaps_are_copied() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * x.exp()

    fast = compiled(f, dynamic=False)
    for x in (torch.randn(3, 4), torch.randn(6, 4)[::2], torch.randn(4).expand(3, 4), torch.randn(3, 4, 2)[..., 1]):
        torch.testing.assert_close(fast(x), f(x))


def test_tied_weights_and_subscripts() -> None:
    class Tied(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 4)
            self.out = nn.Linear(4, 10, bias=False)
            self.out.weight = self.table.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.out(self.table(x))
            return out[torch.arange(3), x[:, 0] % 5]

    model, x = Tied(), torch.randint(10, (3, 5))
    torch.testing.assert_close(steps(compiled(model, fallback=False), model, x), steps(model, model, x))


def test_dropout_follows_the_seed_of_pytorch() -> None:
    model = nn.Sequential(nn.Linear(16, 64), nn.Dropout(0.5))
    fast, x = compiled(model, fallback=False), torch.randn(8, 16)
    first, second = steps(fast, model, x), fast(x)
    torch.manual_seed(1)
    other = fast(x)
    torch.manual_seed(1)
    torch.testing.assert_close(fast(x), other)
    assert not torch.equal(first[0], second) and not torch.equal(second, other)
    kept = (first[0] != 0).float().mean().item()
    assert math.isclose(kept, 0.5, abs_tol=0.1)
    grad = 2 * first[0] / first[0].numel() * (first[0] != 0) * 2
    torch.testing.assert_close(first[2], grad.sum(0))      # of the bias: zero where the mask is


# -- what mlc has not -------------------------------------------------------------------------------------------------
def rotations(x: torch.Tensor) -> torch.Tensor:
    values = torch.linalg.eigvals(x.exp())                 # mlc has none
    return values.abs() + x.sum()


def test_pytorch_runs_what_mlc_has_not_and_the_report_says_so() -> None:
    class Rotations(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.x = nn.Parameter(torch.randn(4, 4))

        def forward(self) -> torch.Tensor:
            return rotations(self.x)

    model = Rotations()
    fast = compiled(model)
    with torch.no_grad():
        torch.testing.assert_close(fast(), model())
    text = mlc.torch.report(fast)
    assert "inference: 4 of 5 operators in mlc" in text
    assert "aten.linalg_eig.default x 1: mlc has no such operator, at " in text
    assert "test_torch_backend.py" in text


def written_by_strides(x: torch.Tensor) -> torch.Tensor:
    y = x * 1.0
    y.as_strided((2,), (4,)).add_(10)
    return y


@pytest.mark.parametrize(("f", "x", "refused"), [
    (lambda x: x.as_strided((6,), (1,)) + 0.0, torch.arange(6.0).reshape(2, 3).t(), 0),
    (lambda x: (x.t() * 2).as_strided((6,), (1,)) + 1, torch.arange(6.0).reshape(2, 3), 0),
    (lambda x: torch.as_strided_scatter(x.t().contiguous().t(), torch.ones(2), (2,), (1,), None) + 1,
     torch.arange(6.0).reshape(2, 3), 0),
    (written_by_strides, torch.arange(16.0).reshape(1, 2, 2, 4).to(memory_format=torch.channels_last), 0),
    (lambda x: (x + 1).view(-1)[1:].as_strided((2,), (2,)) * 2, torch.arange(6.0).reshape(2, 3), 0),
    (lambda x: x.as_strided((3,), (1,), 0) * 2, torch.arange(10.0)[4:], 1),
    (lambda x: (x + 1)[1:].as_strided((3,), (1,), 2) * 2, torch.arange(10.0), 3),       # with the sum and the piece
    (lambda x: (x + 1)[::2].as_strided((3,), (1,)) * 2, torch.arange(10.0), 3)])
def test_views_by_strides_are_of_memory_as_pytorch_has_it(f: Any, x: torch.Tensor, refused: int) -> None:
    fast = compiled(f)
    torch.testing.assert_close(fast(x), f(x))
    assert len(reports()[-1].refusals) == refused


def test_tensors_of_dtypes_that_mlc_has_not_are_left_to_pytorch() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float32) + y.exp()

    x, y = torch.randn(4).to(torch.float8_e4m3fn), torch.randn(4)
    fast = compiled(f)
    torch.testing.assert_close(fast(x, y), f(x, y))
    assert [r.operator for r in reports()[-1].refusals] == ["aten._to_copy.default"]


def test_checkpoints_with_dropout_are_left_to_pytorch() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.utils.checkpoint.checkpoint(lambda x: nn.functional.dropout(x.sin(), 0.5) * 3, x,
                                                 use_reentrant=False)

    x = torch.rand(1000).add(0.5).requires_grad_()
    out = compiled(f)(x)
    out.sum().backward()
    torch.testing.assert_close(x.grad, (out != 0) * 6 * x.detach().cos())


def test_generators_of_the_program_are_left_to_pytorch() -> None:
    graph = torch.fx.Graph()
    drawn = graph.call_function(torch.ops.aten.rand.generator, ([3],), {"generator": torch.Generator()})
    drawn.meta["val"] = torch.empty(3)
    assert support.unsupported(drawn) is not None
    drawn = graph.call_function(torch.ops.aten.bernoulli.default, (drawn,), {"generator": torch.Generator()})
    drawn.meta["val"] = torch.empty(3)
    assert support.unsupported(drawn) == "it draws from a generator of its own"


def test_without_fallback_all_missing_operators_are_an_error() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(x).abs() + torch.std(x, correction=0.5)

    with pytest.raises(Exception, match="MLC0831") as error:
        compiled(f, fallback=False)(torch.randn(3, 3))
    assert "aten.linalg_eig.default: mlc has no such operator" in str(error.value)
    assert "a correction of 0.5 is no integer" in str(error.value)


def test_results_that_depend_on_elements_are_left_to_pytorch() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return (x * 2)[x > 0] + 1

    x = torch.randn(20)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        torch.testing.assert_close(compiled(f)(x), f(x))


def test_checks_of_elements_are_left_to_pytorch() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        torch._assert_async((x < 4).all(), "too large")
        return torch.nn.functional.one_hot(x, 4) * 2

    fast, x = compiled(f), torch.arange(4)
    assert torch.equal(fast(x), f(x))
    with pytest.raises(RuntimeError, match="too large"):
        fast(x + 1)


@pytest.mark.parametrize("options, match, code", [
    ({"speed": 3}, "speed is no option", "MLC0832"),
    ({"cache": "no"}, "the option cache is 'no'", "MLC0832"),
    ({"threads": 0}, "the option threads is 0", "MLC0379"),
])
def test_unknown_options_are_refused(options: dict[str, Any], match: str, code: str) -> None:
    with pytest.raises(mlc.UserError, match=match) as error:
        mlc.torch.backend(None, [], options=options)
    assert error.value.code == code


def test_threads_are_those_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = list[int | None]()
    attach = threads.attach

    def noted(library: Library, limit: int | None = None, timed: bool = False) -> None:
        limits.append(limit)
        attach(library, limit, timed)

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ x, 1)

    monkeypatch.setattr(threads, "attach", noted)
    x = torch.randn(100, 100)
    for count in (1, 2, None):                               # the same code, of which each has a library
        torch.testing.assert_close(compiled(f, threads=count)(x), f(x))
        torch._dynamo.reset()
    assert limits == [1, 2, None]


def test_code_past_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[str]()
    compile = Toolchain.compile

    def counted(chain: Toolchain, *arguments: Any) -> image.Image:
        made.append("one")
        return compile(chain, *arguments)

    monkeypatch.setattr(Toolchain, "compile", counted)
    for cache, total in ((True, 1), (True, 1), (False, 2), (False, 3), (True, 3)):
        compiled(lambda x: x * 0.8125 - x, cache=cache)(torch.ones(7))
        torch._dynamo.reset()
        assert len(made) == total


@pytest.mark.parametrize("sizes, strides, order", [
    ((2, 3), (3, 1), (0, 1)),
    ((2, 3), (1, 2), (1, 0)),
    ((2, 3, 4, 5), (60, 1, 15, 3), (0, 2, 3, 1)),
    ((2, 1, 3), (3, 100, 1), (0, 1, 2)),
    ((2, 3), (6, 1), (0, 1)),                              # gaps: it has to be copied
    ((2, 3), (0, 1), (0, 1)),
    ((0, 3), (1, 7), (0, 1)),
    ((), (), ()),
])
def test_order_of_dimensions_in_memory(sizes: tuple[int, ...], strides: tuple[int, ...],
                                       order: tuple[int, ...]) -> None:
    assert order_of(sizes, strides) == order


# -- torch.export -----------------------------------------------------------------------------------------------------
def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4)).eval()


def test_an_exported_model_is_saved_for_all_sizes(tmp_path: Path) -> None:
    model, x = network(), torch.randn(5, 1, 8, 8)
    f = mlc.torch.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    assert set(f.signature.bound[0].state_dict()) == set(model.state_dict())
    path = tmp_path / "net.mlc"
    mlc.save(f, path)
    loaded: Any = mlc.load(path)
    for n in (1, 3):
        x = torch.randn(n, 1, 8, 8)
        np.testing.assert_allclose(loaded(x.numpy()).numpy(), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(mlc.UserError, match="expected 8"):
        f(np.zeros((1, 1, 9, 9), np.float32))
    with pytest.raises(mlc.UserError, match="exported for"):
        mlc.save(f, path, args=[mlc.spec("B", 1, 9, 9)])


NUMBERS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: x * (x.shape[0] / 2) + 3 / x.shape[0], lambda x: x.clamp(max=x.shape[0] / 3) + x.shape[0] ** 2,
    lambda x: torch.add(x, x, alpha=x.shape[0] / 3 - 1), lambda x: x * math.floor(x.shape[0] / 2),
    lambda x: torch.full((3,), x.shape[0] / 2) + torch.full((3,), x.shape[0]) % 4,
    lambda x: x[: x.shape[0] - 1] * (x.shape[0] % 3 + (x.shape[0] - 7) // 2)]


@pytest.mark.parametrize("number", range(len(NUMBERS)))
def test_numbers_that_are_computed_of_symbolic_sizes(number: int) -> None:
    class Model(nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return NUMBERS[number](x)
    batch = torch.export.Dim("batch", min=3, max=64)
    f = mlc.torch.export(Model(), (torch.ones(5, 2),), dynamic_shapes=({0: batch},))
    for n in (5, 4, 8):
        x = torch.arange(2 * n, dtype=torch.float32).reshape(n, 2)
        np.testing.assert_allclose(f(x.numpy()).numpy(), Model()(x).numpy(), rtol=1e-6)


def test_what_numbers_of_symbolic_sizes_are_not_is_refused() -> None:
    n = sym("n")
    assert symbolic.called(operator.eq, (n + 1, 0)) is False and symbolic.called(operator.ne, (n, n)) is False
    assert symbolic.called(max, (n, 0)) is n and symbolic.called(operator.pow, (n, 2)) == n * n
    for function, args, code in ((operator.eq, (n, 3), "MLC0408"), (operator.not_, (n,), "MLC0830"),
                                 (operator.floordiv, (n, -2), "MLC0830"), (max, (n, 3), "MLC0408"),
                                 (operator.pow, (n, 10**6), "MLC0830")):
        with pytest.raises(mlc.UserError) as caught:
            symbolic.called(function, args)
        assert caught.value.code == code


def test_files_of_torch_export_compile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from mlc.tools.cli import main
    path, broken = tmp_path / "net.pt2", tmp_path / "broken.pt2"
    torch.export.save(torch.export.export(network(), (torch.randn(5, 1, 8, 8),)), path)
    assert main(["compile", str(path), "--emit=tensor"]) == 0
    assert "tensor.convolution" in capfd.readouterr().out
    assert main(["import", str(path), "-o", str(tmp_path / "net.mlir")]) == 0
    assert main(["run", str(tmp_path / "net.mlir"), "--exec=interp"]) == main(["run", str(path)]) == 0
    capfd.readouterr()
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(tmp_path / "half.pt2", "w") as half:
        for name in whole.namelist():
            half.writestr(name, whole.read(name).replace(b'"nodes"', b'"knots"'))
    broken.write_bytes(b"no program")
    for damaged in (broken, tmp_path / "half.pt2"):
        assert main(["compile", str(damaged), "--emit=tensor"]) == 1
        said = capfd.readouterr().err
        assert "MLC0835" in said and "Traceback" not in said


def test_containers_of_a_file_need_no_library(tmp_path: Path) -> None:
    """The containers that a library registers are dicts of their fields where it is not imported."""
    from torch.utils import _pytree as pytree

    class Output(dict[str, torch.Tensor]):
        pass

    class Model(nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> Output:
            return Output(double=2 * x, negative=-x)

    pytree._private_register_pytree_node(
        Output, lambda x: (list(x.values()), list(x)), lambda values, names: Output(zip(names, values)),
        serialized_type_name="library.Output")
    path = tmp_path / "net.pt2"
    try:
        torch.export.save(torch.export.export(Model(), (torch.ones(2),)), path)
    finally:
        pytree._deregister_pytree_node(Output)
    out = mlc.torch.export(path)(mlc.ones(2))
    assert {n: x.tolist() for n, x in out.items()} == {"double": [2, 2], "negative": [-1, -1]}
    assert "library.Output" not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE


def test_a_program_exported_in_training_is_trained() -> None:
    model, theirs = network().train(), network().train()
    theirs.load_state_dict(model.state_dict())
    x, labels = torch.randn(6, 1, 8, 8), torch.tensor([0, 1, 2, 3, 0, 1])
    f = mlc.torch.export(model, (x,))
    ours, reference = mlc.optim.SGD(f.parameters(), lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(3):
        reference.zero_grad()
        expected = nn.functional.cross_entropy(theirs(x), labels)
        expected.backward()
        reference.step()
        ours.zero_grad()
        loss = mlc.nn.functional.cross_entropy(f(x.numpy()), labels.numpy())
        loss.backward()
        ours.step()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(f.state_dict()[name].numpy(), value.numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_a_program_stays_in_the_mode_of_its_export() -> None:
    model, x = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5)), torch.randn(4, 64)
    trained, evaluated = mlc.torch.export(model, (x,)), mlc.torch.export(model.eval(), (x,))
    first, second = (trained(x.numpy()).numpy() for _ in range(2))
    assert (first == 0).any() and not np.array_equal(first == 0, second == 0)
    np.testing.assert_allclose(first[first != 0], 2 * model(x).detach().numpy()[first != 0], rtol=1e-4, atol=1e-5)
    for f, mode in ((trained, False), (evaluated, True)):
        with pytest.raises(mlc.UserError, match="exported in") as error:
            f.train(mode)(x.numpy())
        assert error.value.code == "MLC0791"


def test_assertions_of_types_need_no_code() -> None:
    class Model(nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.ops.aten._assert_tensor_metadata(x, None, None, torch.float32)
            return x + 1

    f = mlc.torch.export(Model().eval(), (torch.ones(2, 3),))
    assert f(np.ones((2, 3), np.float32)).tolist() == [[2.0] * 3] * 2


def test_import_shows_all_that_is_not_supported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvals(self.layer(x)) + torch.linalg.eigvals(x) + torch.rand(3)

    from mlc.tools.cli import main
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(Model(), (torch.randn(3, 3),)), path)
    assert main(["import", str(path)]) == 1
    out = capsys.readouterr().out
    for text in ("x: float32[3, 3]", "outputs:\n  complex64[3]", "parameters, 12 numbers",
                 "layer.weight: float32[3, 3]", "aten.add.Tensor x 2", "linalg_eig"):
        assert text in out, out


def test_models_with_missing_operators_are_not_exported() -> None:
    class Eigenvalues(nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvals(x)

    with pytest.raises(mlc.UserError, match="linalg_eig") as error:
        mlc.torch.export(Eigenvalues(), (torch.randn(3, 3),))
    assert error.value.code == "MLC0831"
