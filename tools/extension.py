"""mlc compile -o net.so: compile functions of a file to a Python extension module, with its stub and C header."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlc import extension
from mlc.backends.target import Target
from mlc.ir.diag import ParseError, UserError
from mlc.tools import files, formats, report, sources

KINDS = {"ext": ".so", "header": ".h", "stub": ".pyi"}
"""The kinds of output that can be emitted, and the file suffix of each."""


def wanted(options: argparse.Namespace) -> list[str]:
    """The requested kinds among these; a file that ends in .so is a module, which comes with its stub."""
    if options.emit is None:
        return ["ext", "stub"] if options.output is not None and options.output.endswith(".so") else []
    asked = [word.strip() for word in options.emit.split(",") if word.strip()]
    found = [word for word in asked if word in KINDS]
    if found and len(found) < len(asked):
        other = next(word for word in asked if word not in KINDS)
        raise report.usage_error(f"--emit: {found[0]} and {other} are made in different ways",
                                 "run mlc compile twice", "MLC0391")
    return found


def main(options: argparse.Namespace, kinds: Sequence[str]) -> int:
    check_options(options, kinds)
    if options.checked:
        raise report.usage_error("a module that Python imports cannot be checked code", "leave --checked out; mlc run "
                                 "--checked runs a program as checked code", "MLC0482")
    path, _, names = options.function.rpartition(":") if ":" in options.function else (options.function, "", "")
    if formats.format_of(path) is not None:
        names = names or Path(path).stem
    if path.endswith(".mlir") and not path.endswith(sources.FUNCTIONS):
        raise report.usage_error(f"{path} is no source of a module: that is made of functions of a "
                                 + ", ".join(sources.FUNCTIONS) + " file",
                                 f"mlc compile {options.function} -o NAME.o makes an object file of it", "MLC0399")
    if not path.endswith(sources.FUNCTIONS) or not names:
        raise report.usage_error(f"{options.function}: a module is made of functions of a "
                                 + ", ".join(sources.FUNCTIONS) + " file",
                                 f"write {path}:FUNCTION, or several as {path}:FUNCTION,FUNCTION", "MLC0399")
    output = options.output if options.output not in (None, "-") else names.split(",")[0] + KINDS[kinds[0]]
    name = extension.module_name(output)
    targets = chosen_targets(options)
    files.check_output(options.output if options.output == "-" else output)
    recorded = [_source(path, function, options.args) for function in names.split(",")]
    made = dict[str, bytes]()
    if "ext" in kinds or "header" in kinds:
        weights = extension.weights_of(name, recorded, options.weights or "inside")
    if "ext" in kinds:
        made[KINDS["ext"]] = extension.built(name, recorded, targets, weights,
                                              2 if options.opt_level is None else options.opt_level)
        if weights.beside:
            made[".safetensors"] = weights.content
    functions = [s.function for s in recorded]
    if "header" in kinds:
        from mlc.backends.extension.header import header
        made[KINDS["header"]] = header(name, functions, weights).encode()
    if "stub" in kinds:
        from mlc.backends.extension.stub import stub
        made[KINDS["stub"]] = stub(functions).encode()
    if options.output == "-" and len(made) == 1 and "ext" not in kinds:
        files.write("-", next(iter(made.values())).decode())
        return 0
    where = Path(output)
    for ending, content in sorted(made.items(), key=lambda item: item[0] == ".so"):      # the module last: all is there
        files.write(str(where if (ending == where.suffix and len(made) == 1) or ending == ".so" else
                        where.with_name(name + ending)), content)
    return 0


def check_options(options: argparse.Namespace, kinds: Sequence[str]) -> None:
    """Usage error for an option that nothing of these kinds depends on."""
    report.refuse(options, ("generic", "locations", "dump_dir", "matmul_precision"), "a module that Python imports is "
                  "machine code for several processors", "leave it out, or ask for a level, such as --emit=low")
    if "ext" not in kinds:
        report.refuse(options, ("cpu", "target", "opt_level"), "there is no code in what is made",
                      "leave it out, or ask for --emit=ext, too")
    if kinds == ["stub"]:
        report.refuse(options, ("weights",), "a stub does not say where weights are", "leave it out")


def chosen_targets(options: argparse.Namespace) -> list[Target]:
    """The processors that code is made for."""
    if options.cpu is not None and options.target is not None:
        raise report.usage_error("--cpu and --target both say what code is for", "give one of them", "MLC0391")
    words = options.cpu.split(",") if options.cpu is not None else \
        [options.target] if options.target is not None else extension.LEVELS
    targets = [Target.parse(word.strip()) for word in words]
    if any(t.is_gpu or t.name == "host" for t in targets) or len({t.triple for t in targets}) > 1:
        raise report.usage_error(f"there is no module for {', '.join(words)}",
                                 "name kinds of processor of one architecture, as in --cpu=x86-64-v3,x86-64-v4",
                                 "MLC0391")
    return targets


def _source(path: str, name: str, given: str | None) -> extension.RecordedFunction:
    """A function of a file, recorded."""
    is_model = formats.format_of(path) is not None         # to which the name is given
    function = sources.load(path, "" if is_model else name)
    args = parse_trees(given) if given is not None else None
    if args is not None:
        sources.check_count(function, args, f"{path}:{name}")
    try:
        return extension.source(function, args, name.rpartition(".")[2])
    except Exception as error:
        raise report.users_fault(error) from error


# -- types of arguments -----------------------------------------------------------------------------------------------
_TOKEN = re.compile(r"\s*(?:(?P<type>\w+)(?P<shape>\[[^\]]*\])?|(?P<mark>[{}()\[\],:])|(?P<end>$))")


def parse_trees(text: str) -> list[Any]:
    """Parse `f32[B,16],{w: f32[16,4], b: f32[4]},(i64,[f32])` to specifications."""
    tokens = list[tuple[str, str]]()
    at = 0
    while at < len(text):
        m = _TOKEN.match(text, at)
        if m is None:
            raise _bad(text[at:at + 24])
        if m.lastgroup == "end":
            break
        tokens.append((m["mark"] or m["type"], m["shape"] or ""))
        at = m.end()
    tokens.append((")", ""))
    out, end = _items(tokens, 0, ")", False)
    if end != len(tokens):
        raise _bad(text)
    return [x for _, x in out]


def _items(tokens: Sequence[tuple[str, str]], at: int, close: str, keyed: bool) -> tuple[list[tuple[str, Any]], int]:
    """(key, tree) of a container whose content starts at a token, and where what follows it starts."""
    out = list[tuple[str, Any]]()
    while at < len(tokens):
        word, shape = tokens[at]
        if word == close and not shape:
            return out, at + 1
        key = ""
        if keyed:
            if at + 1 >= len(tokens) or shape or tokens[at + 1][0] != ":":
                raise _bad(word)
            key, at = word, at + 2
        value, at = _tree(tokens, at)
        out.append((key, value))
        if at < len(tokens) and tokens[at][0] == ",":
            at += 1
        elif at >= len(tokens) or tokens[at][0] != close:
            raise _bad(tokens[min(at, len(tokens) - 1)][0])
    raise _bad(close)


def _tree(tokens: Sequence[tuple[str, str]], at: int) -> tuple[Any, int]:
    import mlc.api as api
    from mlc.tools import inputs
    word, shape = tokens[at] if at < len(tokens) else ("", "")
    if word in ("{", "(", "["):
        items, after = _items(tokens, at + 1, {"{": "}", "(": ")", "[": "]"}[word], word == "{")
        values = [x for _, x in items]
        return (dict(items) if word == "{" else tuple(values) if word == "(" else values), after
    if not word or not word.isidentifier():
        raise _bad(word or "nothing")
    try:
        type, = inputs.parse_args(word + shape)
    except ParseError:
        raise _bad(word + shape) from None
    return api.Spec(type), at + 1


def _bad(text: str) -> UserError:
    return report.usage_error(f"--args: {text.strip()!r} is no argument type",
                              "write TYPE[SIZE,...], and containers of them, {w: f32[16,4]} or (i64, [f32])",
                              "MLC0397")
