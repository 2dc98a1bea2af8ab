"""Sparse tensors: what they hold, what is computed with them, and their gradients."""
from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend.autograd.grad_mode import GradMode

pytestmark = pytest.mark.usefixtures("interpreted")
LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
DENSE = np.array([[0, 0, 3, 0], [4, 0, 5.5, 1]], np.float32)
INDICES = [[1, 1, 0, 1, 1], [2, 0, 2, 2, 3]]
"""Not in order, and one of them twice."""


def coo(values: Any = (5.0, 4.0, 3.0, 0.5, 1.0), **keywords: Any) -> Any:
    return mlc.sparse_coo_tensor(INDICES, values, DENSE.shape, **keywords)


def of_layout(layout: str, dense: Any = DENSE) -> Any:
    x = mlc.tensor(dense)
    return x.to_sparse(layout=getattr(mlc, layout), blocksize=(1, 2) if "_bs" in layout else None)


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.to_dense().numpy(), wanted, rtol=1e-5)


# -- what they hold ---------------------------------------------------------------------------------------------------
def test_values_of_equal_indices_add_up() -> None:
    s = coo()
    same(s, DENSE)
    assert not s.is_coalesced() and s._nnz() == 5
    c = s.coalesce()
    assert c.is_coalesced() and c.coalesce() is c
    assert c.indices().tolist() == [[0, 1, 1, 1], [2, 0, 2, 3]] and c.values().tolist() == [3, 4, 5.5, 1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_converts_to_every_other(layout: str) -> None:
    s = of_layout(layout)
    assert s.layout is getattr(mlc, layout) and isinstance(s, mlc.Tensor)
    for other in LAYOUTS:
        blocks = (2, 2) if "_bs" in other else None
        same(s.to_sparse(layout=getattr(mlc, other), blocksize=blocks), DENSE)
    same(s.t(), DENSE.T)
    same(copy.deepcopy(s), DENSE)


def test_the_components_of_compressed_layouts() -> None:
    r, c, b = of_layout("sparse_csr"), of_layout("sparse_csc"), of_layout("sparse_bsr")
    assert r.crow_indices().tolist() == [0, 1, 4] and r.col_indices().tolist() == [2, 0, 2, 3]
    assert c.ccol_indices().tolist() == [0, 1, 1, 3, 4] and c.row_indices().tolist() == [1, 0, 1, 1]
    assert b.blocksize() == (1, 2) and b.values().tolist() == [[[3, 0]], [[4, 0]], [[5.5, 1]]]


def test_a_batch_of_matrices() -> None:
    s = mlc.sparse_csr_tensor([[0, 1, 2], [0, 2, 2]], [[1, 0], [0, 1]], [[1.0, 2.0], [3.0, 4.0]])
    same(s, [[[0, 1], [2, 0]], [[3, 4], [0, 0]]])


def test_dense_dimensions() -> None:
    h = mlc.sparse_coo_tensor([[0, 2, 2]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (4, 2))
    assert (h.sparse_dim(), h.dense_dim()) == (1, 1)
    same(h, [[1, 2], [0, 0], [8, 10], [0, 0]])
    same(mlc.sparse.sum(h, 1), [3, 0, 18, 0])
    assert mlc.sparse.sum(h, 0).tolist() == [9, 12]


def test_the_text() -> None:
    assert repr(coo().coalesce().requires_grad_()).splitlines()[-1].strip() == (
        "size=(2, 4), nnz=4, dtype=mlc.float32, layout=mlc.sparse_coo, requires_grad=True)")


def test_values_share_memory() -> None:
    v = mlc.tensor([1.0, 2.0])
    s = mlc.sparse_coo_tensor([[0, 2]], v, (3,), is_coalesced=True)
    v[0] = 5
    s.values().mul_(2)
    assert v.tolist() == [10, 4] and s.to_dense().tolist() == [10, 0, 4]
    s.add_(s)
    s.neg_()
    assert s.to_dense().tolist() == [-20, 0, -8]


def test_files(tmp_path: Path) -> None:
    for layout in LAYOUTS:
        mlc.save({"s": of_layout(layout)}, tmp_path / "s")
        found = mlc.load(tmp_path / "s")["s"]
        assert found.layout is getattr(mlc, layout)
        same(found, DENSE)


# -- what is computed -------------------------------------------------------------------------------------------------
D = np.arange(8, dtype=np.float32).reshape(2, 4) - 2.5


@pytest.mark.parametrize(("f", "wanted"), [
    (lambda s, d: s @ d.t(), DENSE @ D.T), (lambda s, d: d.t() @ s, D.T @ DENSE),
    (lambda s, d: mlc.sparse.mm(s, s.t()), DENSE @ DENSE.T), (lambda s, d: mlc.mv(s, d[0]), DENSE @ D[0]),
    (lambda s, d: mlc.sparse.addmm(mlc.ones(2, 2), s, d.t(), beta=2, alpha=3), 2 + 3 * DENSE @ D.T),
    (lambda s, d: mlc.spmm(s, d.t()), DENSE @ D.T), (lambda s, d: d + s, D + DENSE), (lambda s, d: d - s, D - DENSE),
    (lambda s, d: s + s, 2 * DENSE), (lambda s, d: s * d, DENSE * D), (lambda s, d: s * s, DENSE ** 2),
    (lambda s, d: s * 2 - s / 4, 1.75 * DENSE), (lambda s, d: s.sin(), np.sin(DENSE)),
    (lambda s, d: s ** 2, DENSE ** 2), (lambda s, d: s.sum(), DENSE.sum()), (lambda s, d: s.norm(), 7.5),
    (lambda s, d: s.sum(1, keepdim=True), DENSE.sum(1, keepdims=True)),
    (lambda s, d: d.sparse_mask(s.coalesce() if s.is_sparse else s), D * (DENSE != 0))])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_operations(layout: str, f: Callable[..., Any], wanted: Any) -> None:
    same(f(coo() if layout == "sparse_coo" else of_layout(layout), mlc.tensor(D)), wanted)


@pytest.mark.parametrize(("f", "wanted"), [
    (lambda s: s[1], DENSE[1]), (lambda s: s[:, 2], DENSE[:, 2]), (lambda s: s[1, 2], DENSE[1, 2]),
    (lambda s: s[:, 1:3], DENSE[:, 1:3]), (lambda s: mlc.cat([s, s], 1), np.concatenate([DENSE, DENSE], 1)),
    (lambda s: s.index_select(1, mlc.tensor([2, 2, 0])), DENSE[:, [2, 2, 0]]), (lambda s: s.T, DENSE.T),
    (lambda s: mlc.stack([s, s]), np.stack([DENSE, DENSE])), (lambda s: s.unsqueeze(1), DENSE[:, None]),
    (lambda s: s.permute(1, 0).narrow(0, 2, 2), DENSE.T[2:])])
def test_moving_elements(f: Callable[[Any], Any], wanted: Any) -> None:
    same(f(coo()), wanted)


@pytest.mark.parametrize("key", [(1, slice(1, 4)), (0, slice(-2, None)), (Ellipsis, 1, slice(1, 4)),
                                 (slice(1), slice(2, 4))])
@pytest.mark.parametrize("compiled", [False, True])
def test_ranges_after_positions(key: Any, compiled: bool) -> None:
    """They are of what the positions leave."""
    dense = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    pick = (mlc.compile if compiled else lambda f: f)(lambda s: s[key].to_dense())
    np.testing.assert_array_equal(pick(mlc.tensor(dense).to_sparse()).numpy(), dense[key])


@pytest.mark.parametrize("layout", LAYOUTS[:2])
def test_arrays_are_no_numbers(layout: str) -> None:
    s, row = of_layout(layout), np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    for product in (s * row, mlc.mul(s, row), s * mlc.tensor(row), s * (np.ones((2, 1), np.float32) * row)):
        same(product, DENSE * row)
    with pytest.raises(TypeError, match="MLC0772"):
        s / row


def test_what_moves_elements_of_coordinates_shares_no_memory() -> None:
    s = mlc.tensor(DENSE).to_sparse()
    for moved, wanted in ((s.t(), DENSE.T), (s.unsqueeze(0), DENSE[None])):
        moved.mul_(10)
        same(s, DENSE)
        same(moved, 10 * wanted)
        assert moved.requires_grad_().requires_grad and not s.requires_grad


def test_dtypes_of_sums() -> None:
    z = mlc.sparse_coo_tensor([[0, 1, 1], [0, 0, 1]], mlc.tensor([3j, 2.0, 3 + 2j]), (2, 2))
    assert mlc.sum(z, 0).to_dense().tolist() == [2 + 3j, 3 + 2j]
    for dtype, total in ((mlc.int32, 5), (mlc.uint8, 5), (mlc.bool, True)):
        x = mlc.sparse_coo_tensor(mlc.zeros(0, 2, dtype=mlc.int64), mlc.tensor([2, 3]).to(dtype), ()).to_dense()
        assert (x.dtype, x.item()) == (dtype, total)


def test_nan_times_the_number_0_does_not_count() -> None:
    s, bad = of_layout("sparse_csr"), mlc.full((2,), float("nan"))
    assert mlc.addmv(bad, s, mlc.ones(4), beta=0).tolist() == DENSE.sum(1).tolist()


def test_products_that_stay_sparse() -> None:
    s, d = coo(), mlc.tensor(D.T)
    h = mlc.hspmm(s, d)
    assert (h.sparse_dim(), h.dense_dim()) == (1, 1)
    same(h, DENSE @ D.T)
    same(mlc.smm(s, d), DENSE @ D.T)
    same(mlc.sspaddmm(mlc.eye(2).to_sparse(), s, d), np.eye(2) + DENSE @ D.T)
    r = of_layout("sparse_csr")
    same(mlc.sparse.sampled_addmm(r, mlc.ones(2, 3), mlc.ones(3, 4), beta=2), (DENSE != 0) * (2 * DENSE + 3))
    batch = mlc.tensor(np.stack([DENSE, 2 * DENSE])).to_sparse()
    same(mlc.bmm(batch, mlc.ones(2, 4, 1)), np.stack([DENSE, 2 * DENSE]) @ np.ones((2, 4, 1)))


def test_softmax_is_that_of_stored_elements() -> None:
    e = np.where(DENSE != 0, np.exp(DENSE), 0)
    same(mlc.sparse.softmax(coo(), 1), e / e.sum(1, keepdims=True))
    found = mlc.sparse.log_softmax(coo(), 1)
    same(found.with_values(mlc.exp(found.values())), e / e.sum(1, keepdims=True))


def test_diagonals() -> None:
    same(mlc.sparse.spdiags(mlc.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), mlc.tensor([0, 1]), (3, 3)),
         [[1, 5, 0], [0, 2, 6], [0, 0, 3]])


# -- gradients --------------------------------------------------------------------------------------------------------
def test_gradients_flow_to_values() -> None:
    v: Any = mlc.ones(5, requires_grad=True)
    d: Any = mlc.tensor(D.T).requires_grad_()
    (coo(v) @ d).sum().backward()
    assert v.grad.tolist() == [D[:, j].sum() for j in INDICES[1]]
    assert d.grad[:, 0].tolist() == [1, 0, 3, 1]


def test_a_leaf_has_a_gradient_of_its_pattern() -> None:
    s = coo(requires_grad=True)
    mlc.sparse.mm(s, mlc.ones(4, 3)).sum().backward()
    assert s.is_leaf and s.grad.layout is mlc.sparse_coo
    assert s.grad._indices().tolist() == INDICES and s.grad._values().tolist() == [3] * 5
    by_s, = mlc.autograd.grad((s @ mlc.ones(4, 1)).sum(), s)
    assert by_s._values().tolist() == [1] * 5


@pytest.mark.parametrize("f", [
    lambda s: s @ mlc.ones(4, 2).to(s.dtype), lambda s: s.coalesce().values(),
    lambda s: mlc.sparse.sum(s, 1).to_dense(), lambda s: mlc.sparse.softmax(s, 1).values(),
    lambda s: s.to_sparse_csr().t().to_dense(),
    lambda s: mlc.sparse.mm(s, s.t()).to_dense(), lambda s: s.index_select(1, mlc.tensor([2, 2])).to_dense(),
    lambda s: (s + s).coalesce().values(), lambda s: (s * s).values()])
def test_gradients_are_those_of_differences(f: Callable[[Any], Any]) -> None:
    v = mlc.tensor([5.0, 4.0, 3.0, 0.5, 1.0], dtype="float64").requires_grad_()
    assert mlc.gradcheck(lambda v: f(coo(v)), (v,))


def test_tables_get_sparse_gradients() -> None:
    table: Any = nn.Embedding(5, 2, padding_idx=3, sparse=True)
    rows = mlc.tensor([[1, 3], [1, 4]])
    table(rows).sum().backward()
    assert table.weight.grad.is_sparse
    assert table.weight.grad.coalesce().indices().tolist() == [[1, 4]]
    table(rows).sum().backward()
    same(table.weight.grad, [[0, 0], [4, 4], [0, 0], [0, 0], [2, 2]])
    nn.utils.clip_grad_norm_(table.parameters(), 1.0)
    assert abs(mlc.norm(table.weight.grad).item() - 1) < 1e-5
    (table.weight * 0).sum().backward()
    assert not table.weight.grad.is_sparse


def test_bags_get_the_same_gradients_sparse_and_dense() -> None:
    rows = mlc.tensor([1, 3, 1, 4, 0])
    for mode in ("sum", "mean"):
        found = []
        for sparse in (False, True):
            bag: Any = nn.EmbeddingBag(5, 2, mode=mode, padding_idx=3, sparse=sparse)
            with GradMode(False):
                bag.weight.copy_(mlc.ones(5, 2))
            (bag(rows, mlc.tensor([0, 3])) * mlc.tensor([[1.0], [2.0]])).sum().backward()
            found.append(bag.weight.grad.to_dense().tolist())
        assert found[0] == found[1]


@pytest.mark.parametrize(("kind", "settings"), [
    (mlc.optim.SGD, {}), (mlc.optim.SGD, {"momentum": 0.9}), (mlc.optim.Adagrad, {})])
def test_steps_along_sparse_gradients_are_those_along_dense_ones(kind: Any, settings: dict[str, Any]) -> None:
    found = []
    for sparse in (False, True):
        w = mlc.ones(4, 2, requires_grad=True)
        opt = kind([w], lr=0.1, **settings)
        for i in range(3):
            opt.zero_grad()
            (nn.functional.embedding(mlc.tensor([1, i, 1]), w, sparse=sparse) ** 2).sum().backward()
            opt.step()
        found.append(w.detach().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_sparse_adam_moves_the_rows_of_the_gradient() -> None:
    w: Any = mlc.ones(3, 1, requires_grad=True)
    opt = mlc.optim.SparseAdam([w], lr=0.1)
    nn.functional.embedding(mlc.tensor([1]), w, sparse=True).sum().backward()
    opt.step()
    np.testing.assert_allclose(w.detach().numpy().reshape(-1), np.array([1, 0.9, 1]), rtol=1e-6)
    assert opt.state[w]["exp_avg"].tolist() == [[0], [pytest.approx(0.1)], [0]]


# -- in recorded functions --------------------------------------------------------------------------------------------
def test_they_go_in_and_out_of_compiled_functions() -> None:
    s, d = coo(), mlc.tensor(D.T)
    doubled, product = mlc.compile(lambda s, d: (2 * s.coalesce(), s @ d))(s, d)
    same(doubled, 2 * DENSE)
    same(product, DENSE @ D.T)
    captured = mlc.compile(lambda d: s @ d)
    same(captured(d), DENSE @ D.T)
    s._values().mul_(2)
    same(captured(d), 2 * DENSE @ D.T)


def test_derivatives_of_functions_have_the_pattern() -> None:
    s, d = coo(), mlc.ones(4, 3)
    for g in (mlc.grad(lambda p: (p["s"] @ d).sum())({"s": s})["s"], mlc.vjp(lambda s: s @ d, s)[1](mlc.ones(2, 3))[0],
              mlc.compile(mlc.grad(lambda s: (s @ d).sum()))(s)):
        assert g._indices().tolist() == INDICES and g._values().tolist() == [3] * 5


def test_a_layer_with_a_sparse_buffer() -> None:
    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("edges", coo())
            self.linear = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.edges @ self.linear(x)

    layer, x = Graph(), mlc.ones(4, 2)
    np.testing.assert_allclose(mlc.compile(layer)(x).detach().numpy(), layer(x).detach().numpy(), rtol=1e-6)
    assert layer.double().edges.dtype is mlc.float64


# -- what is refused --------------------------------------------------------------------------------------------------
def step(kind: Any, sparse: bool, **settings: Any) -> None:
    table = nn.Embedding(3, 2, sparse=sparse)
    opt = kind(table.parameters(), **settings)
    table(mlc.tensor([1])).sum().backward()
    opt.step()


@pytest.mark.parametrize(("code", "call"), [
    ("MLC0772", lambda: mlc.exp(coo())), ("MLC0772", lambda: coo() + mlc.ones(2, 4)), ("MLC0772", lambda: coo() + 1),
    ("MLC0772", lambda: coo() / mlc.ones(2, 4)), ("MLC0772", lambda: coo() > 0), ("MLC0772", lambda: coo().mean()),
    ("MLC0772", lambda: coo()[mlc.tensor([0])]), ("MLC0772", lambda: coo() + of_layout("sparse_csr")),
    ("MLC0772", lambda: of_layout("sparse_csr").sum(1)), ("MLC0772", lambda: mlc.sparse.sum(mlc.ones(2))),
    ("MLC0772", lambda: mlc.compile(lambda s: mlc.sparse.mm(s, s.t()))(coo())),
    ("MLC0773", lambda: coo().numpy()), ("MLC0773", lambda: coo().tolist()),
    ("MLC0774", lambda: mlc.sparse_coo_tensor([[5]], [1.0], (3,))),
    ("MLC0774", lambda: mlc.sparse_coo_tensor([[0, 1]], [1.0])),
    ("MLC0774", lambda: mlc.sparse_coo_tensor([], mlc.ones(3, 3), 5)),
    ("MLC0774", lambda: mlc.sparse_coo_tensor([[1, 0]], [1.0, 2.0], is_coalesced=True)),
    ("MLC0774", lambda: mlc.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0])),
    ("MLC0775", lambda: coo().crow_indices()), ("MLC0775", lambda: of_layout("sparse_csr").is_coalesced()),
    ("MLC0775", lambda: mlc.eye(3).to_sparse_bsr((2, 2))), ("MLC0776", lambda: coo().values()),
    ("MLC0777", lambda: coo() + coo().t()), ("MLC0777", lambda: coo() * mlc.ones(3, 2, 4)),
    ("MLC0778", lambda: step(mlc.optim.Adam, True)), ("MLC0778", lambda: step(mlc.optim.SparseAdam, False)),
    ("MLC0778", lambda: step(mlc.optim.SGD, True, lr=0.1, weight_decay=0.1)),
    ("MLC0338", lambda: mlc.ones(2).coalesce()), ("MLC0367", lambda: coo() @ mlc.ones(3, 2))])
def test_refusals(code: str, call: Callable[[], Any]) -> None:
    with pytest.raises((mlc.Error, AttributeError)) as caught:
        call()
    assert getattr(caught.value, "code", None) == code


@pytest.mark.parametrize(("message", "call"), [
    (r"MLC0367\]: mm: \[2, 3\] by \[2, 3\]", lambda s: mlc.mm(s, mlc.ones(2, 3))),
    (r"MLC0367\]: mm: \[2, 3\] by \[2, 3\]", lambda s: mlc.mm(mlc.ones(2, 3), s)),
    (r"MLC0367\]: mv: \[2, 3\] by \[2\]", lambda s: mlc.mv(s, mlc.ones(2))),
    (r"MLC0364\]: mv: vec has 2", lambda s: mlc.mv(s, mlc.ones(3, 1))),
    (r"MLC0420\]: mm: ", lambda s: mlc.mm(s, mlc.ones(3, 2).double())),
    (r"MLC0420\]: sampled_addmm: ", lambda s: mlc.sparse.sampled_addmm(s, mlc.ones(2, 1), mlc.ones(1, 3).double())),
    (r"MLC0111\]: addmm: input of shape \[5, 4\]", lambda s: mlc.addmm(mlc.ones(5, 4), s, mlc.ones(3, 4))),
    (r"MLC0111\]: linear: bias of shape \[5\]", lambda s: mlc.nn.functional.linear(mlc.ones(4, 3), s, mlc.ones(5))),
    (r"MLC0367\]: bmm: batches of 1 and of 2", lambda s: mlc.bmm(s.to_dense()[None].to_sparse(), mlc.ones(2, 3, 1)))])
def test_products_that_are_refused_name_what_was_called(message: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(mlc.Error, match=message):
        call(mlc.ones(2, 3).to_sparse())


def test_indices_that_are_not_checked_are_checked_by_the_code() -> None:
    with mlc.sparse.check_sparse_tensor_invariants(False):
        wild = mlc.sparse_coo_tensor([[0, 1], [0, 10**9]], [1.0, 2.0], (3, 3))
    with pytest.raises(mlc.UserError) as caught:
        wild @ mlc.ones(3, 2)
    assert caught.value.code == "MLC0340"


@pytest.mark.parametrize("layout", ["bsr", "bsc"])
@pytest.mark.parametrize("blocks", [(2, 3), (1, 2), (4, 1)])
def test_blocks_need_not_be_squares(layout: str, blocks: tuple[int, int]) -> None:
    """Through COO, whose elements are put into their blocks one by one."""
    dense = np.arange(24.0).reshape(4, 6) % 5
    found = getattr(mlc.tensor(dense).to_sparse(), f"to_sparse_{layout}")(blocks)
    assert np.array_equal(np.array(found.to_dense()), dense)


def test_indices_of_compiled_functions_are_checked_as_it_runs() -> None:
    f = mlc.compile(lambda i, v: mlc.sparse_coo_tensor(i, v, (2, 3)).to_dense())
    assert f(mlc.tensor([[0], [2]]), mlc.tensor([7.0])).tolist() == [[0, 0, 7], [0, 0, 0]]
    for wrong in ([[0], [3]], [[1], [-1]], [[2], [0]]):
        with pytest.raises(mlc.UserError, match=r"MLC0612.*out of range"):
            f(mlc.tensor(wrong), mlc.tensor([7.0]))
