"""Line tables: each instruction names its operation, and the code is the same as without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mlc.backends import object_code
from mlc.backends.compilation_units import CompilationUnit, compilation_units
from mlc.backends.cpu.targets import LEVELS, host
from mlc.backends.cuda.ptx import kernels
from mlc.backends.emit_llvm import Part, emit, emit_part
from mlc.backends.line_table import Instruction, instructions
from mlc.backends.target import Target
from mlc.dialects import llvm
from mlc.ir.core import Op
from mlc.passes import pipeline
from tests.corpus import PROGRAMS

SOME = ("softmax_by_hand", "symbolic_rows_and_columns")
TARGETS = (host(), LEVELS["x86-64-v2"])


def numbered(module: Op) -> dict[Op, int]:
    return {op: i for i, op in enumerate(module.walk(), 1)}


def units(name: str, target: Target) -> tuple[Op, Sequence[CompilationUnit]]:
    module, _ = PROGRAMS[name]()
    pipeline.lower(module, "llvm", target.machine)
    return module, compilation_units(module, target)


def assembly(unit: CompilationUnit, target: Target, numbers: dict[Op, int]) -> list[Instruction]:
    text = emit_part(unit.ops, target, replace(unit.part, lines=numbers))
    return list(instructions(object_code.assembly(text, target)))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("name", SOME)
def test_the_code_is_the_same_as_without(name: str, target: Target) -> None:
    module, found = units(name, target)
    for unit in found:
        plain = list(instructions(object_code.assembly(unit.text, target)))
        assert [i.text for i in plain] == [i.text for i in assembly(unit, target, numbered(module))]
        assert not any(i.number for i in plain)


@pytest.mark.parametrize("name", SOME)
def test_instructions_name_operations_of_their_own_function(name: str) -> None:
    module, found = units(name, host())
    numbers = numbered(module)
    ops = {number: op for op, number in numbers.items()}
    for unit in found:
        functions = {id(f) for f in unit.ops if isinstance(f, llvm.Func)}
        code = [i for i in assembly(unit, host(), numbers) if i.is_code]
        named = [ops[i.number] for i in code if i.number]
        assert all(id(op if isinstance(op, llvm.Func) else op.parent_op) in functions for op in named)
        assert len(named) >= 0.6 * len(code)               # LLVM makes the others for several operations at once


def test_an_instruction_is_of_the_operation_that_it_computes() -> None:
    module, found = units("softmax_by_hand", host())
    numbers = numbered(module)
    divisions = {numbers[op] for op in module.walk() if op.name == "llvm.fdiv"}
    code = [i for unit in found for i in assembly(unit, host(), numbers)]
    assert divisions and {i.number for i in code if "vdiv" in i.text or "divps" in i.text} <= divisions


def test_ptx_has_lines_too() -> None:
    target = Target.parse("cuda:sm_90")
    module, _ = PROGRAMS["softmax_by_hand"]()
    pipeline.lower(module, "llvm", target.machine)
    holder, numbers = kernels(module), numbered(module)
    plain = instructions(object_code.assembly(emit(holder, target), target))
    lined = list(instructions(object_code.assembly(emit(holder, target, Part(lines=numbers)), target)))
    assert sum(i.number > 0 for i in lined) > 0.6 * sum(i.is_code for i in lined)
    assert [i.text for i in plain] == [i.text for i in lined]
