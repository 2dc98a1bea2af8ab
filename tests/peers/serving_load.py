"""mlc serve under load: many clients that stream, clients that go away, bodies that make no sense, and its end.

    python -m tests.peers.serving_load --seconds 60 [--clients 64] [--slots 16]

It starts a server of examples/assistant in a process of its own. Each answer is compared with the one that its request
gets alone, from before the load.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

ASSISTANT = Path(__file__).parent.parent.parent / "examples" / "assistant"
CHAT = "/v1/chat/completions"
NAMES = ["cumsum", "exp", "matmul", "softmax", "where", "gather", "sort", "arange", "mean", "einsum"]


def requests(count: int) -> list[dict[str, Any]]:
    """Requests of all kinds."""
    options: list[dict[str, Any]] = [
        {}, {"temperature": 1.0}, {"temperature": 0.9, "top_p": 0.9, "presence_penalty": 0.3}, {"stop": ["."]},
        {"temperature": 1.5, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
            "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string", "maxLength": 9}},
            "required": ["a", "b"]}}}}, {"logprobs": True, "top_logprobs": 2}]
    return [{"model": "assistant", "stream": True, "seed": i, "max_tokens": 20 + i % 50,
             "messages": [{"role": "user", "content": f"What does mlc.{NAMES[i % len(NAMES)]} do?"}],
             **options[i % len(options)]} for i in range(count)]


class Server:
    """The server, in a process of its own."""

    def __init__(self, slots: int, queue: int) -> None:
        words = [sys.executable, "-m", "mlc.tools.cli", "serve", str(ASSISTANT), "--port", "0", "--slots", str(slots),
                 "--queue", str(queue), "--grace", "20"]
        self.log = open("/dev/shm/serving_load.log", "w+")
        self.process = subprocess.Popen(words, stderr=self.log)
        while "is ready" not in (text := Path(self.log.name).read_text()):
            assert self.process.poll() is None, text
            time.sleep(0.2)
        found = re.search(r"http://\S+", text)
        assert found is not None
        self.url = found[0]

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1e3  # type: ignore[index]


async def streamed(client: httpx.AsyncClient, body: dict[str, Any], after: int | None = None) -> str | None:
    """The text of an answer, with its log-probabilities; None if the client goes away after some events."""
    while True:
        out, count = [], 0
        async with client.stream("POST", CHAT, json=body) as answer:
            if answer.status_code == 429:
                await answer.aread()
                await asyncio.sleep(0.2)
                continue
            assert answer.status_code == 200, (await answer.aread()).decode()
            async for line in answer.aiter_lines():
                if after is not None and count >= after:
                    return None
                count += 1
                if line.startswith("data: {"):
                    value = json.loads(line[6:])
                    assert "error" not in value, value
                    out += [json.dumps([c["delta"], c["logprobs"], c["finish_reason"]]) for c in value["choices"]]
                elif line == "data: [DONE]":
                    return "\n".join(out)
        raise AssertionError(f"the stream ended without an end: {out[-2:]}")


def client_of(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=120.0, limits=httpx.Limits(max_connections=300))


async def load(server: Server, clients: int, seconds: float) -> None:
    """Clients that stream all the time."""
    bodies = requests(60)
    async with client_of(server.url) as client:
        alone = [await streamed(client, b) for b in bodies]
        memory, counts, ends, firsts = [server.memory()], [0] * clients, time.monotonic() + seconds, list[float]()

        async def run(number: int) -> None:
            rng = random.Random(number)
            while time.monotonic() < ends:
                i = rng.randrange(len(bodies))
                started = time.monotonic()
                assert await streamed(client, bodies[i]) == alone[i], f"request {i} has another answer than alone"
                firsts.append(time.monotonic() - started)
                counts[number] += 1

        async def watch() -> None:
            while time.monotonic() < ends:
                await asyncio.sleep(seconds / 10)
                memory.append(server.memory())

        before = await tokens(client)
        await asyncio.gather(watch(), *(run(i) for i in range(clients)))
        rate = (await tokens(client) - before) / seconds
    print(f"{clients} clients, {seconds:.0f} s: {sum(counts)} answers, all those of each alone; {rate:.0f} tokens/s; "
          f"an answer took {sorted(firsts)[len(firsts) // 2]:.2f} s (median), {max(firsts):.2f} s (longest)")
    print("memory in MB:", " ".join(f"{m:.0f}" for m in memory), flush=True)


async def tokens(client: httpx.AsyncClient) -> float:
    text = (await client.get("/metrics")).text
    return float(re.search(r"mlc_generated_tokens_total\{[^}]*\} (\S+)", text)[1])  # type: ignore[index]


async def disconnects(server: Server, count: int) -> None:
    """Clients that go away at any time; afterwards nothing runs, and the server answers."""
    async with client_of(server.url) as client:
        rng = random.Random(1)
        bodies = requests(count)
        await asyncio.gather(*(streamed(client, {**b, "max_tokens": 200}, rng.randrange(30)) for b in bodies))
        for _ in range(100):
            text = (await client.get("/metrics")).text
            if 'mlc_requests_running{model="assistant"} 0.0' in text:
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError("requests of clients that are gone run on")
        ended = re.findall(r'mlc_finished_total\{model="assistant",reason="(\w+)"\} (\S+)', text)
        assert await streamed(client, bodies[0])
    print(f"{count} clients that go away: nothing runs on; ends so far: {dict(ended)}", flush=True)


def broken(rng: random.Random) -> tuple[str, bytes]:
    """A body that is not as it should be, and where it goes."""
    good = json.dumps(requests(1)[0] | {"stream": False, "max_tokens": 2}).encode()
    route = rng.choice([CHAT, "/v1/completions", "/v1/embeddings", "/v2/models/assistant/infer"])
    kind = rng.randrange(6)
    if kind == 0:
        return route, good[: rng.randrange(len(good))]
    if kind == 1:
        return route, bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
    if kind == 2:
        return route, b"[" * rng.randrange(1, 100_000)
    fields = json.loads(good)
    odd: Any = rng.choice([None, -1, 1e400, "x" * 5000, [], {}, [[]], {"a": {}}, True, 2 ** 70, "\ud800", [None], -0.0])
    if kind == 3:                                          # what is wrong in each of the fields
        fields[rng.choice(sorted(fields))] = rng.choice(["\ud800", [], {}, [[]], {"a": {}}, 2 ** 70, 1e400, "x" * 5000])
    elif kind == 4:
        fields["messages"] = [{"role": "user", "content": odd if not isinstance(odd, str) else 1}]
    else:
        fields["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": {
            "type": "array", "items": odd if not isinstance(odd, bool | dict) else 1}}}
    return route, json.dumps(fields).encode()


async def malformed(server: Server, count: int) -> None:
    """Bodies that make no sense: each is refused with a reason."""
    statuses: dict[int, int] = {}
    async with client_of(server.url) as client:
        rng, gate = random.Random(2), asyncio.Semaphore(16)

        async def send(route: str, body: bytes) -> None:
            async with gate:
                answer = await client.post(route, content=body, timeout=20.0)
            assert 400 <= answer.status_code < 500 and answer.json()["error"], (route, body[:300], answer.text[:300])
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1

        await asyncio.gather(*(send(*broken(rng)) for _ in range(count)))
    print(f"{count} bodies that make no sense: {statuses}", flush=True)


async def terminated(server: Server, clients: int) -> None:
    """SIGTERM in the middle: streams end whole, and so does the server."""
    async with client_of(server.url) as client:
        running = [asyncio.ensure_future(streamed(client, b)) for b in requests(clients)]
        await asyncio.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        found = await asyncio.gather(*running, return_exceptions=True)
    status = await asyncio.to_thread(server.process.wait, 60)
    whole, refused = sum(isinstance(f, str) for f in found), [f for f in found if not isinstance(f, str)]
    assert all("503" in str(f) or isinstance(f, httpx.ConnectError) or "stopping" in str(f) for f in refused), refused
    print(f"SIGTERM: {whole} of {clients} streams ended whole, {len(refused)} were refused; exit status {status}")
    assert status == 0


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--clients", type=int, default=64)
    p.add_argument("--slots", type=int, default=16)
    p.add_argument("--seconds", type=float, default=60.0)
    options = p.parse_args()
    server = Server(options.slots, 64)
    try:
        asyncio.run(load(server, options.clients, options.seconds))
        asyncio.run(disconnects(server, 200))
        asyncio.run(malformed(server, 2000))
        asyncio.run(terminated(server, 24))
    finally:
        server.process.kill()


if __name__ == "__main__":
    main()
