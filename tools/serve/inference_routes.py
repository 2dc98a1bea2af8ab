"""The routes of the Open Inference Protocol, version 2, with its extensions for binary data and the repository."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mlc.ir.diag import Error
from mlc.tools.serve.errors import ApiError, of_mlc
from mlc.tools.serve.fields import Fields, parsed
from mlc.tools.serve.functions import DATATYPES, Array, Described, FunctionWorker
from mlc.tools.serve.openai_routes import body_of, registry_of
from mlc.tools.serve.registry import Worker
from mlc.tools.serve.tensors import HEADER, Input, as_bytes, as_list

VERSION = "1"


async def live(request: Request) -> Response:
    """The server runs."""
    return Response(status_code=200)


async def ready(request: Request) -> Response:
    """All models take requests."""
    return Response(status_code=200 if all(w.ready for w in registry_of(request)) else 503)


async def server(request: Request) -> Response:
    """The name, the version and the extensions of the server."""
    import mlc
    return JSONResponse({"name": "mlc", "version": mlc.__version__,
                         "extensions": ["binary_tensor_data", "model_repository"]})


def worker_of(request: Request) -> Worker:
    """The model that the path names."""
    version = request.path_params.get("version", VERSION)
    if version != VERSION:
        raise ApiError(404, f"there is no version {version[:20]} of the model: it has version {VERSION}")
    return registry_of(request).find(request.path_params["name"])


async def model_ready(request: Request) -> Response:
    """The model takes requests."""
    return Response(status_code=200 if worker_of(request).ready else 503)


async def metadata(request: Request) -> Response:
    """The arrays that a model takes and gives."""
    worker = worker_of(request)
    function = worker.function if isinstance(worker, FunctionWorker) else None
    return JSONResponse({"name": worker.name, "versions": [VERSION],
                         "platform": "mlc" if function else "mlc_language_model",
                         "inputs": [_said(x) for x in function.inputs] if function else [],
                         "outputs": [_said(x) for x in function.outputs] if function else []})


def _said(x: Described) -> dict[str, Any]:
    return {"name": x.name, "datatype": x.datatype, "shape": list(x.shape)}


async def infer(request: Request) -> Response:
    """Call a function."""
    worker_of(request)
    with registry_of(request).function(request.path_params["name"]) as worker:
        return await _infer(request, worker)


async def _infer(request: Request, worker: FunctionWorker) -> Response:
    if request.headers.get("content-encoding", "identity") != "identity":
        raise ApiError(415, "compressed bodies are not supported")
    body = await body_of(request)
    size = request.headers.get(HEADER)
    if size is not None and not (size.isdecimal() and int(size) <= len(body)):
        raise ApiError(400, f"{HEADER} is no length within the body")
    fields = Fields(parsed(body if size is None else body[: int(size)]))
    arrays = _arrays(fields, worker, b"" if size is None else body[int(size):])
    identity = fields.text("id", "")
    wanted, binary = _outputs(fields, worker)
    fields.check_all_read()
    try:
        found = await asyncio.wait_for(worker.infer(arrays), worker.limits.seconds)
    except Error as error:
        raise of_mlc(error) from None
    except TimeoutError:
        raise ApiError(408, "the call took too long", None, "timeout") from None
    named = dict(zip((x.name for x in worker.function.outputs), map(np.asarray, found)))
    head: dict[str, Any] = {"model_name": worker.name, "model_version": VERSION, "outputs": []}
    head |= {"id": identity} if identity else {}
    return _response(head, [(name, named[name], binary[name]) for name in wanted])


def _arrays(fields: Fields, worker: FunctionWorker, rest: bytes) -> list[Array]:
    inputs = [Input(Fields(x, f"inputs.{i}")) for i, x in enumerate(fields.list("inputs", 1024))]
    wanted = {x.name: x for x in worker.function.inputs}
    arrays = dict[str, Array]()
    for x in inputs:
        if x.name not in wanted or x.name in arrays:
            raise ApiError(400, f"there is no input {x.name[:60]!r}, or it is there twice: the model takes "
                           + ", ".join(wanted))
        part = None
        if x.size is not None:
            part, rest = rest[: x.size], rest[x.size:]
        arrays[x.name] = x.array(wanted[x.name], part)
    if rest:
        raise ApiError(400, f"{len(rest)} bytes follow the last input")
    if missing := [name for name in wanted if name not in arrays]:
        raise ApiError(400, f"the input {missing[0]} is missing")
    return [arrays[name] for name in wanted]


def _outputs(fields: Fields, worker: FunctionWorker) -> tuple[list[str], dict[str, bool]]:
    """The outputs that are asked for, and which of them as binary data."""
    known = [x.name for x in worker.function.outputs]
    default = False
    if fields.has("parameters"):
        parameters = fields.inner("parameters")
        default = parameters.flag("binary_data_output")
        parameters.check_all_read()
    binary = dict.fromkeys(known, default)
    wanted = []
    for i, x in enumerate(fields.list("outputs", 1024)):
        output = Fields(x, f"outputs.{i}")
        name = output.text("name")
        if name not in known:
            raise ApiError(400, f"there is no output {name[:60]!r}: the model gives {', '.join(known)}")
        if output.has("parameters"):
            parameters = output.inner("parameters")
            binary[name] = parameters.flag("binary_data", default)
            parameters.refuse({"classification": "results are given as they are"})
            parameters.check_all_read()
        output.check_all_read()
        wanted.append(name)
    return wanted or known, binary


def _response(head: dict[str, Any], outputs: list[tuple[str, Array, bool]]) -> Response:
    rest = b""
    for name, x, binary in outputs:
        said: dict[str, Any] = {"name": name, "datatype": DATATYPES[x.dtype.name], "shape": list(x.shape)}
        if binary:
            data = as_bytes(x)
            said["parameters"], rest = {"binary_data_size": len(data)}, rest + data
        else:
            said["data"] = as_list(x)
        head["outputs"].append(said)
    if not rest and not any(b for _, _, b in outputs):
        return JSONResponse(head)
    text = json.dumps(head).encode()
    return Response(text + rest, media_type="application/octet-stream", headers={HEADER: str(len(text))})


async def index(request: Request) -> Response:
    """All models and whether they take requests; with `ready` in the body those that do."""
    registry = registry_of(request)
    fields = Fields(parsed(await body_of(request) or b"{}"))
    only_ready = fields.flag("ready")
    fields.check_all_read()
    loaded = [{"name": w.name, "version": VERSION, "state": "READY" if w.ready else "UNAVAILABLE",
               "reason": "" if w.ready else w.reason or w.state} for w in registry]
    there = {registry.path_name(w.name) for w in registry}
    gone = [{"name": n, "version": VERSION, "state": "UNAVAILABLE", "reason": "unloaded"} for n in registry.paths
            if n not in there]
    return JSONResponse([row for row in (*loaded, *gone) if row["state"] == "READY" or not only_ready])


async def load(request: Request) -> Response:
    """Load a model anew, from where the command line says."""
    await _no_parameters(request)
    await registry_of(request).load(request.path_params["name"])
    return JSONResponse({})


async def unload(request: Request) -> Response:
    """Take a model away."""
    await _no_parameters(request)
    registry_of(request).unload(request.path_params["name"])
    return JSONResponse({})


async def _no_parameters(request: Request) -> None:
    if body := await body_of(request):
        fields = Fields(parsed(body))
        if fields.has("parameters"):
            parameters = fields.inner("parameters")
            parameters.flag("unload_dependents")           # there are none
            parameters.check_all_read()
        fields.check_all_read()


_MODEL = "/v2/models/{name}"
ROUTES = [Route("/v2", server), Route("/v2/health/live", live), Route("/v2/health/ready", ready),
          *(Route(base + path, handler, methods=[method]) for base in (_MODEL, _MODEL + "/versions/{version}")
            for path, handler, method in (("", metadata, "GET"), ("/ready", model_ready, "GET"),
                                          ("/infer", infer, "POST"))),
          Route("/v2/repository/index", index, methods=["POST", "GET"]),
          Route("/v2/repository/models/{name}/load", load, methods=["POST"]),
          Route("/v2/repository/models/{name}/unload", unload, methods=["POST"])]
