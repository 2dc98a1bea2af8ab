"""Parts of `mlc serve` without a server: bodies, arrays, names of models, and the texts of tokens."""
from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

import mlc

pytest.importorskip("starlette")
from starlette.requests import Request
from tokenizers import Tokenizer as Rules
from tokenizers import decoders, models

from mlc.models import LogProbability, Piece
from mlc.models.constraints.vocabulary import Vocabulary
from mlc.models.text import Tokenizer
from mlc.tools.serve import inference_routes, openai_routes
from mlc.tools.serve.answers import Writer
from mlc.tools.serve.conversations import read_conversation
from mlc.tools.serve.errors import ApiError
from mlc.tools.serve.fields import Fields, parsed
from mlc.tools.serve.functions import Described
from mlc.tools.serve.generation_fields import Generation
from mlc.tools.serve.guard import Guard
from mlc.tools.serve.registry import Registry
from mlc.tools.serve.tensors import Input
from mlc.tools.serve.worker import Limits


@pytest.mark.parametrize("body", [b'{"\xed\xa0\x80": 1}', '{"id": "\\ud800"}'.encode("utf-16"), b'{"id": "\\ud800"}'])
def test_a_body_is_of_utf8(body: bytes) -> None:
    with pytest.raises(ApiError, match="no JSON"):
        parsed(body)


@pytest.mark.parametrize("route", [openai_routes.fields_of, inference_routes.index])
def test_a_client_that_goes_away_while_it_sends(route: Any) -> None:
    async def receive() -> Any:
        return {"type": "http.disconnect"}

    app = SimpleNamespace(state=SimpleNamespace(registry=Registry({}, Limits())))
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": [], "app": app}, receive)
    with pytest.raises(ApiError) as info:
        asyncio.run(route(request))
    assert info.value.status == 499


@pytest.mark.parametrize(("kind", "shape", "data"), [
    ("FP32", [2, 2], [[1, 2, 3], [4]]), ("FP32", [2, 3], [[1, 2], [3, 4], [5, 6]]), ("FP32", [4], [[1, 2], [3, 4]]),
    ("FP32", [2, 2], [[1, 2], 3, 4]), ("FP32", [1], [1e39]), ("FP64", [1], json.loads("[1e999]")),
    ("UINT8", [1], [300]), ("FP64", [1], [10**400])])
def test_data_that_is_not_of_its_shape_or_type(kind: str, shape: list[int], data: Any) -> None:
    x = Input(Fields({"name": "x", "datatype": kind, "shape": shape, "data": data}))
    with pytest.raises(ApiError):
        x.array(Described("x", kind, tuple(shape)), None)


@pytest.mark.parametrize("data", [[1, 2, 3, 4, 5, 6], [[1, 2, 3], [4, 5, 6]]])
def test_data_may_be_nested(data: Any) -> None:
    x = Input(Fields({"name": "x", "datatype": "FP32", "shape": [2, 3], "data": data}))
    assert x.array(Described("x", "FP32", (2, 3)), None).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_data_goes_without_binary_data() -> None:
    with pytest.raises(ApiError, match="data is given beside binary_data_size"):
        Input(Fields({"name": "x", "datatype": "FP32", "shape": [1], "data": [7.0],
                      "parameters": {"binary_data_size": 4}}))


def test_an_answer_with_one_call() -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "parallel_tool_calls": False,
            "tools": [{"type": "function", "function": {"name": "f"}}]}
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert [len(read_conversation(Fields({**body, "parallel_tool_calls": several})).calls(call + call)[1])
            for several in (False, True, None)] == [1, 2, 2]


class Served:
    """A model of a registry, which has nothing to load."""

    def __init__(self, name: str, ready: bool = True) -> None:
        self.name, self.ready, self.reason = name, ready, ""
        self.state = "ready" if ready else "loading"

    def stop(self, reason: str = "") -> None:
        self.state = "stopped"


def registry(paths: dict[str, list[Served]]) -> Registry:
    found = Registry(dict.fromkeys(paths, ""), Limits())
    found._started = lambda name, path: paths[name]  # type: ignore[method-assign,assignment,return-value]
    found.start()
    return found


def listed(models: Registry, **fields: Any) -> dict[str, str]:
    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(fields).encode() if fields else b""}

    app = SimpleNamespace(state=SimpleNamespace(registry=models))
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": [], "app": app}, receive)
    rows = json.loads(bytes(asyncio.run(inference_routes.index(request)).body))
    return {row["name"]: row["state"] for row in rows}


def test_functions_of_a_module_that_is_loaded_anew() -> None:
    paths = {"v1.2": [Served("v1.2.f"), Served("v1.2.g")], "other": [Served("other", ready=False)]}
    models = registry(paths)
    assert listed(models) == {"v1.2.f": "READY", "v1.2.g": "READY", "other": "UNAVAILABLE"}
    assert listed(models, ready=True) == {"v1.2.f": "READY", "v1.2.g": "READY"}
    before, paths["v1.2"] = paths["v1.2"], [Served("v1.2.f"), Served("v1.2.h")]
    asyncio.run(models.load("v1.2.g"))
    assert sorted(w.name for w in models) == ["other", "v1.2.f", "v1.2.h"] and {w.state for w in before} == {"stopped"}
    with pytest.raises(ApiError, match="unknown is not supported"):
        listed(models, unknown=1)


def test_functions_and_models_of_one_name() -> None:
    with pytest.raises(mlc.UserError, match=r"MLC0921.*two models have the name m\.g"):
        registry({"m": [Served("m.f"), Served("m.g")], "m.g": [Served("m.g")]})


@pytest.mark.parametrize("host", ["127.0.0.2:8000", "[::1]:8000", "localhost", "LOCALHOST:1"])
def test_addresses_of_this_machine(host: str) -> None:
    headers = [(b"host", host.encode())]
    Guard(None, None, 1)._check_origin(Request({"type": "http", "headers": headers}))  # type: ignore[arg-type]


def writer(tokens: list[str], decoder: Any, **generation: Any) -> Writer:
    rules = Rules(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token=tokens[0]))
    rules.decoder = decoder
    texts = [token.replace("\u2581", " ").encode() if "<0x" not in token else bytes([int(token[3:5], 16)])
             for token in tokens]
    model: Any = SimpleNamespace(tokenizer=Tokenizer(rules), vocabulary=Vocabulary(texts, strips=True))
    return Writer(model, "m", Generation(logprobs=True, **generation), [[0]],
                  SimpleNamespace(count=1, tickets=[]), None)  # type: ignore[arg-type]


def test_texts_of_tokens_have_their_spaces() -> None:
    made = writer(["\u2581Hello", "\u2581big", "\u2581world"], decoders.Metaspace())
    found = made._logprobs([Piece(0, "", t, LogProbability(t, -0.5)) for t in (0, 1, 2)], made.choices[0])
    assert found is not None
    assert (found["tokens"], found["text_offset"]) == ([" Hello", " big", " world"], [0, 6, 10])


def test_of_tokens_with_one_text_the_likeliest_is_reported() -> None:
    made = writer(["<0xE2>", "<0xF0>", "a"], decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()]), top=3)
    piece = Piece(0, "", 0, LogProbability(0, -0.1, ((0, -0.1), (1, -5.0), (2, -6.0))))
    found = made._logprobs([piece], made.choices[0])
    assert found is not None and found["top_logprobs"] == [{"\ufffd": -0.1, "a": -6.0}]


def test_pieces_say_that_the_usage_comes_last() -> None:
    made = Writer(SimpleNamespace(), "m", Generation(stream=True, usage=True), [[1]],  # type: ignore[arg-type]
                  SimpleNamespace(count=1, tickets=[]), None)  # type: ignore[arg-type]
    piece = Piece(0, "x", 1)
    made.add(0, piece)
    assert json.loads(made.events(0, piece)[0].removeprefix(b"data: "))["usage"] is None
