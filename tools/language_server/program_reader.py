"""A reader of programs that parses and checks anew only what an edit has changed.

A definition is known by its text, and its check by the texts of everything that it uses as well. Where a definition has
changed, its lines are known by theirs, and its assignments by the types of what they read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mlc.frontend import location
from mlc.frontend.language import library
from mlc.frontend.language import syntax as S
from mlc.frontend.language.diagnostics import Diagnostics, Source
from mlc.frontend.language.functions import Function
from mlc.frontend.language.layout import Layout, Line
from mlc.frontend.language.models import Model
from mlc.frontend.language.parser import Reader, reading
from mlc.frontend.language.program import File, Imported, LazyBinding, Loader
from mlc.frontend.language.values import (
    MOST_OPERATIONS,
    POISON,
    Applicable,
    Enough,
    checking,
    is_poisoned,
    session,
    shown,
)
from mlc.frontend.trace import Trace
from mlc.frontend.tracer import Tracer
from mlc.frontend.tree import AttributeTree
from mlc.ir.diag import Error, UserError
from mlc.tools.language_server.nodes import shift
from mlc.tools.language_server.statements import Statements

_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Known:
    """The value of an expression or a name, as an editor shows it.

    text     its type
    of       a function, a model, a class of layers or a namespace: that itself; of an instance, its class
    """

    text: str
    of: Any = None


@dataclass
class Chunk:
    """An outermost definition."""

    at: int
    text: str
    nodes: list[S.Node]
    errors: list[UserError]                                # of syntax, with the lines that they had at first
    line: int                                              # that it began at then
    words: frozenset[str]
    lines: list[tuple[int, str, S.Node]]                   # in it, from where to where; not those that begin blocks


@dataclass
class Verdict:
    """The result of a check: for each error the definition that it is in, and the line within that."""

    digest: Any
    errors: list[tuple[str, int, UserError]]
    broken: bool
    known: dict[int, Known]


@dataclass
class Memory:
    """Of a file, what is known of its last state."""

    chunks: dict[str, list[Chunk]] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    imported: dict[tuple[str, int, int], File] = field(default_factory=dict)
    statements: Statements = field(default_factory=Statements)


def _end(line: Line) -> int:
    while line.block:
        line = line.block[-1]
    return line.end


_WITH_BLOCKS = (S.If, S.Else, S.While, S.For, S.Function, S.Model, S.Broken)
"""Statements that are changed when the lines below them are read."""


class CachingReader(Reader):
    """Takes the trees of definitions, and of lines, that were there before."""

    def __init__(self, source: Source, diagnostics: Diagnostics, memory: Memory) -> None:
        super().__init__(source, diagnostics)
        self.memory = memory
        self.chunks: list[Chunk] = []
        self.lines: dict[str, list[tuple[int, S.Node]]] = {}           # of definitions that are no more
        self.read_lines: list[tuple[int, str, S.Node]] = []            # of the one that is read

    def read(self) -> S.File:
        lines = Layout(self.source, self.diagnostics).split()
        groups = list(self._groups(lines))
        known = [self._known_chunk(group) for group in groups]
        for left in self.memory.chunks.values():
            for chunk in left:
                for at, text, node in chunk.lines:
                    self.lines.setdefault(text, []).append((chunk.at + at, node))
        with reading:
            self.chunks = [found or self._chunk(group) for group, found in zip(groups, known)]
        self.memory.chunks = {}
        for chunk in self.chunks:
            self.memory.chunks.setdefault(chunk.text, []).append(chunk)
        body = [node for chunk in self.chunks for node in chunk.nodes]
        return S.File(body, S.take_doc(body))

    def _groups(self, lines: Sequence[Line]) -> Iterator[list[Line]]:
        group: list[Line] = []
        for line in lines:
            if group and not self.source.text.startswith(("else", "elif"), line.at):
                yield group
                group = []
            group.append(line)
        if group:
            yield group

    def _known_chunk(self, lines: list[Line]) -> Chunk | None:
        """The definition of these lines, if it was there before."""
        at = lines[0].at
        known = self.memory.chunks.get(self.source.text[at:_end(lines[-1])])
        if not known or any(line.broken for line in lines):
            return None
        chunk = known.pop()
        if at != chunk.at:
            shift(chunk.nodes, at - chunk.at)
            chunk.at = at
        for error in chunk.errors:
            self.diagnostics.add(_at_line(error, error.loc.line - chunk.line + self.source.loc(at).line))
        return chunk

    def _chunk(self, lines: list[Line]) -> Chunk:
        at = lines[0].at
        text = self.source.text[at:_end(lines[-1])]
        before = set(self.diagnostics.found)
        self.read_lines = []
        nodes = self._block(lines)
        errors = [e for key, e in self.diagnostics.found.items() if key not in before]
        within = [(start - at, line, node) for start, line, node in self.read_lines]
        return Chunk(at, text, nodes, errors, self.source.loc(at).line, frozenset(_WORD.findall(text)), within)

    def _line(self, line: Line) -> Any:
        text = self.source.text[line.at:line.end]
        if not line.broken and (known := self.lines.get(text)):
            at, node = known.pop()
            if at != line.at:
                shift([node], line.at - at)
        else:
            node = super()._line(line)
        if not isinstance(node, _WITH_BLOCKS):
            self.read_lines.append((line.at, text, node))
        return node


def _at_line(error: UserError, line: int) -> UserError:
    moved = UserError(error.message, code=error.code, loc=replace(error.loc, line=line), notes=error.notes,
                      hint=error.hint)
    return moved


class _File(File):
    """A file whose tree is known."""

    def __init__(self, source: Source, loader: Loader, path: str, tree: S.File) -> None:
        self.source, self.path, self.tree = source, path, tree
        self.defined, self.at, self.order, self.wrong = {}, {}, [], set()
        for node in tree.body:
            self._define(node, loader)


@dataclass
class Reading:
    """A file that was read: its tree, its errors, and what is known of the values of its expressions, by node."""

    file: File
    errors: list[UserError]
    known: dict[int, Known]
    chunks: list[Chunk]


def read(text: str, path: str, memory: Memory) -> Reading:
    """Parse and check a program."""
    with location.leaving_text():
        loader = Loader()
        source = Source(path, text)
        own = os.path.realpath(path)
        for (name, *stamp), file in memory.imported.items():
            if _stamp(name) == tuple(stamp) and name != own:
                loader.files[name] = file
        loader.files[own] = None
        reader = CachingReader(source, loader.diagnostics, memory)
        file = _File(source, loader, path, reader.read())
        loader.files[own] = file
        known = _check(file, loader, reader.chunks, memory)
        memory.imported = {(name, *_stamp(name)): f for name, f in loader.files.items()
                           if f is not None and f is not file}
        errors = [e for e in loader.diagnostics.found.values() if e.loc.file == path]
        return Reading(file, sorted(errors, key=lambda e: (e.loc.line, e.loc.col)), known, reader.chunks)


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size


def _check(file: File, loader: Loader, chunks: Sequence[Chunk], memory: Memory) -> dict[int, Known]:
    """Check the definitions whose check is not known; the values of all expressions."""
    chunk_of = {name: chunk for name in file.order if (chunk := _around(chunks, file.at[name])) is not None}
    starts = {name: file.source.loc(chunk.at).line for name, chunk in chunk_of.items()}
    imports = tuple(sorted((name, *_stamp(name)) for name, f in loader.files.items() if f is not file))
    digests = {name: _digest(name, chunk_of, imports) for name in chunk_of}
    verdicts, root, known = dict[str, Verdict](), Trace("main"), dict[int, Known]()
    with checking(loader.diagnostics), root.recording():
        for imported in list(loader.files.values()):
            if imported is not None and imported is not file:
                imported.check(root)
        waiting = []
        for name in file.order:
            before = memory.verdicts.get(name)
            if before is not None and before.digest == digests.get(name) and _fits(before, starts):
                verdicts[name] = before
                known |= before.known
                for where, line, error in before.errors:
                    loader.diagnostics.add(_at_line(error, starts[where] + line))
                _settle(file.defined[name], before.broken)
            else:
                waiting.append(name)
        for name in waiting:
            found = _checked(file, name, root, loader.diagnostics, memory.statements, digests)
            known |= found.known
            placed = [(at, e.loc.line - starts[at], e) for e in _own(found.errors, file)
                      if (at := _definition_at(e.loc.line, starts)) is not None]
            if name in digests and len(placed) == len(_own(found.errors, file)):
                verdicts[name] = Verdict(digests[name], placed, found.broken, found.known)
    memory.verdicts = verdicts
    memory.statements.keep(file.tree.body)
    return known


def _own(errors: Sequence[tuple[str, int, UserError]], file: File) -> list[UserError]:
    return [e for _, _, e in errors if e.loc.file == file.path]


def _fits(verdict: Verdict, starts: dict[str, int]) -> bool:
    """Whether its errors can be moved: those that quote lines cannot."""
    return all(where in starts and not re.search(r"\bline \d|:\d+:\d+", " ".join([e.message, e.hint or "", *e.notes]))
               for where, _, e in verdict.errors)


def _around(chunks: Sequence[Chunk], at: int) -> Chunk | None:
    return next((c for c in chunks if c.at <= at <= c.at + len(c.text)), None)


def _definition_at(line: int, starts: dict[str, int]) -> str | None:
    above = [name for name, start in starts.items() if start <= line]
    return max(above, key=lambda name: starts[name]) if above else None


def _digest(name: str, chunks: dict[str, Chunk], imports: Any) -> Any:
    """All that a check depends on: the texts of all definitions that it may reach, by the words in them."""
    reached, work = {name}, [name]
    while work:
        for other in chunks[work.pop()].words & chunks.keys():
            if other not in reached:
                reached.add(other)
                work.append(other)
    return tuple(sorted((n, hash(chunks[n].text), id(chunks[n])) for n in reached)), imports


def _settle(defined: Any, broken: bool) -> None:
    """Take a check as done."""
    if isinstance(defined, Function | Model):
        defined.status.begin()
        defined.status.end(broken)


def _checked(file: File, name: str, root: Trace, diagnostics: Diagnostics, statements: Statements,
             digests: Mapping[str, Any]) -> Verdict:
    """Check a definition, as `File.check` does, and note the values of expressions."""
    defined, before, known = file.defined[name], set(diagnostics.found), dict[int, Known]()
    root.left, session.steps = MOST_OPERATIONS, 0
    saved, session.watch = session.watch, _watching(known)
    session.around = statements.running(known, _watching, digests, file.defined)
    try:
        if isinstance(defined, Function | Model):
            defined.check()
        elif isinstance(defined, LazyBinding):
            file._given(defined, name)
    except Enough as error:
        diagnostics.add(error)
    except Error as error:                                 # a defect elsewhere must not end the session of an editor
        if not isinstance(error, UserError):
            error = UserError(error.message, code=error.code, loc=file.source.loc(file.at[name]), hint=error.hint)
        diagnostics.add(error)
    finally:
        session.watch, session.around = saved, None
    errors = [(name, 0, e) for key, e in diagnostics.found.items() if key not in before]
    broken = defined.status.broken if isinstance(defined, Function | Model) else bool(errors)
    return Verdict(None, errors, broken, known)


def _watching(known: dict[int, Known]) -> Callable[[Any, Any], None]:
    def watch(node: Any, value: Any) -> None:
        if id(node) not in known and value is not POISON and not is_poisoned(value, 2):
            known[id(node)] = describe(value)

    return watch


def describe(value: Any) -> Known:
    """A value as an editor shows it."""
    if type(value) is Tracer:
        return Known(shown(value))
    if isinstance(value, Applicable | library.Namespace | File):
        return Known(shown(value), value)
    if isinstance(value, AttributeTree):
        return Known(shown(value), type(value))
    return Known(shown(value), value if callable(value) else None)


def resolved(found: Any) -> Any:
    """The definition that a name of a file stands for, behind imports."""
    while isinstance(found, Imported):
        found = found.file.defined[found.name]
    return found
