"""mlc serve, called in the same process: routes, streams, errors, limits, functions, and a model that is replaced."""
from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc

starlette = pytest.importorskip("starlette")
from starlette.testclient import TestClient  # noqa: E402

from mlc.models.constraints.vocabulary import Vocabulary  # noqa: E402
from mlc.tools.cli import main  # noqa: E402
from mlc.tools.serve import named  # noqa: E402
from mlc.tools.serve.app import application  # noqa: E402
from mlc.tools.serve.conversations import read_conversation  # noqa: E402
from mlc.tools.serve.errors import ApiError  # noqa: E402
from mlc.tools.serve.fields import Fields  # noqa: E402
from mlc.tools.serve.registry import Registry  # noqa: E402
from mlc.tools.serve.worker import LanguageWorker, Limits  # noqa: E402
from tests.language_models import CASES, write_folder  # noqa: E402

ASSISTANT = str(Path(__file__).parent.parent / "examples" / "assistant")
SUM = "mlc.cumsum: Running sums: result[i] = input[0] + ... + input[i] along a dimension."
QUESTION = {"model": "assistant", "messages": [{"role": "user", "content": "What does mlc.cumsum do?"}]}
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    path = str(tmp_path_factory.mktemp("saved") / "f.mlc")
    mlc.save(mlc.compile(lambda x, y: (x * 2, y.sum())), path, args=[mlc.spec("B", 2), mlc.spec("B", dtype="int64")])
    registry = Registry({"assistant": ASSISTANT, "f": path}, Limits(slots=1, body=1 << 16, warm_up=False))
    with TestClient(application(registry), "http://localhost:8000") as found:
        while found.get("/v2/health/ready").status_code != 200:
            time.sleep(0.02)
        yield found


def ask(client: TestClient, route: str = CHAT, **fields: Any) -> Any:
    answer = client.post(route, json={**QUESTION, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(client: TestClient, **fields: Any) -> list[Any]:
    with client.stream("POST", CHAT, json={**QUESTION, "stream": True, **fields}) as answer:
        lines = [line for line in answer.iter_lines() if line]
    assert lines[-1] == "data: [DONE]" and answer.headers["content-type"].startswith("text/event-stream")
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_usage_counts_a_prompt_once(client: TestClient) -> None:
    for _ in range(2):
        usage = ask(client, n=3)["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] < usage["prompt_tokens"]


def test_a_chat(client: TestClient) -> None:
    found = ask(client)
    choice = found["choices"][0]
    assert choice["message"]["content"] == SUM and choice["finish_reason"] == "stop"
    assert found["usage"]["total_tokens"] == found["usage"]["prompt_tokens"] + found["usage"]["completion_tokens"]
    streamed = events(client, stream_options={"include_usage": True})
    assert "".join(e["choices"][0]["delta"].get("content", "") for e in streamed if e["choices"]) == SUM
    assert streamed[-1]["usage"] == {**found["usage"], "prompt_tokens_details": {"cached_tokens": 10}}
    stopped = ask(client, stop=": Run", n=2)["choices"]
    assert [c["message"]["content"] for c in stopped] == ["mlc.cumsum"] * 2


def test_completions_and_models(client: TestClient) -> None:
    found = client.post("/v1/completions", json={"model": "assistant", "prompt": ["The", [5, 6]], "max_tokens": 2})
    assert [c["finish_reason"] for c in found.json()["choices"]] == ["length", "length"]
    assert [m["id"] for m in client.get("/v1/models").json()["data"]] == ["assistant"]


@pytest.mark.parametrize("fields, param", [
    ({"messages": []}, "messages"), ({"frequency_penalty": 9}, "frequency_penalty"), ({"n": 99}, "n"),
    ({"stop": ["", "x"]}, "stop"), ({"logit_bias": {"x": 1}}, "logit_bias"), ({"shape": 1}, "shape"),
    ({"audio": {}}, "audio"), ({"stream_options": {}}, "stream_options"), ({"top_logprobs": 2}, "top_logprobs"),
    ({"messages": [{"role": "king", "content": ""}]}, "messages.0.role"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content.0.type"),
    ({"response_format": {"type": "xml"}}, "response_format.type"), ({"tool_choice": "required"}, "tool_choice"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools")])
def test_fields_are_refused_by_name(client: TestClient, fields: dict[str, Any], param: str) -> None:
    answer = client.post(CHAT, json={**QUESTION, **fields})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param, answer.text


def test_other_errors(client: TestClient) -> None:
    assert client.post(CHAT, content=b"{").json()["error"]["type"] == "invalid_request_error"
    assert client.post(CHAT, content=b" " * (1 << 17)).status_code == 413
    assert client.post(CHAT, json={**QUESTION, "model": "x"}).json()["error"]["code"] == "model_not_found"
    many = client.post("/v1/completions", json={"model": "assistant", "prompt": ["x"] * 64, "n": 2})
    assert many.status_code == 400 and many.json()["error"]["param"] == "n"    # more than ever wait
    assert client.get(CHAT).status_code == 405 and client.get("/v1/x").status_code == 404
    assert client.post("/v2/models/assistant/infer", json={}).status_code == 400
    wrong = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array", "maxContains": 1}}}
    answer = client.post(CHAT, json={**QUESTION, "response_format": wrong})
    assert answer.status_code == 400 and "maxContains is not supported" in answer.json()["error"]["message"]


def test_a_full_queue(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = client.app.state.registry.find("assistant")   # type: ignore[attr-defined]
    monkeypatch.setattr(worker.scheduler, "limit", 8)
    many = client.post("/v1/completions", json={"model": "assistant", "prompt": ["x"] * 64})
    assert many.status_code == 429 and many.headers["Retry-After"] == "1"     # all are taken or none


def test_memory_that_is_lost_and_cannot_be_renewed(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request that meets a failure ends with an error; the first one that meets none is answered."""
    worker = client.app.state.registry.find("assistant")   # type: ignore[attr-defined]

    def fail() -> bool:
        if worker.scheduler.running or worker.scheduler.waiting:
            raise MemoryError
        return False

    for broken in ("step", "clear", "clear"):
        with monkeypatch.context() as patch:
            patch.setattr(worker.scheduler, broken, fail)
            assert client.post(CHAT, json=QUESTION).status_code == 503, broken
    assert ask(client)["choices"][0]["message"]["content"] == SUM


def test_functions(client: TestClient) -> None:
    said = client.get("/v2/models/f").json()
    assert [x["shape"] for x in said["inputs"]] == [[-1, 2], [-1]]
    names = [x["name"] for x in said["inputs"]]
    x, y = np.array([[1, 2]], np.float32), np.array([7], np.int64)
    inputs: list[dict[str, Any]] = [{"name": names[0], "shape": [1, 2], "datatype": "FP32", "data": [1, 2]},
                                    {"name": names[1], "shape": [1], "datatype": "INT64", "data": [7]}]
    found = client.post("/v2/models/f/infer", json={"inputs": inputs}).json()["outputs"]
    assert [o["data"] for o in found] == [[2.0, 4.0], [7]]
    for own, size in zip(inputs, (x.nbytes, y.nbytes)):
        del own["data"]
        own["parameters"] = {"binary_data_size": size}
    outputs = [{"name": "output0", "parameters": {"binary_data": True}}]
    head = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    answer = client.post("/v2/models/f/versions/1/infer", content=head + x.tobytes() + y.tobytes(),
                         headers={"Inference-Header-Content-Length": str(len(head))})
    size = int(answer.headers["Inference-Header-Content-Length"])
    assert np.frombuffer(answer.content[size:], np.float32).tolist() == [2, 4]
    for change, message in (({"shape": [1, 3]}, "has the shape"), ({"datatype": "FP64"}, "is of FP64"),
                            ({"name": "z"}, "there is no input"), ({"parameters": {"binary_data_size": 3}}, "bytes")):
        broken = json.dumps({"inputs": [{**inputs[0], **change}, inputs[1]]}).encode()
        answer = client.post("/v2/models/f/infer", content=broken + x.tobytes() + y.tobytes(),
                             headers={"Inference-Header-Content-Length": str(len(broken))})
        assert answer.status_code == 400 and message in answer.json()["error"]


def test_metrics_and_replacement(client: TestClient) -> None:
    before = client.get("/metrics").text
    assert 'mlc_generated_tokens_total{model="assistant"}' in before and 'mlc_model_ready{model="f"} 1.0' in before
    with client.stream("POST", CHAT, json={**QUESTION, "stream": True}) as answer:
        assert client.post("/v2/repository/models/assistant/load").status_code == 200
        assert "[DONE]" in answer.read().decode()
    assert ask(client)["choices"][0]["message"]["content"] == SUM
    assert client.post("/v2/repository/models/f/unload").status_code == 200
    assert client.get("/v2/models/f").status_code == 404
    assert client.post("/v2/repository/models/f/load", json={}).status_code == 200


@pytest.mark.parametrize("headers", [{"origin": "http://evil.example"}, {"host": "evil.example:8000"}, {"host": ""}])
def test_pages_of_other_sites(client: TestClient, headers: dict[str, str]) -> None:
    """A browser says where a page is from; by another name of the server, any site can be this one."""
    assert client.post("/v2/repository/models/assistant/unload", headers=headers).status_code == 403
    assert client.get("/v1/models", headers={"origin": "http://localhost:8000"}).status_code == 200


def test_numbers_of_options_are_in_range(capsys: pytest.CaptureFixture[str]) -> None:
    from mlc.tools.cli import main
    for option in ("--port=70000", "--grace=nan", "--timeout=inf", "--timeout=-1"):
        assert main(["serve", ASSISTANT, option]) == 2
        assert option.split("=")[1] in capsys.readouterr().err


def test_tokens_of_callers() -> None:
    with TestClient(application(Registry({}, Limits()), "secret")) as client:
        assert client.get("/v1/models").status_code == 401 and client.get("/").status_code == 200
        for given, status in (("Bearer wrong", 401), ("Bearer secret", 200), ("Basic secret", 401)):
            assert client.get("/v1/models", headers={"Authorization": given}).status_code == status


@pytest.mark.parametrize("key", ["voil\u00e0", "\u00c5"])
def test_tokens_that_end_with_a_byte_that_is_a_space_in_latin_1(key: str) -> None:
    with TestClient(application(Registry({}, Limits()), key)) as client:
        assert client.get("/v1/models", headers={b"Authorization": b"Bearer " + key.encode()}).status_code == 200


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
    "x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}}}


def test_calls_of_tools() -> None:
    said = {"messages": QUESTION["messages"], "tools": [TOOL]}
    auto = read_conversation(Fields(said))
    text, calls = auto.calls('I ask.<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>')
    assert text == "I ask." and calls[0]["function"] == {"name": "f", "arguments": '{"x": 1}'}
    for other in ('{"name": "g", "arguments": {}}', "f", '{"name": "f"', "<tool_call>{}</tool_call>", '{"name": [1]}'):
        assert auto.calls(other) == (other, [])
    assert auto.calls('{"name": "f", "parameters": {}}')[1] and auto.constraint is None
    auto.calls('{"name": "f", "parameters": {"x": "\\ud800"}}')[1][0]["function"]["arguments"].encode()
    anything = {"type": "function", "function": {"name": "f", "parameters": None}}
    assert read_conversation(Fields({**said, "tools": [anything], "tool_choice": "required"})).constraint is not None
    named = read_conversation(Fields({**said, "tool_choice": {"type": "function", "function": {"name": "f"}}}))
    assert named.constraint is not None and read_conversation(Fields({**said, "tool_choice": "none"})).tools == []
    automaton = named.constraint.automaton(Vocabulary([bytes([i]) for i in range(256)]))
    state = automaton.start
    for byte in b'{"name":"f","arguments":{"x": 12}}':
        state = automaton.next(state, byte)
    assert automaton.final(state)


def test_calls_get_a_turn_each_and_are_answered_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = LanguageWorker("assistant", ASSISTANT, Limits(warm_up=False, slots=1, queue=4))
    seen = list[str]()

    async def ask() -> list[Any]:
        worker.start()
        while not worker.ready:
            await asyncio.sleep(0.02)
        monkeypatch.setattr(worker.scheduler, "step", lambda: seen.append("step"))
        calls = [asyncio.create_task(worker.call(*[partial(seen.append, "call")] * 2)) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="4 requests wait"):
            await worker.call(print)
        worker.stop()
        return list(await asyncio.gather(*calls))

    assert asyncio.run(ask()) == [[None, None]] * 4
    worker.join(10)
    at = [i for i, what in enumerate(seen) if what == "call"]
    assert worker.state == "stopped" and len(at) == 8 and all(b - a > 1 for a, b in zip(at, at[1:]))


def test_data_is_not_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mlc.save({"w": mlc.ones(2)}, tmp_path / "w.mlc")
    assert main(["serve", str(tmp_path / "w.mlc"), "--port", "0"]) == 1 and "MLC0921" in capsys.readouterr().err


@pytest.mark.parametrize("words, code", [
    ([ASSISTANT, "--host", "0.0.0.0"], "MLC0391"), (["no-such-folder"], "MLC0392"),
    ([ASSISTANT, ASSISTANT], "MLC0391"), (["a b=" + ASSISTANT], "MLC0391")])
def test_errors_of_the_command(words: list[str], code: str, capsys: pytest.CaptureFixture[str],
                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLC_API_KEY", raising=False)
    assert main(["serve", *words]) == 2 and code in capsys.readouterr().err


@pytest.mark.slow
def test_a_file_a_draft_and_a_small_cache(tmp_path: Path) -> None:
    assert main(["quantize", ASSISTANT, "-o", str(tmp_path / "assistant.gguf"), "--type=q8_0"]) == 0
    paths = named([str(tmp_path / "assistant.gguf")])
    limits = Limits(slots=2, warm_up=False, draft="lookup", cache_dtype="int8", integers=True)
    with TestClient(application(Registry(paths, limits)), "http://localhost:8000") as client:
        while client.get("/v2/health/ready").status_code != 200:
            time.sleep(0.02)
        assert ask(client)["choices"][0]["message"]["content"] == SUM
        assert 'mlc_accepted_tokens_total{model="assistant"} 0' not in client.get("/metrics").text


@pytest.mark.slow
def test_formats_and_log_probabilities(client: TestClient) -> None:
    schema = {"type": "object", "properties": {"axis": {"type": "integer"}}, "required": ["axis"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert "axis" in json.loads(ask(client, response_format=form)["choices"][0]["message"]["content"])
    given = {"model": "assistant", "prompt": "The", "max_tokens": 6, "logprobs": 0}
    whole = client.post("/v1/completions", json=given).json()["choices"][0]["logprobs"]["text_offset"]
    lines = client.post("/v1/completions", json={**given, "stream": True}).text.split("\n\n")
    streamed = [json.loads(line.removeprefix("data: "))["choices"][0]["logprobs"] for line in lines[:-2]]
    assert [x for part in streamed if part for x in part["text_offset"]] == whole and len(set(whole)) == 6
    found = ask(client, logprobs=True, top_logprobs=2, max_tokens=3, seed=1, temperature=1.0)
    assert [len(t["top_logprobs"]) for t in found["choices"][0]["logprobs"]["content"]] == [2, 2, 2]
    vector = client.post("/v1/embeddings", json={"model": "assistant", "input": "a"}).json()
    assert np.linalg.norm(vector["data"][0]["embedding"]) == pytest.approx(1.0, abs=1e-5)


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    folder = write_folder({**CASES["llama"], "num_hidden_layers": 1}, tmp_path)
    registry = Registry({"bad": str(folder)}, Limits(slots=1, warm_up=False))
    with TestClient(application(registry), "http://localhost:8000") as client:
        while client.get("/v2/health/ready").status_code != 200:
            time.sleep(0.02)
        worker: Any = registry.find("bad")
        with mlc.no_grad():
            worker.model.module.get_parameter("model.embed_tokens.weight")[7] = float("nan")
        given = {"model": "bad", "max_tokens": 2}
        for form in ("float", "base64"):
            said = client.post("/v1/embeddings", json={"model": "bad", "input": [7], "encoding_format": form})
            assert (said.status_code, said.json()["error"]["code"]) == (500, "MLC0924")
        said = client.post("/v1/completions", json={**given, "prompt": [7]})
        assert (said.status_code, said.json()["error"]["code"]) == (500, "MLC0924")
        assert "MLC0924" in client.post("/v1/completions", json={**given, "prompt": [7], "stream": True}).text
        assert client.post("/v1/completions", json={**given, "prompt": [8]}).status_code == 200
