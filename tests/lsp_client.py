"""A client of the language server, in a session over its standard input and output."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

TIMEOUT = 60


class Session:
    """A running server, with the files that are open in it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.client = LanguageClient("test", "1")
        self.diagnostics: dict[str, list[lsp.Diagnostic]] = {}
        self.published: dict[str, int | None] = {}
        self.changed = threading.Condition()
        self.shown: list[str] = []

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)    # type: ignore[untyped-decorator]
        def published(params: lsp.PublishDiagnosticsParams) -> None:
            with self.changed:
                self.diagnostics[params.uri] = list(params.diagnostics)
                self.published[params.uri] = params.version
                self.changed.notify_all()

        @self.client.feature(lsp.WINDOW_SHOW_DOCUMENT)                 # type: ignore[untyped-decorator]
        def show(params: lsp.ShowDocumentParams) -> lsp.ShowDocumentResult:
            self.shown.append(params.uri)
            return lsp.ShowDocumentResult(success=True)

        self.wait(self.client.start_io(sys.executable, "-m", "mlc.tools.cli", "lsp"))
        window = lsp.WindowClientCapabilities(show_document=lsp.ShowDocumentClientCapabilities(support=True))
        self.capabilities = self.ask("initialize_async", lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(window=window))).capabilities
        self.tell("initialized", lsp.InitializedParams())
        self.versions: dict[str, int] = {}

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(TIMEOUT)

    def ask(self, method: str, params: Any) -> Any:
        """The answer of the server to a request; an error is raised."""
        async def request() -> Any:
            return await getattr(self.client, method)(params)

        return self.wait(request())

    def tell(self, method: str, params: Any) -> None:
        async def notify() -> None:
            getattr(self.client, method)(params)

        self.wait(notify())

    def open(self, uri: str, text: str) -> list[lsp.Diagnostic]:
        """Open a file, or change all of it; its diagnostics."""
        version = self.versions[uri] = self.versions.get(uri, 0) + 1
        if version == 1:
            language = uri.rpartition(".")[2]
            self.tell("text_document_did_open", lsp.DidOpenTextDocumentParams(
                lsp.TextDocumentItem(uri, language, version, text)))
        else:
            self.tell("text_document_did_change", lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(version, uri), [lsp.TextDocumentContentChangeWholeDocument(text)]))
        with self.changed:
            assert self.changed.wait_for(lambda: self.published.get(uri) == version, TIMEOUT), "no diagnostics came"
            return self.diagnostics[uri]

    def close(self) -> None:
        async def stop() -> None:
            await self.client.shutdown_async(None)
            self.client.exit(None)
            await self.client.stop()                       # type: ignore[no-untyped-call]

        self.wait(stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
