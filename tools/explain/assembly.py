"""Assembly, or PTX, of a module of the llvm dialect, with the operation that each instruction is from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from mlc.backends import line_table, object_code
from mlc.backends.compilation_units import compilation_units
from mlc.backends.emit_llvm import Part, emit, emit_part
from mlc.backends.target import Target
from mlc.dialects import llvm
from mlc.ir.core import Op
from mlc.tools.explain.explanation import Line

_LABEL = re.compile(r"\s*(?:\.visible\s+)?(?:\.entry\s+|\.func\s+(?:\(.*\)\s*)?)?([\w$.]+)(?::|\()")


def lines(module: Op, target: Target, number_of: Mapping[Op, int]) -> list[Line]:
    """The code that `mlc.compile` would load, function by function.

    An instruction that LLVM made for several operations at once is of the function.
    """
    numbers = {op: number + 1 for op, number in number_of.items()}           # 0 is no line
    functions = {str(op.sym_name): number_of[op] for op in module.inside(llvm.Func) if op.body.blocks}
    out: list[Line] = []
    for text, names in _texts(module, target, numbers):
        known = {names.get(name, name): number for name, number in functions.items()}
        readable, function = {final: name for name, final in names.items()}, -1
        for line in line_table.instructions(text):
            if (label := _LABEL.match(line.text)) and label[1] in known:
                function = known[label[1]]
            shown = line.text
            for unit in _UNIT.findall(shown) if readable else ():
                shown = shown.replace(unit, readable.get(unit, unit))
            if line.is_code:
                out.append(Line(shown, line.number - 1 if line.number else function))
            elif label or target.is_gpu or not line.text.lstrip().startswith((".", "#")):
                out.append(Line(shown, function if label and label[1] in known else -1))
    return out


_UNIT = re.compile(r"\bu[0-9a-f]{40}\b")


def _texts(module: Op, target: Target, numbers: Mapping[Op, int]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Assembly with line tables, and the final names of functions, for each part that is compiled by itself."""
    if target.is_gpu:
        from mlc.backends.cuda import ptx
        from mlc.backends.cuda.targets import architecture
        holder = ptx.kernels(module)
        ptx.check_legal(holder, architecture(target), is_hopper=target.cpu == "sm_90a")
        yield object_code.assembly(emit(holder, target, Part(lines=numbers)), target), {}
        return
    for unit in reversed(compilation_units(module, target)):
        text = emit_part(unit.ops, target, replace(unit.part, lines=numbers))
        yield object_code.assembly(text, target), unit.part.names
