"""File cases: a `.mlir` file under tests/cases whose first lines say what to do with the modules in it.

    // test: roundtrip                      print, parse, print is a fixpoint, in both printings, with locations too
    // test: verify                         exactly the lines with `// error: text` are reported
    // test: parse-error                    likewise, by the parser, and there is one
    // test: pass canonicalize fuse{max=3}  run the passes; every function means the same before and after
    // test: run                            check the `// run:` lines with the interpreter and as native code
    // test: run interp                     ... with one of the two (interp, native)
    // tolerance: bits                      how closely results agree: to the bit, or a number (relative and absolute)
    // sizes: B=4 N=8                       the symbols' sizes, where those chosen here do not fit
    // meaning: none, needs a GPU           a pass case is not interpreted, with the reason

Lines `// -----` part a file into modules, each tested on its own. Within a module:

    // error: text        after an operation: the error reported on this line contains the text (`error[CODE]: message`)
    // error@-1: text     the same about another line, counted from this one
    // run: @f([1, 2], 3) == [4, 5]     equal to the bit; `~=` within the tolerance; several results: `== (1, 2)`
    // CHECK: text        about the printed module after `pass` (or `roundtrip`), see filecheck.py

A module with the single line `// CHECK:` is completed by `pytest --bless`, which also renews CHECK lines it wrote.
"""
from __future__ import annotations

import ast
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests import filecheck
from tests.arrays import Array, difference, random_array

Argument = Array | np.generic
"""An array, or a numpy scalar where the function takes a scalar."""

HEADER = re.compile(r"\s*//\s*(test|tolerance|sizes|meaning):\s*(.*?)\s*$")
SEPARATOR = re.compile(r"\s*//\s*-{5,}\s*$")
ERROR = re.compile(r"//\s*error(@[+-]\d+)?:\s*(.*?)\s*$")
RUN = re.compile(r"\s*//\s*run:\s*(.*?)\s*$")
CALL = re.compile(r"@([\w.$-]+)\((.*)\)\s*(==|~=)\s*(.+)$")
BLANK_CHECK = re.compile(r"\s*//\s*CHECK:\s*$")
DIRECTIVES = ("test", "tolerance", "sizes", "meaning", "error", "run", "CHECK")
KINDS = ("roundtrip", "verify", "parse-error", "pass", "run")
SIZES = (3, 2, 5, 4)
"""Sizes for the symbols of a function, in order of appearance, again from the start after the last."""



class CaseError(Exception):
    """The file is not a case: what its comments ask for makes no sense."""


class CaseFailure(Exception):
    """The compiler does not do what the case says."""


@dataclass(frozen=True)
class Test:
    """One `// test:` line."""

    __test__ = False
    line: int
    kind: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.kind, *self.words))


@dataclass(frozen=True)
class Call:
    """One `// run:` line: call a function with literals and compare what it returns with others."""

    line: int
    text: str
    name: str
    args: list[Any]
    exact: bool
    results: list[Any]


@dataclass(frozen=True)
class Chunk:
    """One module of a file. `text` is preceded by empty lines so that its line numbers are the file's."""

    index: int
    text: str
    errors: tuple[tuple[int, str], ...]
    calls: tuple[Call, ...]
    checks: bool


@dataclass(frozen=True)
class Case:
    """A parsed case file."""

    file: str
    tests: tuple[Test, ...]
    chunks: tuple[Chunk, ...]
    tolerance: str | float | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    uninterpreted: str | None = None

    def where(self, line: int) -> str:
        return f"{self.file}:{line}"


# -- reading a file ---------------------------------------------------------------------------------------------------
def parse_case(text: str, file: str = "<text>") -> Case:
    """Read the comments of a case file; the IR in it is not looked at. Raises CaseError, naming file and line."""
    tests, options = list[Test](), dict[str, Any]()
    for number, key, value in _header(text, file):
        where = f"{file}:{number}"
        if key == "test":
            tests.append(_test(number, value, where))
        elif key in options:
            raise CaseError(f"{where}: a second `// {key}:`")
        else:
            options[key] = _option(key, value, where)
    if not tests or not HEADER.match(text.split("\n", 1)[0]):
        raise CaseError(f"{file}:1: the first line is not `// test: ...`")
    chunks = tuple(_chunk(i, part, file) for i, part in enumerate(_split(text)))
    case = Case(file, tuple(tests), chunks, options.get("tolerance"), options.get("sizes", {}), options.get("meaning"))
    _consistent(case)
    return case


def split_words(text: str) -> tuple[str, ...]:
    """Words at blanks outside of braces.

    >>> split_words("cse fuse{max=3 by=cost}  dce")
    ('cse', 'fuse{max=3 by=cost}', 'dce')
    """
    return tuple(re.findall(r"(?:\{[^}]*\}|[^\s{])+", text))


def _header(text: str, file: str) -> Iterator[tuple[int, str, str]]:
    inside = True
    for number, line in enumerate(text.split("\n"), 1):
        inside = inside and (not line.strip() or line.lstrip().startswith("//")) and not SEPARATOR.match(line)
        if not (m := HEADER.match(line)):
            continue
        if not inside:
            raise CaseError(f"{file}:{number}: `// {m[1]}:` belongs above the first module")
        yield number, m[1], m[2]


def _test(number: int, value: str, where: str) -> Test:
    words = split_words(value)
    kind, rest = (words[0], words[1:]) if words else ("", ())
    if kind not in KINDS:
        raise CaseError(f"{where}: no such test: {value!r}; there are {', '.join(KINDS)}")
    if kind == "pass" and not rest:
        raise CaseError(f"{where}: `// test: pass` names no pass")
    if rest and kind != "pass" and not (kind == "run" and set(rest) <= {"interp", "native"}):
        raise CaseError(f"{where}: `// test: {kind}` does not take {' '.join(rest)!r}")
    return Test(number, kind, rest)


def _option(key: str, value: str, where: str) -> Any:
    if key == "tolerance" and value == "bits":
        return value
    if key == "tolerance" and re.fullmatch(r"\d+(\.\d*)?(e-?\d+)?", value):
        return float(value)
    if key == "sizes" and re.fullmatch(r"(\w+=\d+\s*)+", value):
        return {name: int(size) for name, size in (pair.split("=") for pair in value.split())}
    if key == "meaning" and (m := re.fullmatch(r"none,\s*(.+)", value)):
        return m[1]
    wanted = {"tolerance": "`bits` or a number", "sizes": "`B=4 N=8`", "meaning": "`none, <reason>`"}[key]
    raise CaseError(f"{where}: `// {key}:` wants {wanted}, not {value!r}")


def _split(text: str) -> list[str]:
    """The modules' texts, each after as many empty lines as precede it in the file."""
    lines = text.split("\n")
    bounds = [-1, *(i for i, line in enumerate(lines) if SEPARATOR.match(line)), len(lines)]
    return ["\n" * (a + 1) + "\n".join(lines[a + 1:b]) for a, b in zip(bounds, bounds[1:])]


def _chunk(index: int, text: str, file: str) -> Chunk:
    errors, calls, checks = list[tuple[int, str]](), list[Call](), False
    for number, line in enumerate(text.split("\n"), 1):
        if m := ERROR.search(line):
            if not m[2]:
                raise CaseError(f"{file}:{number}: `// error:` without a text")
            errors.append((number + int((m[1] or "@0")[1:]), m[2]))
        if m := RUN.match(line):
            calls.append(_call(number, m[1], f"{file}:{number}"))
        blank, rule = BLANK_CHECK.match(line), filecheck.DIRECTIVE.match(line)
        checks = checks or bool(blank or rule)
        if not (rule or m or ERROR.search(line) or HEADER.match(line)):
            if meant := filecheck.misspelt(line, DIRECTIVES) or (filecheck.UNFINISHED.match(line) and "CHECK"):
                raise CaseError(f"{file}:{number}: {line.strip()!r} asks for nothing; is `// {meant}:` meant?")
    return Chunk(index, text, tuple(errors), tuple(calls), checks)


def _call(number: int, text: str, where: str) -> Call:
    if not (m := CALL.match(text)):
        raise CaseError(f"{where}: not of the form `// run: @f(args) == results`")
    try:
        args, results = _literal(f"[{m[2]}]"), _literal(m[4])
    except (SyntaxError, ValueError) as e:
        raise CaseError(f"{where}: {e}") from None
    return Call(number, text, m[1], args, m[3] == "==", list(results) if isinstance(results, tuple) else [results])


def _literal(text: str) -> Any:
    """Numbers, `inf`, `nan`, `true`, `false`, lists (of an array) and tuples (of results).

    >>> _literal("([1, -inf], true)")
    ([1, -inf], True)
    """
    names = {"inf": math.inf, "nan": math.nan, "true": True, "false": False, "True": True, "False": False}

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() | complex()):
                return node.value
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.UnaryOp(op=ast.USub()):
                return -value(node.operand)
            case ast.BinOp(op=ast.Add()):
                return value(node.left) + value(node.right)
            case ast.BinOp(op=ast.Sub()):
                return value(node.left) - value(node.right)
            case ast.List():
                return [value(x) for x in node.elts]
            case ast.Tuple():
                return tuple(value(x) for x in node.elts)
        raise ValueError(f"not a literal: {ast.unparse(node)}")

    return value(ast.parse(text.strip(), mode="eval").body)


def _consistent(case: Case) -> None:
    """Every comment of the file is used by one of its tests."""
    kinds = [t.kind for t in case.tests]
    for chunk in case.chunks:
        if chunk.errors and not {"verify", "parse-error"} & set(kinds):
            raise CaseError(f"{case.where(chunk.errors[0][0])}: `// error:` needs `// test: verify` or `parse-error`")
        if len(chunk.errors) > 1:
            raise CaseError(f"{case.where(chunk.errors[1][0])}: a module stops at its first error; "
                            "part the modules by `// -----`")
        if "parse-error" in kinds and not chunk.errors:
            raise CaseError(f"{case.file}: module {chunk.index} of a parse-error case has no `// error:`")
        if chunk.calls and not {"run", "pass"} & set(kinds):
            raise CaseError(f"{case.where(chunk.calls[0].line)}: `// run:` needs `// test: run` or `pass`")
        if chunk.checks and (kinds.count("pass") > 1 or not {"pass", "roundtrip"} & set(kinds)):
            raise CaseError(f"{case.file}: CHECK lines need exactly one `// test: pass`, or a `// test: roundtrip`")
    if "run" in kinds and not any(chunk.calls for chunk in case.chunks):
        raise CaseError(f"{case.file}: `// test: run` without a `// run:` line")


# -- running a test of a module. The compiler is imported here: where it does not import, other tests still run ------
def run_test(case: Case, test: Test, chunk: Chunk, bless: Callable[[str], None] | None = None) -> None:
    """Do what `test` says with one module; raises CaseFailure. `bless` takes the printed module if it may be kept."""
    if test.kind == "roundtrip":
        printed = _roundtrip(case, chunk)
        if not any(t.kind == "pass" for t in case.tests):
            _expected_text(case, chunk, printed, bless)
    elif test.kind == "pass":
        _expected_text(case, chunk, _pass(case, test, chunk), bless)
    elif test.kind == "run":
        _run(case, test, chunk)
    else:
        _errors(case, test, chunk)


def _parse(case: Case, chunk: Chunk) -> Any:
    from mlc.ir.parser import parse_module
    return parse_module(chunk.text, case.file)


def _roundtrip(case: Case, chunk: Chunk) -> str:
    from mlc.ir.parser import parse_module
    from mlc.ir.printer import to_text
    from mlc.ir.verify import verify
    module = _parse(case, chunk)
    verify(module)
    pretty = to_text(module)
    for options in ({}, {"generic": True}, {"locations": True}, {"generic": True, "locations": True}):
        text = to_text(module, **options)
        again = parse_module(text, case.file)
        for got, want in ((to_text(again, **options), text), (to_text(again), pretty)):
            if got != want:
                raise CaseFailure(f"printed with {options or 'no options'}, parsed and printed again:\n"
                                  + first_difference(want, got))
    return pretty


def _pass(case: Case, test: Test, chunk: Chunk) -> str:
    from mlc.ir.passes import Pipeline, parse_pipeline
    from mlc.ir.printer import to_text
    from mlc.ir.verify import verify
    before, after = _parse(case, chunk), _parse(case, chunk)
    verify(before)
    Pipeline(parse_pipeline(",".join(test.words))).run(after)
    verify(after)
    if case.uninterpreted is None:
        for name, function in _functions(before).items():
            if function.attrs.get("sym_visibility") == "private":
                continue
            same_meaning(case, before, after, name)
    for module in (before, after):
        for call in chunk.calls:
            _interpret_call(case, module, call)
    return to_text(after)


def _run(case: Case, test: Test, chunk: Chunk) -> None:
    from mlc.ir.verify import verify
    module = _parse(case, chunk)
    verify(module)
    ways = test.words or ("interp", "native")
    for call in chunk.calls:
        if "interp" in ways:
            _interpret_call(case, module, call)
        if "native" in ways:
            from mlc.api import run_module
            args = _arguments(case, module, call)
            _compare(case, call, "native code", run_module(_parse(case, chunk), call.name, args))


def _errors(case: Case, test: Test, chunk: Chunk) -> None:
    from mlc.ir.diag import Error
    from mlc.ir.verify import verify
    found = list[tuple[int, str]]()
    try:
        module = _parse(case, chunk)
        if test.kind == "verify":
            verify(module)
    except Error as e:
        found.append((e.loc.line, f"error[{e.code}]: {e.message}"))
    for line, text in found:
        if not any(at == line and want in text for at, want in chunk.errors):
            raise CaseFailure(f"{case.where(line)}: {text}\nis reported; expected"
                              + ("".join(f"\n{case.where(at)}: {want}" for at, want in chunk.errors) or " none"))
    for at, want in chunk.errors:
        if not found:
            raise CaseFailure(f"{case.where(at)}: expected an error: {want}\nnone is reported")


def _expected_text(case: Case, chunk: Chunk, printed: str, bless: Callable[[str], None] | None) -> None:
    if not chunk.checks:
        return
    if bless and is_blessed(chunk.text):
        bless(printed)
        return
    if message := filecheck.check(chunk.text, printed):
        hint = "" if not is_blessed(chunk.text) else "\n`pytest --bless` writes the output into the file"
        raise CaseFailure(f"{case.file}: {message}{hint}")


# -- meaning ----------------------------------------------------------------------------------------------------------
def _functions(module: Any) -> dict[str, Any]:
    """The functions of a module that have a body, by name."""
    return {str(op.attrs["sym_name"]): op for op in module.walk()
            if op.name == "func.func" and op.regions and op.regions[0].blocks}


def same_meaning(case: Case, before: Any, after: Any, name: str) -> None:
    """Interpret a function of two modules on the same random arguments: what it returns and writes is equal."""
    from mlc.ir.interp import run_function
    from tests.sharded_program import is_of_one_rank, on_all_ranks, program_of
    function = _functions(before)[name]
    if program_of(after, name) is None:
        raise CaseFailure(f"{case.where(function.loc.line)}: @{name} is no longer there")
    for trial, sizes in enumerate((SIZES,) if case.sizes else (SIZES, (1,))):
        args = random_arguments(function, trial, case.sizes, sizes)
        seen = list[list[Array]]()
        for module in (before, after):
            own = [a.copy() for a in args]
            of_one_rank = is_of_one_rank(program_of(module, name))
            results = on_all_ranks(module, own, name) if of_one_rank else run_function(module, name, own)
            seen.append([np.asarray(x) for x in (*results, *own)])
        if len(seen[0]) != len(seen[1]):
            raise CaseFailure(f"{case.where(function.loc.line)}: @{name} returns another number of results")
        for i, (want, got) in enumerate(zip(*seen)):
            if message := difference(got, want, case.tolerance):
                what = f"result {i}" if i < len(seen[0]) - len(args) else f"argument {i - len(seen[0]) + len(args)}"
                raise CaseFailure(f"{case.where(function.loc.line)}: @{name}, {what} after the passes: {message}\n"
                                  + "\n".join(f"  argument {k}: {a!r}" for k, a in enumerate(args)))


def random_arguments(function: Any, seed: int, fixed: dict[str, int], sizes: tuple[int, ...]) -> list[Argument]:
    """Arguments of the types a function takes, the same for the same seed."""
    from mlc.ir import types
    from mlc.ir.sizes import evaluate, symbols
    from tests.sharded_program import is_of_one_rank
    rng, env = np.random.default_rng(seed), dict(fixed)

    def size(dim: Any) -> int:
        if dim is None:
            return sizes[0]
        for symbol in sorted(symbols(dim)):
            env.setdefault(symbol, sizes[len(env) % len(sizes)])
        return evaluate(dim, env)

    def value(type: Any, number: int) -> Argument:
        shape = tuple(size(d) for d in type.shape) if isinstance(type, types.ShapedType) else ()
        if is_of_one_rank(function):                       # the whole tensor, of which each rank gets its shard
            dims, mesh = function.attrs["arg_shardings"][number].dims, function.attrs["mesh"]
            shape = tuple(n * mesh.size(axes) for n, axes in zip(shape, dims))
        if not isinstance(type, types.ShapedType | types.ScalarType):
            raise CaseFailure(f"no random value of type {type}; write `// meaning: none, <reason>`")
        scalar = types.element(type)
        return random_array(rng, shape, types.to_numpy(scalar), low=0 if scalar == types.index else -4)[()]

    return [value(arg.type, i) for i, arg in enumerate(function.regions[0].blocks[0].args)]


def _arguments(case: Case, module: Any, call: Call) -> list[Argument]:
    """The literals of a `// run:` line, in the types of the function."""
    from mlc.ir import types
    function = _functions(module).get(call.name)
    if function is None:
        raise CaseError(f"{case.where(call.line)}: there is no function @{call.name}")
    params = function.regions[0].blocks[0].args
    if len(params) != len(call.args):
        raise CaseError(f"{case.where(call.line)}: @{call.name} takes {len(params)} arguments, not {len(call.args)}")
    is_complex = function.attrs.get("complex_args", ())
    elements = [types.SCALARS[f"complex<{types.element(param.type)}>"] if i in is_complex
                else types.element(param.type) for i, param in enumerate(params)]
    arrays = [_in_dtype(case, call, value, np.dtype(types.to_numpy(element)))
              for element, value in zip(elements, call.args)]
    return [x if isinstance(param.type, types.ShapedType) else x[()] for param, x in zip(params, arrays)]


def _in_dtype(case: Case, call: Call, literal: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The array of a literal, of which only floats may be rounded."""
    given = np.asarray(literal)
    array = given.astype(dtype)
    if dtype.kind in "biu" and not np.array_equal(array, given):
        raise CaseError(f"{case.where(call.line)}: {call.text}\n{literal} is no value of {dtype}")
    return array


def _interpret_call(case: Case, module: Any, call: Call) -> None:
    from mlc.ir.interp import run_function
    results = run_function(module, call.name, _arguments(case, module, call))
    _compare(case, call, "the interpreter", results)


def _compare(case: Case, call: Call, who: str, results: list[Any]) -> None:
    if len(results) != len(call.results):
        raise CaseFailure(f"{case.where(call.line)}: {call.text}\n{who} gives {len(results)} results")
    for i, (result, literal) in enumerate(zip(results, call.results)):
        got = np.asarray(result)
        want = _in_dtype(case, call, literal, got.dtype)
        tolerance = "bits" if call.exact else None if case.tolerance == "bits" else case.tolerance
        if message := difference(got, want, tolerance):
            raise CaseFailure(f"{case.where(call.line)}: {call.text}\n{who}, result {i}: {message}")


def first_difference(want: str, got: str) -> str:
    """The first line in which two texts differ."""
    a, b = want.split("\n"), got.split("\n")
    i = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"line {i + 1}\n  first:  {a[i] if i < len(a) else '(none)'}\n  second: {b[i] if i < len(b) else '(none)'}"


# -- blessing ---------------------------------------------------------------------------------------------------------
def is_blessed(text: str) -> bool:
    """Whether `--bless` may replace the CHECK lines: they are one empty `// CHECK:`, or what it writes itself."""
    lines = [line for line in text.split("\n") if BLANK_CHECK.match(line) or filecheck.DIRECTIVE.match(line)]
    if any(BLANK_CHECK.match(line) for line in lines):
        return len(lines) == 1
    rules = filecheck.directives("\n".join(lines))
    return bool(rules) and rules[0].kind == "" and all(
        r.kind in ("", "-NEXT") and filecheck.is_literal(r.pattern) for r in rules)


def check_block(printed: str) -> list[str]:
    """CHECK lines that the printed module, and little else, satisfies."""
    block, follows = list[str](), False
    for line in printed.rstrip("\n").split("\n"):
        if line.strip():
            block.append(("// CHECK-NEXT: " if follows else "// CHECK:      ") + filecheck.literal(line.rstrip()))
        follows = bool(line.strip())
    return block


def blessed(text: str, index: int, printed: str) -> str:
    """The file's text with the CHECK lines of module `index` replaced, where the first of them stood."""
    lines, module, out, done = text.split("\n"), 0, list[str](), False
    for line in lines:
        module += bool(SEPARATOR.match(line))
        if module != index or not (BLANK_CHECK.match(line) or filecheck.DIRECTIVE.match(line)):
            out.append(line)
        elif not done:
            out += check_block(printed)
            done = True
    return "\n".join(out)


def bless_file(path: Path, index: int, printed: str) -> None:
    """`blessed`, in place; the file is replaced whole or not at all."""
    old = path.read_text(encoding="utf-8")
    new = blessed(old, index, printed)
    if new != old:
        temporary = path.with_suffix(".mlir.tmp")
        temporary.write_text(new, encoding="utf-8")
        os.replace(temporary, path)
