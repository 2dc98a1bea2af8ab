"""The routes of OpenAI's API: models, chats, completions and embeddings."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from mlc.ir.diag import Error
from mlc.models.language_model import LanguageModel
from mlc.tools.serve.answers import Writer, event
from mlc.tools.serve.conversations import Conversation, read_conversation
from mlc.tools.serve.errors import ApiError, of_mlc, wrong
from mlc.tools.serve.fields import Fields, parsed
from mlc.tools.serve.generation_fields import Generation, read_format, read_generation
from mlc.tools.serve.registry import Registry
from mlc.tools.serve.worker import LanguageWorker

MOST_PROMPTS = 64
MOST_TOGETHER = 8
"""Texts of one request for vectors that one call of the model reads."""


def registry_of(request: Request) -> Registry:
    """The models of the server."""
    found: Registry = request.app.state.registry
    return found


async def body_of(request: Request) -> bytes:
    """The body; a client may go away while it sends one."""
    try:
        return await request.body()
    except ClientDisconnect:
        raise ApiError(499, "the client has gone away") from None


async def fields_of(request: Request) -> Fields:
    """The fields of the body."""
    return Fields(parsed(await body_of(request)))


async def models(request: Request) -> Response:
    """The language models."""
    return JSONResponse({"object": "list", "data": [_model(w) for w in registry_of(request)
                                                    if isinstance(w, LanguageWorker)]})


async def model(request: Request) -> Response:
    """One language model."""
    worker = registry_of(request).find(request.path_params["name"])
    if not isinstance(worker, LanguageWorker):
        raise ApiError(404, f"{worker.name} is no language model", "model", "model_not_found")
    return JSONResponse(_model(worker))


def _model(worker: LanguageWorker) -> dict[str, Any]:
    return {"id": worker.name, "object": "model", "created": worker.created, "owned_by": "mlc"}


async def chat_completions(request: Request) -> Response:
    """Go on with a conversation."""
    fields = await fields_of(request)
    with registry_of(request).language_model(fields.text("model")) as worker:
        return await _chat(request, fields, worker)


async def _chat(request: Request, fields: Fields, worker: LanguageWorker) -> Response:
    worker.check_generates()
    generation = read_generation(fields)
    generation.logprobs = fields.flag("logprobs")
    generation.top = fields.integer("top_logprobs", 0, 20) or 0
    if generation.top and not generation.logprobs:
        raise wrong("top_logprobs", "top_logprobs goes with logprobs")

    def prepare(model: LanguageModel) -> tuple[Conversation, list[list[int]]]:
        conversation = read_conversation(fields)
        form = read_format(fields)
        fields.check_all_read()
        if form is not None and conversation.constraint is not None:
            raise wrong("response_format", "response_format and tool_choice both say what the answer is")
        generation.options["constraint"] = form or conversation.constraint
        return conversation, [conversation.tokens(model)]

    conversation, prompts = await worker.prepare(prepare)
    return await _answer(request, worker, generation, prompts, conversation)


async def completions(request: Request) -> Response:
    """Go on with texts."""
    fields = await fields_of(request)
    with registry_of(request).language_model(fields.text("model")) as worker:
        return await _texts(request, fields, worker)


async def _texts(request: Request, fields: Fields, worker: LanguageWorker) -> Response:
    worker.check_generates()
    generation = read_generation(fields, default_limit=16)
    top = fields.integer("logprobs", 0, 20)
    generation.logprobs, generation.top = top is not None, top or 0
    fields.refuse({"suffix": "models go on with a text only", "echo": "send the prompt and the answer yourself"})
    if (fields.integer("best_of", 1, 1 << 30) or generation.count) != generation.count:
        raise wrong("best_of", "best_of is not supported: all of n answers are given")
    prompts = _prompts(fields, "prompt")

    def prepare(model: LanguageModel) -> list[list[int]]:
        generation.options["constraint"] = read_format(fields)
        fields.check_all_read()
        return [_encoded(model, p) for p in prompts]

    return await _answer(request, worker, generation, await worker.prepare(prepare), None)


def _encoded(model: LanguageModel, prompt: str | list[int]) -> list[int]:
    if not isinstance(prompt, str):
        return prompt
    if model.tokenizer is None:
        raise wrong("prompt", "the model has no tokenizer: a prompt is a list of tokens")
    return model.tokenizer.encode(prompt)


def _prompts(fields: Fields, name: str) -> list[str | list[int]]:
    """A text, its tokens, or a list of either."""
    value = fields.any(name)
    several = value if isinstance(value, list) and not all(_is_number(x) for x in value) else [value]
    if len(several) > MOST_PROMPTS or any(
            not (isinstance(p, str) or (isinstance(p, list) and p and all(map(_is_number, p)))) for p in several):
        raise wrong(name, f"{name} is not a text, a list of tokens, or a list of at most {MOST_PROMPTS} of these")
    return several


def _is_number(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


async def _answer(request: Request, worker: LanguageWorker, generation: Generation, prompts: Sequence[list[int]],
                  chat: Conversation | None) -> Response:
    seed = generation.options.pop("seed", None)
    seeds = None if seed is None else [(seed + i) % 2 ** 64 for i in range(generation.count)] * len(prompts)

    def requests(model: LanguageModel) -> Any:
        return model.requests([p for p in prompts for _ in range(generation.count)], seed=seeds,
                              logprobs=generation.top if generation.logprobs else None, **generation.options)

    made, top = await worker.prepare(requests)
    request.state.line["prompt"] = sum(map(len, prompts))
    stream = worker.submit(made, top)
    writer = Writer(worker.model, worker.name, generation, prompts, stream, chat)
    if generation.stream:
        return StreamingResponse(_events(request, writer), media_type="text/event-stream",
                                 headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
    await _until_disconnected(request, _collect(request, writer))
    return JSONResponse(writer.body())


async def _collect(request: Request, writer: Writer) -> None:
    async for number, piece in writer.stream.pieces():
        request.app.state.metrics.piece(request)
        writer.add(number, piece)


async def _until_disconnected(request: Request, work: Any) -> None:
    """Wait for an answer; end it if the client goes away."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ApiError(499, "the client has gone away")
        task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _events(request: Request, writer: Writer) -> AsyncIterator[bytes]:
    try:
        for data in writer.begin():
            yield data
        async for number, piece in writer.stream.pieces():
            request.app.state.metrics.piece(request)
            writer.add(number, piece)
            for data in writer.events(number, piece):
                yield data
    except ApiError as error:
        request.state.line["error"] = error.code or error.message
        yield event(error.body())
    except Exception:                                      # the status is sent: a defect is told here, and raised on
        yield event(ApiError(500, "the server has failed").body())
        raise
    finally:
        writer.stream.cancel()
    for data in writer.end():
        yield data


async def embeddings(request: Request) -> Response:
    """Vectors of texts, as `LanguageModel.embed` gives them."""
    fields = await fields_of(request)
    with registry_of(request).language_model(fields.text("model")) as worker:
        return await _vectors(request, fields, worker)


async def _vectors(request: Request, fields: Fields, worker: LanguageWorker) -> Response:
    form = fields.one_of("encoding_format", "float", "base64")
    fields.text("user", "")
    fields.refuse({"dimensions": "vectors are as wide as the model"})
    inputs = _prompts(fields, "input")
    fields.check_all_read()
    try:
        tokens = await worker.prepare(lambda model: [model.embedding_tokens(p) for p in inputs])
        groups = [tokens[i: i + MOST_TOGETHER] for i in range(0, len(tokens), MOST_TOGETHER)]
        found = await worker.call(*(partial(worker.model.embed, g) for g in groups))   # with steps in between
        vectors = [v for group in found for v in group]
    except Error as error:
        raise of_mlc(error) from None
    count = sum(map(len, tokens))
    request.state.line["prompt"] = count
    data = [{"object": "embedding", "index": i, "embedding": _vector(v, form)} for i, v in enumerate(vectors)]
    return JSONResponse({"object": "list", "data": data, "model": worker.name,
                         "usage": {"prompt_tokens": count, "total_tokens": count}})


def _vector(x: np.ndarray[Any, Any], form: str) -> Any:
    return base64.b64encode(x.astype("<f4").tobytes()).decode() if form == "base64" else x.tolist()


ROUTES = [Route("/v1/models", models), Route("/v1/models/{name}", model),
          Route("/v1/chat/completions", chat_completions, methods=["POST"]),
          Route("/v1/completions", completions, methods=["POST"]),
          Route("/v1/embeddings", embeddings, methods=["POST"])]
