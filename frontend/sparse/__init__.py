"""Sparse tensors: `SparseTensor`, which is made of dense tensors of indices and values, its layouts, and how operations
find their implementations for it. Those are in frontend/functions/sparse.
"""
