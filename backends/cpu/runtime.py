"""Code shared by many programs, such as wrappers and the thread pool, compiled once per machine and cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mlc.backends import cache, kernel_library, named_code
from mlc.backends.cpu.targets import host
from mlc.backends.load import Library, load
from mlc.backends.target import Target
from mlc.ir.abi import ALLOWED_EXTERNALS


class Request(NamedTuple):
    """The arguments of `library`.

    what     identifies everything that the text depends on except the target and the version of mlc
    source   the LLVM IR text for a target
    allowed  external symbols that it may use in addition to those allowed for all code
    """

    what: str
    source: Callable[[Target], str]
    exports: Sequence[str]
    allowed: frozenset[str]

    def compile(self, target: Target, names: dict[str, str] | None = None) -> bytes:
        """The linked code."""
        from mlc.backends.link import link_file, read_objects
        from mlc.backends.object_code import compile_object
        obj = compile_object(self.source(target), target, 1)
        return link_file(read_objects(obj), self.exports, self.allowed | ALLOWED_EXTERNALS, names=names)


REQUESTS: dict[str, Request] = {}
"""Those of this process, for the kernel library."""


def library(what: str, source: Callable[[Target], str], exports: Sequence[str], allowed: frozenset[str]) -> Library:
    """Compile and load the LLVM IR text that `source` returns for this machine; the arguments are as in `Request`."""
    request = REQUESTS[what] = Request(what, source, exports, allowed)
    target, store = host(), cache.store()
    names: dict[str, str] | None = {} if named_code.folder() else None
    key = cache.key_of("runtime", [what, repr(target), *["names"] * (names is not None)])
    if store is not None and (found := store.get("runtime", key)) is not None and "code" in found[1]:
        return load(bytes(found[1]["code"]))
    if names is None and (known := kernel_library.lookup("runtime", [what])) is not None:
        return load(known[1])
    code = request.compile(target, names)
    if store is not None:
        store.put("runtime", key, {}, {"code": code})
    return load(code)
