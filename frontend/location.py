"""Source locations in the user's program: the nearest frame outside this package, or a location in a text program."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType
from typing import Any

from mlc.ir.diag import Loc


class _Text(threading.local):
    """Current location of this thread in a text-language program; None while it runs Python."""

    loc: Loc | None = None


class _Modules(threading.local):
    """The module whose `forward` this thread runs, by its path, and the paths of all in the outermost one, by id."""

    scope: str = ""
    names: Mapping[int, str] = {}


text = _Text()
modules = _Modules()


@contextmanager
def in_module(module: Any, paths: Callable[[Any], Mapping[int, str]]) -> Iterator[None]:
    """Context of a call of a module: locations in it have its path, such as GPT.layers.7.

    The first name is the class of the outermost module; the path goes on below it, and a module that is not part of the
    outermost one is named by its class.

    paths  the paths of a module and of all in it, by id
    """
    scope, names = modules.scope, modules.names
    if not scope:
        modules.names = paths(module)
    name = modules.names.get(id(module))
    kind = type(module).__name__
    if not scope or name is None:
        modules.scope = f"{scope}.{kind}" if scope else kind
    else:
        modules.scope = ".".join([scope.partition(".")[0], *[_NO_NAME.sub("_", name)] * bool(name)])
    try:
        yield
    finally:
        modules.scope, modules.names = scope, names


@contextmanager
def leaving_text() -> Iterator[None]:
    """Context in which this thread is in no text-language program."""
    saved, text.loc = text.loc, None
    try:
        yield
    finally:
        text.loc = saved


_NO_NAME = re.compile(r"[()|]")
"""Characters that a key of a ModuleDict may have and a path may not (`Loc.called`)."""


@lru_cache(maxsize=65536)
def _loc(code: CodeType, file: str, instruction: int, line: int, scope: str = "") -> Loc:
    """The place of an instruction. `file` is that of the code: codes of two files may be equal, and known as one."""
    position = next(islice(code.co_positions(), instruction // 2, None), None)
    column = position[2] if position is not None and position[0] == line else None
    return Loc(file, line, 0 if column is None else column + 1, scope=scope)


class _Command:
    """The `mlc` command, if it calls a function: no line of a program does, and its definition stands for that line.

    caller    the frame that runs the command
    function  where the function is defined
    """

    caller: FrameType | None = None
    function: Loc | None = None


command = _Command()


@contextmanager
def in_command(caller: FrameType | None) -> Iterator[None]:
    """Context of the `mlc` command, which this frame runs."""
    saved, command.caller, command.function = (command.caller, command.function), caller, None
    try:
        yield
    finally:
        command.caller, command.function = saved


def user_loc() -> Loc:
    """Location of the nearest frame outside this package and the standard library, or the current one in the text that
    is being read; with the module whose `forward` runs, if it is known. Below the `mlc` command it is the definition of
    the function called."""
    if text.loc is not None:
        return replace(text.loc, scope=modules.scope) if modules.scope else text.loc
    frame = sys._getframe(1)
    while frame.f_back is not None and (
            is_ours(name := frame.f_globals.get("__name__", "")) or is_library(name)):
        frame = frame.f_back
    if frame is command.caller and command.function is not None:
        return replace(command.function, scope=modules.scope)
    return _loc(frame.f_code, frame.f_code.co_filename, frame.f_lasti, frame.f_lineno, modules.scope)


def programs_line(error: BaseException) -> Loc | None:
    """The line of the program that raised an exception; None if this package raised it.

    Exceptions from the standard library and numpy are attributed to their callers.
    """
    found: Loc | None = None
    at = error.__traceback__
    while at is not None:
        name = str(at.tb_frame.f_globals.get("__name__", ""))
        if is_ours(name):
            found = None
        elif not is_library(name):
            found = _loc(at.tb_frame.f_code, at.tb_frame.f_code.co_filename, at.tb_lasti, at.tb_lineno)
        at = at.tb_next
    return found


def is_library(module: str) -> bool:
    """Whether a module belongs to the standard library or numpy."""
    root = module.partition(".")[0]
    return root == "numpy" or root in sys.stdlib_module_names


def is_ours(module: str) -> bool:
    return module.startswith("mlc.") or module == "mlc"
