"""Around every request: the token of the caller, the size of the body, errors as responses, and a line in the log."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import re
import time
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mlc.ir.diag import Error
from mlc.tools.serve.errors import ApiError, of_mlc, response

log = logging.getLogger("mlc.serve")

OPEN = ("/", "/model", "/v2/health/live", "/v2/health/ready")
"""Paths that need no token: the page asks for one, and a health check has none."""
def is_local(host: str) -> bool:
    """Whether a name or address is one at which only this machine finds itself: a server without a token has no other.
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Guard:
    """The outermost part of the application.

    key   token that requests have to bear; None for none
    most  bytes of a body
    """

    def __init__(self, app: ASGIApp, key: str | None, most: int) -> None:
        self.app, self.key, self.most = app, key, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        line: dict[str, Any] = {"started": time.perf_counter(), "status": 499}
        scope.setdefault("state", {})["line"] = line

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                line["status"] = message["status"]
            await send(message)

        try:
            await self._checked(scope, receive, note)
        except Exception:
            line["status"] = 500                           # which is sent outside of here
            raise
        finally:
            self._log(scope, line)

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        try:
            self._check_key(request)
            self._check_origin(request)
            self._check_size(request)
            await self.app(scope, self._limited(receive), send)
        except ApiError as error:
            await self._fail(error, scope, receive, send)
        except Error as error:
            await self._fail(of_mlc(error), scope, receive, send)

    async def _fail(self, error: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
        line = scope["state"]["line"]
        line["error"] = error.message
        if line["status"] == 499 and error.status != 499:  # nothing is sent yet, and somebody is there
            await response(error, scope["path"].startswith("/v2"))(scope, receive, send)

    def _check_key(self, request: Request) -> None:
        if self.key is None or (request.method == "GET" and request.url.path in OPEN):
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip(" \t").encode("latin-1"), self.key.encode()):
            raise ApiError(401, "the request bears no token, or a wrong one", None, "invalid_api_key")

    def _check_origin(self, request: Request) -> None:
        """Without a token, pages of other sites could have a browser ask: it says whose page it is (Origin), and by
        which name it found the server (Host)."""
        if self.key is not None:
            return
        host = request.headers.get("host", "")
        origin = request.headers.get("origin")
        name = host.rpartition(":")[0] if re.search(r":\d*$", host) else host
        if not is_local(name.strip("[]")) or (origin is not None and origin.partition("://")[2] != host):
            raise ApiError(403, "pages of other sites may not use a server without a token", None, "forbidden_origin")

    def _check_size(self, request: Request) -> None:
        size = request.headers.get("content-length", "0")
        if not size.isdecimal() or int(size) > self.most:
            raise ApiError(413, f"the body is larger than {self.most} bytes", None, "body_too_large")

    def _limited(self, receive: Receive) -> Receive:
        """The same messages, unless they are too large together: a body may come without its length."""
        total = 0

        async def limited() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b""))
            if total > self.most:
                raise ApiError(413, f"the body is larger than {self.most} bytes", None, "body_too_large")
            return message

        return limited

    def _log(self, scope: Scope, line: dict[str, Any]) -> None:
        seconds = time.perf_counter() - line["started"]
        route = getattr(scope.get("route"), "path", "other")
        scope["app"].state.metrics.done(route, line["status"], seconds)
        more = "".join(f" {name}={line[name]}" for name in ("prompt", "tokens") if name in line)
        more += f" first={1e3 * line['first']:.1f}ms" if "first" in line else ""
        more += f" error={str(line['error'])[:200]!r}" if "error" in line else ""
        log.info("%s %s %s %.1fms%s", scope["method"], scope["path"][:200].encode("unicode_escape").decode(),
                 line["status"], 1e3 * seconds, more)
