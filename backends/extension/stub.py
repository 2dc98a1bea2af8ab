"""Documentation of an extension module: docstrings, and the stub NAME.pyi for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlc.backends.extension.signature import Constant, Function, Slot, Tree, dtype_name, shown
from mlc.ir.types import FloatType, TensorType, i1


def parameters(function: Function) -> str:
    """The parameters in Python syntax, without types."""
    return ", ".join(_starred(function, lambda p: p.name))


def _starred(function: Function, write: Callable[..., str]) -> list[str]:
    out = [write(p) for p in function.parameters]
    if function.positional < len(out):
        out.insert(function.positional, "*")
    return out


def signature(function: Function) -> str:
    """The signature with types, in one line: `net(x: float32[B, 16]) -> float32[B, 4]`."""
    interface = function.interface
    args = _starred(function, lambda p: f"{p.name}: {_short(p.tree, interface.inputs)}")
    return f"{function.name}({', '.join(args)}) -> {_short(function.result, interface.results)}"


def _short(tree: Tree, types: Sequence[TensorType]) -> str:
    if isinstance(tree, Slot):
        return shown(types[tree.number])
    if isinstance(tree, Constant):
        return repr(tree.value)
    inner = [_short(child, types) for child in tree.children]
    if tree.kind == "dict":
        return "{" + ", ".join(f"{key!r}: {child}" for key, child in zip(tree.keys, inner)) + "}"
    return f"[{', '.join(inner)}]" if tree.kind == "list" else f"({', '.join(inner)})"


def description(function: Function) -> str:
    """Shapes and element types of all arguments and results, and the author's description."""
    lines = [function.doc, ""] if function.doc else []
    interface = function.interface
    for p in function.parameters:
        lines += _rows(p.name, p.tree, interface.inputs)
    lines += _rows("returns", function.result, interface.results)
    if interface.donated:
        names = ", ".join(function.paths[i] for i in interface.donated)
        lines += ["", f"The results take the memory of {names}."]
    return "\n".join(lines)


def _rows(path: str, tree: Tree, types: Sequence[TensorType]) -> list[str]:
    if isinstance(tree, Slot):
        return [f"{path}: {shown(types[tree.number])}"]
    if isinstance(tree, Constant):
        return [f"{path}: {tree.value!r}"]
    if not tree.children:
        return [f"{path}: an empty {tree.kind}"]
    return [row for step, child in zip(tree.steps(), tree.children) for row in _rows(path + step, child, types)]


def stub(functions: Sequence[Function]) -> str:
    """The text of NAME.pyi."""
    lines = [f'"""Compiled functions: {", ".join(f.name for f in functions)}."""', "",
             "from typing import Any", "", "import numpy as np", "from numpy.typing import NDArray"]
    for function in functions:
        interface = function.interface
        args = _starred(function, lambda p, interface=interface: f"{p.name}: {_type(p.tree, interface.inputs, True)}")
        result = _type(function.result, interface.results, False)
        doc = description(function).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        lines += ["", f"def {function.name}({', '.join(args)}) -> {result}:", f'    """{_indented(doc)}"""']
    return "\n".join(lines) + "\n"


def _type(tree: Tree, types: Sequence[TensorType], argument: bool) -> str:
    """The annotation of an argument or a result."""
    return " | ".join(_alternatives(tree, types, argument))


def _alternatives(tree: Tree, types: Sequence[TensorType], argument: bool) -> list[str]:
    """The alternatives of a value's type; a Python number is accepted for an array of rank 0."""
    if isinstance(tree, Slot):
        held = types[tree.number]
        array = f"NDArray[np.{_scalar(held)}]"
        if not argument or held.rank or held.dtype == i1:
            return [array]
        return [array, "float" if isinstance(held.dtype, FloatType) else "int"]
    if isinstance(tree, Constant):
        return ["None" if tree.value is None else type(tree.value).__name__]
    inner = [_alternatives(child, types, argument) for child in tree.children]
    if tree.kind == "tuple":
        return [f"tuple[{', '.join(map(' | '.join, inner)) or '()'}]"]
    either = " | ".join(dict.fromkeys(word for words in inner for word in words)) or "Any"
    if tree.kind == "list":
        return [f"list[{either}]"]
    return [f"dict[{' | '.join(sorted({type(key).__name__ for key in tree.keys})) or 'str'}, {either}]"]


def _scalar(type: TensorType) -> str:
    name = dtype_name(type.dtype)
    return "bool_" if name == "bool" else name


def _indented(text: str) -> str:
    return "\n".join([line if i == 0 or not line else "    " + line for i, line in enumerate(text.split("\n"))])


