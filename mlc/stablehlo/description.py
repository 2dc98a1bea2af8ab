"""Descriptions of programs of StableHLO, with all of them that mlc does not run."""

from __future__ import annotations

import math
import os
from collections import Counter

import numpy as np

from mlc.model_description import ModelDescription
from mlc.stablehlo.loading import names, operations, program_of, refusals


def describe(path: str | os.PathLike[str]) -> ModelDescription:
    """The parts of a file of StableHLO."""
    program, _ = program_of(path)
    main = program.main()
    assert main.body is not None
    ops = operations(program)
    constants = [op for op in ops if op.name == "stablehlo.constant" and isinstance(op.get("value"), np.ndarray)]
    large = [op for op in constants if op.get("value").size > 1]
    return ModelDescription(
        inputs=[f"{n}: {t}" for n, t in zip(names(main), main.body.types)],
        outputs=[str(t) for t in main.results],
        parameters=[], constants=[f"{op.names[0] if op.names else 'constant'}: {op.results[0]}" for op in large],
        operations=[f"{n} x {k}" for n, k in Counter(op.name for op in ops).most_common()],
        unsupported=refusals(program),
        sizes=(0, sum(math.prod(op.get("value").shape) for op in constants), len(ops)))

