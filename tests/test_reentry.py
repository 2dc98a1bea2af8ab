"""Every dump of every pass is a way in: it parses, verifies and prints to the same text, and leads to the same code.

A dump is taken up by `pipeline.resume`, which tells from what stands in it where it is. Where that ends in the same
module of the llvm dialect, native code is the same; where it does not (the places in messages are those of the dump),
both are compiled and their results compared bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mlc.backends.cpu.targets import host
from mlc.backends.executable import build
from mlc.dialects.builtin import Module
from mlc.ir.core import Op
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Step
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from mlc.passes import pipeline
from tests.corpus import PROGRAMS
from tests.op_samples import COMPOSITES, ONCE_COMPOSITES, SAMPLES, Sample
from tests.public_case import thinned
from tests.test_meaning import same_bits

Array = np.ndarray[Any, Any]


def one_of_each(samples: Sequence[Sample]) -> list[Sample]:
    """For every operation the sample with the most symbols and dimensions."""
    best: dict[str, Sample] = {}
    for s in samples:
        if s.op not in best or len(str(s)) > len(str(best[s.op])):
            best[s.op] = s
    return list(best.values())


def check(make: Callable[[], tuple[Module, Sequence[Array]]], printings: Sequence[Sequence[bool]]) -> None:
    """Lower, dump after every pass, and take up each dump; `printings` (generic or not) are resumed from in turn."""
    machine = host().machine
    dumps: list[tuple[str, str, str]] = []

    def after(step: Step, module: Op) -> None:
        dumps.append((str(step), to_text(module), to_text(module, generic=True)))

    lowered, arguments = make()
    pipeline.build("llvm", machine).run(lowered, Instruments(after=after))
    wanted = to_text(lowered)
    entered: set[str] = set()
    for i, (name, pretty, generic) in enumerate(dumps):
        for is_generic, text in ((False, pretty), (True, generic)):
            if text in entered:
                continue                                      # the pass has changed nothing
            entered.add(text)
            parsed = parse_module(text, f"{name}.mlir")
            verify(parsed)
            assert to_text(parsed, is_generic) == text, f"after {name}, {'generic' if is_generic else 'pretty'}"
            if is_generic in printings[i % len(printings)]:
                resumed = pipeline.resume(parsed, "llvm", machine)
                if to_text(resumed) != wanted:
                    same_bits(native(resumed, arguments), native(lowered, arguments), f"resumed after {name}")


def native(module: Op, arguments: Sequence[Array]) -> list[Array]:
    return build(module).entry("main").call([np.array(a) for a in arguments])


BOTH, IN_TURN = ((False, True),), ((False,), (True,))
QUICK = [s for s in one_of_each(SAMPLES) if s.op not in COMPOSITES or s.op in (
    "tensor.softmax", "tensor.layer_norm", "tensor.cross_entropy", "tensor.argmax")]
LONG = ("mlp_gradient", "mlp_gradient_of_symbolic_batch", "many_results_in_one_kernel",
        "product_with_transposed_factor")


@pytest.mark.parametrize("name", thinned((name for name in PROGRAMS if name not in LONG), 10))
def test_programs(name: str) -> None:
    check(PROGRAMS[name], IN_TURN)


@pytest.mark.parametrize("sample", thinned(QUICK, 16), ids=str)
def test_operations(sample: Sample) -> None:
    check(lambda: (sample.build()[0], sample.arguments()), IN_TURN)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_in_both_printings(name: str) -> None:
    check(PROGRAMS[name], BOTH)


@pytest.mark.slow
@pytest.mark.parametrize("sample", ONCE_COMPOSITES, ids=str)
def test_every_sample(sample: Sample) -> None:
    check(lambda: (sample.build()[0], sample.arguments()), BOTH)


def test_corpus() -> None:
    """At least 60 operations, each once, in the quick run."""
    assert len(QUICK) >= 60 and max(Counter(s.op for s in QUICK).values()) == 1


def test_levels_end_where_they_should() -> None:
    """A module past the wanted level is refused, and one of the llvm dialect is left as it is."""
    module, _ = PROGRAMS["linear_relu"]()
    pipeline.lower(module)
    text = to_text(module)
    assert to_text(pipeline.resume(parse_module(text))) == text
    with pytest.raises(ValueError, match="MLC0335"):
        pipeline.resume(parse_module(text), "loop")
