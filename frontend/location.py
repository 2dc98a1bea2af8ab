"""Where the user is: the nearest frame outside this package, with its column."""

from __future__ import annotations

import sys
from functools import lru_cache
from itertools import islice
from types import CodeType

from mlc.ir.diag import Loc


@lru_cache(maxsize=65536)
def _loc(code: CodeType, instruction: int, line: int) -> Loc:
    position = next(islice(code.co_positions(), instruction // 2, None), None)
    column = position[2] if position is not None and position[0] == line else None
    return Loc(code.co_filename, line, 0 if column is None else column + 1)


def user_loc() -> Loc:
    """The place of the nearest frame that is not in this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return _loc(frame.f_code, frame.f_lasti, frame.f_lineno)


def is_ours(module: str) -> bool:
    return module.startswith("mlc.") or module == "mlc"
