"""Worker process that compiles units: reads requests from stdin and writes objects to stdout until stdin ends.

    request   u64 bytes of head, u64 bytes of text; head: JSON [fields of the target, opt_level, kind of the unit,
              digest of the client's sources]; text in UTF-8
    answer    u8 0 and u64 bytes of object, object; or u8 1 for a failure, whose cause the client finds by compiling

llvmlite and Python hold one lock per process each, so only processes compile in parallel. What compiles units is
imported at the start: there may be time until the first request.
"""

from __future__ import annotations

import json
import struct
import sys
from importlib import import_module
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from mlc.backends.target import Target

REQUEST, ANSWER = struct.Struct("<QQ"), struct.Struct("<BQ")
DONE, FAILED = 0, 1


def main() -> None:
    """Serve until stdin ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    for name in ("kernel_units", "object_code", "versions"):
        import_module(f"mlc.backends.{name}")
    from mlc.backends.target import Target
    from mlc.ir.diag import Error
    from mlc.ir.machine import Cpu
    while head := source.read(REQUEST.size):
        head_size, text_size = REQUEST.unpack(head)
        (name, triple, cpu, features, machine), opt_level, kind, sources = json.loads(source.read(head_size))
        text = source.read(text_size).decode()
        target = Target(name, triple, cpu, tuple(features), Cpu.parse(machine))
        try:
            obj = _compiled(kind, text, target, opt_level, sources)
            answer = ANSWER.pack(DONE, len(obj)) + obj
        except (Error, MemoryError):
            answer = ANSWER.pack(FAILED, 0)
        sink.write(answer)
        sink.flush()


def _compiled(kind: str, text: str, target: Target, opt_level: int, sources: str) -> bytes:
    if kind == "loop":
        from mlc.backends.kernel_units import KernelUnit
        from mlc.backends.versions import versions
        from mlc.ir.diag import BackendError
        if versions().get("mlc", "") != sources:           # they have changed since the client read them
            raise BackendError("the worker has other sources", code="MLC0563")
        return KernelUnit(text).compile(target, opt_level)
    from mlc.backends.object_code import compile_object
    return compile_object(text, target, opt_level)


def ask(sink: IO[bytes], source: IO[bytes], target: Target, opt_level: int, kind: str, text: str,
        sources: str) -> bytes | None:
    """The client: have a worker compile a unit of this kind and text; None if that fails; raises EOFError or OSError
    if it has died."""
    fields = target.name, target.triple, target.cpu, target.features, str(target.machine)
    head, raw = json.dumps([fields, opt_level, kind, sources]).encode(), text.encode()
    sink.write(REQUEST.pack(len(head), len(raw)) + head + raw)
    sink.flush()
    status, size = ANSWER.unpack(_exactly(source, ANSWER.size))
    if status not in (DONE, FAILED):
        raise ValueError("malformed answer of a compile worker")
    return _exactly(source, size) if status == DONE else None


def _exactly(source: IO[bytes], count: int) -> bytes:
    data = source.read(count)
    if len(data) != count:
        raise EOFError
    return data


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
