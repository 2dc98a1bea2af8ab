"""The `mlc` command: finds the sub-command, imports its module, and reports any error as one message.

Exit status: 0 done, 1 the input is wrong, 2 an error of the command line, a file or the machine, 101 a defect of mlc,
130 interrupted. Data goes to stdout, messages to stderr. Nothing heavy is imported here: `mlc --help` is instant.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import FrameType

from mlc.tools.exit_status import INTERRUPTED, OK, USAGE, flush, of_piped

COMMANDS: dict[str, str] = {
    "compile": "compile a function to any level, from tensor IR to an object file",
    "explain": "show what the compiler made of each line of a function, down to assembly: a page, text or JSON",
    "import": "show what a program of torch.export consists of, and what is not supported",
    "bench": "measure networks, operations or a file beside other frameworks",
    "chat": "talk with a language model in the terminal",
    "generate": "let a language model go on with a text",
    "quantize": "write a language model as a GGUF file, with weights in fewer bits",
    "serve": "serve models over HTTP: OpenAI's routes, the Open Inference Protocol, a page for conversations",
    "run": "run a Python program or an entry of a .mlir file; --check names the pass that changes a result",
    "profile": "run a program or a function, and show where time and memory go: by kernel, line and module",
    "opt": "run passes over a .mlir file",
    "replay": "run a file again that mlc left when something failed",
    "reduce": "make a module smaller as long as it fails in the same way",
    "bisect": "find the smallest set of rewrites and decisions that makes something go wrong, or slow",
    "fuzz": "look for defects with random programs, inputs with mistakes, and calls that make no sense",
    "passes": "list the passes, in the order in which they run and why",
    "ops": "list the operations, or explain one",
    "debug": "step through a function at any level, in the interpreter",
    "diff": "compare two modules up to the names of values",
    "fmt": "lay out .mlc and .mlir files",
    "lsp": "serve an editor: errors, types, definitions, completion, formatting",
    "verify": "check that compiled modules, saved models and their weights are whole and for this machine",
    "cache": "the compile cache: where it is and what it holds, clear it, verify it",
    "accuracy": "measure the error of elementary functions in units of the last place",
    "info": "versions, target and what compiled code may use",
    "explain-error": "explain an error code",
    "completion": "a script that completes commands and options in bash, zsh or fish",
}
"""Each is the module of the same name in this package (`-` is `_`), with `parser()` and `main(options)`."""

USAGE_TEXT = """usage: mlc COMMAND [OPTION...]

A machine-learning framework that is a compiler all the way down.

commands:
{commands}

options of every command:
  -h, --help       what it does, with examples
  --debug          show the traceback of an error
  --color WHEN     colour messages: auto, always, never (NO_COLOR is respected)

examples:
  mlc ops tensor.exp
  mlc compile model.py:predict --emit=loop
  mlc run --check model.py

exit status: 0 done, 1 the input is wrong, 2 usage or files, 101 a defect of
mlc, 130 interrupted
"""


def usage() -> str:
    from mlc.tools.layout import page_width, table
    return USAGE_TEXT.format(commands="\n".join("  " + line for line in table(
        list(COMMANDS.items()), page_width() - 2)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        caller = sys._getframe(1)
        return of_piped(lambda: _run(words, caller))
    except KeyboardInterrupt:
        if "--debug" in words:
            raise
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:                     # of a help that cannot be printed
        from mlc.tools import report
        return report.failure(error, report.Options([], "--debug" in words, "auto"), words)


def _run(words: list[str], caller: FrameType) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        if words[1:2] and words[1] in COMMANDS:
            return _run([words[1], "--help"], caller)
        print(usage(), end="")
        return OK if words else USAGE
    if words[0] in ("--version", "-V"):
        print(f"mlc {version()}")
        return OK
    name = words[0].replace("_", "-")
    if name not in COMMANDS:
        return _unknown(words[0])
    command = importlib.import_module(f"mlc.tools.{name.replace('-', '_')}")
    from mlc.tools import files, report
    options = report.Options([], "--debug" in words, "auto")
    try:
        options = report.Options.take(words[1:])
        from mlc.frontend.location import in_command
        with in_command(caller), files.started_here():
            parsed = command.parser().parse_args(options.rest)
            status = int(command.main(parsed))
            flush()
            return status
    except SystemExit as stop:                   # argparse has spoken, or the user's program ends itself
        return report.exit_status(stop)
    except BrokenPipeError:
        raise
    except Exception as error:
        return report.failure(error, options, words)


def _unknown(word: str) -> int:
    """Error for an unknown command, with a suggestion."""
    from difflib import get_close_matches

    from mlc.tools import report
    what = f"there is no option {word}" if word.startswith("-") else f"there is no command {word!r}"
    near = get_close_matches(word.lower().lstrip("-"), COMMANDS, 1)
    hint = f"did you mean mlc {near[0]}?" if near else "one of " + ", ".join(COMMANDS)
    return report.failure(report.usage_error(what, hint, "MLC0390"), report.Options([], False, "auto"), [word])


def version() -> str:
    import mlc
    return mlc.__version__


if __name__ == "__main__":
    sys.exit(main())
