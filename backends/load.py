"""Load a shared object from memory through the system's dynamic loader, by way of a sealed anonymous file."""

from __future__ import annotations

import _ctypes
import ctypes
import fcntl
import itertools
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from mlc.backends import named_code
from mlc.ir.diag import BackendError

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_loads = itertools.count()


class Library:
    """A loaded shared object. Its addresses are valid while this object is alive, so users must keep a reference.

    A process is limited to about 65,000 memory mappings, and each library takes a few of them.

    max_threads  maximum number of threads that its code may use at once; None: that of the process
    timed        whether what each thread does of its parallel work is measured
    """

    max_threads: int | None = None
    timed: bool = False

    def __init__(self, handle: ctypes.CDLL) -> None:
        self._handle = handle
        self._number = handle._handle
        _loaded[self._number] = _Loaded(self, _gone.append)      # see ir/weak_references.py
        _loaded[self._number].handle = self._number

    def stay(self) -> None:
        """Keep the library loaded until the process ends, since threads that never end run its code."""
        del _loaded[self._number]

    def address(self, name: str) -> int:
        """The address of an exported function or variable."""
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(self._handle, name))
        except ValueError as error:
            raise BackendError(f"the library exports no {name!r}", code="MLC0532") from error

    def exports(self, name: str) -> bool:
        """Whether the library has a public function or variable of this name."""
        return hasattr(self._handle, name)

    def function(self, name: str, restype: Any, argtypes: Sequence[Any]) -> Callable[..., Any]:
        """An exported function with this C signature, which keeps the library alive; calls release the GIL."""
        found = ctypes.CFUNCTYPE(restype, *argtypes)(self.address(name))
        found.library = self  # type: ignore[attr-defined]
        return found


class _Loaded(weakref.ref[Library]):
    """Weak reference to a library, with its handle."""

    __slots__ = ("handle",)
    handle: int


_loaded: dict[int, _Loaded] = {}
_gone: deque[_Loaded] = deque()
"""Unreferenced libraries. They stay loaded at process exit, since other threads may still run their code."""


def unload() -> None:
    """Unload unreferenced libraries; called before each load."""
    while _gone:
        try:
            gone = _gone.popleft()
        except IndexError:                                 # another thread was faster
            return
        del _loaded[gone.handle]
        _ctypes.dlclose(gone.handle)


def load(so: bytes) -> Library:
    """Map the shared object `so` and bind its symbols; its definitions are local to it.

    The integrity of bytes read from disk must have been verified (checksummed.py): the system's loader does not detect
    a corrupt library, which may crash or compute wrong results.
    """
    unload()
    with nullcontext(named_code.stored(so)) if named_code.folder() else _as_file(so) as path:
        try:
            return Library(ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL))
        except OSError as error:
            raise BackendError(f"the system's loader refuses the library: {error}", code="MLC0531") from error


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """A path under which the loader finds `data`, for the duration of the block."""
    try:
        descriptor = os.memfd_create("mlc", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except (AttributeError, OSError):  # not Linux, or forbidden by a sandbox
        import tempfile  # imported here, since it takes 5 ms

        with tempfile.NamedTemporaryFile(prefix="mlc-", suffix=".so") as file:
            file.write(data)
            file.flush()
            yield file.name
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)  # the contents are immutable from here on
        yield _fresh_spelling(descriptor, next(_loads))


def _fresh_spelling(descriptor: int, number: int) -> str:
    """/proc/self/fd/N in a unique spelling, since the loader identifies libraries by path.

    Descriptor numbers are reused, so the plain path could return an older library. The bits of `number` are encoded as
    "/." and "//", which the kernel skips.
    """
    return "/proc/self/fd" + "".join("/." if bit == "1" else "//" for bit in f"{number:b}") + f"/{descriptor}"
