"""Notebooks: `%load_ext mlc` brings `%%mlc`, which shows a cell at any level, and `%mlc`, which shows a function.

    %%mlc --emit=loop
    def f(x: f32[B, 16], w: f32[16, 4]) -> f32[B, 4] = softmax(x @ w, dim=1)

A cell is a program in the text language; its functions and models become names of the notebook. With `--mlir` it is a
module of MLIR's text, at any level. `%mlc f --emit=asm --args 'f32[8]'` is for a function of the notebook. IPython
calls this module; nothing else imports it.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

from mlc.ir import html
from mlc.ir.core import Op
from mlc.ir.diag import Error, UserError
from mlc.ir.files import write_text
from mlc.passes import pipeline
from mlc.tools import compile as compiling
from mlc.tools import inputs, report, sources

LEVELS = tuple(level for level in compiling.SUFFIXES if level not in (*compiling.BINARY, *compiling.MODELS))


class Shown:
    """A module or code at a level, which a notebook shows with colours.

    Args:
        text: The text.
        level: The level.
    """

    def __init__(self, text: str, level: str) -> None:
        self.text, self.level = text, level

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return html.folded(self.level, html.module(self.text) if self.level in pipeline.LEVELS or
                           self.level == "trace" else html.plain(self.text), True)


def load(shell: Any) -> None:
    """Register the magics with a shell of IPython."""
    def of_line(line: str) -> Any:
        return _told(lambda: _function(shlex.split(line), shell.user_ns))

    def of_cell(line: str, cell: str) -> Any:
        return _told(lambda: _cell(shlex.split(line), cell, shell.user_ns))
    shell.register_magic_function(of_line, "line", "mlc")
    shell.register_magic_function(of_cell, "cell", "mlc")


def _told(work: Any) -> Any:
    """The result of some work; an error of the user's is said as the command line says it, without a traceback."""
    try:
        return work()
    except Error as error:
        print(error, file=sys.stderr)
    except SystemExit:                                     # argparse has spoken
        return None


def parser(cell: bool) -> argparse.ArgumentParser:
    """The options of the magics."""
    p = argparse.ArgumentParser("%%mlc" if cell else "%mlc", allow_abbrev=False)
    if cell:
        p.add_argument("--mlir", action="store_true", help="the cell is a module of MLIR's text, even if it does not "
                       "begin with func.func or module")
        p.add_argument("--entry", metavar="NAME", help="the function to show (default: the last)")
    else:
        p.add_argument("function", help="a function of the notebook")
    p.add_argument("--emit", metavar="LEVEL", default=None if cell else "tensor", help="one of " + ", ".join(LEVELS))
    p.add_argument("--args", metavar="TYPES", help="types of the arguments, where annotations do not tell")
    p.add_argument("--target", default="host", help="host (the default), or another, as of mlc compile")
    return p


def _function(words: Sequence[str], names: dict[str, Any]) -> Shown:
    """A function of the notebook at a level."""
    import mlc.api as api
    options = parser(cell=False).parse_args(words)
    if options.function not in names:
        raise UserError(f"the notebook has no {options.function}", code="MLC0932", hint="run the cell that defines it")
    function = names[options.function]
    specs = [api.Spec(t) for t in inputs.parse_args(options.args)] if options.args is not None else \
        sources.annotated(function, options.function)
    sources.check_count(function, specs, options.function)
    return _at(api.lower(function, specs, level="trace").module, options)


def _cell(words: Sequence[str], cell: str, names: dict[str, Any]) -> Shown | None:
    """A cell at a level; without one, its functions and models become names, and nothing is shown."""
    from mlc.frontend import language
    options = parser(cell=True).parse_args(words)
    options.mlir = options.mlir or _MODULE.match(cell) is not None
    path = os.path.join(_folder().name, f"cell-{next(_numbers)}" + (".mlir" if options.mlir else ".mlc"))
    write_text(path, cell)
    if options.mlir:
        return _at(compiling.from_text(path, options.entry or ""), options)
    program = language.load(path)
    names.update({name: getattr(program, name) for name in dir(program)})
    if options.emit is None and options.args is None and options.entry is None:
        return None
    functions = language.functions_of(program)
    if not functions:
        raise UserError("the cell has no function to show", code="MLC0932", hint="define one with def")
    given = inputs.parse_args(options.args) if options.args is not None else None
    return _at(compiling.trace(path, options.entry or functions[-1], given), options)


_MODULE = re.compile(r'(\s|//.*\n)*(func\.func\b|module\s*[{@]|"?builtin\.module\b)')
"""The beginning of a module, which is none of a program."""
_numbers = count(1)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """The folder of the cells until the session ends: messages and functions name their files, now and later."""
    return tempfile.TemporaryDirectory(prefix="mlc-cells-")


def _at(module: Op, options: argparse.Namespace) -> Shown:
    """A module at the level that is asked for."""
    from mlc.backends.target import Target
    level, target = options.emit or "tensor", Target.parse(options.target)
    if level not in LEVELS:
        raise report.usage_error(f"--emit: there is no {level!r} to show", "one of " + ", ".join(LEVELS), "MLC0391")
    compiling.levels(level, target.machine.order)
    found = compiling.emit(module, [level], target, argparse.Namespace(
        matmul_precision=None, checked=False, dump_dir=None, generic=False, locations=False, opt_level=2))
    return Shown(str(found[level]), level)
