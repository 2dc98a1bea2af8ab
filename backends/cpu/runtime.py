"""Code shared by many programs, such as wrappers and the thread pool, compiled once per machine and cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlc.backends import cache, named_code
from mlc.backends.cpu.targets import host
from mlc.backends.load import Library, load
from mlc.backends.target import Target
from mlc.ir.abi import ALLOWED_EXTERNALS


def library(what: str, source: Callable[[Target], str], exports: Sequence[str], allowed: frozenset[str]) -> Library:
    """Compile and load the LLVM IR text that `source` returns for this machine.

    what     identifies everything that the text depends on except the target and the version of mlc
    allowed  external symbols that it may use in addition to those allowed for all code
    """
    target, store = host(), cache.store()
    names: dict[str, str] | None = {} if named_code.folder() else None
    key = cache.key_of("runtime", [what, repr(target), *["names"] * (names is not None)])
    if store is not None and (found := store.get("runtime", key)) is not None and "code" in found[1]:
        return load(bytes(found[1]["code"]))
    from mlc.backends.link import link_file, read_objects
    from mlc.backends.object_code import compile_object
    code = link_file(read_objects(compile_object(source(target), target, 1)), exports, allowed | ALLOWED_EXTERNALS,
                     names=names)
    if store is not None:
        store.put("runtime", key, {}, {"code": code})
    return load(code)
