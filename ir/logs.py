"""Logs of the compiler, chosen by the environment variable MLC_LOGS, in the manner of PyTorch's TORCH_LOGS.

    MLC_LOGS=recompiles,fusion python train.py
    MLC_LOGS=all MLC_LOGS_FORMAT=json MLC_LOGS_OUT=log.jsonl python train.py

`MLC_LOGS=help` lists the names. Code that the compile cache has is not made again: MLC_CACHE=0 shows how it is made.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import IO, Any

from mlc.ir.diag import UserError
from mlc.ir.files import append_line
from mlc.ir.thread_values import set_in_thread

NAMES = {
    "recompiles": "each further compilation of a function, and its reason",
    "compiles": "each compilation of a function, its types, its seconds, and where its code came from",
    "graph": "the recorded module of each function",
    "passes": "each pass with its milliseconds, and how often its rules fired",
    "fusion": "each kernel with its operations, and why others are not in it",
    "schedule": "each kernel with its tile sizes, vectors and threads",
    "cache": "whether code came from the caches of the process and the machine",
}
"""The logs, and what each says."""
OF_PASSES = ("passes", "fusion", "schedule")
"""Those that passes write, so that code from a cache has none."""
FORMATS = ("text", "json")


@dataclass
class _Settings:
    """Of this process.

    chosen  the names of logs that are written
    json    whether a line is a JSON object
    out     the file that lines are appended to; None: standard error
    error   what is wrong with the variables, which the first line that would be written raises
    """

    chosen: frozenset[str] = frozenset()
    json: bool = False
    out: str | None = None
    stream: IO[str] | None = None
    error: UserError | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Places(threading.local):
    """How locations are shown in this thread, while those of a module are numbers."""

    shown: Callable[[str], str] = staticmethod(str)


def places_shown_by(shown: Callable[[str], str]) -> AbstractContextManager[None]:
    """Context in which `shown` replaces the numbers of locations in a line by what they stand for."""
    return set_in_thread(_places, "shown", shown)


def help_text() -> str:
    """The names of the logs and the variables, as MLC_LOGS=help prints them."""
    width = max(map(len, NAMES)) + 2
    rows = "\n".join(f"  {name:{width}}{what}" for name, what in NAMES.items())
    return (f"MLC_LOGS=NAME,... writes logs of the compiler to standard error:\n\n{rows}\n  {'all':{width}}all of them"
            f"\n  {'help':{width}}this text\n\nA - before a name takes it away again: MLC_LOGS=all,-graph\n"
            "MLC_LOGS_FORMAT=json   a JSON object per line\nMLC_LOGS_OUT=FILE      append to a file instead\n"
            "MLC_CACHE=0            make all code anew: code from the compile cache goes through no passes\n")


def parse(text: str) -> frozenset[str]:
    """The names in the value of MLC_LOGS.

    Raises:
        UserError: A name is unknown (MLC0692).
    """
    chosen: set[str] = set()
    for word in filter(None, (w.strip() for w in text.split(","))):
        name = word.lstrip("+-")
        if name == "help":
            print(help_text(), end="", file=sys.stderr)
            continue
        if name != "all" and name not in NAMES:
            near = get_close_matches(name.lower(), NAMES, 1)
            raise UserError(f"MLC_LOGS: there is no log {name!r}", code="MLC0692",
                            hint=f"did you mean {near[0]}?" if near else "one of " + ", ".join([*NAMES, "all", "help"]))
        chosen = chosen - {name} if word[0] == "-" else chosen | (set(NAMES) if name == "all" else {name})
    return frozenset(chosen)


def from_environment() -> None:
    """Take the settings from the environment.

    Raises:
        UserError: A name or the format is unknown (MLC0692).
    """
    text, kind = os.environ.get("MLC_LOGS", ""), os.environ.get("MLC_LOGS_FORMAT", "text")
    if kind not in FORMATS:
        raise UserError(f"MLC_LOGS_FORMAT is {kind!r}", code="MLC0692", hint="one of " + ", ".join(FORMATS))
    _settings.chosen, _settings.json = parse(text), kind == "json"
    out = os.environ.get("MLC_LOGS_OUT")
    _settings.out = os.path.abspath(out) if out else None              # wherever the program goes


def wants(name: str) -> bool:
    """Whether a log is written, so that what it says is worth finding out."""
    return name in _settings.chosen


def write(name: str, text: str, **data: Any) -> None:
    """Write a line of a log, if it is chosen.

    Args:
        name: The log.
        text: The line, for people.
        data: The same for programs, as JSON.
    """
    if name not in _settings.chosen:
        return
    if _settings.error is not None:
        raise _settings.error
    line = _places.shown(json.dumps({"log": name, **data}) if _settings.json else f"[{name}] {text}")
    with _settings.lock:
        if _settings.out is not None:
            try:
                append_line(_settings.out, line)
            except OSError as error:
                raise UserError(f"MLC_LOGS_OUT: cannot write {_settings.out}: {error.strerror}", code="MLC0692",
                                hint="name a file that you may write to") from None
        else:
            print(line, file=_settings.stream or sys.stderr, flush=True)


@contextmanager
def written_to(stream: IO[str], names: str, as_json: bool = False) -> Iterator[None]:
    """Context in which these logs go to a stream."""
    saved = _settings.chosen, _settings.json, _settings.out, _settings.stream, _settings.error
    _settings.chosen, _settings.json, _settings.out, _settings.stream = parse(names), as_json, None, stream
    _settings.error = None
    try:
        yield
    finally:
        _settings.chosen, _settings.json, _settings.out, _settings.stream, _settings.error = saved


_settings = _Settings()
_places = _Places()
try:
    from_environment()
except UserError as error:                                 # an import is no place for it: commands report their errors
    _settings.chosen, _settings.error = frozenset(NAMES), error
