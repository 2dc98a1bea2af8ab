"""mlc serve under the clients of others: a table of what each route and field does for `openai` and `tritonclient`.

    python -m tests.peers.serving URL --model assistant --function pred

It needs `openai` and `tritonclient[http]`, which want an environment of their own, and imports nothing of mlc. The
server has the model of examples/assistant, and a function on `x` f32[B,4] and `y` i64[B] that gives 2 x and sum(y).
"""
from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

ROWS: list[tuple[str, str, Callable[[Any], None]]] = []
QUESTION = [{"role": "user", "content": "What does mlc.cumsum do?"}]
SUM = "mlc.cumsum: Running sums: result[i] = input[0] + ... + input[i] along a dimension."
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "axes": {
    "type": "array", "items": {"type": "integer", "minimum": -4, "maximum": 4}, "maxItems": 3}},
    "required": ["name", "axes"], "additionalProperties": False}


def row(route: str, what: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """A row of the table: a function that raises where the answer is not as it should be."""
    def add(check: Callable[[Any], None]) -> Callable[[Any], None]:
        ROWS.append((route, what, check))
        return check

    return add


class Clients:
    """The clients, and what they talk to."""

    def __init__(self, url: str, model: str, function: str) -> None:
        import openai
        from tritonclient import http
        self.model, self.function = model, function
        self.openai, self.http = openai, http
        self.ai = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
        self.triton = http.InferenceServerClient(url.removeprefix("http://"))

    def chat(self, **fields: Any) -> Any:
        return self.ai.chat.completions.create(**{"model": self.model, "messages": QUESTION, **fields})

    def refused(self, param: str, **fields: Any) -> None:
        try:
            self.chat(**fields)
        except self.openai.BadRequestError as error:
            assert error.param == param, (error.param, error.message)
            return
        raise AssertionError("it was not refused")


@row("GET /v1/models", "list and retrieve")
def _(c: Clients) -> None:
    assert c.model in [m.id for m in c.ai.models.list()] and c.ai.models.retrieve(c.model).object == "model"


@row("POST /v1/chat/completions", "messages")
def _(c: Clients) -> None:
    found = c.chat()
    assert found.choices[0].message.content == SUM and found.choices[0].finish_reason == "stop"
    assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens


@row("POST /v1/chat/completions", "content in parts, system and developer")
def _(c: Clients) -> None:
    parts = [{"type": "text", "text": "What does "}, {"type": "text", "text": "mlc.cumsum do?"}]
    said = {"role": "user", "content": parts}
    assert c.chat(messages=[{"role": "developer", "content": "Be brief"}, said]).choices[0].message.content == SUM


@row("POST /v1/chat/completions", "stream, stream_options.include_usage")
def _(c: Clients) -> None:
    chunks = list(c.chat(stream=True, stream_options={"include_usage": True}))
    assert "".join(x.choices[0].delta.content or "" for x in chunks if x.choices) == SUM
    assert chunks[-1].usage.completion_tokens > 5 and chunks[-2].choices[0].finish_reason == "stop"


@row("POST /v1/chat/completions", "n, seed, temperature, top_p")
def _(c: Clients) -> None:
    options = {"n": 3, "seed": 5, "temperature": 1.8, "top_p": 0.95, "max_tokens": 12}
    a, b = ([x.message.content for x in c.chat(**options).choices] for _ in range(2))
    assert a == b and len(set(a)) > 1, a
    assert c.chat(**{**options, "n": 1, "seed": 6}).choices[0].message.content == a[1]


@row("POST /v1/chat/completions", "max_tokens, max_completion_tokens")
def _(c: Clients) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        found = c.chat(**{name: 3})
        assert found.usage.completion_tokens == 3 and found.choices[0].finish_reason == "length"


@row("POST /v1/chat/completions", "stop")
def _(c: Clients) -> None:
    assert c.chat(stop=["sums:", "zzz"]).choices[0].message.content == SUM[: SUM.index("sums:")]
    text = "".join(x.choices[0].delta.content or "" for x in c.chat(stop="sums:", stream=True))
    assert text == SUM[: SUM.index("sums:")]


@row("POST /v1/chat/completions", "logprobs, top_logprobs")
def _(c: Clients) -> None:
    content = c.chat(logprobs=True, top_logprobs=3, max_tokens=4).choices[0].logprobs.content
    assert [len(t.top_logprobs) for t in content] == [3] * 4
    assert content[0].logprob == content[0].top_logprobs[0].logprob
    assert b"".join(bytes(t.bytes) for t in content).decode() == "".join(t.token for t in content)


@row("POST /v1/chat/completions", "logit_bias, presence_penalty, frequency_penalty")
def _(c: Clients) -> None:
    first = c.ai.chat.completions.create(model=c.model, messages=QUESTION, max_tokens=5, logit_bias={"40": 100},
                                         presence_penalty=0.1, frequency_penalty=0.1)
    assert first.choices[0].message.content == "F" * 5, first.choices[0].message.content


@row("POST /v1/chat/completions", "response_format json_object")
def _(c: Clients) -> None:
    assert isinstance(json.loads(c.chat(response_format={"type": "json_object"}).choices[0].message.content), dict)


@row("POST /v1/chat/completions", "response_format json_schema, streamed too")
def _(c: Clients) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "op", "strict": True, "schema": SCHEMA}}
    for stream in (False, True):
        found = c.chat(response_format=form, temperature=1.0, seed=1, stream=stream)
        text = "".join(x.choices[0].delta.content or "" for x in found) if stream else found.choices[0].message.content
        value = json.loads(text)
        assert set(value) == {"name", "axes"} and all(-4 <= x <= 4 for x in value["axes"])


@row("POST /v1/chat/completions", "response_format json_schema: unsupported keyword")
def _(c: Clients) -> None:
    c.refused(None, response_format={  # type: ignore[arg-type]
        "type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array", "uniqueItems": True}}})


@row("POST /v1/chat/completions", "tools: refused where the template has none")
def _(c: Clients) -> None:
    c.refused("tools", tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])


for _name, _value in (("audio", {"voice": "x", "format": "wav"}), ("store", True), ("modalities", ["audio"]),
                      ("service_tier", "flex"), ("reasoning_effort", "low")):
    def _refused(c: Clients, name: str = _name, value: Any = _value) -> None:
        c.refused(name, **{name: value})

    row("POST /v1/chat/completions", f"{_name}: refused by name")(_refused)


@row("POST /v1/chat/completions", "unknown field: refused by name")
def _(c: Clients) -> None:
    c.refused("colour", extra_body={"colour": 1})


@row("POST /v1/chat/completions", "unknown model: 404")
def _(c: Clients) -> None:
    try:
        c.chat(model="gpt")
    except c.openai.NotFoundError as error:
        assert error.code == "model_not_found"
        return
    raise AssertionError("it was found")


@row("POST /v1/completions", "texts, tokens, n, logprobs, stream")
def _(c: Clients) -> None:
    found = c.ai.completions.create(model=c.model, prompt=["The", "mlc is"], n=2, max_tokens=4, logprobs=2)
    assert len(found.choices) == 4 and len(found.choices[0].logprobs.tokens) == 4
    whole = c.ai.completions.create(model=c.model, prompt=[5, 6, 7], max_tokens=6).choices[0].text
    assert "".join(x.choices[0].text for x in c.ai.completions.create(
        model=c.model, prompt=[5, 6, 7], max_tokens=6, stream=True)) == whole


@row("POST /v1/completions", "echo, suffix, best_of: refused by name")
def _(c: Clients) -> None:
    for name, value in (("echo", True), ("suffix", "x"), ("best_of", 4)):
        try:
            c.ai.completions.create(**{"model": c.model, "prompt": "x", name: value})
        except c.openai.BadRequestError as error:
            assert error.param == name
            continue
        raise AssertionError(name)


@row("POST /v1/embeddings", "float and base64")
def _(c: Clients) -> None:
    one = c.ai.embeddings.create(model=c.model, input="mlc", encoding_format="float").data[0].embedding
    two = c.ai.embeddings.create(model=c.model, input=["mlc", "exp"]).data
    assert np.allclose(one, two[0].embedding) and abs(np.linalg.norm(one) - 1) < 1e-5


@row("/v2/health, /v2", "live, ready, metadata")
def _(c: Clients) -> None:
    assert c.triton.is_server_live() and c.triton.is_server_ready() and c.triton.is_model_ready(c.function)
    assert c.triton.get_server_metadata()["name"] == "mlc"
    assert [x["name"] for x in c.triton.get_model_metadata(c.function)["inputs"]] == ["x", "y"]


for _in, _out in ((True, True), (True, False), (False, True), (False, False)):
    def _infer(c: Clients, of_input: bool = _in, of_output: bool = _out) -> None:
        x, y = np.arange(8, dtype=np.float32).reshape(2, 4), np.array([3, 4])
        inputs = [c.http.InferInput("x", [2, 4], "FP32"), c.http.InferInput("y", [2], "INT64")]
        for own, value in zip(inputs, (x, y)):
            own.set_data_from_numpy(value, binary_data=of_input)
        outputs = [c.http.InferRequestedOutput(f"output{i}", binary_data=of_output) for i in range(2)]
        found = c.triton.infer(c.function, inputs, outputs=outputs, request_id="7")
        assert np.array_equal(found.as_numpy("output0"), 2 * x) and found.as_numpy("output1") == 7
        assert found.get_response()["id"] == "7"

    row("POST /v2/models/NAME/infer", f"{'binary' if _in else 'JSON'} inputs, {'binary' if _out else 'JSON'} outputs")(
        _infer)


@row("POST /v2/models/NAME/infer", "wrong shape: 400")
def _(c: Clients) -> None:
    from tritonclient.utils import InferenceServerException
    wrong = c.http.InferInput("x", [1, 3], "FP32")
    wrong.set_data_from_numpy(np.zeros((1, 3), np.float32))
    try:
        c.triton.infer(c.function, [wrong])
    except InferenceServerException as error:
        assert "has the shape" in error.message()


@row("/v2/repository", "index, unload, load")
def _(c: Clients) -> None:
    assert c.function in [m["name"] for m in c.triton.get_model_repository_index()]
    c.triton.unload_model(c.function)
    assert not any(m["name"] == c.function and m["state"] == "READY" for m in c.triton.get_model_repository_index())
    c.triton.load_model(c.function)
    assert c.triton.is_model_ready(c.function)
    c.triton.load_model(c.model)


def main() -> int:
    p = argparse.ArgumentParser()
    p.add_argument("url")
    p.add_argument("--model", default="assistant")
    p.add_argument("--function", default="pred")
    options = p.parse_args()
    clients, failures = Clients(options.url.rstrip("/"), options.model, options.function), 0
    for route, what, check in ROWS:
        try:
            check(clients)
            found = "ok"
        except Exception:
            found, failures = "FAILED\n" + traceback.format_exc(limit=-2), failures + 1
        print(f"{route:32} {what:62} {found}", flush=True)
    print(f"{len(ROWS) - failures} of {len(ROWS)} rows")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
