"""A program that reads a portable artifact from stdin by jaxlib, and writes its text to stdout.

It is run in a process of its own (`artifacts`), as what reads the bytes is native code, which a damaged file can end.
It imports nothing of mlc's. Exit status 3: stderr says why the artifact cannot be read.
"""

from __future__ import annotations

import contextlib
import resource
import sys
from typing import Any

UNREADABLE = 3
MOST_MEMORY = 8 << 30
"""Bytes of addresses that reading may take."""


def main() -> int:
    """Read and write."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    data, said = sys.stdin.buffer.read(), list[str]()

    def keep(diagnostic: Any) -> bool:
        said.append(str(diagnostic.message))
        return True

    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import stablehlo
        with ir.Context() as context:
            stablehlo.register_dialect(context)
            handler = context.attach_diagnostic_handler(keep)
            text = str(stablehlo.deserialize_portable_artifact(context, data))
            handler.detach()
    except (ImportError, ValueError, RuntimeError) as error:   # ir.MLIRError is a RuntimeError
        lines = [line for text in (*said, str(error)) for line in text.strip().splitlines()]
        print(lines[0] if lines else "it is damaged", file=sys.stderr)
        return UNREADABLE
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
