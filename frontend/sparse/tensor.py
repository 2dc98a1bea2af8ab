"""`SparseTensor`: a tensor that stores some of its elements, in dense tensors of indices and of values.

Operations on it are operations on these, so that derivatives, fusion and code generation know nothing of it: as a
pytree it is a container, whose last child, the values, is what is differentiated. Its history and its gradient are
those of the values.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, NoReturn

from mlc.frontend.arguments import FAILURES, as_coded, coded_methods
from mlc.frontend.autograd.graph import AutogradMeta
from mlc.frontend.device import device as Device
from mlc.frontend.dtypes import DType, type_name
from mlc.frontend.location import user_loc
from mlc.frontend.methods import SYNTAX, call, listed
from mlc.frontend.sparse.dispatch import implementation_of, need_sparse, unsupported
from mlc.frontend.sparse.layout import layout as Layout
from mlc.frontend.sparse.layout import sparse_coo
from mlc.frontend.sparse.printing import text_of
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state as recording
from mlc.ir import html
from mlc.ir.diag import Error, UserError, UserTypeError

NAMES = {None: ("indices",), 0: ("crow_indices", "col_indices"), 1: ("ccol_indices", "row_indices")}
"""Names of the tensors of indices, by the dimension that is compressed."""


class SparseTensor(Tensor):
    """A tensor of which some elements are stored, all others being zero: the result of `mlc.sparse_coo_tensor`,
    `mlc.sparse_csr_tensor` and the like, and of `to_sparse`.

    In the layout `mlc.sparse_coo`, `indices` of shape (sparse_dim, nnz) has a column for each stored element, or dense
    slice of the last `dense_dim` dimensions, in `values`; where columns are equal, the values add up. In the compressed
    layouts, the stored elements of row i are those from crow_indices[i] to crow_indices[i + 1].

    Args:
        components: The tensors of indices, and the values.
        shape: Sizes.
        layout: Layout.
        coalesced: Whether no two columns of indices are equal, and all are in order.

    Example:
        >>> s = mlc.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
        >>> s.to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]], dtype=mlc.float32)
    """

    __slots__ = ("_coalesced", "_components", "_layout", "_sizes")
    composite = True

    def __init__(self, components: Sequence[Any], shape: Sequence[Any], layout: Layout, coalesced: bool = True) -> None:
        self._components = tuple(components)
        self._sizes = tuple(shape)
        self._layout = layout
        self._coalesced = coalesced

    # -- as a container -----------------------------------------------------------------------------------------------
    def tree_flatten(self) -> tuple[Any, tuple[Any, ...]]:
        """The parts that distinguish it from others of the same components, and the components."""
        return (self._layout, self._sizes, self._coalesced), self._components

    @classmethod
    def tree_unflatten(cls, static: Any, components: Sequence[Any]) -> SparseTensor:
        """The tensor of what `tree_flatten` gives."""
        layout, sizes, coalesced = static
        return cls(components, sizes, layout, coalesced)

    @staticmethod
    def component_names(static: Any) -> tuple[str, ...]:
        """Names of the components, which are its attributes."""
        return (*NAMES[static[0].compressed], "values")

    def with_values(self, values: Any) -> SparseTensor:
        """A sparse tensor with the same pattern and other values, whose dense sizes may be others."""
        sizes = self._sizes if self._layout.compressed is not None else (
            *self._sizes[: self.sparse_dim()], *values.shape[1:])
        return SparseTensor((*self._components[:-1], values), sizes, self._layout, self._coalesced)

    def run(self, name: str, body: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run an operation, one of whose operands this is; `body` has its parameters."""
        implementation = implementation_of(name, self._layout)
        try:
            return implementation(*args, **keywords)
        except Error:
            raise
        except FAILURES as error:
            as_coded(error, body, name, args, keywords)
            raise

    # -- what it is ---------------------------------------------------------------------------------------------------
    def _dense_only(self, *_: Any) -> NoReturn:
        raise UserTypeError(f"a tensor of layout {self._layout} is used where a dense one is needed", code="MLC0773",
                            loc=user_loc(), hint="x.to_dense() has all elements, x.values() the stored ones")

    _array = property(_dense_only, _dense_only)
    backing_array = property(_dense_only)
    _storage = _view = None

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the dimensions."""
        return self._sizes

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.stored.dtype

    @property
    def device(self) -> Device:
        """The device that holds the components."""
        return self.stored.device

    @property
    def layout(self) -> Layout:
        """The layout, such as `mlc.sparse_coo`."""
        return self._layout

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is `mlc.sparse_coo`."""
        return self._layout is sparse_coo

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is `mlc.sparse_csr`."""
        return self._layout.name == "sparse_csr"

    def numel(self) -> Any:
        """The number of elements, stored or not."""
        return math.prod(self._sizes)

    def type(self, dtype: Any = None) -> Any:
        """The name of the tensor's legacy type, such as "mlc.sparse.FloatTensor"; with `dtype`, the tensor in it."""
        return self.to(dtype) if dtype is not None else type_name(self.dtype, self.device).replace(
            "mlc.", "mlc.sparse.", 1)

    def _repr_html_(self) -> str:
        return html.plain(repr(self))

    def __repr__(self) -> str:
        return text_of(self)

    # -- the stored elements ------------------------------------------------------------------------------------------
    @property
    def stored(self) -> Tensor:
        """The values, coalesced or not, with their history."""
        return self._components[-1]  # type: ignore[no-any-return]

    def _component(self, name: str) -> Tensor:
        names = NAMES[self._layout.compressed]
        if name not in names:
            raise UserTypeError(f"{name}: a tensor of layout {self._layout} has {' and '.join(names)}", code="MLC0775",
                                loc=user_loc(), hint="convert it first, by to_sparse(layout=...)")
        return self._components[names.index(name)]  # type: ignore[no-any-return]

    def _need_coalesced(self, name: str) -> None:
        if not self.is_coalesced():
            raise UserError(f"{name} of a tensor that is not coalesced: several values may be parts of one element",
                            code="MLC0776", loc=user_loc(), hint="call coalesce() first, or use _" + name + "()")

    def indices(self) -> Tensor:
        """The indices of a coalesced COO tensor, of shape (sparse_dim, nnz).

        Raises:
            UserError: It is not coalesced (MLC0776), or has another layout (MLC0775).
        """
        found = self._component("indices")
        self._need_coalesced("indices")
        return found

    def _indices(self) -> Tensor:
        """The indices of a COO tensor, coalesced or not."""
        return self._component("indices")

    def values(self) -> Tensor:
        """The stored elements, which share the memory of this tensor.

        Raises:
            UserError: It is a COO tensor that is not coalesced (MLC0776).
        """
        if self.is_sparse:
            self._need_coalesced("values")
        return self.stored

    def _values(self) -> Tensor:
        """The values as they are stored, without history."""
        return self.stored.detach()

    def crow_indices(self) -> Tensor:
        """Where rows begin and end among the values, in the layouts CSR and BSR."""
        return self._component("crow_indices")

    def col_indices(self) -> Tensor:
        """The column of each value, in the layouts CSR and BSR."""
        return self._component("col_indices")

    def ccol_indices(self) -> Tensor:
        """Where columns begin and end among the values, in the layouts CSC and BSC."""
        return self._component("ccol_indices")

    def row_indices(self) -> Tensor:
        """The row of each value, in the layouts CSC and BSC."""
        return self._component("row_indices")

    def _nnz(self) -> Any:
        """The number of stored elements, slices or blocks."""
        return self._components[-2].shape[-1]

    def sparse_dim(self) -> int:
        """The number of dimensions that indices are for."""
        return int(self._components[0].shape[0]) if self.is_sparse else 2

    def dense_dim(self) -> int:
        """The number of dimensions of the values of an element."""
        if self.is_sparse:
            return len(self._sizes) - self.sparse_dim()
        return len(self._sizes) - 2 - self.batch_dim()

    def batch_dim(self) -> int:
        """The number of leading dimensions for which there are indices of their own: 0 in the layout COO."""
        return 0 if self.is_sparse else len(self._components[0].shape) - 1

    def blocksize(self) -> tuple[int, int] | None:
        """The sizes of blocks; None of layouts without blocks."""
        at = self.batch_dim() + 1
        return tuple(self.stored.shape[at: at + 2]) if self._layout.blocked else None

    def is_coalesced(self) -> bool:
        """Whether no two columns of indices are equal, and all are in order; MLC0775 of layouts without columns."""
        self._component("indices")
        nnz = self._nnz()
        return self._coalesced or (isinstance(nnz, int) and nnz < 2)

    def coalesce(self) -> SparseTensor:
        """The tensor with indices in order and the values of equal ones added up; itself if it is coalesced."""
        return self if self.is_coalesced() else self._through("coalesce")

    def _through(self, name: str, *args: Any) -> Any:
        return implementation_of(name, self._layout)(self, *args)

    # -- history ------------------------------------------------------------------------------------------------------
    @property
    def _autograd(self) -> AutogradMeta | None:
        return self.stored._autograd

    @_autograd.setter
    def _autograd(self, meta: AutogradMeta | None) -> None:
        self.stored._autograd = meta

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has accumulated, of the same pattern."""
        found = self.stored.grad
        return found if found is None or found.composite else self.with_values(found)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self.stored.grad = value.stored if isinstance(value, SparseTensor) else value

    @property
    def data(self) -> Any:
        """The tensor without its history; it shares the memory."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        self.replace_elements(value)

    def replace_elements(self, new: Tensor) -> None:
        """Take over the components of another sparse tensor."""
        if not isinstance(new, SparseTensor):
            self._dense_only()
        self._sizes, self._layout, self._coalesced = new._sizes, new._layout, new._coalesced
        self._components = new._components

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Any = None) -> None:
        """Compute the gradient of the values with respect to leaves; `gradient` is sparse, of the same pattern."""
        cotangent = gradient.coalesce().stored if isinstance(gradient, SparseTensor) else gradient
        self.stored.backward(cotangent, retain_graph, create_graph, inputs)

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        out = memo[id(self)] = self.tree_unflatten(self.tree_flatten()[0], copy.deepcopy(self._components, memo))
        return out

    def __reduce__(self) -> Any:
        return SparseTensor, (self._components, self._sizes, self._layout, self._coalesced)

    # -- writing in place ---------------------------------------------------------------------------------------------
    def take_over(self, new: Tensor) -> SparseTensor:
        """Have this tensor be the result of an operation on it: its values are written if the pattern is the same."""
        if recording.trace is not None:
            raise unsupported("a write in place", self._layout, "a function is being recorded", "write x = x + y")
        if not isinstance(new, SparseTensor) or new._layout is not self._layout or new._sizes != self._sizes:
            raise unsupported("a write in place", self._layout, "the result has another shape or layout",
                              "write x = x + y")
        if self.dtype.is_floating_point < new.dtype.is_floating_point:
            raise unsupported("a write in place", self._layout, f"a result of {new.dtype} does not fit in {self.dtype}",
                              "convert the tensor first, as in x = x.float()")
        if all(a is b for a, b in zip(new._components[:-1], self._components[:-1])):
            SYNTAX["store"](self.stored, new.stored)
        else:
            self._components = (*new._components[:-1], new.stored.to(self.dtype))
            self._coalesced = new._coalesced
        return self

    def copy_(self, src: Any, non_blocking: bool = False) -> SparseTensor:
        """Take over the elements of another sparse tensor of the same shape."""
        need_sparse(src, "copy_", "the elements are those of a sparse tensor")
        return self.take_over(src.to(self.dtype).clone())

    def zero_(self) -> SparseTensor:
        """Take over zeros, of which none are stored in the layout COO."""
        return self.take_over(call("zeros_like", self))

    def __getitem__(self, key: Any) -> Any:
        return self._through("getitem", key)

    # -- another like this one ----------------------------------------------------------------------------------------
    def to_device(self, device: Any, /, *, stream: Any = None) -> SparseTensor:
        """The tensor on a device; itself if it is there."""
        moved = tuple(x.to_device(device) for x in self._components)
        same = all(a is b for a, b in zip(moved, self._components))
        return self if same else self.tree_unflatten(self.tree_flatten()[0], moved)

    def new_zeros(self, *size: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """A COO tensor of a shape without stored elements."""
        return call("sparse_coo_tensor", listed(size), dtype=dtype or self.dtype, device=device or self.device)

    def sparse_resize_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
        """Change the shape of a COO tensor in place; with stored elements, sizes may only grow.

        Raises:
            UserError: A size with stored elements shrinks, or the numbers of dimensions change (MLC0774).
        """
        return self._through("sparse_resize_", size, sparse_dim, dense_dim)  # type: ignore[no-any-return]


coded_methods(SparseTensor, [name for name in vars(SparseTensor)
                             if not name.startswith(("_", "tree_", "component_", "run"))])
