"""The table of error codes: what each means, an example that raises it, and what to do about it.

The entries are in the modules of this package, one per part of mlc that raises them. An entry is

    MLC0105 The title: one sentence.
    Why it is an error, in a paragraph.
    example mlir:
        the input that raises it
    fix: what to do.

and the word after `example` says how it is run: `mlir` is parsed and verified, `mlir PASSES` also goes through these
passes, `python` is run as a program, `mlc` is loaded as a program in the text language, `shell` is a command line. A
test runs them all. `text` shows the message where no small input raises it: damaged files, other machines, defects.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import cache

_ENTRY = re.compile(r"(?m)^(MLC\d{4}) (.+)\n(?=((?:(?!MLC\d{4} ).*\n?)*))")
_BODY = re.compile(r"(?P<why>.*?)^example (?P<kind>\w+)(?: (?P<passes>[^\n]*?))?:\n(?P<example>.*?)^fix: (?P<fix>.*)",
                   re.S | re.M)


@dataclass(frozen=True)
class Code:
    """One error code. `kind` is mlir, mlc, python, shell or text; `passes` is the pipeline of an mlir example."""

    name: str
    title: str
    why: str
    kind: str
    passes: str
    example: str
    fix: str

    def text(self) -> str:
        """The explanation that `mlc explain-error` prints."""
        how = {"mlir": f"example (mlc opt -{f' -p {self.passes}' * bool(self.passes)}):", "python": "example:",
               "mlc": "example (a .mlc file):", "shell": "example:", "text": "what it looks like:"}[self.kind]
        return (f"{self.name}: {self.title}\n\n{textwrap.fill(self.why, 100)}\n\n{how}\n\n"
                f"{textwrap.indent(self.example, '    ')}\n"
                f"{textwrap.fill(self.fix, 100, initial_indent='fix: ', subsequent_indent='     ')}\n")


@cache
def load() -> dict[str, Code]:
    """All codes by name, in the order of their numbers."""
    from mlc.tools.codes import (
        array_api,
        autograd,
        backend,
        command,
        control,
        data,
        distributed,
        frontend,
        general,
        gpu,
        language,
        levels,
        models,
        modules,
        onnx,
        pytorch,
        random,
        sharding,
        stablehlo,
        tensor,
        text,
    )
    parts = (general, tensor, levels, gpu, text, frontend, modules, autograd, control, data, distributed, random,
             language, command, backend, onnx, pytorch, stablehlo, array_api, models, sharding)
    found = [code for part in parts for code in read(part.TEXT)]
    return {code.name: code for code in sorted(found, key=lambda c: c.name)}


def read(text: str) -> list[Code]:
    """Parse the entries of a text."""
    out = list[Code]()
    for m in _ENTRY.finditer(text):
        body = _BODY.fullmatch(m[3])
        assert body is not None, f"{m[1]} is not a well-formed entry"
        out.append(Code(m[1], m[2], " ".join(body["why"].split()), body["kind"], body["passes"] or "",
                        textwrap.dedent(body["example"]), " ".join(body["fix"].split())))
    return out
