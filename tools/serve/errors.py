"""Errors of the server, in the forms that its clients know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from mlc.ir.diag import Error
from mlc.models.scheduler import QueueFull

RETRY_SECONDS = 1


class ApiError(Exception):
    """An error that answers a request.

    status   of HTTP
    message  one sentence
    param    the field that it is about
    code     a stable name
    """

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    @property
    def headers(self) -> dict[str, str]:
        """Headers that go with the status."""
        if self.status in (429, 503):
            return {"Retry-After": str(RETRY_SECONDS)}
        return {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}

    def body(self) -> dict[str, Any]:
        """The object that OpenAI's clients expect."""
        kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 503: "server_error",
                 500: "server_error"}
        return {"error": {"message": self.message, "type": kinds.get(self.status, "invalid_request_error"),
                          "param": self.param, "code": self.code}}


def wrong(param: str, message: str) -> ApiError:
    """The error for a field of a request."""
    return ApiError(400, message, param)


def of_mlc(error: Error) -> ApiError:
    """The answer for an error of mlc that a request caused."""
    message = error.message + (f" ({error.hint})" if error.hint else "")
    broken = error.code == "MLC0924"                       # the model, and not the request
    return ApiError(429 if isinstance(error, QueueFull) else 500 if broken else 400, message, None, error.code)


def response(error: ApiError, plain: bool) -> JSONResponse:
    """The response for an error: as the Open Inference Protocol has it (`plain`), or as OpenAI does."""
    body: Mapping[str, Any] = {"error": error.message} if plain else error.body()
    return JSONResponse(body, error.status, error.headers)
