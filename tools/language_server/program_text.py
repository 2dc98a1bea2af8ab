"""Texts in the text language."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

from mlc.frontend.language import library
from mlc.frontend.language import syntax as S
from mlc.frontend.language.diagnostics import Source
from mlc.frontend.language.expressions import PROPERTIES
from mlc.frontend.language.functions import Function
from mlc.frontend.language.models import Model
from mlc.frontend.language.parser import KEYWORDS
from mlc.frontend.language.program import File
from mlc.frontend.language.values import ELEMENTS
from mlc.frontend.tensor import OPERATIONS
from mlc.ir.diag import Error
from mlc.tools.language_server.analysis import Finding, Lens, Lines, Proposal, Shown, Span, Symbol, not_renamed
from mlc.tools.language_server.program_names import Names, Variable
from mlc.tools.language_server.program_reader import Known, Memory, read, resolved

_WORD = re.compile(r"[^\W\d]\w*")
_KINDS = {"function": "function", "model": "class", "parameter": "variable", "size": "constant",
          "variable": "variable", "member": "field", "import": "module"}


class ProgramText:
    """The `Analysis` of a program."""

    def __init__(self, text: str, path: str, memory: Memory) -> None:
        text = text.replace("\r\n", " \n").replace("\r", "\n")         # of the same length
        self.text, self.path, self.lines = text, path, Lines(text)
        self.reading = read(text, path, memory)
        self.findings = [Finding(self._span_of(e), e) for e in self.reading.errors]

    @cached_property
    def names(self) -> Names:
        return Names(self.reading.file.tree, self.text)

    def _span_of(self, error: Error) -> Span:
        at = self.lines.offset(max(error.loc.line - 1, 0), max(error.loc.col - 1, 0))
        word = re.compile(r'[^\W]\w*|"(?:[^"\\\n]|\\.)*"|[^\w\s]+').match(self.text, at)
        return Span(at, word.end() if word else at + 1)

    # -- what stands at a place ---------------------------------------------------------------------------------------
    def _known(self, node: Any) -> Known | None:
        return self.reading.known.get(id(node))

    def hover(self, at: int) -> Shown | None:
        if found := self.names.variable_at(at):
            variable, span = found
            return Shown(span, self._of_variable(variable, span))
        for span, node in self.names.loose:
            if span.start <= at <= span.end:
                name = node.name if isinstance(node, S.Name) else ".".join(node.names)
                return Shown(span, of_library(name)) if library.find(name) is not None else None
        for span, attribute in self.names.attributes:
            if span.start <= at <= span.end:
                return Shown(span, self._of_attribute(attribute))
        return None

    def _of_variable(self, variable: Variable, span: Span) -> str:
        node = next((n for n in variable.nodes if n.at == span.start and self._known(n)), None) or next(
            (n for n in variable.nodes if self._known(n)), None)
        definition = next((n for n in variable.nodes if isinstance(n, S.Function | S.Model)), None)
        if definition is not None:
            head = self.lines.line(self.lines.line_of(definition.at)).strip().removesuffix(":")
            return f"```mlc\n{head}\n```" + (f"\n\n{definition.doc.strip()}" if definition.doc else "")
        known = self._known(node)
        if variable.kind == "size":
            return f"```mlc\n{variable.name}\n```\n\na size, told by the arguments"
        kind = 'imported' if variable.kind == 'import' else f'a {variable.kind}'
        what = f"```mlc\n{variable.name}: {known.text if known else '?'}\n```\n\n{kind}"
        return what + (f"\n\n{doc}" if known and (doc := first_line(known.of)) else "")

    def _of_attribute(self, node: S.Attribute) -> str:
        known, of = self._known(node), self._known(node.value)
        lines = [f"```mlc\n{node.name}: {known.text if known else '?'}\n```"]
        if of is not None:
            lines.append(f"of {of.text}")
            if isinstance(of.of, library.Namespace):
                return of_library(f"{of.of.path}.{node.name}")
        if node.name in OPERATIONS:
            lines.append(first_line(OPERATIONS[node.name]))
        return "\n\n".join(lines)

    def definition(self, at: int) -> Sequence[Span]:
        if found := self.names.variable_at(at):
            variable, _ = found
            if variable.kind == "import":
                return self._imported(variable)
            return variable.ordered()[:1]
        for span, attribute in self.names.attributes:
            if span.start <= at <= span.end and (of := self._known(attribute.value)):
                return self._member(of.of, attribute.name)
        for span, call, name in self.names.keywords:
            if span.start <= at <= span.end and (of := self._known(call.function)):
                node = getattr(of.of, "node", None)
                return [self._place(of.of, p.at, p.name) for p in getattr(node, "parameters", ()) if p.name == name]
        return []

    def _imported(self, variable: Variable) -> list[Span]:
        """The definition of an imported name, in its file."""
        found = resolved(self.reading.file.defined.get(variable.name))
        if isinstance(found, File):
            return [Span(0, 0, found.path)]
        return [self._place(found, found.node.at, found.name)] if isinstance(found, Function | Model) else (
            variable.places[:1])

    def _place(self, owner: Any, at: int, name: str) -> Span:
        source: Source = owner.scope.source
        return Span(at, at + len(name), "" if source.name == self.path else source.name)

    def _member(self, of: Any, name: str) -> list[Span]:
        model = of if isinstance(of, Model) else getattr(of, "model", None)
        if isinstance(of, File):
            found = resolved(of.defined.get(name))
            return [self._place(found, found.node.at, name)] if isinstance(found, Function | Model) else []
        if not isinstance(model, Model):
            return []
        for x in (*model.node.parameters, *model.node.body):
            if getattr(x, "name", None) == name:
                return [self._place(model, x.at, name)]
            if isinstance(x, S.Assigned) and isinstance(x.target, S.Name) and x.target.name == name:
                return [self._place(model, x.target.at, name)]
        return []

    def references(self, at: int) -> Sequence[Span]:
        variable = self._variable(at)
        return [] if variable is None else self._places(variable)

    def _variable(self, at: int) -> Variable | None:
        """The variable that stands at a place, also as an attribute of a model or a named argument."""
        if found := self.names.variable_at(at):
            return found[0]
        place = next(iter(self.definition(at)), None)
        found = self.names.variable_at(place.start) if place is not None and not place.file else None
        return found[0] if found else None

    def _places(self, variable: Variable) -> list[Span]:
        spans = [*(span for span, _ in self.names.attributes), *(span for span, _, _ in self.names.keywords)]
        others = [span for span in spans
                  if self.text[span.start:span.end] == variable.name
                  and any(not s.file and s in variable.places for s in self.definition(span.start))]
        return [*variable.ordered(), *(s for s in others if s not in variable.places)]

    # -- outline ------------------------------------------------------------------------------------------------------
    def symbols(self) -> Sequence[Symbol]:
        return self._outline(self.reading.file.tree.body, len(self.text))

    def _outline(self, body: Sequence[Any], end: int) -> list[Symbol]:
        out = []
        ends = [*(x.at for x in body[1:]), end]
        for node, after in zip(body, ends):
            named = [(node.name, node.at)] if isinstance(node, S.Function | S.Model | S.Declared) else [
                (node.target.name, node.target.at)] if isinstance(node, S.Assigned) and isinstance(
                    node.target, S.Name) else []
            for name, at in named:
                last = len(self.text[:after].rstrip()) if after > at else at + len(name)
                line = self.lines.starts[self.lines.line_of(at)]
                kind = "function" if isinstance(node, S.Function) else "class" if isinstance(node, S.Model) else "field"
                known = self._known(node) or self._known(getattr(node, "target", None))
                children = self._outline(node.body, after) if isinstance(node, S.Model) else []
                out.append(Symbol(name, kind, known.text if known else "", Span(line, max(last, at + len(name))),
                                  Span(at, at + len(name)), children))
        return out

    # -- completion ---------------------------------------------------------------------------------------------------
    def proposals(self, at: int) -> Sequence[Proposal]:
        line = self.text[self.text.rfind("\n", 0, at) + 1:at]
        if re.search(r"#|\"[^\"]*$", line):
            return []
        if m := re.search(r"([^\W\d][\w.]*)\.\w*$", line):
            return self._members(m[1], at)
        if re.search(r"(->|:)\s*\w*$", line) and re.match(r"\s*(def|model|buffer\s|\w+\s*:)", line):
            models = [n for n, v in self.names.scopes[0].names.items() if v.kind in ("model", "import")]
            return [*(Proposal(n, "keyword") for n in ELEMENTS), *(Proposal(n, "class") for n in models)]
        own = [Proposal(n, _KINDS[v.kind], k.text if (k := self._first_known(v)) else v.kind)
               for n, v in self.names.scope_at(at).visible().items()]
        keywords = [Proposal(w, "keyword") for w in sorted(KEYWORDS)]
        return [*self._parameters(line), *own, *keywords, *library_names()]

    def _first_known(self, variable: Variable) -> Known | None:
        return next(filter(None, map(self._known, variable.nodes)), None)

    def _members(self, name: str, at: int) -> list[Proposal]:
        """The names behind a dot."""
        if name in library.NAMESPACES:
            return [Proposal(n, "function", first_line(library.find(f"{name}.{n}"))) for n in library.names_in(name)]
        variable = self.names.scope_at(at).find(name)
        of = None if variable is None else (k.of if (k := self._first_known(variable)) else resolved(
            self.reading.file.defined.get(name)))
        model = of if isinstance(of, Model) else getattr(of, "model", None)
        if isinstance(model, Model):
            return [Proposal(n, "field") for x in model.node.body for n in (
                [x.name] if hasattr(x, "name") else [x.target.name] if isinstance(x, S.Assigned) and isinstance(
                    x.target, S.Name) else [])]
        if isinstance(of, File):
            return [Proposal(n, "function") for n in of.names()]
        return [*(Proposal(n, "property") for n in sorted(PROPERTIES)), *library_names()]

    def _parameters(self, line: str) -> list[Proposal]:
        """The parameters of the function whose call the cursor is in."""
        m = re.search(r"([^\W\d]\w*)\((?:[^()]|\([^()]*\))*$", line)
        if m is None or re.search(r"\b(def|model)\s+$", line[:m.start()]):
            return []
        found = resolved(self.reading.file.defined.get(m[1]))
        if isinstance(found, Function | Model):
            return [Proposal(f"{p.name}=", "property", "parameter") for p in found.node.parameters]
        return [Proposal(f"{n}=", "property", "parameter") for n in parameters_of(library.find(m[1]))]

    # -- changes ------------------------------------------------------------------------------------------------------
    def renamed(self, at: int, name: str) -> Sequence[tuple[Span, str]]:
        variable = self._variable(at)
        if variable is None:
            raise not_renamed("nothing that this file defines is here", "place the cursor on a name of the file")
        if variable.kind == "import":
            raise not_renamed(f"{variable.name} is defined in another file", "rename it there")
        if not _WORD.fullmatch(name) or name in KEYWORDS or name.startswith("__"):
            raise not_renamed(f"{name!r} is no name", "use letters, digits and _, and no word of the language")
        if any(self.text[span.start:span.end] == name for span, _ in self.names.loose):
            raise not_renamed(f"{name} means something else in this file, which does not define it",
                              "choose one that is free")
        is_method = self.names.scopes[0].names.get(variable.name) is not variable
        if is_method and variable.name == "forward" and any(isinstance(n, S.Function) for n in variable.nodes):
            raise not_renamed("forward is what a call of the model runs, by this name", "keep its name")
        places = self._places(variable)
        for place in places:
            if (other := self.names.scope_at(place.start).find(name)) is not None and other is not variable:
                line = self.lines.line_of(other.places[0].start) + 1 if other.places else 0
                raise not_renamed(f"{name} is another name here, of line {line}", "choose one that is free")
        return [(span, name) for span in places]

    def lenses(self) -> Sequence[Lens]:
        out = []
        for node in self.reading.file.tree.body:
            if isinstance(node, S.Function):
                line = self.lines.line_of(node.at)
                out.append(Lens(Span(node.at, node.at + len(node.name)), "show at the next level", line, ""))
        return out

    def formatted(self) -> str:
        from mlc.tools.formatting import program
        return program.formatted(self.text, self.path)


# -- texts about the library ------------------------------------------------------------------------------------------
def first_line(x: Any) -> str:
    """The first line of what is said about a function, a class of layers or an element type."""
    of = getattr(x, "cls", x)
    doc = getattr(of, "__doc__", None) if isinstance(of, type) or callable(of) or of is library.ZIP else None
    return inspect.cleandoc(doc).partition("\n")[0] if doc else ""


def parameters_of(x: Any) -> list[str]:
    """The names of the parameters of a function of the library."""
    of: Callable[..., Any] | None = getattr(x, "cls", x)
    try:
        return [] if of is None else [n for n in inspect.signature(of).parameters if n != "self"]
    except (TypeError, ValueError):
        return []


def of_library(name: str) -> str:
    """A name of the library, with its parameters and its equation."""
    found = library.find(name)
    if isinstance(found, library.Namespace):
        return f"```mlc\n{name}\n```\n\n{', '.join(library.names_in(name)[:12])}, ..."
    if found is library.ZIP:
        taken = "(a, b, ...)"
    else:
        taken = f"({', '.join(parameters_of(found))})" if callable(getattr(found, "cls", found)) else f" = {found}"
    return f"```mlc\n{name}{taken}\n```\n\n{first_line(found)}"


@cache
def library_names() -> list[Proposal]:
    """The functions of the library."""
    return [Proposal(n, "function", first_line(library.find(n))) for n in library.names() if not n.startswith("_")]
