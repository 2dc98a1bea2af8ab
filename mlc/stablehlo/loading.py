"""Programs of StableHLO as compiled functions."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlc.api import compile
from mlc.frontend.dtypes import of_ir
from mlc.frontend.location import user_loc
from mlc.frontend.signature import Spec
from mlc.frontend.stablehlo.interpreter import CUSTOM_CALLS, Interpreter
from mlc.frontend.stablehlo.reader import read
from mlc.frontend.stablehlo.sizes import unified
from mlc.frontend.stablehlo.syntax import SYNTAX, UNSUPPORTED, ArrayType, Function, Operation, Program
from mlc.frontend.stablehlo.table import find, reason
from mlc.ir.affine_syntax import parse_size
from mlc.ir.diag import UserError
from mlc.ir.files import read_at_most
from mlc.ir.lexer import MAX_TEXT
from mlc.ir.sizes import Dim
from mlc.ir.types import ScalarType, TensorType
from mlc.stablehlo import artifacts

BYTECODE = b"ML\xefR"
"""The beginning of MLIR's bytecode, which portable artifacts are in."""
ENDINGS = (".mlir", ".stablehlo", ".mlirbc")


def load(source: str | os.PathLike[str]) -> Any:
    """A program of StableHLO as a compiled function of arrays.

    The function to run is `main`, or the only one. mlc reads the text itself, in the pretty and in the generic form; a
    portable artifact is read by jaxlib, which has to be installed. A size that is `?` is a symbol: there is one code
    for all sizes.

    Args:
        source: The text of a program, or the name of a file with one or with a portable artifact; names end in .mlir,
            .stablehlo or .mlirbc, or are paths (`pathlib.Path`).

    Returns:
        The compiled function, which `mlc.save` and `mlc.lower` take. Its arguments are those of the program; it gives a
        tensor, or a tuple of them.

    Raises:
        UserError: The text is no StableHLO (MLC0860), it has operations or types that mlc does not run (MLC0861), a
            call within another function has other types than the program (MLC0862), or an artifact cannot be read
            (MLC0863).

    Example:
        >>> f = mlc.stablehlo.load('''
        ... func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
        ...   %0 = stablehlo.add %x, %x : tensor<3xf32>
        ...   return %0 : tensor<3xf32>
        ... }''')
        >>> f(mlc.tensor([1.0, 2.0, 3.0]))
        tensor([2., 4., 6.], dtype=mlc.float32)
    """
    program, name = program_of(source)
    return function_of(program, name)


def program_of(source: str | os.PathLike[str]) -> tuple[Program, str]:
    """The program of a text or file, and a name for it."""
    if isinstance(source, str) and not (source.endswith(ENDINGS) and "\n" not in source):
        return read(source), "main"
    data = read_at_most(source, MAX_TEXT)                  # OSError if there is none
    file = os.fspath(source)
    name = re.sub(r"\W", "_", Path(file).name.split(".")[0]) or "main"
    if data.startswith(BYTECODE):
        return read(artifacts.text_of(data), file), name
    try:
        return read(data.decode("utf-8"), file), name
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is neither text nor a portable artifact: byte {data[error.start]:#04x} at offset "
                        f"{error.start}", code=SYNTAX, loc=user_loc()) from None


def refusals(program: Program) -> list[str]:
    """The operations that mlc does not run, with reasons, from what is known without running them."""
    return [f"{op.name}: {why} ({op.loc})" for op in operations(program) if (why := _refusal(op)) is not None]


def operations(program: Program) -> list[Operation]:
    """The operations of all functions, those of regions too."""
    return [op for f in program.functions.values() if f.body is not None for op in f.body.inside()
            if op.name not in ("func.return", "stablehlo.return")]


def _refusal(op: Operation) -> str | None:
    if find(op.name) is None:
        return reason(op.name)
    if op.name == "stablehlo.custom_call" and (name := op.get("call_target_name")) not in CUSTOM_CALLS:
        return f"mlc has no custom call {name}"
    return None


def specs(function: Function) -> list[Spec]:
    """The types of the arguments; a size that is not known is a symbol, of its own unless another is equal."""
    assert function.body is not None
    dtypes, shapes = list[ScalarType](), list[tuple[Dim, ...]]()
    for number, type in enumerate(function.body.types):
        if not isinstance(type, ArrayType):
            raise UserError(f"argument {number} of @{function.name} is {type}, no array", code=SYNTAX,
                            loc=function.loc)
        shape: list[Dim] = [parse_size(f"N{number}_{axis}") if n is None else n for axis, n in enumerate(type.shape)]
        dtypes.append(type.dtype)
        shapes.append(tuple(shape))
    return [Spec(TensorType(shape, dtype)) for shape, dtype in zip(unified(function, shapes), dtypes)]


def names(function: Function) -> list[str]:
    """The names of the arguments, as Python writes them."""
    assert function.body is not None
    return [n if n.isidentifier() and n not in ("self", "None", "True", "False") else f"arg{i}"
            for i, n in enumerate(function.body.names)]


def run(program: Program, given: Sequence[Any]) -> Any:
    """The result of a program: a tensor, or a tuple of them."""
    main = program.main()
    check_arguments(main, given)
    try:
        found = Interpreter(program).call(main, given)
    except RecursionError:
        raise UserError("regions and calls of the program are nested more deeply than Python's stack is", code=SYNTAX,
                        loc=main.loc, hint="call functions one after the other") from None
    return found[0] if len(found) == 1 else found


def check_arguments(main: Function, given: Sequence[Any]) -> None:
    """UserError if tensors are not of the types of the arguments."""
    assert main.body is not None
    for name, type, x in zip(names(main), main.body.types, given):
        if not isinstance(type, ArrayType) or x.dtype is not of_ir(type.dtype) or len(x.shape) != len(type.shape) \
                or not all(m is None or bool(m == n) for m, n in zip(type.shape, x.shape)):
            raise UserError(f"{name} is a {x.dtype.name}{[str(n) for n in x.shape]}, and the program takes {type}",
                            code="MLC0862", loc=user_loc(), hint="pass an array of that type")


def function_of(program: Program, name: str) -> Any:
    """A compiled function that runs a program, with its arguments by name."""
    main = program.main()
    wanted = specs(main)
    if refused := refusals(program):
        raise UserError(f"mlc does not run {len(refused)} operation{'s' * (len(refused) > 1)} of the program",
                        code=UNSUPPORTED, loc=user_loc(), notes=tuple(refused[:20]),
                        hint="write the program without them, for one device")

    def f(*given: Any) -> Any:
        return run(program, given)

    kind = inspect.Parameter.POSITIONAL_ONLY
    distinct = [n if names(main).count(n) == 1 else f"arg{i}" for i, n in enumerate(names(main))]
    f.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in distinct])  # type: ignore[attr-defined]
    f.__name__ = f.__qualname__ = name
    return compile(f, args=wanted)
