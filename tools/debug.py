"""mlc debug: step through a function at any level, in the interpreter, and look at its values."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from mlc.ir.core import Op
from mlc.ir.diag import Error, UserError
from mlc.tools import files, layout, report, run, sources
from mlc.tools.stepping import Breakpoint, Stepper, Stop, place_of, shown, values_in

EXAMPLES = """examples:
  mlc debug model.mlir -x 'b tensor.softmax; c; p %0; q'
  mlc debug model.py:predict --sizes B=2 -x 'n; n; locals; c'
  mlc debug model.mlir --level loop -x 'b loop.kernel; c; l; c'

Commands are read from the terminal, or another standard input, where -x gives none:
"""
COMMANDS = {
    "n": ("next", "execute the operation, with what is in it"),
    "s": ("into", "step into its region, or the function that it calls"),
    "f": ("finish", "go on until the region is left"),
    "c": ("continue", "go on until a breakpoint"),
    "b": ("break PLACE", "stop at model.py:3, a line of the program; at 3, a line of this listing; at tensor.exp, an "
          "operation; at a value (%x)"),
    "d": ("delete N", "remove a breakpoint"),
    "w": ("watch %x", "say what a value is whenever it is computed anew"),
    "p": ("print %x[0, 2:4]", "show a value, or a part of it"),
    "save": ("save %x FILE", "write a value as a .npy file"),
    "locals": ("locals", "show all values so far"),
    "l": ("list", "show the lines around"),
    "where": ("where", "show the operation, its line, the regions around"),
    "q": ("quit", "end"),
    "h": ("help", "this list"),
}
LONG = {text.split()[0]: short for short, (text, _) in COMMANDS.items()}
CONTEXT = 4


def help_text() -> str:
    """The commands, in the width of the terminal."""
    return "\n".join(layout.table([(f"  {short}", text, what) for short, (text, what) in COMMANDS.items()],
                                  layout.page_width()))


def parser() -> argparse.ArgumentParser:
    p = report.Parser("debug", "Step through a function at any level, in the interpreter.", EXAMPLES + help_text())
    add = p.add_argument
    add("file", metavar="FILE[:FUNCTION]", help="a function of a .py, .mlc or .mlir file; - is stdin")
    add("--entry", metavar="NAME", help="the function to call, as FILE:NAME (default: main, or the only one)")
    add("--args", metavar="TYPES", help="sizes of the arguments, as in 'f32[4,16],i64[4]'")
    add("--sizes", metavar="B=4,...", help="numbers for size symbols")
    add("--inputs", metavar="FILES", help="arrays: x.npy,rest.npz")
    add("--seed", type=report.integer(0), metavar="N", help="seed of random inputs (default 0)")
    add("-p", "--pipeline", metavar="PASSES", help="run these passes first")
    add("--level", choices=["tensor", "loop", "low", "llvm"], help="lower to this level first")
    add("-x", "--execute", metavar="COMMANDS", help="commands, separated by semicolons")
    return p


def main(options: argparse.Namespace) -> int:
    from mlc.backends.cpu.targets import host
    from mlc.ir.passes import Pipeline
    from mlc.passes import pipeline
    path, name = run.named(options)
    if path.endswith(".py") and name is None:
        name = options.entry or sources.name_of_only(path)
    found = run.call_in_file(path, name, argparse.Namespace(**vars(options), allow_pass=[]))
    Pipeline(found.steps).run(found.module)
    if options.level:
        Pipeline(pipeline.remaining(found.module, options.level, host().machine)).run(found.module)
    Session(found.module, options.execute).run(found.entry, found.arrays)
    return 0


class Quit(Exception):
    """The user ends the session."""


class Session:
    """A dialogue about the execution of a function."""

    def __init__(self, module: Op, commands: str | None) -> None:
        self.given = None if commands is None else iter([c for c in commands.split(";") if c.strip()])
        self.stepper = Stepper(module, self.stopped, print)
        self.count = 0
        self.over = False

    def run(self, entry: str, arrays: list[Any]) -> None:
        """Execute the function, and show its results."""
        try:
            results = self.stepper.run(entry, arrays)
        except Quit:
            return
        for i, result in enumerate(results):
            print(f"result {i}: {shown(result)}")

    def _commands(self) -> Iterator[str]:
        """The commands; at their end execution goes on to the end of the function."""
        while True:
            if self.given is not None:
                command = next(self.given, None)
            else:
                print("(mlc) ", end="", flush=True) if sys.stdin.isatty() else None
                command = sys.stdin.readline() or None
            if command is None:
                self.over = True
                yield "c"
            else:
                yield command.strip()

    def stopped(self, stop: Stop) -> None:
        """Show where execution is, and obey until it is to go on."""
        if self.over:
            self.stepper.until = "continue"
            return
        if stop.reason:
            print(stop.reason)
        print(next(self.stepper.listing.around(stop.op, 0)) + place_of(stop.op.loc))
        for command in self._commands():
            try:
                if self.obey(command, stop):
                    return
            except Error as error:
                print(f"error[{error.code}]: {error.message}" + (f"; {error.hint}" if error.hint else ""))

    def obey(self, command: str, stop: Stop) -> bool:
        """Carry out a command; whether execution goes on."""
        word, _, rest = command.partition(" ")
        word, rest = LONG.get(word, word), rest.strip()
        if word in ("n", "s", "f", "c"):
            self.stepper.until = COMMANDS[word][0]
            return True
        if word == "q":
            raise Quit
        if word == "":
            return False
        actions = {"b": self._break, "d": self._delete, "w": self._watch}
        if word in actions:
            actions[word](rest)
        elif word in ("p", "save"):
            (self._print if word == "p" else self._save)(rest, stop)
        elif word == "locals":
            for name, value, held in values_in(stop.frame, self.stepper.listing):
                print(f"{name} : {value.type} = {shown(held)}")
        elif word == "l":
            print("\n".join(self.stepper.listing.around(stop.op, CONTEXT)))
        elif word == "where":
            self._where(stop)
        elif word == "h":
            print(help_text())
        else:
            raise UserError(f"there is no command {word!r}", code="MLC0694", hint="h lists them")
        return False

    def _break(self, place: str) -> None:
        if not place:
            for b in self.stepper.breakpoints:
                print(f"breakpoint {b.number}: {b.text}")
            return
        made = Breakpoint(self.count + 1, place)
        if not any(made.fits(op, self.stepper.listing) for op in self.stepper.listing.line_of):
            raise UserError(f"nothing is at {place}", code="MLC0694",
                            hint="name a line of the program (m.py:3) or of the listing (3), an operation (tensor.exp) "
                                 "or a value (%x)")
        self.count += 1
        self.stepper.breakpoints.append(made)
        print(f"breakpoint {made.number}: {place}" + " of the listing" * place.isdecimal())

    def _delete(self, number: str) -> None:
        kept = [b for b in self.stepper.breakpoints if str(b.number) != number]
        if len(kept) == len(self.stepper.breakpoints):
            raise UserError(f"there is no breakpoint {number}" if number else "d takes the number of a breakpoint",
                            code="MLC0694", hint="b lists them")
        self.stepper.breakpoints = kept

    def _watch(self, name: str) -> None:
        name = value_name(name, "w %0")
        if not any(self.stepper.listing.name_of(r) == name for op in self.stepper.listing.line_of for r in op.results):
            raise UserError(f"no operation computes {name}", code="MLC0694",
                            hint="name a value such as %0")
        self.stepper.watched[name] = None
        print(f"{name} is watched")

    def _value(self, text: str, stop: Stop) -> Any:
        name, bracket, index = text.partition("[")
        name = value_name(name, "p %0, or p %0[0, 2:4]")
        found = [held for _, _, held in values_in(stop.frame, self.stepper.listing, [name])]
        if not found:
            raise UserError(f"{name} has no value here", code="MLC0694", hint="locals lists the values")
        if not bracket:
            return found[-1]
        if not index.endswith("]"):
            raise UserError(f"{text!r} has no closing bracket", code="MLC0694", hint=f"p {text}]")
        part = indices(index[:-1])
        try:
            return found[-1][part]
        except (IndexError, ValueError, TypeError) as error:          # numpy says which axis, and its size
            raise UserError(f"{text}: {error}", code="MLC0694",
                            hint=f"its shape is {tuple(np.shape(found[-1]))}") from None

    def _print(self, text: str, stop: Stop) -> None:
        print(f"{text} = {shown(self._value(text, stop))}")

    def _save(self, text: str, stop: Stop) -> None:
        import io
        name, _, path = text.rpartition(" ")
        name = value_name(name, "save %0 x.npy")
        data = io.BytesIO()
        np.save(data, np.asarray(self._value(name, stop)), allow_pickle=False)
        files.write(path, data.getvalue())
        print(f"{name} is in {path}")

    def _where(self, stop: Stop) -> None:
        op: Op | None = stop.op
        while op is not None:
            line = self.stepper.listing.line_of[op]
            print(f"{line + 1:4} {self.stepper.listing.lines[line].strip()}{place_of(op.loc)}")
            op = op.parent_op


def value_name(text: str, example: str) -> str:
    """The name of a value, which may be written without its %."""
    if not text.strip():
        raise UserError("the command takes the name of a value", code="MLC0694", hint=example)
    return "%" + text.strip().removeprefix("%")


def indices(text: str) -> tuple[Any, ...]:
    """The indices of `0, 2:4, ...`: integers, slices and an ellipsis."""
    out: list[Any] = []
    for part in (p.strip() for p in text.split(",")):
        if part == "...":
            out.append(...)
        elif re.fullmatch(r"-?\d+", part):
            out.append(int(part))
        elif re.fullmatch(r"(-?\d+)?\s*:\s*(-?\d+)?(\s*:\s*(-?\d+)?)?", part):
            out.append(slice(*(int(x) if x.strip() else None for x in part.split(":"))))
        else:
            raise UserError(f"{part!r} is no index", code="MLC0694", hint="write integers, 2:4 or ...")
    return tuple(out)
