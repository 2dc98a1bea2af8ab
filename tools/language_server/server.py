"""The protocol: requests of an editor, answered by the analysis of the text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from mlc.ir.diag import Error, UserError
from mlc.ir.passes import no_collection
from mlc.tools import files
from mlc.tools.language_server import next_level
from mlc.tools.language_server.analysis import Analysis, Lines, Proposal, Span, Symbol
from mlc.tools.language_server.ir_text import IRText, Pieces
from mlc.tools.language_server.program_reader import Memory
from mlc.tools.language_server.program_text import ProgramText

SHOW = "mlc.showNextLevel"
"""The command of a code lens. Arguments: the URI, the line from 0, and the level ("" is the next)."""
TRIGGERS = (".", "%", "@", "{", "(")


class Server(LanguageServer):
    """The server: the analyses of the open files, and what is known of their last states."""

    def __init__(self, version: str) -> None:
        super().__init__("mlc", version)
        self.pieces = Pieces()
        self.memories: dict[str, Memory] = {}
        self.analyses: dict[str, tuple[int | None, str, Analysis]] = {}

    def analysis(self, uri: str) -> Analysis:
        """Of the present text of a file."""
        document = self.workspace.get_text_document(uri)
        known = self.analyses.get(uri)
        if known is not None and known[0] == document.version and known[1] == document.source:
            return known[2]
        found: Analysis = self._analyzed(document)
        self.analyses[uri] = document.version, document.source, found
        return found

    def _analyzed(self, document: TextDocument) -> Analysis:
        path = path_of(document.uri)
        if path.endswith(".mlc") or document.language_id == "mlc":
            return ProgramText(document.source, path, self.memories.setdefault(document.uri, Memory()))
        return IRText(document.source, self.pieces)

    def forget(self, uri: str) -> None:
        """Of a file that has been closed."""
        self.analyses.pop(uri, None)
        self.memories.pop(uri, None)

    # -- places -------------------------------------------------------------------------------------------------------
    def offset(self, uri: str, position: lsp.Position) -> int:
        """The offset of a position, which counts in the units of the client."""
        document = self.workspace.get_text_document(uri)
        inner = self.workspace.position_codec.position_from_client_units(document.lines, position)
        return Lines(document.source).offset(inner.line, inner.character)

    def range(self, uri: str, text: str, span: Span) -> lsp.Range:
        """The range of a part of a text."""
        lines, codec = Lines(text), self.workspace.position_codec
        found = []
        for at in (span.start, span.end):
            line = lines.line_of(at)
            before = lines.line(line)[:at - lines.starts[line]]
            found.append(lsp.Position(line, codec.client_num_units(before)))
        return lsp.Range(*found)

    def location(self, uri: str, text: str, span: Span) -> lsp.Location:
        """A part of a text, or of another file."""
        if not span.file:
            return lsp.Location(uri, self.range(uri, text, span))
        other = from_fs_path(os.path.abspath(span.file)) or span.file
        return lsp.Location(other, self.range(other, self.workspace.get_text_document(other).source, span))

    def publish(self, uri: str) -> None:
        """Send the diagnostics of a file. Cycles are collected afterwards: a full collection takes up to 80 ms."""
        with no_collection():
            found = self.analysis(uri)
            diagnostics = [self.diagnostic(uri, found.text, f.span, f.error) for f in found.findings]
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(
                uri, diagnostics, self.workspace.get_text_document(uri).version))

    def diagnostic(self, uri: str, text: str, span: Span, error: Error) -> lsp.Diagnostic:
        """An error with its notes and its hint."""
        message = "\n".join([error.message, *(f"note: {note}" for note in error.notes),
                             *[f"help: {error.hint}"] * bool(error.hint)])
        return lsp.Diagnostic(self.range(uri, text, span), message, severity=lsp.DiagnosticSeverity.Error,
                              code=error.code, source="mlc")


def load() -> None:
    """Import all that texts of both languages need and build the parser, which the first file would wait for."""
    IRText("func.func @f() {\n  func.return\n}\n", Pieces())
    ProgramText("def f(x: f32[2]) -> f32[2] = exp(x)\n", "", Memory())


def path_of(uri: str) -> str:
    """The path of a file; of one that is not saved, its URI."""
    return (to_fs_path(uri) if uri.startswith("file:") else None) or uri


def symbol(server: Server, uri: str, text: str, found: Symbol) -> lsp.DocumentSymbol:
    """A symbol of the outline, with those in it."""
    return lsp.DocumentSymbol(found.name, lsp.SymbolKind[found.kind.capitalize()],
                              server.range(uri, text, found.span), server.range(uri, text, found.named), found.detail,
                              children=[symbol(server, uri, text, c) for c in found.children])


def completion(found: Proposal) -> lsp.CompletionItem:
    """A proposal as the protocol has it."""
    return lsp.CompletionItem(found.label, kind=lsp.CompletionItemKind[found.kind.capitalize()], detail=found.detail,
                              documentation=found.documentation or None)


def refused(make: Callable[[], Any]) -> Any:
    """The result of `make`; a coded error of the compiler becomes one of the protocol."""
    try:
        return make()
    except Error as error:
        raise JsonRpcInvalidParams(f"{error.code}: {error.message}; {error.hint or ''}".rstrip("; ")) from None


def make_server(version: str) -> Server:
    """The server with all that it answers."""
    server = Server(version)
    _documents(server)
    _questions(server)
    _changes(server)
    return server


def _documents(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        for uri in list(server.analyses):                  # which may import it
            server.analyses.pop(uri)
            server.publish(uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.forget(uri)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))    # or they would stay


def _questions(server: Server) -> None:
    def place(params: Any) -> tuple[str, Analysis, int]:
        uri = params.text_document.uri
        return uri, server.analysis(uri), server.offset(uri, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        uri, analysis, at = place(params)
        found = analysis.hover(at)
        return None if found is None else lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text),
                                                    server.range(uri, analysis.text, found.span))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> list[lsp.Location]:
        uri, analysis, at = place(params)
        return [server.location(uri, analysis.text, span) for span in analysis.definition(at)]

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        uri, analysis, at = place(params)
        spans = analysis.references(at)
        return [server.location(uri, analysis.text, span)
                for span in (spans if params.context.include_declaration else spans[1:])]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        uri = params.text_document.uri
        analysis = server.analysis(uri)
        return [symbol(server, uri, analysis.text, found) for found in analysis.symbols()]

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=TRIGGERS))
    def complete(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        _, analysis, at = place(params)
        return [completion(found) for found in analysis.proposals(at)]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        uri = params.text_document.uri
        analysis = server.analysis(uri)
        return [lsp.CodeLens(server.range(uri, analysis.text, lens.span),
                             lsp.Command(lens.title, SHOW, arguments=[uri, lens.line, lens.level]))
                for lens in analysis.lenses()]


def _changes(server: Server) -> None:
    def edits(uri: str, text: str, changed: Sequence[tuple[Span, str]]) -> list[lsp.TextEdit]:
        return [lsp.TextEdit(server.range(uri, text, span), new) for span, new in changed]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        uri = params.text_document.uri
        analysis = server.analysis(uri)
        new = refused(analysis.formatted)
        text = server.workspace.get_text_document(uri).source
        return [] if new == text else edits(uri, text, [(Span(0, len(text)), new)])

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        uri = params.text_document.uri
        analysis, at = server.analysis(uri), server.offset(uri, params.position)
        found = refused(lambda: analysis.renamed(at, params.new_name))
        return lsp.WorkspaceEdit(changes={uri: edits(uri, analysis.text, found)})

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        uri = params.text_document.uri
        analysis, at = server.analysis(uri), server.offset(uri, params.position)
        here = next((s for s in analysis.references(at) if not s.file and s.start <= at <= s.end), None)
        return None if here is None else server.range(uri, analysis.text, here)

    @server.command(SHOW)
    def show(uri: str, line: int, level: str = "") -> dict[str, Any]:
        found = refused(lambda: next_level.show(server.analysis(uri), path_of(uri), int(line) + 1, level))
        window = server.client_capabilities.window
        if window is not None and window.show_document is not None and window.show_document.support:
            _open(server, found)
        return {"level": found.level, "text": found.text, "lines": list(found.lines)}


def _open(server: Server, found: next_level.Shown) -> None:
    """Show a level in the editor, at the first line that was asked for."""
    path = os.path.join(tempfile.gettempdir(), f"mlc-{os.getpid()}-{found.level}.mlir")
    try:
        files.write(path, found.text)
    except UserError as error:
        server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, error.message))
        return
    at = lsp.Position(found.lines[0] if found.lines else 0, 0)
    server.window_show_document(lsp.ShowDocumentParams("file://" + path, take_focus=False, selection=lsp.Range(at, at)))
