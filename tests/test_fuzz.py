"""Random programs mean the same at every level and as native code, whatever the vectors and block sizes.

60 programs in the quick run; `pytest -m slow tests/test_fuzz.py` runs thousands. A failure prints the reduced module.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mlc.backends.target import LEVELS, Target, host
from mlc.dialects.builtin import Module
from mlc.ir.passes import Step
from tests import fuzzing_calls
from tests.fuzzing import Program, check, failure, generate, pack_panels, reduced, reschedule

V2, V3 = LEVELS["x86-64-v2"], LEVELS["x86-64-v3"]


def narrow(target: Target) -> Callable[[Program], None]:
    """The check for an older machine."""
    return lambda program: check(program, target, target.vector_bits)


def rescheduled(program: Program) -> None:
    """The check with other block sizes and vector dimensions than the default schedules."""
    rng = random.Random(program.seed)

    def between(step: Step, module: Module) -> None:
        if step.transform.name == "vectorize":
            reschedule(module, rng)

    check(program, between=between)


def packed(program: Program) -> None:
    """The check with panels of random sizes in contractions."""
    rng = random.Random(program.seed)

    def between(step: Step, module: Module) -> None:
        if step.transform.name == "collapse":
            pack_panels(module, rng)

    check(program, between=between)


WAYS: dict[str, Callable[[Program], None]] = {
    "host": check, "v2": narrow(V2), "v3": narrow(V3), "512": lambda p: check(p, host(), 512),
    "rescheduled": rescheduled, "packed": packed}


def run(seed: int, way: str) -> None:
    message = failure(generate(seed), WAYS[way])
    assert message is None, message


@pytest.mark.parametrize("seed", range(60))
def test_programs(seed: int) -> None:
    run(seed, ("host", "rescheduled", "packed", "v2", "host", "v3")[seed % 6])


@pytest.mark.slow
@pytest.mark.parametrize("block", range(25))
@pytest.mark.parametrize("way", WAYS)
def test_many_programs(way: str, block: int) -> None:
    for seed in range(1000 + 40 * block, 1040 + 40 * block):
        run(seed, way)


@pytest.mark.parametrize("seed", range(12))
def test_programs_of_functions(seed: int) -> None:
    message = failure(fuzzing_calls.generate(seed), fuzzing_calls.check)
    assert message is None, message


@pytest.mark.slow
@pytest.mark.parametrize("block", range(25))
def test_many_programs_of_functions(block: int) -> None:
    for seed in range(1000 + 40 * block, 1040 + 40 * block):
        message = failure(fuzzing_calls.generate(seed), fuzzing_calls.check)
        assert message is None, message


def test_programs_of_functions_have_what_they_are_for() -> None:
    texts = [fuzzing_calls.generate(seed).text for seed in range(30)]
    for word in ("func.call", "scf.for", "scf.if", "donate", "tensor.scatter", "tensor.scatter_along", "cumulative"):
        assert sum(word in text for text in texts) >= 3, word


def test_a_seed_is_a_program() -> None:
    """The same seed gives the same text and arrays, and seeds give programs with operations of every family."""
    names = set()
    for seed in range(40):
        first, second = generate(seed), generate(seed)
        assert first.text == second.text
        assert all((a.view("u1") == b.view("u1")).all() if a.size and a.ndim else True
                   for a, b in zip(first.arguments, second.arguments))
        names |= {op.name.removeprefix("tensor.") for op in first.module().walk()}
    assert {"reduce_sum", "dot_general", "reshape", "transpose", "broadcast_to", "slice", "pad", "concat", "reverse",
            "take", "take_along", "select", "cast", "compare", "iota", "constant", "add", "mul"} <= names


def test_reduction() -> None:
    """What is left fails still, and is small: of a program that 'fails' because it has an operation, little more."""
    program = next(p for p in map(generate, range(200)) if "dot_general" in p.text and p.text.count("\n") > 15)
    small = reduced(program, lambda p: "dot_general" in p.text)
    assert "dot_general" in small.text
    assert len([op for op in small.module().walk() if op.name.startswith("tensor.")]) <= 3
