"""Code that many programs share, such as wrappers and the thread pool: made once on a machine, and then cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlc.backends import cache
from mlc.backends.cpu.targets import host
from mlc.backends.load import Library, load
from mlc.backends.target import Target
from mlc.ir.abi import ALLOWED_EXTERNALS


def library(what: str, source: Callable[[Target], str], exports: Sequence[str], allowed: frozenset[str]) -> Library:
    """The LLVM text that `source` gives for this machine, as a library.

    what     says all that the text depends on but the target and the version of mlc
    allowed  the external symbols that it may use, besides those that any code may
    """
    target, store = host(), cache.store()
    key = cache.key_of("runtime", [what, repr(target)])
    if store is not None and (found := store.get("runtime", key)) is not None and "code" in found[1]:
        return load(bytes(found[1]["code"]))
    from mlc.backends.link import link
    from mlc.backends.object_code import compile_object
    code = link(compile_object(source(target), target, 1), exports, allowed | ALLOWED_EXTERNALS)
    if store is not None:
        store.put("runtime", key, {}, {"code": code})
    return load(code)
