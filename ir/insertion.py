"""Insertion points, and the locations of new operations."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from mlc.ir.diag import Loc
from mlc.ir.thread_values import set_in_thread

if TYPE_CHECKING:
    from mlc.ir.core import Op
    from mlc.ir.values import Block


class _Builder(threading.local):
    """Insertion point of this thread, and the location of new operations (None: the caller's line)."""

    block: Block | None = None
    before: Op | None = None
    loc: Loc | None = None


builder = _Builder()


class insertion:
    """Context manager: insert operations into `block` before `before` (or at the end), with location `loc` if given."""

    __slots__ = ("before", "block", "loc", "saved")

    def __init__(self, block: Block | None, before: Op | None = None, loc: Loc | None = None) -> None:
        self.block = block
        self.before = before
        self.loc = loc

    def __enter__(self) -> None:
        self.saved = builder.block, builder.before, builder.loc
        builder.block, builder.before = self.block, self.before
        if self.loc is not None:
            builder.loc = self.loc

    def __exit__(self, *error: object) -> None:
        builder.block, builder.before, builder.loc = self.saved


def at_end(block: Block, loc: Loc | None = None) -> insertion:
    """`with at_end(block): ...` appends new operations to `block`."""
    return insertion(block, None, loc)


def before(op: Op, loc: Loc | None = None) -> insertion:
    """`with before(op): ...` inserts new operations before `op`, with its location unless another is given."""
    return insertion(op.parent, op, loc or op.loc)


def after(op: Op, loc: Loc | None = None) -> insertion:
    return insertion(op.parent, op.next, loc or op.loc)


def located(loc: Loc) -> AbstractContextManager[None]:
    """Context manager: new operations get the location `loc`."""
    return set_in_thread(builder, "loc", loc)


def caller_loc() -> Loc:
    """Location of the nearest stack frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("mlc."):
        frame = frame.f_back
    return Loc(frame.f_code.co_filename, frame.f_lineno)
