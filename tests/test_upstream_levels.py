"""Upstream MLIR reads every dump of every level: ours as unregistered dialects, `low` and `llvm` without that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlc.dialects.x86vector import DotBytes, PairsOfBytes
from mlc.ir.core import Op
from mlc.ir.interp import Contract, Interpreter, aligned, run_function
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Step
from mlc.ir.printer import to_text
from mlc.passes import pipeline
from tests import upstream
from tests.corpus import PROGRAMS
from tests.low_programs import function_types
from tests.op_samples import SAMPLES
from tests.public_case import thinned
from tests.test_meaning import representative, same_bits
from tests.test_upstream import TOOLS, run_upstream

MODULES: dict[str, Callable[[], tuple[Any, Any]]] = dict(PROGRAMS)
MODULES |= {f"{i}-{s}": s.build for i, s in enumerate(representative(SAMPLES, 1))}
LACKING = (DotBytes, PairsOfBytes)
"""Operations of the level `low` that upstream's x86vector has none for."""


@pytest.mark.parametrize("name", thinned(MODULES, 8))
def test_every_dump_parses_and_verifies(name: str) -> None:
    levels = iter(level for level, _, _ in pipeline.ORDER)

    def after(step: Step, module: Op) -> None:
        ours = next(levels) not in ("low", "llvm") or any(isinstance(op, LACKING) for op in module.walk())
        for locations in (False, True):
            upstream.verify_text(to_text(module, generic=True, locations=locations), unregistered=ours)

    pipeline.build("llvm").run(MODULES[name]()[0], Instruments(after=after))


def test_a_prefetch_verifies() -> None:
    text = """func.func @f(%m: memref<8xf32>, %i: index) {
      memref.prefetch %m[%i], read, locality<2>, data : memref<8xf32>
      func.return
    }"""
    upstream.verify_text(to_text(parse_module(text), generic=True), unregistered=False)


# -- low dumps, lowered and run by upstream ---------------------------------------------------------------------------
DUMPS = ("elementwise_chain", "symbolic_batch", "symbolic_rows_and_columns", "softmax_by_hand", "linear_relu",
         "product_with_transposed_factor", "batched_product", "slices_and_pads", "gathers", "row_statistics",
         "mlp_gradient", "mlp_gradient_of_symbolic_batch")


class Upstream(Contract):
    """The call contract, played by code that upstream's passes made of a low dump."""

    def run_buffers(self, numbers: list[int], inputs: list[Any], fresh: list[Any]) -> int:
        module = self.interpreter.module
        arena = aligned(self.interpreter.call("main_arena_bytes", numbers)[0]).view(np.int8)
        errors = np.full(1, -1, np.int64)
        run_upstream(module, function_types(module, "main"), [*numbers, *inputs, *fresh, arena, errors])
        return int(errors[0])


@pytest.mark.slow
@pytest.mark.skipif(not all(TOOLS.values()), reason="mlir-opt and mlir-translate of LLVM 19 are not installed")
@pytest.mark.parametrize("name", DUMPS)
def test_upstream_lowers_our_dumps_to_our_numbers(name: str) -> None:
    module, arguments = PROGRAMS[name]()
    pipeline.lower(module, "low")
    wanted = run_function(module, "main", arguments)
    interpreter = Interpreter(module)
    main = interpreter.function("main")
    same_bits(Upstream(interpreter, "main", main.attrs["interface"], main).call(arguments), wanted, "upstream")
