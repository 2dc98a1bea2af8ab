"""Programs: files, their definitions and imports, and the Python interface of a loaded program."""

from __future__ import annotations

import os
from typing import Any

from mlc.frontend import location, tree
from mlc.frontend.derivatives import run_now
from mlc.frontend.language import library
from mlc.frontend.language import syntax as S
from mlc.frontend.language.bindings import declare, hold
from mlc.frontend.language.diagnostics import Diagnostics, Source, suggestion
from mlc.frontend.language.expressions import Scoped, bind, evaluate, names_in
from mlc.frontend.language.functions import Function
from mlc.frontend.language.layout import LONGEST
from mlc.frontend.language.models import Model
from mlc.frontend.language.parser import parse
from mlc.frontend.language.values import (
    MOST_OPERATIONS,
    POISON,
    Enough,
    Environment,
    FileScope,
    checking,
    report,
    session,
)
from mlc.frontend.recorded_draws import drawn_once
from mlc.frontend.signature import Spec
from mlc.frontend.trace import Trace
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserAttributeError, UserError

SUFFIX = ".mlc"
MOST_FILES, DEEPEST_IMPORTS = 200, 30


class LazyBinding:
    """A binding of the file, `name = value`, which is evaluated on first use."""

    def __init__(self, node: S.Assigned | S.Declared) -> None:
        self.node = node
        self.value: Any = None
        self.is_known = False


class File(FileScope, Scoped):
    """The names of one file."""

    def __init__(self, source: Source, loader: Loader, path: str) -> None:
        self.source = source
        self.path = path
        self.tree = parse(source, loader.diagnostics)
        self.defined: dict[str, Any] = {}
        self.at: dict[str, int] = {}
        self.order: list[str] = []
        self.wrong: set[str] = set()
        for node in self.tree.body:
            self._define(node, loader)

    def _define(self, node: S.Node, loader: Loader) -> None:
        error = loader.diagnostics.add
        env = Environment(self)
        if isinstance(node, S.Function):
            self._name(node.name, Function(node, self), node.at, loader)
        elif isinstance(node, S.Model):
            self._name(node.name, Model(node, self), node.at, loader)
        elif isinstance(node, S.Assigned) and not node.operator:
            given = LazyBinding(node)
            for name in names_in(node.target):
                self._name(name, given, node.at, loader)
        elif isinstance(node, S.Declared) and node.value is not None and not node.buffer:
            self._name(node.name, LazyBinding(node), node.at, loader)
        elif isinstance(node, S.Import):
            self._import(node, loader)
        elif isinstance(node, S.Broken):
            self.wrong.update(node.names)
            for inner in node.body:
                if isinstance(inner, S.Function | S.Model | S.Broken):
                    self._define(inner, loader)
        elif isinstance(node, S.Asserted):
            self._name(f"assertion {node.at}", LazyBinding(node), node.at, loader)  # type: ignore[arg-type]
        else:
            error(env.error(node.at, "MLC0643", "a file holds imports, definitions and bindings",
                              "move this line into a function"))

    def _name(self, name: str, value: Any, at: int, loader: Loader) -> None:
        if name in self.defined:
            line = self.source.loc(self.at[name]).line
            loader.diagnostics.add(Environment(self).error(at, "MLC0646", f"{name} is defined in line {line} already",
                                                     "give one of them another name"))
            return
        self.defined[name], self.at[name] = value, at
        self.order.append(name)

    def _import(self, node: S.Import, loader: Loader) -> None:
        try:
            path = os.path.join(os.path.dirname(self.path), node.file)
            file = loader.file(path, node.file, Environment(self), node.at)
        except UserError as error:
            loader.diagnostics.add(error)
            self.wrong.update([node.name] if not node.names else [n for n, _ in node.names])
            return
        if not node.names:
            self._name(node.name, file, node.at, loader)
        for name, at in node.names:
            if name in file.defined:
                self._name(name, Imported(file, name), at, loader)
            else:
                self.wrong.add(name)
                if name not in file.wrong:
                    loader.diagnostics.add(Environment(self).error(
                        at, "MLC0622", f"{node.file} has no {name}",
                        suggestion(name, file.defined) or "it has " + (", ".join(file.names()) or "nothing")))

    # -- names --------------------------------------------------------------------------------------------------------
    def names(self) -> list[str]:
        return [n for n in [*self.defined, *self.wrong] if " " not in n]

    def look_up(self, name: str) -> Any:
        if name not in self.defined:
            if name in self.wrong:
                return POISON
            raise KeyError(name)
        found = self.defined[name]
        if isinstance(found, Imported):
            return found.file.look_up(found.name)
        return self._given(found, name) if isinstance(found, LazyBinding) else found

    def member(self, name: str, at: int, env: Environment) -> Any:
        if name in self.defined or name in self.wrong:
            return self.look_up(name)
        raise env.error(at, "MLC0622", f"{os.path.basename(self.path)} has no {name}",
                          suggestion(name, self.names()) or "it has " + (", ".join(self.names()) or "nothing"))

    def _given(self, given: LazyBinding, name: str) -> Any:
        """The value of a binding: evaluated once, or, for tensors, recorded at each use."""
        env = Environment(self)
        key = (id(given), 0)
        if key in session.active:
            raise env.error(given.node.at, "MLC0628", f"{name} depends on itself", "define it from other names")
        if not given.is_known:
            session.active.add(key)
            try:
                with drawn_once():
                    values = self._evaluated(given.node, env)
            except UserError as error:
                report(error)
                values = {}
            finally:
                session.active.discard(key)
            if any(isinstance(x, Tracer) for x in tree.leaves(list(values.values()))):
                return values.get(name, POISON)
            given.value, given.is_known = values, True
        return given.value.get(name, POISON)

    def _evaluated(self, node: Any, env: Environment) -> dict[str, Any]:
        saved, location.text.loc = location.text.loc, env.loc(node.at)
        try:
            if isinstance(node, S.Asserted):
                hold(node, env)
            elif isinstance(node, S.Declared):
                declare(node, env)
            else:
                bind(node.target, evaluate(node.value, env), env)
            return env.names
        finally:
            location.text.loc = saved

    def check(self, root: Trace) -> None:
        """Check every definition."""
        for name in self.order:
            found = self.defined[name]
            root.left, session.steps = MOST_OPERATIONS, 0
            try:
                if isinstance(found, Function | Model):
                    found.check()
                elif isinstance(found, LazyBinding):
                    self._given(found, name)
            except Enough as error:
                assert session.diagnostics is not None
                session.diagnostics.add(error)

    def __repr__(self) -> str:
        return os.path.basename(self.path)


class Imported:
    """`from "file" import name`"""

    def __init__(self, file: File, name: str) -> None:
        self.file, self.name = file, name


class Loader:
    """Reads a file and, recursively, its imports."""

    def __init__(self) -> None:
        self.diagnostics = Diagnostics()
        self.files: dict[str, File | None] = {}

    def file(self, path: str, written: str, env: Environment | None, at: int) -> File:
        """The file of this path; UserError if it cannot be read."""
        def error(code: str, message: str, hint: str) -> UserError:
            return UserError(message, code=code, hint=hint) if env is None else env.error(at, code, message, hint)

        if env is not None and (not written.endswith(SUFFIX) or os.path.isabs(written) or "\0" in written):
            raise error("MLC0645", f"{written!r} is no program to import", f"give a path from this file to a {SUFFIX}")
        key = os.path.realpath(path)
        if key in self.files:
            if (found := self.files[key]) is None:
                raise error("MLC0645", f"{written} imports this file, which imports it",
                            "move what both need to a third file")
            return found
        if len(self.files) >= MOST_FILES or sum(found is None for found in self.files.values()) >= DEEPEST_IMPORTS:
            raise error("MLC0645", f"the program has more than {MOST_FILES} files, or more than {DEEPEST_IMPORTS} that "
                        "import each other in a row", "join some of them")
        self.files[key] = None
        try:
            data = _read(path)
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else str(problem)
            raise error("MLC0645", f"cannot read {written}: {reason}", "give the path of a file") from None
        self.files[key] = found = File(Source(path, data), self, path)
        return found


def _read(path: str) -> str:
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError("it is no file")
    with open(path, "rb") as file:
        data = file.read(4 * LONGEST + 1)
    if data.startswith(b"MLCMODEL"):
        raise ValueError("it is a saved model, which mlc.load reads, and no program")
    if len(data) > 4 * LONGEST:
        raise ValueError(f"it is longer than {LONGEST} characters")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: byte {data[error.start]:#04x} at offset {error.start}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check(loader: Loader) -> None:
    """Check every definition of every file; ProgramError if anything is wrong."""
    root = Trace("main")
    with checking(loader.diagnostics), root.recording():
        for file in list(loader.files.values()):
            if file is not None:
                file.check(root)
    loader.diagnostics.check()


class Program:
    """A loaded program: its functions are compiled functions, its models classes of modules."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._made: dict[str, Any] = {}
        self.__doc__ = file.tree.doc
        self.__file__ = file.path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Any:
        if name not in self._file.defined:
            raise UserAttributeError(f"{self._file!r} has no {name}", code="MLC0622", loc=location.user_loc(),
                                     hint=suggestion(name, self._file.names()) or "it has " + ", ".join(
                                         self._file.names()))
        found = self._file.defined[name]
        while isinstance(found, Imported):
            found = found.file.defined[found.name]
        if isinstance(found, LazyBinding):
            value = run_now(lambda: self._file.look_up(name), (), {})
            return value
        if isinstance(found, File):
            return Program(found)
        if isinstance(found, Model):
            return found.cls
        assert isinstance(found, Function)
        return compiled(found)

    def __dir__(self) -> list[str]:
        return self._file.names()

    def __repr__(self) -> str:
        return f"<program {self._file.path}: {', '.join(self._file.names())}>"


def functions_of(program: Program) -> list[str]:
    """The names of the functions that its file defines."""
    return [n for n, x in program._file.defined.items() if isinstance(x, Function)]


def compiled(function: Function) -> Any:
    """A function of a program as `mlc.compile` gives it, for its declared types."""
    static = [p.name for p in function.node.parameters if p.type is None]
    specs = list(function.specs or ())
    bound = {d for x in tree.leaves(specs) if isinstance(x, Spec) for d in x.shape if sizes.symbol_name(d) is not None}
    known = [specification(x, bound) for x in specs]
    if any(x is None and p.type is not None for x, p in zip(known, function.node.parameters)):
        known = [x if _is_definite(x) else None for x in known]       # they may share sizes with what is not known
    return library.package("compile")(function, static=static, args=known)


def _is_definite(specs: Any) -> bool:
    return all(isinstance(d, int) for x in tree.leaves(specs) if isinstance(x, Spec) for d in x.shape)


def specification(specs: Any, bound: set[Any]) -> Any:
    """Specification of a parameter for mlc.compile: none if its sizes are those of whatever is given.

    bound  sizes that are a whole dimension somewhere: 2 * N alone does not determine N
    """
    if specs is None or specs is POISON:
        return None
    dims = [d for x in tree.leaves(specs) if isinstance(x, Spec) for d in x.shape if not isinstance(d, int)]
    if dims and next(tree.attribute_trees(specs), None) is not None:
        return None
    return specs if {sizes.sym(s) for d in dims for s in sizes.symbols(d)} <= bound else None


def load(path: str | os.PathLike[str]) -> Program:
    """The program in a .mlc file, checked; ProgramError with everything that is wrong with it.

        net = load("net.mlc")
        model = net.Classifier()
        net.predict(model, images)

    Its functions are compiled functions, for the declared types; its models are classes of `mlc.nn.Module`s.
    """
    loader = Loader()
    path = os.fspath(path)
    with location.leaving_text():
        file = loader.file(path, path, None, 0)
        check(loader)
    return Program(file)

