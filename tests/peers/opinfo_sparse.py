"""Samples of PyTorch's database of operators with sparse tensors, and these tensors as those of mlc."""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import mlc

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
warnings.filterwarnings("ignore", message="Sparse (CSR|CSC|BSR|BSC|invariant)")


def supported(entry: Any, layout: str) -> bool:
    """Whether the database says that an operator takes tensors of a layout."""
    return bool(getattr(entry, "supports_" + layout.removesuffix("_coo"))) or entry.name.startswith("sparse.")


def samples(entry: Any, layout: str, dtype: torch.dtype) -> Iterator[Any]:
    """The sparse samples of an entry: its own, or else the dense ones with the input converted to the layout."""
    kind = getattr(torch, layout)
    try:
        for sample in entry.sample_inputs_sparse(kind, "cpu", dtype):
            if sample.kwargs.get("layout") is kind:        # the default
                del sample.kwargs["layout"]
            yield sample
    except (NotImplementedError, unittest.SkipTest):
        for sample in entry.sample_inputs("cpu", dtype):
            if isinstance(sample.input, torch.Tensor) and (layout == "sparse_coo" or sample.input.ndim == 2):
                sample.input = _sparse(sample.input, kind)
                yield sample


def _sparse(x: torch.Tensor, layout: torch.layout) -> torch.Tensor:
    """A tensor in a layout, with some elements that are not stored."""
    x = torch.where(torch.arange(x.numel()).reshape(x.shape) % 3 == 1, torch.zeros((), dtype=x.dtype), x)
    blocked = layout in (torch.sparse_bsr, torch.sparse_bsc)
    size = tuple(2 if n and n % 2 == 0 else 1 for n in x.shape) if blocked else None
    return x.to_sparse(layout=layout, blocksize=size)


def as_mlc(x: torch.Tensor) -> Any:
    """A sparse tensor as one of mlc, of the same components."""
    def component(part: torch.Tensor) -> Any:
        return mlc.tensor(np.array(part.detach().numpy()))

    shape, kind = tuple(x.shape), str(x.layout).removeprefix("torch.")
    if x.layout is torch.sparse_coo:
        return mlc.sparse_coo_tensor(component(x._indices()), component(x._values()), shape,
                                     is_coalesced=x.is_coalesced())
    names = ("crow_indices", "col_indices") if kind.endswith("r") else ("ccol_indices", "row_indices")
    outer, inner, values = (component(getattr(x, name)()) for name in (*names, "values"))
    return mlc.sparse_compressed_tensor(outer, inner, values, shape, layout=getattr(mlc, kind))


def layout_of(x: Any) -> str:
    """The name of the layout of a tensor of either framework."""
    return str(x.layout).rpartition(".")[2]
