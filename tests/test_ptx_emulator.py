"""A second opinion on PTX: an emulator that is not ours runs what we emit, with warps out of step and late copies.

Without it only the table of its instructions is tested; tests/ptx_emulator/README.md says how it is built. In
`pytest -m slow` it runs every sample, and every barrier and every wait of every program is left out once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from mlc.backends.cuda import image
from mlc.backends.cuda.devices import target_for
from mlc.backends.cuda.executable import Executable
from mlc.backends.cuda.memory import DeviceMemory
from mlc.ir.core import Op
from mlc.ir.diag import BackendError
from mlc.ir.interp import run_function
from mlc.ir.machine import GPU
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline
from mlc.passes import pipeline
from tests import test_gpu, test_gpu_attention, test_warps
from tests.arrays import difference
from tests.corpus import PROGRAMS
from tests.emulated_device import VARIABLE, WARP, EmulatedDevice
from tests.op_sample import Sample
from tests.op_samples import SAMPLES
from tests.ptx_emulator.instructions import EXECUTED, REFUSED, adapt
from tests.test_meaning import representative

emulated = pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} does not name the emulator: "
                              "tests/ptx_emulator/README.md says how it is built")
SEEDS = ((0, WARP), (1, WARP), (2, 1))
"""Schedules: warps one after the other; warps out of step; threads out of step."""


@dataclass(frozen=True)
class Case:
    """A program for the emulator: what builds it, its arguments, and the precision of its products."""

    build: Callable[[], Op]
    arguments: Sequence[Any]
    precision: str | None = "ieee"

    def image(self, architecture: int = 89) -> image.DeviceImage:      # the emulator has no wgmma
        device = EmulatedDevice(architecture)
        return image.compile_image(self.build(), target_for(device), device.assemble, self.precision)

    def wanted(self) -> list[Any]:
        """Result of the interpreter after fix_numerics, below which every pass preserves every bit."""
        module, products = self.build(), {None: "mma", "ieee": "fma", "tf32": "tf32"}[self.precision]
        steps = pipeline.steps("low", machine=GPU, products=products)
        last = [step.transform.name for step in steps].index("fix_numerics")
        Pipeline(steps[: last + 1]).run(module)
        return run_function(module, "main", list(self.arguments))

    def check(self, schedules: Sequence[tuple[int, int]] = SEEDS) -> None:
        made, wanted = self.image(), self.wanted()
        for seed, lanes in schedules:
            assert differences(made, self.arguments, wanted, seed, lanes) == [], (seed, lanes)


def results(made: image.DeviceImage, arguments: Sequence[Any], seed: int = 0, lanes: int = WARP) -> list[Any]:
    """The results of the emulator."""
    memory = DeviceMemory(EmulatedDevice(seed=seed, lanes=lanes))
    f = Executable(made, memory).entry("main")
    f.poison = True
    return [r.numpy() for r in f.call([memory.array(np.asarray(a)) for a in arguments])]


def differences(made: image.DeviceImage, arguments: Sequence[Any], wanted: Sequence[Any], seed: int = 0,
                lanes: int = WARP) -> list[str]:
    """Where they differ from what is wanted, to the bit."""
    found = results(made, arguments, seed, lanes)
    return [said for a, b in zip(found, wanted, strict=True) if (said := difference(a, b, "bits"))]


def of_sample(sample: Sample) -> Case:
    return Case(lambda: sample.build()[0], sample.arguments())


IN_PLACE = """func.func @main(%x: tensor<9x37xf32>) -> tensor<9x37xf32> attributes {donate = [0]} {
  %0 = tensor.softmax %x {axis = 1} : (tensor<9x37xf32>) -> tensor<9x37xf32>
  func.return %0 : tensor<9x37xf32>
}"""


def _cases() -> Iterator[tuple[str, Case]]:
    for prefix, programs in (("", PROGRAMS), ("product, ", test_gpu.PRODUCTS), ("warps, ", test_warps.PRODUCTS)):
        for name, make in programs.items():
            precision = ("tf32" if "tf32" in name else None) if prefix == "warps, " else "ieee"
            yield prefix + name, Case(lambda make=make: make()[0], make()[1], precision)  # type: ignore[misc]
    x = np.random.default_rng(0).standard_normal((9, 37)).astype("f4")
    yield "in place", Case(lambda: parse_module(IN_PLACE), [x])


CASES = dict(_cases())


# -- results ----------------------------------------------------------------------------------------------------------
@emulated
@pytest.mark.parametrize("name", CASES)
def test_programs(name: str) -> None:
    CASES[name].check()


@emulated
@pytest.mark.parametrize("name", ["softmax_by_hand", "row_statistics", "product, odd", "narrow_floats"])
def test_the_oldest_architecture(name: str) -> None:
    """It has neither copies that go on meanwhile nor maxima of NaN."""
    case = CASES[name]
    assert differences(case.image(75), case.arguments, case.wanted(), seed=1) == []


@emulated
@pytest.mark.parametrize("sample", representative(SAMPLES, 1), ids=str)
def test_operations(sample: Sample) -> None:
    of_sample(sample).check(SEEDS[:1])


@emulated
@pytest.mark.slow
@pytest.mark.parametrize("sample", {str(s): s for s in SAMPLES}.values(), ids=str)
def test_every_sample(sample: Sample) -> None:
    of_sample(sample).check(SEEDS[1:2])


ATTENTION = {"whole": (("2x64x64", "2x128x64"), "bf16", False), "causal": (("1x96x64", "1x150x64"), "bf16", True),
             "f16": (("1x70x32", "1x70x32"), "f16", True)}


@emulated
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_in_one_kernel(name: str) -> None:
    """Powers of two and the order of sums may differ in last bits, so that results are close."""
    (q, k), dtype, causal = ATTENTION[name]
    types = [f"{shape}x{dtype}" for shape in (q, k, k)]
    case = Case(lambda: test_gpu_attention.attention(*types, causal=causal)[0],
                test_gpu_attention.attention(*types)[1], None)
    made, (wanted,) = case.image(80), case.wanted()
    assert "ex2.approx.ftz.f32" in made.code.decode()
    for seed, lanes in (*SEEDS[:2], (3, WARP), (4, WARP)):
        found, = results(made, case.arguments, seed, lanes)
        error = np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max()
        assert error <= test_gpu_attention.ROUNDING * np.abs(wanted.astype(np.float64)).max(), (seed, lanes)


SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-310, 1.5, -2.5, 0.5, 1e-45, 3.3e38, 88.7, -104.0)


@emulated
@pytest.mark.parametrize("name", ["abs", "sign", "exp", "log", "sqrt", "floor", "round", "maximum", "minimum", "relu"])
def test_special_numbers(name: str) -> None:
    """NaN, infinities, zeros of both signs and what is nearly one of them."""
    tried = [s for s in representative(SAMPLES, 9) if s.op == f"tensor.{name}" and any(7 in t.shape for t in s.types)]
    for sample in tried:
        with np.errstate(all="ignore"):
            arguments = [np.resize(np.roll(SPECIAL, -5 * i), a.shape).astype(a.dtype) if a.dtype.kind == "f" else a
                         for i, a in enumerate(sample.arguments())]
        Case(lambda sample=sample: sample.build()[0], arguments).check(SEEDS[:1])  # type: ignore[misc]
    assert tried


# -- what is missing is seen ------------------------------------------------------------------------------------------
ORDERING = re.compile(r"^\t(bar\.sync|cp\.async\.wait_group).*\n", re.M)
ONCE, LAST, ALONE = ("it parts two turns of a loop that is done once", "an earlier one parts the reads from the write",
                     "only the thread that wrote uses what is read")
NEEDLESS: dict[str, dict[int, str]] = {
    "symbolic_rows_and_columns": {1: ALONE, 2: LAST}, "softmax_by_hand": {2: LAST}, "linear_relu": {0: ONCE},
    "transposed_product": {0: ONCE}, "narrow_floats": {1: ALONE, 2: LAST}, "unused_and_scalar": {1: ALONE, 2: LAST},
    "mlp_gradient": {0: ONCE}, "in place": {2: LAST, 5: LAST},
    "mlp_gradient_of_symbolic_batch": {3: ALONE, 4: LAST, 5: LAST, 6: ONCE, 8: ONCE},
    "warps, lhs transposed": {0: ONCE}, "warps, tiny": {0: ONCE}}
"""Barriers that a kernel would do without, by their place among the barriers and waits of a program's PTX."""


def left_out(name: str) -> None:
    """Leave out every barrier and every wait once: some schedule shows it, but of those that are needless."""
    case, found = CASES[name], {}
    made = case.image()
    text = made.code.decode()
    wanted = case.wanted()
    for number, place in enumerate(ORDERING.finditer(text)):
        shorter = replace(made, code=(text[: place.start()] + text[place.end():]).encode())
        if not any(seen(shorter, case.arguments, wanted, seed) for seed in range(1, 7)):
            found[number] = place[0].strip()
    assert found.keys() == NEEDLESS.get(name, {}).keys(), found


def seen(made: image.DeviceImage, arguments: Sequence[Any], wanted: Sequence[Any], seed: int) -> bool:
    """Whether a schedule gives another result, or none."""
    try:
        return bool(differences(made, arguments, wanted, seed))
    except BackendError as error:
        assert error.code == "MLC0587", error
        return True


SHOWN = ("softmax_by_hand", "linear_relu", "product, whole boxes", "warps, many stages")


@emulated
@pytest.mark.parametrize("name", SHOWN)
def test_what_orders_threads_is_missed_where_it_is_left_out(name: str) -> None:
    left_out(name)


@emulated
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in SHOWN])
def test_everything_that_orders_threads_is_missed(name: str) -> None:
    left_out(name)


@emulated
def test_a_copy_is_late_where_too_few_are_waited_for() -> None:
    case = CASES["warps, many stages"]
    made, wanted = case.image(), case.wanted()
    text = made.code.decode()
    fewer = re.sub(r"(cp\.async\.wait_group\s+)(\d+)", lambda m: f"{m[1]}{int(m[2]) + 1}", text)
    assert fewer != text
    assert any(seen(replace(made, code=fewer.encode()), case.arguments, wanted, seed) for seed in range(1, 7))


@emulated
def test_a_barrier_that_some_do_not_come_to() -> None:
    case = CASES["softmax_by_hand"]
    made = case.image()
    text = made.code.decode().replace("\tbar.sync \t0;\n", (
        "\t.reg .pred %p99;\n\t.reg .b32 %r999;\n\tmov.u32 \t%r999, %tid.x;\n\tsetp.gt.u32 \t%p99, %r999, 31;\n"
        "\t@%p99 bra \t$L_on;\n\tbar.sync \t0;\n$L_on:\n"), 1)
    with pytest.raises(BackendError, match=r"MLC0587.*wait at a barrier that others do not come to"):
        differences(replace(made, code=text.encode()), case.arguments, case.wanted())


# -- what is wrong is seen --------------------------------------------------------------------------------------------
FAULTS: dict[str, tuple[str, str, str]] = {
    "a condition the wrong way round": ("softmax_by_hand", r"@%p2 bra", "@!%p2 bra"),
    "another lane": ("softmax_by_hand", r"(shfl\.sync\.down\.b32 \t\S+ \S+) 16,", r"\1 17,"),
    "a lane too few": ("unused_and_scalar", r", 16, 31, -1;", ", 16, 30, -1;"),
    "no NaN": ("nan", r"max\.NaN\.f32", "max.f32"),
    "a comparison the other way round": ("narrow_floats", r"setp\.lt\.f32", "setp.gt.f32"),
    "a product rounded by itself": ("elementwise_chain", r"fma\.rn\.f32 \t(\S+), (\S+), (\S+), (\S+);",
                                    r"mul.rn.f32 \t%rounded, \2, \3;\n\tadd.rn.f32 \t\1, %rounded, \4;"),
    "down in place of to the nearest": ("round-7xf64", r"cvt\.rni\.f64\.f64", "cvt.rmi.f64.f64"),
    "up in place of down": ("floor-f64", r"cvt\.rmi\.f64\.f64", "cvt.rpi.f64.f64"),
    "a shift without sign": ("erfinv-7xf64", r"shr\.s64", "shr.u64"),
    "an index that is not clamped": ("linear_relu", r"min\.s64 (\t\S+) (\S+), \d+;", r"mov.b64 \1 \2;"),
    "the other operand": ("integers", r"selp\.b32 (\t\S+) (\S+), (\S+),", r"selp.b32 \1 \3, \2,"),
    "half a copy": ("warps, many stages", r"(cp\.async\.c)g(.*), 16;", r"\1a\2, 8;"),
    "a matrix not transposed": ("warps, rest", r"(ldmatrix\S+)\.trans", r"\1"),
    "one row further": ("linear_relu", r"ld\.shared\.b32 (\t%r\d+, \[%rd\d+\+-)160", r"ld.shared.b32 \g<1>80"),
    "another rotation": ("random_bits-2xui32", r"(shf\.l\.wrap\.b32 .*), 13;", r"\1, 14;"),
}
"""Faults: a program, a pattern, and what stands in its place."""


@cache
def _faulty(name: str) -> Case:
    if name == "nan":                                      # the largest of each column, one of which has no number
        case = CASES["symbolic_rows_and_columns"]
        a, b = (x.copy() for x in case.arguments)
        a[2, 5] = np.nan
        return replace(case, arguments=[a, b])
    return CASES[name] if name in CASES else of_sample(next(s for s in SAMPLES if str(s) == name))


@emulated
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    name, pattern, replacement = FAULTS[fault]
    case = _faulty(name)
    made, wanted = case.image(), case.wanted()
    assert differences(made, case.arguments, wanted) == []
    text = made.code.decode()
    wrong = re.sub(pattern, replacement, text)
    assert wrong != text
    if "%rounded" in wrong:
        wrong = re.sub(r"^\{$", "{\n\t.reg .b32 %rounded;", wrong, flags=re.M)
    assert seen(replace(made, code=wrong.encode()), case.arguments, wanted, 0)


# -- instructions -----------------------------------------------------------------------------------------------------
def body(line: str) -> str:
    return f".version 8.6\n.target sm_90\n.visible .entry k()\n{{\n\t{line};\n}}"


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_emulator_has_nothing_for_is_refused_by_name(name: str) -> None:
    with pytest.raises(BackendError, match=f"MLC0584.*it has no {re.escape(name)}, which needs"):
        adapt(body(name))


def test_what_nobody_has_tried_is_refused() -> None:
    for line in ("add.rz.f32 \t%r1, %r2, %r3", "@%p1 lop3.b32 \t%r1, %r2, %r3, %r4, 3",
                 "st.volatile.shared.b32 \t[%r1], %r2"):
        with pytest.raises(BackendError, match=r"MLC0584.*nobody has tried"):
            adapt(body(line))


def test_an_instruction_is_kept_or_put_into_others() -> None:
    assert "\tadd.s32 \t%r1, %r2, %r3;" in adapt(body("add.s32 \t%r1, %r2, %r3"))
    text = adapt(body("cp.async.cg.shared.global [%rd1], [%rd2], 16"))
    assert "\tst.volatile.shared.v4.b32 [%rd1], {%xr0, %xr1, %xr2, %xr3};" in text and ".reg .b32 %xr<40>;" in text
    assert "pmevent 2;" in adapt(body("cp.async.wait_group \t2")) and "s32" in EXECUTED["add"].split()
