"""mlc bisect: find the smallest set of optional changes of the compiler that causes a failure.

A change is one firing of a rewrite rule, one decision of a pass, or the run of a whole pass (ir/changes.py). The
failing program is run again with a part of the changes enabled, then with part of that. If neither of two halves fails
by itself, each is minimised while the other is enabled. This is delta debugging (A. Zeller, R. Hildebrandt,
"Simplifying and Isolating Failure-Inducing Input", 2002), on individual changes like Go's bisect, rather than on a
count of passes like LLVM's -opt-bisect-limit, so that the compiler's work after the change at fault stays the same.
"""

from __future__ import annotations

import argparse
import json
import linecache
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mlc.ir import rewrite
from mlc.ir.changes import LOG, VARIABLE, Change, Choice
from mlc.ir.diag import UserError
from mlc.ir.files import write_text
from mlc.ir.passes import allowances, find_pass
from mlc.ir.printer import to_text
from mlc.tools import files, inputs, report, run, trials
from mlc.tools.reduce import parts
from mlc.tools.trials import Call, Failure, Times

EXAMPLES = """what it is asked:
  mlc bisect model.py                 a wrong answer, a crash or a hang of the first call of each compiled function
  mlc bisect mlc-wrong-PASS.mlir      the same of what mlc run --check left
  mlc bisect model.py:f --slow        native code that is slower with some changes than without them
  mlc bisect model.py --slow-compile  compiling that takes longer
  mlc bisect -- CMD                   whatever ends with a status other than 0, such as pytest or mlc run --check

A change is one firing of a rewrite rule, one decision (two operations fused, a result written over an operand, a kernel
vectorized or shared out), or the run of a pass such as dce. What lowerings have to do is no change: where it goes wrong
without any, the first pass after which the answer is wrong is named.

Every command makes the changes that the environment asks for, by the keys that mlc bisect prints:
  MLC_CHANGES=KEY,KEY   these and no others           MLC_CHANGES=none       none at all
  MLC_CHANGES=-KEY      all but this                  MLC_CHANGES_LOG=FILE   add a line for each that is made

examples:
  mlc bisect wrong.mlir --allow-pass mine.swap
  mlc bisect wrong.mlir --allow-pass mine.swap --tries 20 -o replay.mlir
"""
RATIO = 1.2
OF_FILES = ("entry", *run.OF_RANDOM_ARRAYS, "inputs", "allow_pass", "output")
"""Options that are about a file and its function."""
FEW = 8
"""Limit on the changes that are tried one by one for whether the failure needs them, and on the lines shown of each."""


class _Parser(report.Parser):
    """Parser that keeps the words after `--` as a command."""

    def parse_args(self, args: Sequence[str], namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        at = args.index("--") if "--" in args else len(args)
        options = super().parse_args(args[:at])
        options.command = list(args[at + 1:])
        return options


def parser() -> argparse.ArgumentParser:
    p = _Parser("bisect", "Find the smallest set of rewrites and decisions that makes something go wrong.", EXAMPLES)
    add = p.add_argument
    add("file", nargs="?", metavar="FILE[:FUNCTION]", help="a .py program; a function of a .py, .mlc or .mlir file; "
        "what mlc run --check left; or nothing, and a command after --")
    add("--slow", action="store_true", help="native code is slower with the changes")
    add("--slow-compile", action="store_true", help="compiling takes longer with the changes")
    add("--ratio", type=ratio, metavar="R", help=f"how many times slower (default {RATIO})")
    add("--entry", metavar="NAME", help="the function, as FILE:NAME (default: main, or the only one)")
    add("--args", metavar="TYPES", help="sizes of the arguments, as in 'f32[4,16],i64[4]'")
    add("--sizes", metavar="B=4,...", help="numbers for size symbols")
    add("--inputs", metavar="FILES", help="arrays: x.npy,rest.npz")
    add("--seed", type=report.integer(0), metavar="N", help="seed of random inputs (default 0)")
    add("--timeout", type=report.integer(1), default=60, metavar="SECONDS",
        help="longer than this is a failure too (default 60)")
    add("--tries", type=report.integer(1), default=500, metavar="N", help="run so often at most (default 500)")
    add("--allow-pass", action="append", default=[], metavar="PACKAGE.MODULE",
        help="import this pass of your own where the file asks for it")
    add("-o", "--output", type=report.Output, metavar="FILE",
        help="where to write what replays it (default: mlc-bisect.mlir)")
    p.set_defaults(pipeline=None)
    return p


def ratio(text: str) -> float:
    """Parse a number above 1."""
    if not 1 < (number := float(text)) < float("inf"):
        raise ValueError
    return number


def main(options: argparse.Namespace) -> int:
    files.find_modules_here(*options.allow_pass)
    if bool(options.command) == (options.file is not None):
        raise report.usage_error("mlc bisect takes a file, or a command after --", "write mlc bisect model.py, or "
                                 "mlc bisect -- CMD, which names its files itself", "MLC0391")
    if (options.slow or options.slow_compile) and (options.command or (options.slow and options.slow_compile)):
        raise report.usage_error("--slow and --slow-compile are two questions about a file", "ask one, without a "
                                 "command; of a command the exit status counts", "MLC0391")
    if options.command:
        report.refuse(options, OF_FILES, "a command names its files and arguments itself", "leave it out")
    if not options.slow and not options.slow_compile:
        report.refuse(options, ("ratio",), "nothing is compared by its time", "ask with --slow or --slow-compile")
    options.ratio = options.ratio or RATIO
    with tempfile.TemporaryDirectory(prefix="mlc-bisect-") as folder:
        if options.command:
            return _command(options, Path(folder))
        return _file(options, Path(folder))


# -- the search -------------------------------------------------------------------------------------------------------
class Search:
    """Search for the necessary keys: `fails` tests a set of them, `tries` counts its calls.

    small  the smallest set found so far that fails
    ended  whether the limit on tries was reached before the set was minimal
    """

    def __init__(self, fails: Callable[[frozenset[str]], bool], most: int) -> None:
        self._fails, self.most, self.tries, self.ended = fails, most, 0, False
        self.known: dict[frozenset[str], bool] = {}
        self.small: frozenset[str] | None = None

    def fails(self, keys: Sequence[str]) -> bool:
        wanted = frozenset(keys)
        if wanted not in self.known:
            if self.tries >= self.most:
                self.ended = True
                return False
            self.tries += 1
            self.known[wanted] = self._fails(wanted)
        if self.known[wanted] and (self.small is None or len(wanted) < len(self.small)):
            self.small = wanted
        return self.known[wanted]

    def smallest(self, keys: Sequence[str]) -> list[str]:
        """A minimal failing subset of `keys`, which fail together."""
        assert self.fails(keys), "asked before"
        found = self._minimise(list(keys), [])
        if not self.fails(found):                          # changes stand in each other's way: the best that was seen
            found = [k for k in keys if k in (self.small or ())]
        for key in list(found):
            if len(found) > 1 and self.fails(rest := [k for k in found if k != key]):
                found = rest
        return found

    def _minimise(self, keys: list[str], others: list[str]) -> list[str]:
        """The fewest of `keys` that fail together with the `others`."""
        if len(keys) <= 1:
            return keys
        a, b = keys[: len(keys) // 2], keys[len(keys) // 2:]
        if self.fails(others + a):
            return self._minimise(a, others)
        if self.fails(others + b):
            return self._minimise(b, others)
        if self.ended:
            return keys
        a = self._minimise(a, others + b)
        return a + self._minimise(b, others + a)


# -- a command --------------------------------------------------------------------------------------------------------
def _command(options: argparse.Namespace, folder: Path) -> int:
    """Bisect a command by its exit status."""
    def ends(text: str, log: Path | None = None) -> str | None:
        """How the command fails with this value of MLC_CHANGES."""
        environment = {**os.environ, VARIABLE: text, **({LOG: str(log)} if log is not None else {})}
        try:
            process = subprocess.Popen(options.command, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        except OSError as error:
            raise report.usage_error(f"cannot run {options.command[0]}: {error.strerror}", "give a command as a shell "
                                     "would run it", "MLC0391") from None
        try:
            status = process.wait(options.timeout)
        except subprocess.TimeoutExpired:
            return f"no end within {options.timeout} s"
        finally:
            if process.poll() is None:                     # with what it has started, as a shell does
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return None if status == 0 else f"exit status {status}"

    def only(keys: Sequence[str]) -> str:
        write_text(folder / "keys", " ".join(keys) or "none")
        return f"@{folder / 'keys'}"

    shown = shlex.join(options.command)
    failed = ends("all", folder / "log")
    if failed is None:
        raise UserError(f"{shown} does not fail with all changes", code="MLC0682",
                        hint="what fails only at times cannot be bisected; fix its seeds first")
    made = _logged(folder / "log")
    if (without := ends("none")) is not None:
        raise UserError(f"{shown} fails without any change, too: {without}", code="MLC0681",
                        hint="mlc run --check finds the first pass after which an answer is wrong")
    search = Search(lambda keys: ends(only(sorted(keys))) is not None, options.tries)
    found = _found(search, list(made), failed)
    (folder / "few").unlink(missing_ok=True)
    ends(only(found), folder / "few")
    _show(f"{shown}: {failed}", search, made, found, _logged(folder / "few"))
    print(f"again:    {VARIABLE}={','.join(found)} {shown}")
    print(f"without:  {VARIABLE}=-{found[0]} {shown}")
    return 0


def _logged(path: Path) -> dict[str, Change]:
    """The changes of a log, by their keys."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {change.key: change for change in (Change(**json.loads(line)) for line in lines)}


def _found(search: Search, keys: Sequence[str], failed: str) -> list[str]:
    if not search.fails(keys):
        raise UserError(f"it fails with all changes ({failed}), and not with the {len(keys)} that were made then, each "
                        "by its key", code="MLC0684",
                        hint="the program is another each time it runs, or fails only at times; fix its seeds first")
    return search.smallest(keys)


# -- a file -----------------------------------------------------------------------------------------------------------
@contextmanager
def _without_cache() -> Iterator[None]:
    """Disable the compile cache: its entries were compiled with all changes, and a hit takes no time."""
    before = os.environ.get("MLC_CACHE")
    os.environ["MLC_CACHE"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["MLC_CACHE"]
        else:
            os.environ["MLC_CACHE"] = before


@_without_cache()
def _file(options: argparse.Namespace, folder: Path) -> int:
    trials.warm_up(options.timeout)
    path, name = run.named(options)
    if path.endswith(".py") and name is None:
        report.refuse(options, ("entry", *run.OF_RANDOM_ARRAYS, "inputs"), "a Python program says itself what it calls",
                   f"mlc bisect {path}:FUNCTION runs one function")
        if not os.path.isfile(path):
            raise report.usage_error(f"cannot read {path}: no such file", "give the path of a .py file", "MLC0392")
        calls, ended = trials.calls_of(path, folder, options.timeout)
        if not calls:
            raise UserError("nothing was compared: the program called no compiled function" +
                            (f", and ended with {ended}" if ended else ""), code="MLC0453",
                            hint=f"call one in it, or give one function: mlc bisect {path}:FUNCTION")
    else:
        found = run.call_in_file(path, name, options)
        inside = bool(found.held and found.steps) or not inputs.has_interface(found.module, found.entry)
        calls = [Call(found.module, found.entry, found.arrays, found.steps if inside else None,
                      bool(found.held and found.held[2]))]
    return _slow(options, calls, folder) if options.slow or options.slow_compile else _wrong(options, calls, folder)


def _wrong(options: argparse.Namespace, calls: Sequence[Call], folder: Path) -> int:
    """Bisect the first call that gives a wrong result, crashes or hangs."""
    for call in calls:
        (folder / "log").unlink(missing_ok=True)
        if (failed := trials.failure(call, Choice(log=str(folder / "log")), options.timeout)) is not None:
            made = _logged(folder / "log")
            if trials.failure(call, Choice(made), options.timeout) is None:      # it ends in a rule, before it fires
                trials.failure(call, Choice(log=str(folder / "log"), tried=True), options.timeout)
                made = _logged(folder / "log")
            return _one_wrong(options, call, failed, made, folder)
    for call in calls:
        (folder / "log").unlink(missing_ok=True)
        if (above := _above(call, folder, options.timeout)) is not None:
            failed, made, upper = above
            return _one_wrong(options, call, failed, made, folder, upper)
    many = f"{len(calls)} compiled functions give" if len(calls) > 1 else "it gives"
    raise UserError(f"there is nothing to bisect: {many} what the interpreter gives, with all changes", code="MLC0682",
                    hint="mlc run --check also compares with plain Python, and after every pass; a command of your own "
                         "that fails goes after --")


def _above(call: Call, folder: Path, seconds: float) -> tuple[Failure, dict[str, Change], list[str]] | None:
    """Where changes below fix_numerics, which keep every bit, do not: the failure, those, and the ones above."""
    names = [step.transform.name for step in call.pipeline]
    if call.steps is not None or "fix_numerics" not in names:
        return None
    trials.failure(call, Choice(log=str(folder / "log")), seconds)
    made = _logged(folder / "log")
    fixed = 1 + names.index("fix_numerics")
    upper = [key for key, change in made.items() if int(change.step.split()[0]) < fixed]
    failed = trials.failure(call, Choice(made), seconds, Choice(upper))
    lower = {key: change for key, change in made.items() if key not in set(upper)}
    return (replace(failed, message=f"{failed.message}, in bits that no pass after fix_numerics may change"), lower,
            upper) if failed is not None else None


def _one_wrong(options: argparse.Namespace, call: Call, failed: Failure, made: dict[str, Change], folder: Path,
               upper: Sequence[str] | None = None) -> int:
    """Bisect one call; the changes `upper` are always enabled."""
    base, as_those = (upper, Choice(upper)) if upper is not None else ((), None)
    where = f"{call.line}: @{call.entry}"
    none = trials.failure(call, Choice(base), options.timeout, as_those)
    if none is not None:
        raise UserError(f"{where}: {failed.kind}, and without any optional change: {none.message}", code="MLC0681",
                        notes=(trials.blamed(call, Choice(base), options.timeout),),
                        hint="a lowering or the code generator, which cannot be left out: mlc reduce makes the module "
                             "small, and mlc run --checked finds accesses that are wrong")

    def fails(keys: frozenset[str]) -> bool:
        found = trials.failure(call, Choice([*base, *keys]), options.timeout, as_those)
        return found is not None and found.kind == failed.kind

    search = Search(fails, options.tries)
    found = _found(search, list(made), failed.kind)
    message = failed.message if failed.kind in failed.message else f"{failed.kind}: {failed.message}"
    path, more = _explain(options, f"{where}: {message}", call, search, made, found, Choice(
        [*base, *found], log=str(folder / "few"), explain=found))
    keys = ",".join(found)
    if base:
        listed = Path(path).with_suffix(".keys")
        files.write(str(listed), " ".join([*base, *found]))
        keys = f"@{listed}"
    print(f"again:    {VARIABLE}={keys} mlc run {path} --check{more}")
    around = next((key for key in found[::-1][:FEW] if trials.failure(
        call, Choice(None, [key]), options.timeout, as_those) is None), None)
    print(f"without:  {VARIABLE}=-{around} mlc run {path}{more}" if around is not None else
          "without any one of them it goes wrong, too: once that is mended, bisect again")
    return 0


def _explain(options: argparse.Namespace, what: str, call: Call, search: Search, made: dict[str, Change],
             found: Sequence[str], choice: Choice) -> tuple[str, str]:
    """Report the result, explained by a run with these changes; returns (path of a reproducer, options for it)."""
    assert choice.log is not None
    Path(choice.log).unlink(missing_ok=True)
    trials.failure(call, choice, options.timeout)
    _show(what, search, made, found, _logged(Path(choice.log)))
    path = options.output or str(files.scratch_file("mlc-bisect.mlir"))
    files.write(path, inputs.reproducer(to_text(call.module, locations=True), ",".join(map(str, call.steps or ())),
                                        call.entry, call.check.arrays, call.check.types, call.exact))
    return path, allowances(call.steps or ())


# -- slow code --------------------------------------------------------------------------------------------------------
def _slow(options: argparse.Namespace, calls: Sequence[Call], folder: Path) -> int:
    """Bisect the first call, or compilation, that is slower with all changes than without some of them."""
    reasons = list[str]()
    for call in calls:
        if options.slow and call.steps is not None:
            raise UserError(f"@{call.entry} is not compiled to native code here, so it has no times", code="MLC0683",
                            hint="give a file without a pipeline, whose function takes tensors")
        if (why_not := _one_slow(options, call, folder)) is None:
            return 0
        reasons.append(f"{call.line}: @{call.entry}: {why_not}")
    what = "compiling" if options.slow_compile else "the call"
    raise UserError(f"{what} is not slower with the changes than without, by {options.ratio:g} times and more than it "
                    "varies", code="MLC0683", notes=tuple(reasons),
                    hint="a lower --ratio finds less, as far as the machine is quiet enough")


def _one_slow(options: argparse.Namespace, call: Call, folder: Path) -> str | None:
    """Bisect one call: the changes that alone make it slow, or without which it is faster. Otherwise, the reason why
    there are none."""
    if (failed := trials.failure(call, Choice(log=str(folder / "log")), options.timeout)) is not None:
        raise UserError(f"@{call.entry} is not slow but wrong: {failed.message}", code="MLC0683",
                        hint="bisect that first: leave --slow out")
    made = _logged(folder / "log")
    (folder / "log").unlink(missing_ok=True)
    how = trials.call_times if options.slow else trials.compile_times

    def with_these(keys: Sequence[str] | frozenset[str]) -> Times | None:
        return trials.times(how, call, Choice(keys), Choice(()), options.timeout)

    def without_these(keys: Sequence[str] | frozenset[str]) -> Times | None:
        return trials.times(how, call, Choice(made), Choice(made.keys() - set(keys)), options.timeout)

    keys = list(made)
    everything = with_these(keys)
    alone = everything is not None and everything.slower(options.ratio)
    timed = with_these if alone else without_these
    search = Search(lambda some: _is_slower(timed, some, options.ratio), options.tries)
    groups = ([keys[i] for i in chosen] for chosen, _ in parts(len(keys)))
    if alone:
        start = keys if search.fails(keys) else None
    else:                                                  # without all of them it is no faster, as has been seen
        start = next((group for group in groups if len(group) < len(keys) and search.fails(group)), None)
    if start is None:
        return (f"{everything or 'no times'}, with all {len(made)} changes and without any; without half of them, a "
                f"quarter, ... or one it is not {options.ratio:g} times faster either ({search.tries} runs)")
    found = search.smallest(start)
    if (after := timed(found)) is None or not after.slower(options.ratio):
        return f"what was slower once is not always: {after or 'no times'}"
    what = "takes" if options.slow else "takes to compile"
    than = "with these changes, of those without any" if alone else "with all changes, of those without these"
    path, _ = _explain(options, f"{call.line}: @{call.entry} {what} {after} {than}", call, search, made, found,
                       Choice(found if alone else made, log=str(folder / "few"), explain=found))
    print(f"again:    mlc bisect {path} {'--slow' if options.slow else '--slow-compile'}")
    print(f"without:  {VARIABLE}={','.join('-' + key for key in found)} mlc run {path}")
    return None


def _is_slower(timed: Callable[[frozenset[str]], Times | None], keys: frozenset[str], ratio: float) -> bool:
    """Whether the result holds in a second measurement; of many timed groups, some seem slow by chance."""
    return all((found := timed(keys)) is not None and found.slower(ratio) for _ in range(2))


# -- output -----------------------------------------------------------------------------------------------------------
def _show(what: str, search: Search, made: dict[str, Change], found: Sequence[str],
          detailed: dict[str, Change]) -> None:
    """Print the failure, the number of runs and the necessary changes."""
    print(what)
    print(f"{len(made)} changes, {search.tries} runs: " + (
        "this one suffices" if len(found) == 1 else f"these {len(found)} suffice, and no fewer of them")
        + (" (it was run too often: fewer might; --tries allows more)" if search.ended else ""))
    for key in found:
        print()
        print("\n".join(described(detailed.get(key, made[key]))))
    print()


def described(change: Change) -> list[str]:
    """Description of a change."""
    number, _, name = change.step.partition(" ")
    out = [f"{change.key}  pass {int(number)}, {name}: " + (_rule(name, change) if change.rule else _summary(name)),
           f"  {change.op} at {change.loc}" if change.rule else "  the pass as a whole"]
    if change.rule and (line := _source(change.loc)) and ".mlir:" not in change.loc:
        out.append(f"      {line}")
    out += [f"    {sign} {line}" for sign, text in (("-" if change.after else " ", change.before), ("+", change.after),
                                                   ("with", change.beside)) for line in _cut(text)]
    return out


def _cut(text: str) -> list[str]:
    """The first lines, and the number of the others."""
    lines = text.splitlines()
    return lines if len(lines) <= FEW else [*lines[:FEW], f"... and {len(lines) - FEW} more"]


def _rule(name: str, change: Change) -> str:
    known = [r for rules in rewrite.RULES.values() for r in rules if r.name == change.rule]
    return f"rule {change.rule}: {known[0].equation}" if known else change.rule


def _summary(name: str) -> str:
    return find_pass(name).summary


def _source(loc: str) -> str:
    """The line of the model."""
    file, _, rest = loc.partition(":")
    line = rest.split(":")[0]
    linecache.checkcache(file)
    return linecache.getline(file, int(line)).strip() if line.isdecimal() else ""
