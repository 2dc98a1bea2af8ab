"""Meaning is kept: every module of the corpus gives the same numbers before and after every pass, and as native code.

Down to fix_numerics numbers agree within a tolerance; from there on every bit is the same, in the interpreter at
every level and in native code. After each pass the module is verified, prints and parses to a fixpoint in both
printings, and what was parsed gives the same numbers as what was printed (tests/test_reentry.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mlc.backends.cpu.targets import host
from mlc.backends.executable import build
from mlc.dialects.builtin import Module
from mlc.ir.core import REGISTRY, Op
from mlc.ir.interp import run_function
from mlc.ir.passes import Instruments, Step
from mlc.ir.verify import verify
from mlc.passes import pipeline
from tests import op_samples_linalg
from tests.corpus import PROGRAMS
from tests.op_samples import SAMPLES, Sample
from tests.public_case import thinned

Array = np.ndarray[Any, Any]
count: Counter[str] = Counter()
"""Comparisons made so far, by level."""


def representative(samples: Sequence[Sample], each: int = 4) -> list[Sample]:
    """The first few samples of every operation."""
    seen: Counter[str] = Counter()
    out = []
    for s in samples:
        seen[s.op] += 1
        if seen[s.op] <= each:
            out.append(s)
    return out


LOOPS = {s.op for s in op_samples_linalg.SAMPLES}
"""Operations that are nested loops in the interpreter; their first samples are the smallest."""


def quick(samples: Sequence[Sample]) -> list[Sample]:
    """Two samples of every operation, of other shapes and element types; one of what is taken apart into others."""
    groups: dict[str, list[Sample]] = {}
    for s in samples:
        groups.setdefault(s.op, []).append(s)
    out = []
    for op, group in groups.items():
        n = 1 if hasattr(REGISTRY[op], "decompose") else 2
        apart = sorted({(k + 1) * len(group) // (n + 1) for k in range(n)})
        out += group[:n] if op in LOOPS else [group[i] for i in apart]
    return out


QUICK = quick(SAMPLES)
"""Together with the programs, the corpus of the default run."""
LONG = ("tensor.eigh", "tensor.matrix_exp", "tensor.pinv", "tensor.svd")
"""Operations whose decompositions take seconds to interpret; the slow run does so after every pass, for one sample."""


def check(module: Module, arguments: Sequence[Array], everywhere: bool = True) -> None:
    """Lower `module` to native code, comparing after every pass, or else where numbers are fixed and at the end."""
    wanted = run_function(module, "main", arguments)
    fixed = False
    levels = iter(level for level, _, _ in pipeline.ORDER)

    def after(step: Step, lowered: Op) -> None:
        nonlocal wanted, fixed
        level = next(levels)
        if not everywhere and step.transform.name != "fix_numerics":
            return
        verify(lowered)
        found = run_function(lowered, "main", arguments)
        if fixed:
            same_bits(found, wanted, str(step))
        else:
            close(found, wanted, str(step))
        if step.transform.name == "fix_numerics":
            fixed, wanted = True, found
        count[level] += 1

    target = host()
    pipeline.build("llvm", target.machine).run(module, Instruments(after=after))
    native = build(module, target).entry("main").call([np.array(a) for a in arguments])
    same_bits(native, wanted, "native code")
    count["native"] += 1


def same_bits(found: Sequence[Array], wanted: Sequence[Array], where: str) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, f"{where}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        bits = f"u{a.dtype.itemsize}"
        same = (np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)) | ((a != a) & (b != b))
        assert same.all(), f"{where}: {a[~same][:3]} is not {b[~same][:3]}"


def close(found: Sequence[Array], wanted: Sequence[Array], where: str) -> None:
    """Exact for integers; floats within a bound that grows with the narrowness of the type."""
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, f"{where}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        if a.dtype.kind in "biu":
            assert (a == b).all(), where
        else:
            relative = {2: 2e-2, 4: 2e-5, 8: 1e-12}[a.dtype.itemsize]
            np.testing.assert_allclose(a.astype("f8"), b.astype("f8"), rtol=relative, atol=relative / 4, err_msg=where)


@pytest.mark.parametrize("sample", QUICK, ids=str)
def test_operations(sample: Sample) -> None:
    """One in three after every pass, but for what becomes thousands of operations."""
    check(sample.build()[0], sample.arguments(), everywhere=QUICK.index(sample) % 3 == 0 and sample.op not in LONG)


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_sample(sample: Sample) -> None:
    """After every pass, but of what becomes thousands of operations the first sample, which is the smallest."""
    first = next(s for s in SAMPLES if s.op == sample.op)
    check(sample.build()[0], sample.arguments(), everywhere=sample is first or sample.op not in LONG)


@pytest.mark.parametrize("name", thinned(PROGRAMS, 2))
def test_programs(name: str) -> None:
    check(*PROGRAMS[name]())


def test_manifest() -> None:
    """The corpus is as large as promised; `pytest -s tests/test_meaning.py` prints what was compared."""
    modules = len(QUICK) + len(PROGRAMS)
    operations = len({s.op for s in SAMPLES})
    print(f"\n{modules} modules ({len(SAMPLES)} samples of {operations} operations in the slow run, "
          f"{len(PROGRAMS)} programs); comparisons: " + ", ".join(f"{k} {v}" for k, v in sorted(count.items())))
    assert modules >= 200
