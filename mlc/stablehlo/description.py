"""Descriptions of programs of StableHLO, with all of them that mlc does not run."""

from __future__ import annotations

import math
import os
from collections import Counter

import numpy as np

from mlc.frontend.stablehlo.interpreter import CUSTOM_CALLS
from mlc.frontend.stablehlo.syntax import Operation
from mlc.frontend.stablehlo.table import find, reason
from mlc.model_description import ModelDescription
from mlc.stablehlo.loading import names, program_of

STRUCTURE = frozenset({"func.return", "stablehlo.return"})


def describe(path: str | os.PathLike[str]) -> ModelDescription:
    """The parts of a file of StableHLO."""
    program, _ = program_of(path)
    main = program.main()
    assert main.body is not None
    ops = [op for f in program.functions.values() if f.body is not None for op in f.body.inside()
           if op.name not in STRUCTURE]
    constants = [op for op in ops if op.name == "stablehlo.constant" and isinstance(op.get("value"), np.ndarray)]
    large = [op for op in constants if op.get("value").size > 1]
    return ModelDescription(
        inputs=[f"{n}: {t}" for n, t in zip(names(main), main.body.types)],
        outputs=[str(t) for t in main.results],
        parameters=[], constants=[f"{op.names[0] if op.names else 'constant'}: {op.results[0]}" for op in large],
        operations=[f"{n} x {k}" for n, k in Counter(op.name for op in ops).most_common()],
        unsupported=[f"{op.name}: {why} ({op.loc})" for op in ops if (why := refusal(op)) is not None],
        sizes=(0, sum(math.prod(op.get("value").shape) for op in constants), len(ops)))


def refusal(op: Operation) -> str | None:
    """Why an operation is not run, from what is known without running it."""
    if find(op.name) is None:
        return reason(op.name)
    if op.name == "stablehlo.custom_call" and (name := op.get("call_target_name")) not in CUSTOM_CALLS:
        return f"mlc has no custom call {name}"
    return None
