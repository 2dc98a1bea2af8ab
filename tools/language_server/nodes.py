"""Walks over the trees of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from mlc.frontend.language import syntax as S


class _Fields(dict[type, tuple[str, ...]]):
    def __missing__(self, cls: type) -> tuple[str, ...]:
        found = self[cls] = tuple(f.name for f in fields(cls) if f.name not in ("at", "depth", "file_at"))
        return found


_FIELDS = _Fields()


def inside(node: S.Node) -> Iterator[S.Node]:
    """A node and all that are in it."""
    work: list[Any] = [node]
    while work:
        x = work.pop()
        if isinstance(x, S.Node):
            yield x
            work += [getattr(x, name) for name in _FIELDS[type(x)]]
        elif isinstance(x, list | tuple):
            work += x


def shift(nodes: Sequence[S.Node], by: int) -> None:
    """Move trees in their text."""
    work: list[Any] = list(nodes)
    while work:
        node = work.pop()
        node.at += by
        for name in _FIELDS[type(node)]:
            value = getattr(node, name)
            if isinstance(value, S.Node):
                work.append(value)
            elif isinstance(value, list | tuple):
                setattr(node, name, _moved(value, by, work))
        if isinstance(node, S.Import):
            node.file_at += by


def _moved(x: Any, by: int, work: list[Any]) -> Any:
    """A field of a node that is moved; the nodes in it are added to `work`."""
    if isinstance(x, S.Node):
        work.append(x)
        return x
    if isinstance(x, list | tuple):
        if len(x) in (2, 3) and isinstance(x, tuple) and isinstance(x[0], str) and type(x[1]) is int:
            return (x[0], x[1] + by, *(_moved(y, by, work) for y in x[2:]))
        moved = [_moved(y, by, work) for y in x]
        return moved if isinstance(x, list) else tuple(moved)
    return x
