"""Reporting of the command: common options, error messages, and exit statuses."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn

from mlc.ir.diag import UNKNOWN, Error, InternalError, Loc, UserError
from mlc.tools import files
from mlc.tools.exit_status import DEFECT, OK, USAGE, WRONG_INPUT
from mlc.tools.layout import page_width

USAGE_CODES = frozenset({"MLC0201", "MLC0330", "MLC0331", "MLC0332", "MLC0333", "MLC0334", "MLC0335",
                         "MLC0388", "MLC0399", "MLC0410", "MLC0411", "MLC0501", "MLC0502", "MLC0680",
                         *(f"MLC039{n}" for n in range(8))})
"""Errors about options, files and the machine rather than the contents of files: exit status 2."""


COLORS = ("auto", "always", "never")


@dataclass
class Options:
    """Options common to all commands, removed from the command line."""

    rest: list[str]
    debug: bool
    color: str

    @staticmethod
    def take(words: list[str]) -> Options:
        rest, debug, color = list[str](), False, "auto"
        for i, word in enumerate(words):
            if word == "--":                     # what follows is for the program that is run
                rest += words[i:]
                break
            if word == "--debug":
                debug = True
            elif word.startswith("--color="):
                color = word.removeprefix("--color=")
            elif i and words[i - 1] == "--color":
                color = word
            elif word != "--color":
                rest.append(word)
        if color not in COLORS or words[-1:] == ["--color"]:
            raise usage_error(f"--color: {color if color not in COLORS else 'nothing'!r} is no choice",
                              "one of " + ", ".join(COLORS), "MLC0391")
        return Options(rest, debug, color)


class Help(argparse.RawDescriptionHelpFormatter):
    """Help formatter that keeps the layout of examples, and wraps the prose around them."""

    def __init__(self, prog: str) -> None:
        width = page_width()
        super().__init__(prog, max_help_position=min(30, width // 3), width=min(width, 110))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        out = list[str]()
        for indented, group in groupby(text.splitlines(), lambda line: not line or line.startswith(" ")):
            lines = list(group)
            out += lines if indented else textwrap.wrap(" ".join(lines), width, break_on_hyphens=False)
        return "\n".join(indent + line for line in out)


class Parser(argparse.ArgumentParser):
    """Argument parser that reports errors as one coded message with a suggestion."""

    def __init__(self, command: str, description: str, examples: str) -> None:
        super().__init__(prog=f"mlc {command}", description=description, epilog=examples, formatter_class=Help,
                         allow_abbrev=False)

    def parse_args(self, args: Any = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override]
        """As of argparse, which refuses arguments of a program after `--` where options stand before it."""
        words = list(sys.argv[1:] if args is None else args)
        own = "program_arguments" in {action.dest for action in self._actions} and "--" in words
        end = words.index("--") if own else len(words)
        found = super().parse_args(words[:end], namespace)
        if own:
            found.program_arguments += words[end + 1:]
        for value in vars(found).values():
            if isinstance(value, Output):
                files.check_output(value)
            elif isinstance(value, OutputFolder):
                files.check_output_folder(value)
        _check_each_has_its_file(found)
        return found  # type: ignore[no-any-return]

    def error(self, message: str) -> NoReturn:
        from difflib import get_close_matches
        hint = f"see {self.prog} --help"
        if unknown := re.match(r"unrecognized arguments: (--?[\w-]+)", message):
            known = [s for s in self._option_string_actions if s.startswith("--") and "mlir" not in s]
            if near := get_close_matches(unknown[1], known, 1, 0.72):    # --target is not --args
                hint = f"did you mean {near[0]}?"
        raise usage_error(f"{self.prog}: {message}", hint, "MLC0391")


def _check_each_has_its_file(options: argparse.Namespace) -> None:
    """Raise UserError if two outputs are one file, or one is the program that is read."""
    outputs = [(name, value) for name, value in vars(options).items() if isinstance(value, Output) and value != "-"]
    for i, (name, value) in enumerate(outputs):
        if other := next((n for n, v in outputs[:i] if os.path.realpath(v) == os.path.realpath(value)), None):
            raise usage_error(f"--{other} and --{name} both write {value}", "name two files", "MLC0391")
        if not isinstance(value, Replacement):
            keep_input(str(getattr(options, "file", None) or ""), name, value)


def keep_input(source: str, name: str, output: str) -> None:
    """Raise UserError if the output of an option is what is read: FILE, or that of FILE:FUNCTION."""
    path = source if os.path.exists(source) else re.sub(r":[^/:]*$", "", source)
    if path not in ("", "-") and os.path.realpath(path) == os.path.realpath(output):
        raise usage_error(f"--{name} would replace {path}, which is read", "name another file", "MLC0391")


class Output(str):
    """The type of an option that names a file which the command writes at its end: it is looked at before all work."""


class Replacement(Output):
    """The same of a file that may be the one that is read."""


class OutputFolder(str):
    """The same of a folder, which the command makes if it is missing."""


def output(check: Callable[[str], None]) -> Callable[[str], Path]:
    """A parser of such an option for the programs that are no commands, with `files.check_output` or the like."""
    def parse(text: str) -> Path:
        try:
            check(text)
        except UserError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return Path(text)

    return parse


def integer(least: int, note: str = "", most: int | None = None) -> Callable[[str], int]:
    """A parser of an option's integer in a range; `note` says what a special one stands for."""
    def parse(text: str) -> int:
        if not re.fullmatch(r"-?\d+", text) or int(text) < least or (most is not None and int(text) > most):
            range = f"at least {least}" if most is None else f"{least} to {most}"
            raise argparse.ArgumentTypeError(f"{text!r} is no integer of {range}" + note)
        return int(text)

    return parse


def seconds(text: str) -> float:
    """The value of an option that is a time: a finite number, not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def usage_error(message: str, hint: str, code: str) -> UserError:
    """An error about the command line."""
    return UserError(message, code=code, hint=hint)


def refuse(options: argparse.Namespace, names: Sequence[str], why: str, hint: str) -> None:
    """Usage error for the first of these options that is given, so that none is silently ignored."""
    for name in names:
        given = getattr(options, name)
        if given is not None and given is not False and given != []:
            raise usage_error(f"--{name.replace('_', '-')} has no meaning here: {why}", hint, "MLC0391")


def exit_status(stop: SystemExit) -> int:
    """Exit status of a process that raises this."""
    if stop.code is not None and not isinstance(stop.code, int):
        print(stop.code, file=sys.stderr)
        return WRONG_INPUT
    return OK if stop.code is None else int(stop.code)


def status_of(error: BaseException) -> int:
    """The exit status for an exception."""
    if isinstance(error, InternalError):
        return DEFECT
    if isinstance(error, Error):
        return USAGE if error.code in USAGE_CODES else WRONG_INPUT
    return USAGE if isinstance(error, OSError | MemoryError) else DEFECT


def failure(error: Exception, options: Options, words: list[str]) -> int:
    """Print an error; returns the exit status."""
    if options.debug:
        traceback.print_exception(error)
    status = status_of(error)
    if isinstance(error, OSError) and not isinstance(error, Error):
        error = file_error(error)
    if isinstance(error, MemoryError) and not isinstance(error, Error):
        error = UserError(f"out of memory: {error}".removesuffix(": "), code="MLC0328")
    if not isinstance(error, Error):
        error = _defect(error, words)
    if error.loc.file == os.path.abspath(sys.argv[0]):     # the script that starts mlc, no line of the user's
        error.loc = UNKNOWN
    message(str(error), options.color)
    return status


def file_error(error: OSError, what: str = "use") -> UserError:
    """A file that cannot be read or written, as a coded error."""
    where = f" {error.filename}" if error.filename else " stdout, or a file"
    return UserError(f"cannot {what}{where}: {error.strerror or error}", code="MLC0392")


def _defect(error: Exception, words: list[str]) -> InternalError:
    """InternalError for an unexpected exception, with its location in our sources and the reproducing command."""
    where = tuple(f"raised at {_place(frame)}" for frame in traceback.extract_tb(error.__traceback__)[-1:])
    replay = f"mlc {shlex.join(words)} --debug"
    if isinstance(error, RecursionError):
        where = ()
    wrapped = InternalError(f"{type(error).__name__}: {error}", notes=(*where, "this is a defect of mlc"),
                            hint=f"replay it with: {replay}")
    wrapped.reproducer = replay
    return wrapped


def message(text: str, color: str = "auto") -> None:
    """Print a diagnostic on stderr, in colour on a terminal."""
    print(colored(text) if wants_color(color) else text, file=sys.stderr)


def wants_color(choice: str) -> bool:
    if choice != "auto":
        return choice == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stderr.isatty()


def colored(text: str) -> str:
    """The renderer's text with the code in red, help in green and notes in cyan."""
    text = re.sub(r"error\[MLC\d{4}\]:", "\033[1;31m\\g<0>\033[0m", text)
    text = re.sub(r"(?m)^  note:", "\033[1;36m\\g<0>\033[0m", text)
    return re.sub(r"(?m)^  help:", "\033[1;32m\\g<0>\033[0m", text)


def users_fault(error: BaseException, file: str = "") -> Error:
    """Error for an exception raised by the user's program, at its innermost frame there; without one, in `file`."""
    if isinstance(error, Error):
        return error
    loc = UNKNOWN
    if isinstance(error, SyntaxError) and error.filename:
        loc, text = Loc(error.filename, error.lineno or 0, error.offset or 0), error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if not _is_ours(f.filename)]
        loc, text = (Loc(own[-1].filename, own[-1].lineno or 0) if own else _unparsed(file)), str(error)
        if _failed_in_mlc(frames) and not isinstance(error, MemoryError):
            return InternalError(f"{type(error).__name__}: {text}", loc=loc, hint="--debug shows the traceback",
                                 notes=(f"raised at {_place(frames[-1])}; this is a defect of mlc",))
    return UserError(f"{type(error).__name__}: {text}" if text else type(error).__name__, code="MLC0398", loc=loc,
                     hint="--debug shows the traceback")


def _unparsed(file: str) -> Loc:
    """The place in a file that Python refuses without naming one: its first null byte, or its first line."""
    if not file:
        return UNKNOWN
    with open(file, "rb") as source:
        before, null, _ = source.read().partition(b"\0")
    return Loc(file, before.count(b"\n") + 1 if null else 1)


def _failed_in_mlc(frames: traceback.StackSummary) -> bool:
    """Whether an exception is a defect of mlc's own code, which deliberately raises only errors for the user."""
    import mlc
    inside = [any(f.filename.startswith(folder + os.sep) for folder in mlc.__path__) for f in frames]
    tools = os.path.dirname(__file__) + os.sep
    last = max((i for i, f in enumerate(frames) if inside[i] or not _is_ours(f.filename)), default=-1)
    return (last >= 0 and inside[last] and not frames[last].filename.startswith(tools)
            and not (frames[last].line or "").startswith("raise "))


def _place(frame: traceback.FrameSummary) -> str:
    return f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"


def _is_ours(file: str) -> bool:
    """Whether a frame is of mlc, of Python, or of an installed package."""
    import sysconfig

    import mlc
    folders = [*mlc.__path__, *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))]
    return file.startswith("<frozen") or any(file.startswith(folder + os.sep) for folder in folders)
