"""Functions of sparse tensors: creation, conversions between layouts, products, and the implementations of elementwise
functions, reductions and others for sparse operands, which frontend/sparse/dispatch.py keeps by name."""

from mlc.frontend.functions.sparse import elementwise, reductions, shape  # noqa: F401 (implementations)
from mlc.frontend.functions.sparse.construct import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from mlc.frontend.functions.sparse.products import hspmm, smm, spmm, sspaddmm

__all__ = ["hspmm", "smm", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor",
           "sparse_csc_tensor", "sparse_csr_tensor", "spmm", "sspaddmm"]
