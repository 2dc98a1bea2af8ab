"""The application: all routes over the models of a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from mlc.tools.serve import inference_routes, openai_routes
from mlc.tools.serve.errors import ApiError, response
from mlc.tools.serve.guard import Guard
from mlc.tools.serve.metrics import Metrics, metrics
from mlc.tools.serve.registry import Registry

PAGE = Path(__file__).parent / "page" / "page.html"
POLICY = ("default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
          "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
"""The page is one file: whatever a model writes, it can neither load anything nor send anything elsewhere."""


async def page(request: Request) -> Response:
    """The page for conversations, and for what is known of each model."""
    return HTMLResponse(PAGE.read_text(encoding="utf-8"), headers={"Content-Security-Policy": POLICY,
                                                                   "X-Content-Type-Options": "nosniff"})


async def not_routed(request: Request, error: Exception) -> Response:
    """The answer to what has no route."""
    assert isinstance(error, HTTPException)
    text = {404: f"there is no {request.url.path[:80]}", 405: f"{request.method} is not for {request.url.path[:80]}"}
    return response(ApiError(error.status_code, text.get(error.status_code, error.detail)),
                    request.url.path.startswith("/v2"))


async def failed(request: Request, error: Exception) -> Response:
    """The answer to a request that a defect ends; the error is logged where it is raised on."""
    return response(ApiError(500, "the server has failed"), request.url.path.startswith("/v2"))


def application(registry: Registry, key: str | None = None) -> Starlette:
    """The application of a server, which starts its models when it starts.

    registry  the models
    key       token that requests have to bear; None for none
    """
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        registry.start()
        try:
            yield
        finally:
            registry.stop("shutdown")
            registry.join(10.0)

    app = Starlette(routes=[Route("/", page), Route("/model", page), Route("/metrics", metrics),
                            *openai_routes.ROUTES, *inference_routes.ROUTES],
                    middleware=[Middleware(Guard, key=key, most=registry.limits.body)], lifespan=lifespan,
                    exception_handlers={HTTPException: not_routed, Exception: failed})
    app.state.registry, app.state.metrics = registry, Metrics(registry)
    return app
