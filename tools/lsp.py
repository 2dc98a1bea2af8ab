"""mlc lsp: the language server of `.mlc` and `.mlir` files, which an editor starts and talks to."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from contextlib import redirect_stdout

from mlc.ir.diag import UserError
from mlc.tools import cli, report

EXAMPLES = """examples:
  mlc lsp

An editor's configuration has this command; tools/editor/README.md has those of VS Code, Neovim and Helix. The server
speaks by standard input and output, and ends with them.
"""


def parser() -> argparse.ArgumentParser:
    return report.Parser("lsp", "Serve an editor: errors, types, equations, definitions, completion, formatting.",
                         EXAMPLES)


def main(options: argparse.Namespace) -> int:
    try:
        from mlc.tools.language_server.server import load, make_server
    except ImportError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise UserError(f"the language server needs {error.name}", code="MLC0691",
                        hint="pip install 'mlc[editor]'") from None
    server = make_server(cli.version())
    load()
    gc.freeze()                                            # what stays need not be looked through after each edit
    # Prints of ours are no messages of the protocol, whose end closes the stream.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as messages, redirect_stdout(sys.stderr):
        server.start_io(stdout=messages)
    return 0
