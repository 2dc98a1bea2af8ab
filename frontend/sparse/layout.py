"""Memory layouts of tensors: dense, or one of those that store only some elements."""

from __future__ import annotations

from typing import Any


class layout:
    """Memory layout of a tensor: `mlc.strided`, `mlc.sparse_coo`, `mlc.sparse_csr`, `mlc.sparse_csc`, `mlc.sparse_bsr`
    or `mlc.sparse_bsc`.

    Args:
        name: Name of one of these.
        compressed: The dimension whose indices are compressed: 0 for rows, 1 for columns, None for neither.
        blocked: Whether the values are blocks.

    Example:
        >>> mlc.eye(2).to_sparse().layout
        mlc.sparse_coo
        >>> mlc.eye(2).layout is mlc.strided
        True
    """

    __slots__ = ("blocked", "compressed", "name")

    def __init__(self, name: str, compressed: int | None = None, blocked: bool = False) -> None:
        self.name, self.compressed, self.blocked = name, compressed, blocked

    def __repr__(self) -> str:
        return f"mlc.{self.name}"

    def __reduce__(self) -> Any:
        return _named, (self.name,)


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr", 0)
sparse_csc = layout("sparse_csc", 1)
sparse_bsr = layout("sparse_bsr", 0, True)
sparse_bsc = layout("sparse_bsc", 1, True)
LAYOUTS = {x.name: x for x in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)}


def _named(name: str) -> layout:
    """The layout of a name."""
    return LAYOUTS[name]
