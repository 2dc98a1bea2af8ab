"""Views, in-place operations and assignments, eager and recorded: what one tensor writes, those of its memory see."""
from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend import tree
from mlc.ir.diag import UserError, UserTypeError

pytestmark = pytest.mark.usefixtures("execution")

torch = pytest.importorskip("torch")
from tests.peers import aliasing  # noqa: E402


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("interpreted")
def test_random_programs_agree_with_pytorch(seed: int, compiled: bool) -> None:
    program = aliasing.Program(seed, 8, compiled)
    assert (problem := aliasing.difference(program)) is None, f"{problem}\n" + "\n".join(program.statements)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("execution, part", [("interpreted", i) for i in range(20)] + [("native", i) for i in range(4)],
                         indirect=["execution"])
def test_many_random_programs_agree_with_pytorch(part: int, compiled: bool) -> None:
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        program = aliasing.Program(seed, 14, compiled)
        assert (problem := aliasing.difference(program)) is None, f"{problem}\n" + "\n".join(program.statements)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[1:, ::2], "number": lambda x: x[0], "None": lambda x: x[:, None], "t": lambda x: x.t(),
    "T": lambda x: x.T, "reshape": lambda x: x.reshape(2, -1), "view": lambda x: x.view(-1), "narrow":
    lambda x: x.narrow(1, 1, 2), "select": lambda x: x.select(1, 2), "diagonal": lambda x: x.diagonal(1),
    "unbind": lambda x: x.unbind(1)[2], "split": lambda x: x.split([1, 2, 1], 1)[1], "chunk": lambda x: x.chunk(2)[1],
    "unsqueeze": lambda x: x.unsqueeze(0), "squeeze": lambda x: x[:1].squeeze(), "flatten": lambda x: x.flatten(),
    "unflatten": lambda x: x.unflatten(1, (2, 2)), "movedim": lambda x: x.movedim(0, 1), "detach": lambda x: x.detach(),
    "unfold": lambda x: x.unfold(1, 2, 2), "tensor_split": lambda x: x.tensor_split(2, 1)[1],
    "ravel": lambda x: x.ravel(),
    "permute": lambda x: x.permute(1, 0), "swapaxes": lambda x: x.swapaxes(0, 1),
    "contiguous": lambda x: x.contiguous(),
    "of a copy": lambda x: x.t().reshape(-1), "clone": lambda x: x.clone(), "data": lambda x: x.data,
    "to": lambda x: x.to(x.dtype)}


@pytest.mark.parametrize("name", VIEWS)
def test_writes_are_seen_where_pytorch_has_them_seen(name: str) -> None:
    """To a view by its base, and to the base by a view."""
    seen = []
    for library in (mlc, torch):
        x: Any = library.arange(12.0).view(3, 4)
        view = VIEWS[name](x)
        view.add_(100)
        x.mul_(2)
        seen.append((x.tolist(), view.tolist(), VIEWS[name](x).tolist()))
    assert seen[0] == seen[1]


def test_an_operation_that_changes_nothing_gives_a_copy() -> None:
    x = mlc.ones(2, 2)
    for copy in (x.clone(), x.repeat(1, 1), mlc.cat([x]), x.clamp(-5, 5), mlc.where(x > 0, x, x), x.flip(())):
        copy += 1
    assert x.tolist() == [[1, 1], [1, 1]]


def test_gradients_of_operands_that_are_changed_later() -> None:
    """PyTorch refuses these; here what a gradient needs is kept."""
    w = mlc.tensor([1.0, 2.0], requires_grad=True)
    x = mlc.tensor([3.0, 4.0])
    y = w * x
    first = x[:1]
    x.zero_()
    first += 7
    y.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3, 4] and x.tolist() == [7, 0]


def test_second_gradients_of_writes_to_views() -> None:
    found = []
    for library in (mlc, torch):
        w = library.tensor([1.0, 2.0, 3.0], requires_grad=True)
        x = w ** 3
        x[1:].mul_(x[:-1].clone())
        g, = library.autograd.grad((x ** 2).sum(), w, create_graph=True)
        g.sum().backward()
        found.append([g.tolist(), w.grad.tolist()])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


@pytest.mark.parametrize("mistake, code", [
    (lambda w: w.add_(1), "MLC0439"), (lambda w: w[0].add_(1), "MLC0439"), (lambda w: w.__setitem__(0, 1.0), "MLC0439"),
    (lambda w: mlc.ones(2).add_(mlc.ones(3, 2)), "MLC0439"), (lambda w: mlc.tensor([1, 2]).add_(0.5), "MLC0439"),
    (lambda w: mlc.ones(2).expand(3, 2).zero_(), "MLC0752"), (lambda w: mlc.ones(2, 3).t().view(-1), "MLC0751"),
    (lambda w: mlc.add(w, 1, out=mlc.ones(2)), "MLC0755"),  # type: ignore[call-arg]
    (lambda w: mlc.ones(3).copy_(mlc.ones(2)), "MLC0111"),
    (lambda w: mlc.ones(2).__setitem__(5, 1.0), "MLC0366"), (lambda w: (w * 1)[0].detach_(), "MLC0439"),
    (lambda w: mlc.zeros(3).fill_(mlc.arange(3.0)), "MLC0111"),
    (lambda w: mlc.zeros(4).unfold(0, 2, 1).add_(1), "MLC0752"),
    (lambda w: mlc.zeros(2, dtype="int8").fill_(300), "MLC0348"), (lambda w: mlc.zeros(2, dtype="float16").fill_(1e6),
                                                                  "MLC0348"),
    (lambda w: mlc.ones(3).__setitem__(mlc.tensor([7]), 1), "MLC0366")])
def test_writes_that_are_refused(mistake: Callable[[Any], Any], code: str) -> None:
    with pytest.raises((UserError, UserTypeError), match=code) as caught:
        mistake(mlc.ones(2, requires_grad=True))
    assert caught.value.loc.file == __file__


def test_a_view_of_bits_as_another_dtype() -> None:
    """As PyTorch's, in the same memory; with another width the last dimension changes."""
    raw = np.random.default_rng(0).integers(0, 256, (3, 16), np.uint8)
    for old, new in (("float32", "int32"), ("bfloat16", "float16"), ("uint8", "float64"), ("float64", "int16"),
                     ("complex64", "int32"), ("float32", "complex64"), ("complex64", "int64"), ("int64", "complex128")):
        x, of_torch = mlc.tensor(raw).view(old), torch.from_numpy(raw.copy()).view(getattr(torch, old))
        want = of_torch.view(getattr(torch, new))
        for found in (x.view(new), mlc.compile(lambda x, new=new: x.view(dtype=new))(x)):
            assert found.dtype.name == new and tuple(found.shape) == tuple(want.shape)
            assert found.view("uint8").tolist() == want.view(torch.uint8).tolist()
    x = mlc.zeros(2, requires_grad=True)
    bits = x.view(torch.int32)
    bits[0] = 1065353216
    assert x.tolist() == [1, 0] and not bits.requires_grad and not x.view("float32").requires_grad
    assert mlc.tensor([True, False]).view(mlc.uint8).tolist() == [1, 0] and mlc.tensor(1.0).view("int32").shape == ()


def test_a_recorded_write_to_a_view_of_bits() -> None:
    def f(x: Any) -> Any:
        x = x.clone()
        x.view(mlc.uint32).bitwise_or_(1)
        return x

    assert mlc.compile(f)(mlc.arange(3, dtype="int32")).tolist() == [1, 1, 3]
    with pytest.raises(UserError, match="MLC0756"):
        mlc.compile(f)(mlc.ones(3))


@pytest.mark.parametrize("mistake, code", [
    (lambda x: x.view(mlc.bool), "MLC0113"), (lambda x: x.view("float64"), "MLC0358"),
    (lambda x: x.view("no"), "MLC0342"), (lambda x: x[0, 0].view("int16"), "MLC0364"),
    (lambda x: x.t().view("int8"), "MLC0751"), (lambda x: x[:, 1:].view("float64"), "MLC0751"),
    (lambda x: x.view(3, 2, dtype="int32"), "MLC0321")])
def test_views_of_bits_that_are_refused(mistake: Callable[[Any], Any], code: str) -> None:
    with pytest.raises((UserError, UserTypeError), match=code):
        mistake(mlc.ones(2, 3))


# -- while a function is recorded -------------------------------------------------------------------------------------
class Clip(nn.Module):
    def forward(self, x: Any) -> Any:
        nn.functional.relu(x, inplace=True)
        return x


def chained(x: Any) -> Any:
    y = x * 2
    row = y[0]
    out = Clip()(y)
    out += x
    return y, row


def filled(x: Any) -> Any:
    out = mlc.zeros(3, 2)
    out[1:, 0] = x[0]
    out[out > 2] = -1
    out[mlc.tensor([0, 2]), 1] += x[1]
    return out


def counted(x: Any) -> Any:
    total = mlc.zeros(())
    for row in x:
        total += row.sum()
        if total > 3:
            total -= 1
    return total


@pytest.mark.parametrize("f", [chained, filled, counted])
@pytest.mark.usefixtures("interpreted")
def test_recorded_as_in_eager_execution(f: Callable[[Any], Any]) -> None:
    x = mlc.tensor([[1.0, -2.0], [4.0, 0.5]])
    for a, b in zip(tree.leaves(f(x)), tree.leaves(mlc.compile(f)(x)), strict=True):
        assert a.tolist() == b.tolist()


@pytest.mark.usefixtures("interpreted")
def test_a_compiled_function_changes_its_arguments() -> None:
    @mlc.compile
    def step(x: Any, a: Any) -> Any:
        x[0] = 5
        a *= 2
        return x, x[1], a.sum()

    x, a = mlc.zeros(2), np.ones(2, np.float32)
    view = x[:1]
    same, last, total = step(x, a)
    last += 3
    assert same is x and x.tolist() == [5, 3] and view.tolist() == [5] and a.tolist() == [2, 2] and total.item() == 4


def outer(x: Any) -> Any:
    y = x + 0
    return mlc.grad(lambda w: y.mul_(w).sum())(x)


def of_plain_data(x: Any) -> Any:
    t = mlc.tensor([0.0, 0.0])
    t[0] = x[0]
    return t


def perhaps_a_copy(x: Any) -> Any:
    y = x.view(2, 1).t().contiguous()
    y += 1
    return y


def one_of_two(x: Any) -> Any:
    y = x
    if x.sum() > 100:
        y = x * 2
    y += 1
    return y


def another_tensor(x: Any) -> Any:
    y = z = x + 0
    while z.sum() < 20:
        z += 1
        z = z * 2
    return y


@pytest.mark.parametrize("f", [
    outer, of_plain_data, perhaps_a_copy, one_of_two, another_tensor, lambda x: x.detach().add_(1)])
def test_writes_that_cannot_be_recorded_are_refused(f: Callable[[Any], Any]) -> None:
    with pytest.raises(UserError, match="MLC0756"):
        mlc.compile(f)(mlc.ones(2))


def test_arguments_that_share_memory_are_refused_where_one_is_changed() -> None:
    x = mlc.ones(2)
    with pytest.raises(UserError, match="MLC0759"):
        mlc.compile(lambda x, y: (x.add_(1), y * 2))(x, x[:1])


def test_results_share_memory_as_in_eager_execution() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return y, y[0], y

    for call in (f, mlc.compile(f)):
        w = mlc.ones(2, 2, requires_grad=True)
        a, row, b = call(w)
        row.sum().backward()
        with mlc.no_grad():
            row.zero_()
        assert a is b and a.tolist() == [[0, 0], [2, 2]] and w.grad is not None and w.grad.tolist() == [[2, 2], [0, 0]]


def test_writes_in_no_grad_and_of_masked_elements_are_recorded() -> None:
    @mlc.compile
    def f(x: Any, mask: Any) -> Any:
        y = x.clone()
        with mlc.no_grad():
            y[0] = 1
        y[mask] = mlc.tensor([7.0, 8.0])
        return y

    assert f(mlc.zeros(4), mlc.tensor([False, True, False, True])).tolist() == [1, 7, 0, 8]
    assert mlc.grad(lambda x: (f(x, mlc.tensor([False, True, False, True])) ** 2).sum())(mlc.ones(4)).tolist() == [
        0, 0, 2, 0]


def test_retained_gradients_are_those_of_the_elements_at_the_end() -> None:
    x = mlc.ones(3, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y += 1
    (y * y).sum().backward()
    assert y.grad is not None and y.grad.tolist() == [6, 6, 6]


def test_an_index_of_one_number_gives_a_view() -> None:
    x = mlc.zeros(3, 2)
    x[mlc.tensor(1)].add_(1)
    x[x.sum(1).argmax()][0] = 5
    assert x.tolist() == [[0, 0], [5, 1], [0, 0]]


def test_a_parameter_shares_the_memory_of_its_data() -> None:
    x = mlc.zeros(2)
    p = nn.Parameter(x)
    x[0] = 5
    with mlc.no_grad():
        p[1] = 7
    assert p.tolist() == x.tolist() == [5, 7]


def test_a_write_to_a_captured_tensor_is_seen() -> None:
    table = mlc.ones(2)
    f = mlc.compile(lambda x: x * table)
    assert f(mlc.ones(2)).tolist() == [1, 1]
    table[0] = 5
    assert f(mlc.ones(2)).tolist() == [5, 1]
    table.numpy()[1] = 7
    assert f(mlc.ones(2)).tolist() == [5, 7]


def test_donated_memory_is_not_that_of_other_tensors() -> None:
    x = mlc.ones(4)
    view = x[:2]
    assert mlc.compile(lambda x: x + 1, donate="x")(x).tolist() == [2, 2, 2, 2] and view.tolist() == [1, 1]


def test_calls_that_are_known_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither views of rows that are apart in memory, nor several results, nor copies, nor what their gradients go back
    through."""
    x = mlc.randn(2, 3, 8).requires_grad_()

    def heads() -> tuple[Any, ...]:
        parts = x.split(4, 2)
        return tuple(part.reshape(2, 3, 2, 2).transpose(1, 2) for part in parts)

    def gradient() -> np.ndarray[Any, Any]:
        x.grad = None
        first, second = heads()
        (first * 2 + second * 3).transpose(1, 2).reshape(2, 12).unbind()[1].squeeze().sum().backward()
        return np.array(x.grad)

    before = gradient()
    monkeypatch.setattr("mlc.frontend.views.Call", None)              # which the general path needs
    parts = heads()
    assert (gradient() == before).all()
    monkeypatch.undo()
    assert (before[0] == 0).all() and (before[1, :, :4] == 2).all() and (before[1, :, 4:] == 3).all()
    assert all(np.may_share_memory(np.asarray(part.detach()), np.asarray(x.detach())) for part in parts)


def test_a_view_of_memory_in_order_is_none_of_other_memory() -> None:
    """The same shapes and arguments have a view for one array, and none for another."""
    layouts: list[Callable[[], Any]] = [
        lambda: mlc.zeros(4, 6), lambda: mlc.zeros(6, 4).t(), lambda: mlc.zeros(4, 12)[:, ::2]]
    for make in layouts:
        for _ in range(3):
            x = make()
            y = x.reshape(4, 2, 3)
            y += 1
            is_view = np.may_share_memory(np.asarray(x), np.asarray(y))
            assert is_view == np.may_share_memory(np.asarray(x), np.asarray(x).reshape(4, 2, 3))
            assert (np.asarray(x) == (1 if is_view else 0)).all()


def test_deep_copies_share_memory_as_what_they_are_copies_of() -> None:
    def use(module: Any) -> list[Any]:
        a = module.arange(12.0).reshape(3, 4)
        parts = deepcopy([a, a.t(), a[1], a[:, 1:3], a.flatten()[5:7], a.detach(), a.clone()])
        parts[1].add_(1)
        parts[2].fill_(7)
        parts[3][0, 0] = 9
        parts[4].mul_(2)
        return [x.tolist() for x in (*parts, a)]

    assert use(mlc) == use(torch)
    w = mlc.nn.Parameter(mlc.ones(2))
    held = deepcopy({"w": w, "data": w.detach()})
    held["data"].add_(1)
    assert held["w"].tolist() == [2, 2] and held["w"].requires_grad and w.tolist() == [1, 1]
