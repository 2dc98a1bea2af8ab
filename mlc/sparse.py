"""Functions of sparse tensors under the names of torch.sparse.

A sparse tensor holds the elements that may differ from 0, and where they are: as coordinates (`mlc.sparse_coo_tensor`)
or by compressed rows or columns (`mlc.sparse_csr_tensor` and its relatives). Products with dense tensors take time in
proportion to the stored elements.

Example:
    >>> a = mlc.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))
    >>> mlc.sparse.mm(a, mlc.tensor([[1.0], [10.0]]))
    tensor([[20.],
            [ 3.]], dtype=mlc.float32)
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend.functions.sparse.construct import (
    BFloat16Tensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)
from mlc.frontend.functions.sparse.invariants import check_sparse_tensor_invariants
from mlc.frontend.functions.sparse.products import sampled_addmm
from mlc.frontend.functions.sparse.products import sparse_addmm as addmm
from mlc.frontend.functions.sparse.products import sparse_mm as mm
from mlc.frontend.functions.sparse.reductions import sparse_log_softmax as log_softmax
from mlc.frontend.functions.sparse.reductions import sparse_softmax as softmax
from mlc.frontend.functions.sparse.reductions import sparse_sum as sum
from mlc.frontend.functions.sparse.reductions import spdiags

__all__ = ["BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
           "LongTensor", "ShortTensor", "addmm", "check_sparse_tensor_invariants", "log_softmax", "mm",
           "sampled_addmm", "softmax", "spdiags", "sum"]
