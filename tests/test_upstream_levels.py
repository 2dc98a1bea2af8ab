"""Upstream MLIR reads every dump of every level: ours as unregistered dialects, `low` and `llvm` without that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mlc.ir.core import Op
from mlc.ir.passes import Instruments, Step
from mlc.ir.printer import to_text
from mlc.passes import pipeline
from tests import upstream
from tests.corpus import PROGRAMS
from tests.op_samples import SAMPLES
from tests.test_meaning import representative

MODULES: dict[str, Callable[[], tuple[Any, Any]]] = dict(PROGRAMS)
MODULES |= {f"{i}-{s}": s.build for i, s in enumerate(representative(SAMPLES, 1))}


@pytest.mark.parametrize("name", MODULES)
def test_every_dump_parses_and_verifies(name: str) -> None:
    levels = iter(level for level, _, _ in pipeline.ORDER)

    def after(step: Step, module: Op) -> None:
        ours = next(levels) not in ("low", "llvm")
        for locations in (False, True):
            upstream.verify_text(to_text(module, generic=True, locations=locations), unregistered=ours)

    pipeline.build("llvm").run(MODULES[name]()[0], Instruments(after=after))
