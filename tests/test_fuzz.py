"""Random programs, mistakes and calls: seeds of every kind of `mlc fuzz`, and what the command itself does.

Programs mean the same at every level and as native code, whatever the vectors and block sizes. A failure prints the
reduced module; `pytest -m slow tests/test_fuzz.py` runs thousands.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import mlc
from mlc.backends.cpu.targets import LEVELS, host
from mlc.backends.executable import build
from mlc.backends.target import Target
from mlc.dialects import func, tensor
from mlc.dialects.builtin import Module
from mlc.dialects.loop import DotQuads, For, Kernel
from mlc.dialects.tensor import Exp
from mlc.dispatch_cache import ForSizes
from mlc.ir.core import REGISTRY
from mlc.ir.machine import CPU
from mlc.ir.passes import Pass, Pipeline, Step, find_pass
from mlc.ir.rewrite import RULES
from mlc.passes import cse, pipeline
from mlc.passes.hoist_constants import panels
from mlc.tools import child, fuzz
from mlc.tools.cli import main
from mlc.tools.fuzzing import (
    batch,
    derivatives,
    functions,
    graphs,
    kinds,
    levels,
    options,
    programs,
    python_programs,
    registry,
    rewrites,
    writes,
)
from mlc.tools.fuzzing.factorizations import FREE
from mlc.tools.fuzzing.interpreted import interpreted
from mlc.tools.fuzzing.journal import Journal
from mlc.tools.fuzzing.levels import Failure, check, lower, same
from mlc.tools.fuzzing.programs import Program
from mlc.tools.fuzzing.resized import resized
from mlc.tools.fuzzing.schedules import pack_panels, reschedule
from tests.public_case import thinned
from tests.test_quantized_products import factors, product

V2, V3 = LEVELS["x86-64-v2"], LEVELS["x86-64-v3"]


def narrow(target: Target) -> Callable[[Program], None]:
    """The check for an older machine."""
    return lambda program: check(program, target, target.machine)


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
        if step.transform.name == "coalesce_dimensions":
            pack_panels(module, rng)

    check(program, between=between)


def frozen(program: Program) -> None:
    """The check of programs some of whose arguments are constants, with products in panels, narrow ones too."""
    rng = random.Random(program.seed)
    width = rng.choice((2, 4, 16))

    def between(step: Step, module: Module) -> None:
        if step.transform.name == "constrain_sizes":
            main = next(f for f in func.functions(module) if f.is_public)
            free = [i for i, a in enumerate(main.args) if a.type.is_static and i not in main.attrs.get("donate", ())]
            main.attrs["constants"] = tuple(i for i in free if rng.random() < 0.8)

    with mock.patch.multiple(panels, NARROW=width, WIDE=2 * width, FEW=1, ROOM=99):
        check(program, between=between)


def threaded(program: Program, counts: Sequence[int] = (1, 2, 3)) -> None:
    """The check without inlining, of native code that shares out whatever it can, with so many threads."""
    rng = random.Random(program.seed)
    skipped = find_pass("inline") if rng.random() < 0.7 else None
    small = (("worth", rng.choice((0, 0, 5))),)
    steps = [Step(s.transform, small) if s.transform is find_pass("parallelize") else s
             for s in pipeline.steps("llvm", host().machine) if s.transform is not skipped]
    lowered, wanted = lower(program, Pipeline(steps))
    entry = build(lowered, host()).entry("main")
    before = mlc.get_num_threads()
    try:
        for count in counts:
            mlc.set_num_threads(count)
            same(entry.call([np.array(a) for a in program.arguments]), wanted, f"native code, {count} threads")
    finally:
        mlc.set_num_threads(before)


WAYS: dict[str, Callable[[Program], None]] = {
    "host": check, "v2": narrow(V2), "v3": narrow(V3), "512": lambda p: check(p, host(), CPU),
    "rescheduled": rescheduled, "packed": packed, "frozen": frozen}


# -- native code, in every way ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", thinned(WAYS, 2))
def test_programs(way: str) -> None:
    for seed in range(list(WAYS).index(way), 18, len(WAYS)):
        WAYS[way](programs.generate(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
@pytest.mark.parametrize("way", WAYS)
def test_many_programs(way: str, block: int) -> None:
    for seed in range(1000 + 40 * block, 1040 + 40 * block):
        WAYS[way](programs.generate(seed))


@pytest.mark.slow
def test_programs_of_functions() -> None:
    for seed in range(1):
        threaded(functions.generate(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
def test_many_programs_of_functions(block: int) -> None:
    for seed in range(1000 + 40 * block, 1040 + 40 * block):
        threaded(functions.generate(seed))


# -- all kinds --------------------------------------------------------------------------------------------------------
def found(kind: str, seeds: range) -> list[str]:
    """Failures of a kind of random program; the time limit is generous, and only for hangs."""
    kinds.prepare(kind)
    return [f"seed {seed}: {failure.message}\n{failure.text}"
            for seed, failure in batch.run(kinds.KINDS[kind], seeds, 10 * fuzz.SECONDS[kind]).failures]


RARE = {"product_with_repeated", "take_of_repeated", "slice_at_known_start", "splat_to_the_right",
        "elementwise_of_splats", "add_of_padded", "transpose_of_product"}
"""Rules that random programs do not reach: they take what vmap leaves, several things of one kind, or what folding
leaves. Each has its own case in tests/test_tensor_ops.py."""


def around_each_rule(seeds: Sequence[int], foldings: bool) -> list[str]:
    """The rules that did not fire in the programs made around them; AssertionError where a rewrite is wrong."""
    idle = []
    for number, (name, _, _) in enumerate(rewrites.subjects()):
        if name == "fold" and not foldings:
            continue
        before = fired(name)
        for seed in seeds:
            failure = levels.examine_rewrites(rewrites.generate_for(number, seed))
            assert failure is None, f"{failure.message}\n{failure.text}"
        idle += [name] if name != "fold" and fired(name) == before else []
    return idle


def fired(name: str) -> int:
    return sum(rule.fired for rules in RULES.values() for rule in rules if rule.name == name)


def test_programs_around_each_rule() -> None:
    around_each_rule(range(8), foldings=False)


@pytest.mark.slow
def test_many_programs_around_each_rule() -> None:
    assert set(around_each_rule(range(150), foldings=True)) <= RARE


@pytest.mark.parametrize(("kind", "seeds"), [("valid", range(1, 21)), ("invalid", range(25)), ("calls", range(150))])
def test_no_failures(kind: str, seeds: range) -> None:
    assert not found(kind, seeds)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("kind", kinds.KINDS)
def test_no_failures_of_many(kind: str, block: int) -> None:
    assert not found(kind, range(1000 * block + 100, 1000 * block + 1100))


# -- what the generators make -----------------------------------------------------------------------------------------
def test_programs_of_functions_have_what_they_are_for() -> None:
    texts = [functions.generate(seed).text for seed in range(30)]
    for word in ("func.call", "scf.for", "scf.if", "donate", "tensor.scatter", "tensor.scatter_along", "cumulative"):
        assert sum(word in text for text in texts) >= 3, word
    texts = [derivatives.generate(seed).text for seed in range(20)]
    for word in ("autodiff.vjp", "autodiff.jvp", "autodiff.vmap"):
        assert sum(word in text for text in texts) >= 2, word
    texts = [python_programs.generate(seed).text for seed in range(200)]
    for word in ("for i", "while ", "if T.sum", "T.nn.functional", "T.linalg"):
        assert sum(word in text for text in texts) >= 2, word


def test_graphs_are_of_many_kernels() -> None:
    """Fusion leaves six of most of them at least, and writes some results over others."""
    counts = list[int]()
    for seed in range(8):
        program = graphs.generate(seed)
        module = program.module()
        Pipeline([step for step, _ in levels.stages("fuse", program)]).run(module)
        counts.append(sum(isinstance(op, tensor.kernel.Kernel) for op in module.walk()))
    assert sum(count >= 6 for count in counts) >= 5, counts


def test_sizes_keep_what_they_mean_when_they_change() -> None:
    """One array twice stays one, and sizes that are equal are so afterwards, mostly."""
    x, y, same = np.ones((4, 1)), np.arange(4.0), 0
    for seed in range(30):
        a, b, c = resized([x, y, y], random.Random(seed))
        assert b is c and (a.shape, b.shape) != (x.shape, y.shape)
        same += a.shape == (len(b), 1)
    assert 15 < same < 30


def test_calls_have_options_operands_of_other_types_and_writes() -> None:
    texts = [python_programs.generate(seed).text for seed in range(600)]
    for word in ("dtype=T.", "T.complex(", ".long()"):
        assert sum(word in text for text in texts) >= 2, word
    written = {name for name in options.in_place_methods() for text in texts if f".{name}(" in text}
    assert len(written) > 20, written


def test_a_seed_is_a_program() -> None:
    """The same seed gives the same text and arrays, and seeds give programs with operations of every family."""
    names = set()
    for seed in range(60):
        first, second = programs.generate(seed), programs.generate(seed)
        assert first.text == second.text
        assert all((a.view("u1") == b.view("u1")).all() if a.size and a.ndim else True
                   for a, b in zip(first.arguments, second.arguments))
        names |= {op.name.removeprefix("tensor.") for op in first.module().walk()}
    for seed in range(60, 240):
        names |= {op.name.removeprefix("tensor.") for op in programs.generate(seed).module().walk()}
    assert {"dynamic_slice", "dynamic_update_slice", "dequantize", "quantized_dot", "windows", "complex", "dft",
            "random_bits", "search_sorted", "view_as_real"} <= names
    assert {"reduce_sum", "dot_general", "reshape", "transpose", "broadcast_to", "slice", "pad", "concat", "reverse",
            "take", "take_along", "select", "cast", "compare", "iota", "constant", "add", "mul"} <= names


def test_every_operation_is_drawn_or_left_out_for_a_reason() -> None:
    """A new operation of tensors is in random programs without being named there."""
    drawn = {cls.name for cls in registry.functions()}
    assert {"tensor.add", "tensor.softmax", "tensor.convolution", "tensor.cumulative"} <= drawn
    assert registry.LEFT_OUT <= REGISTRY.keys() - drawn


# -- a planted fault --------------------------------------------------------------------------------------------------
def _without_exp(module: Module) -> None:
    """A cse that takes exponentials for what they are of."""
    for op in list(module.inside(Exp)):
        op.replace_by(op.x)


@pytest.mark.slow
def test_a_fault_is_named_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_without_exp, "__module__", "mlc.passes.cse")
    monkeypatch.setattr(cse, "PASS", Pass(_without_exp))
    monkeypatch.setattr(kinds, "parse_pipeline", lambda text: [Step(cse.PASS)])      # which remembers the real one
    made = (levels.examine(p, "fuse") for p in map(programs.generate, range(200)) if "tensor.exp " in p.text)
    failure = next(f for f in made if f is not None)
    assert failure.key.startswith("MLC0901 pass cse") and failure.text.startswith("// test: pass cse\n")
    small = kinds.reduced(failure, 20)
    assert small.key == failure.key and "tensor.exp " in small.text and "arg0:" in small.text
    assert small.text.count(" tensor.") <= 6 < failure.text.count(" tensor.")


# -- processes, the log and the command -------------------------------------------------------------------------------
def test_crashes_hangs_and_errors_are_failures_of_their_seeds(capfd: pytest.CaptureFixture[str]) -> None:
    def examine(seed: int) -> Failure | None:
        if seed == 2:
            os.abort()
        if seed == 4:
            time.sleep(60)
        if seed == 5:
            raise KeyError("mine")
        return Failure("the same", f"number {seed}") if seed in (1, 6) else None

    done = batch.run(examine, range(8), seconds=0.2)
    assert done.count == 8
    assert [(seed, failure.key.split(" ")[0]) for seed, failure in done.failures] == [
        (1, "the"), (2, "SIGABRT"), (4, "no"), (5, "KeyError"), (6, "the")]
    assert child.ask(lambda: "yes", 5) == "yes" and child.ask(os.abort, 5) == "SIGABRT"
    assert child.ask(lambda: time.sleep(60), 0.2) == "no end within 0.2 s"
    assert child.ask(lambda: {"a": "yes"}["b"], 5) == "no answer"
    assert "KeyError" in capfd.readouterr().err
    def interrupted() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)       # which a job in the background ignores
        signal.raise_signal(signal.SIGINT)

    assert child.ask(interrupted, 5) == "no answer"
    assert not capfd.readouterr().err, "the parent is interrupted too, and says so"


def test_the_log_says_where_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    seen = tmp_path / "seen"

    def examine(seed: int) -> Failure | None:
        with seen.open("a") as file:
            file.write(f"{seed}\n")
        return Failure("a fault", f"of {seed}", "text", ".txt") if seed % 5 == 0 else None

    monkeypatch.setitem(kinds.KINDS, "calls", examine)
    words = ["fuzz", "--kind", "calls", "--seed", "10", "--log", str(tmp_path / "log"), "-o", str(tmp_path / "out")]
    assert main([*words, "--count", "12", "--shard", "1/2"]) == 101
    assert seen.read_text().split() == ["11", "13", "15", "17", "19", "21"]
    assert "6 seeds" in capsys.readouterr().out and [p.name for p in (tmp_path / "out").iterdir()] == [
        "fuzz-calls-15.txt"]
    with (tmp_path / "log").open("a") as file:
        file.write('{"kind": "calls", "nex')                # cut off
    assert main([*words, "--count", "16", "--shard", "1/2"]) == 101
    assert seen.read_text().split()[6:] == ["23", "25"]
    assert "1 failures, 0 of them new" in capsys.readouterr().out
    assert Journal(tmp_path / "log").next("calls", 10, "1/2") == 26
    assert Journal(tmp_path / "log").next("calls", 10, "0/2") == 10
    assert sum("fuzz" in entry for entry in Journal(tmp_path / "log").entries()) == 2


def test_what_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--shard", "2/2"], ["--shard", "one"], ["--kind", "none"]):
        assert main(["fuzz", *words]) == 2
        assert "error[MLC0391]" in capsys.readouterr().err




@pytest.mark.parametrize("line", [
    "v1 = T.rand_like(x0)", "v1 = T.nn.functional.dropout(x0)",
    "v1 = T.nn.functional.leaky_relu(x0, 2, True)",         # which changes its argument
    "v1 = T.sgn(x0)",                                       # whose gradient PyTorch gives as zeros without memory
])
def test_what_no_two_runs_agree_on_is_no_failure(line: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4))
    program = python_programs.PythonProgram(0, "x0", (f"    {line}",), ("v1",), (x,), True)
    assert python_programs.examine(program) is None


@pytest.mark.parametrize("expression", ["pinverse(x0)", "pinverse(T.log(T.abs(x0)))", "linalg.svd(x0)"])
def test_what_lapack_makes_of_infinities_is_no_failure(expression: str) -> None:
    x = np.array([[0.9, -0.0, 1.5], [0.2, 0.4, -0.2], [0.1, -np.inf, -0.6]])
    program = python_programs.PythonProgram(0, "x0", (f"    v1 = T.{expression}",), ("v1",), (x,), False)
    assert python_programs.examine(program) is None


@pytest.mark.parametrize("expression", ["fft.ifftn(x0)", "prod(T.log_softmax(x0[1:] * 1e300, 1))"])
def test_what_depends_on_the_order_of_terms_is_no_failure(expression: str) -> None:
    x = np.array([[0.6, -np.inf, 0.1, 2.0, 1.1], [0.9, -0.5, 0.8, -1.5, 0.0]])
    program = python_programs.PythonProgram(0, "x0", (f"    v1 = T.{expression}",), ("v1",), (x,), False)
    assert python_programs.examine(program) is None


def test_only_a_product_that_makes_nan_is_unspecified() -> None:
    for x, unspecified in (([np.nan, 0.0], False), ([1e10, 1.0], False), ([1e10, 0.0], True)):
        with interpreted() as seen:
            mlc.compile(lambda x: mlc.prod(x * 1e300))(np.array(x))
        assert seen.met is unspecified


def test_a_product_that_overflows_beside_an_infinity_is_unspecified() -> None:
    """As one operation, fma(x, x, -inf), it is -inf."""
    for y, unspecified in ((-np.inf, True), (np.inf, False), (1.0, False)):
        with interpreted() as seen:
            mlc.compile(lambda x, y: x * x + y)(np.array(1e300), np.array(y))
        assert seen.met is unspecified


def test_derivatives_of_which_no_digit_is_certain_are_no_failure() -> None:
    """Of sin(e^x), which is what is differentiated, the derivative is cos(e^x) e^x."""
    x = np.array(2.1737690305748494)
    lines = ("    v1 = T.hypot(x0, 1 + T.addcmul(x0, x0, x0))", "    v2 = T.exp(T.floor(v1) + v1)")
    assert python_programs.examine(python_programs.PythonProgram(0, "x0", lines, ("v2",), (x,), True)) is None


def test_a_wrong_derivative_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor.Tanh, "vjp", lambda self, ct: [ct])
    x = np.random.default_rng(0).standard_normal((3, 4))
    program = python_programs.PythonProgram(0, "x0", ("    v1 = T.tanh(x0)",), ("v1",), (x,), True)
    found = python_programs.examine(program)
    assert found is not None and "gradient against torch" in found.key


def test_code_for_all_sizes_is_called_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for at least three elements is not for fewer: the first that is asked for them says so."""
    x = np.arange(5.0)
    seed = next(seed for seed in range(0, 99, 3) if resized([x], random.Random(seed))[0].size < 3)
    program = python_programs.PythonProgram(seed, "x0", ("    v1 = x0[0:3] * 2",), ("v1",), (x,), True)
    assert python_programs.examine(program) is None
    monkeypatch.setattr(ForSizes, "fits", lambda self, call: True)
    found = python_programs.examine(program)
    assert found is not None and "given others" in found.key


def of_a_factorization(name: str) -> python_programs.PythonProgram:
    x = np.random.default_rng(0).standard_normal((4, 3))
    call = FREE[name].format(x="x0", args="x0.mT @ x0" if name == "linalg.eigh" else "x0")
    return python_programs.PythonProgram(0, "x0", (f"    v1 = {call}",), ("v1",), (x,), True)


@pytest.mark.parametrize("name", FREE)
def test_factorizations_are_those_of_pytorch(name: str) -> None:
    assert python_programs.examine(of_a_factorization(name)) is None


def test_vectors_are_compared_up_to_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With other signs in both factors the vectors are the same, in one of them they are not."""
    program, svd, signs = of_a_factorization("svd"), mlc.svd, np.array([-1.0, 1.0, -1.0])

    def both(x: mlc.Tensor) -> tuple[mlc.Tensor, ...]:
        u, s, v = svd(x)
        return u * mlc.tensor(signs), s, v * mlc.tensor(signs)

    monkeypatch.setattr(mlc, "svd", both)
    assert python_programs.examine(program) is None
    monkeypatch.setattr(mlc, "svd", lambda x: (*svd(x)[:2], both(x)[2]))
    found = python_programs.examine(program)
    assert found is not None and "result 3 is" in found.message


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_that_write(seed: int) -> None:
    """To indices, views and masks, in branches and loops: compiled, differentiated, and by an eager `backward`."""
    assert python_programs.examine(writes.generate(seed)) is None


def test_programs_that_write_have_all_kinds_of_subscripts() -> None:
    text = "".join(writes.generate(seed).text for seed in range(300))
    for part in ("else:", ".index_add_(", "for i", "[:, T.tensor", ".transpose(", ".masked_fill_(", ":3, ", "] += "):
        assert part in text, part


def test_random_schedules_keep_the_order_of_sums() -> None:
    """Each group of a product with q4_k adds a product and its minimum: two groups at a time add two products first."""
    for seed in range(8):
        module = product("q4_k", 2, 21, 256, 144)
        pipeline.lower(module, "loop", CPU)
        dots = next(k for k in module.inside(Kernel) if next(k.inside(DotQuads), None) is not None)
        for op in dots.inside(For):
            op.unroll = 0
        reschedule(module, random.Random(seed))
        assert dots.schedule.tile[2] == 1


QUANTIZED = """func.func @main(%x: tensor<1x256xf32>, %w: tensor<5xBYTESxui8>) -> tensor<1x5xf32> {
  %0 = tensor.quantized_dot %x, %w {encoding = "ENCODING"} : (tensor<1x256xf32>, tensor<5xBYTESxui8>) -> tensor<1x5xf32>
  func.return %0 : tensor<1x5xf32>
}"""


def quantized(encoding: str, seed: int) -> Program:
    """A product with quantised rows."""
    x, w = factors(encoding, 1, 5, 256)
    return Program(seed, QUANTIZED.replace("BYTES", str(w.shape[1])).replace("ENCODING", encoding), (x, w))


@pytest.mark.parametrize("seed", [14, 20, 29, 37])
def test_random_panels_of_scales_have_a_row_for_each_lane(seed: int) -> None:
    """There are no vectors of the scales of one row's groups: the lowering refuses them (slow suite, seed 1055)."""
    packed(quantized("q8_0", seed))


@pytest.mark.parametrize("seed", [1, 6])
def test_random_panels_keep_the_order_of_sums(seed: int) -> None:
    """Unrolled, groups of a product with q4_k would add two products, then two minima."""
    packed(quantized("q4_k", seed))
