"""Compiled functions that `mlc run --check` checks: every pass, on the arrays of their first calls."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mlc.ir.core import Op


class CheckedExecutable:
    """Native code whose entries are checked when they are first called."""

    def __init__(self, module: Op, native: Any) -> None:
        self.module = module
        self.native = native
        self.checked: dict[str, CheckedEntry] = {}

    def entry(self, name: str) -> CheckedEntry:
        if name not in self.checked:
            self.checked[name] = CheckedEntry(self.module, name, self.native.entry(name))
        return self.checked[name]

    @property
    def entries(self) -> dict[str, Any]:
        """All entries by name. The two that a frozen function is split in are checked together, as that function."""
        found = dict(self.native.entries)
        parts = {name: entry for name, entry in found.items() if entry.interface.sources}
        if parts and "main" not in self.checked:
            whole = self.checked["main"] = CheckedEntry(self.module, "main", self.native)
            self.parts = {name: CheckedPart(whole, entry) for name, entry in parts.items()}
        return {**found, **(self.parts if parts else {})}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)


class CheckedEntry:
    """A compiled function whose first call checks all passes on its arguments; later calls run the wrapped entry.

    latest  of all functions, the last call that was not checked, if it is the last one: with copies of its arrays
    given   arguments of the function by number, where parts of it are called
    """

    latest: ClassVar[tuple[CheckedEntry, list[Any]] | None] = None

    def __init__(self, module: Op, name: str, native: Any) -> None:
        self.module = module
        self.name = name
        self.native = native
        self.done = False
        self.given: dict[int, Any] = {}

    @property
    def repeats(self) -> bool:
        return self.done

    def call(self, arrays: Sequence[Any], sizes: Any = None) -> Any:
        self.check(arrays)
        return self.native.call(arrays, sizes)

    def check(self, arrays: Sequence[Any]) -> None:
        """Check all passes on the arrays of the first call."""
        if not self.done:
            from mlc.tools import check
            self.done = True
            where = next((str(op.loc) for op in self.module.walk() if op.attrs.get("sym_name") == self.name), "")
            print(f"checking what is compiled at {where}", file=sys.stderr)
            CheckedEntry.latest = None
            check.check(self.module.clone(), self.name, arrays)
        else:
            CheckedEntry.latest = self, [np.array(a) for a in arrays]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)


class CheckedPart:
    """A part of a frozen function: the one that computes constants, or the one that is called with them."""

    def __init__(self, whole: CheckedEntry, native: Any) -> None:
        self.whole = whole
        self.native = native

    @property
    def repeats(self) -> bool:
        return self.whole.done

    def call(self, arrays: Sequence[Any], sizes: Any = None) -> Any:
        """Run the part; of the one that is called with constants, check the function on the arguments of both."""
        sources: Sequence[int] = self.native.interface.sources
        self.whole.given.update((i, array) for i, array in zip(sources, arrays) if i >= 0)
        if min(sources) < 0:
            self.whole.check(self._arguments())
        return self.native.call(arrays, sizes)

    def _arguments(self) -> list[Any]:
        """The arguments of the function; an argument that no part takes is read by nothing."""
        from mlc.dialects import func
        from mlc.ir.types import to_numpy
        main = next(f for f in func.functions(self.whole.module) if f.sym_name == "main")
        return [self.whole.given[i] if i in self.whole.given else np.zeros(a.type.shape, to_numpy(a.type.dtype))
                for i, a in enumerate(main.args)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)
