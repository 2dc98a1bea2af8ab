"""Tokens a second of `mlc serve` beside those of llama.cpp's server: the same GGUF file, as many threads and slots.

    python -m tests.peers.serving_speed --llama PATH/llama-server [--clients 16] [--seconds 30] [--type q8_0]

llama-server is built from the sources of llama.cpp (`cmake --build build --target llama-server`). The weights are
random, those of tests.peers.llama_cpp. Clients stream answers to prompts of random tokens, one after the other, for a
time from each server in turns; a token counts when it arrives.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import mlc
from mlc.models.gguf.writing import write_gguf
from tests.peers.llama_cpp import SHAPES, VOCABULARY, content

PROMPT, ANSWER = 64, 64
Start = Callable[[Path, int, int], list[str]]


def mlc_server(model: Path, port: int, slots: int) -> list[str]:
    """The command that starts mlc's server."""
    return [sys.executable, "-m", "mlc.tools.cli", "serve", f"m={model}", "--port", str(port), "--slots", str(slots),
            "--context", str(PROMPT + ANSWER), "--integer-products"]


def llama_server(program: str) -> Start:
    """The command that starts llama.cpp's."""
    def start(model: Path, port: int, slots: int) -> list[str]:
        threads = str(mlc.get_num_threads())
        return [program, "-m", str(model), "--port", str(port), "--parallel", str(slots), "-c",
                str((PROMPT + ANSWER) * slots), "-t", threads, "-tb", threads]
    return start


@contextmanager
def running(start: Start, model: Path, slots: int) -> Iterator[str]:
    """A server, while the context lasts; its address."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    process = subprocess.Popen(start(model, port, slots), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            assert process.poll() is None, f"{start(model, port, slots)[0]} has ended"
            try:
                if httpx.post(f"{url}/v1/completions", timeout=600, json={
                        "model": "m", "prompt": [5, 6], "max_tokens": 1}).status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.3)
        yield url
    finally:
        process.terminate()
        process.wait()


async def _client(client: httpx.AsyncClient, number: int, until: float, found: list[int]) -> None:
    draw = np.random.default_rng(number)
    while time.perf_counter() < until:
        body: dict[str, Any] = {"model": "m", "prompt": draw.integers(5, VOCABULARY, PROMPT).tolist(), "stream": True,
                                "max_tokens": ANSWER, "temperature": 0.0}
        async with client.stream("POST", "/v1/completions", json=body) as answer:
            assert answer.status_code == 200, (await answer.aread())[:300]
            async for line in answer.aiter_lines():
                if re.match(r"data: \{", line) and json.loads(line[6:])["choices"] and time.perf_counter() < until:
                    found[0] += 1


async def load(url: str, clients: int, seconds: float) -> float:
    """Tokens a second, after a warm-up of a few."""
    async with httpx.AsyncClient(base_url=url, timeout=600) as client:
        await asyncio.gather(*(_client(client, i, time.perf_counter() + 3, [0]) for i in range(clients)))
        found, start = [0], time.perf_counter()
        await asyncio.gather(*(_client(client, 100 + i, start + seconds, found) for i in range(clients)))
    return found[0] / seconds


def main() -> None:
    """Print the rates of both, in turns."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--llama", required=True, help="llama-server")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--type", default="q8_0")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.gguf"
        write_gguf(model, content(SHAPES["small"]), options.type)
        servers: dict[str, Start] = {"mlc": mlc_server, "llama.cpp": llama_server(options.llama)}
        rates: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(options.rounds):
            for name, start in servers.items():
                with running(start, model, options.clients) as url:
                    rates[name].append(asyncio.run(load(url, options.clients, options.seconds)))
    best = {name: max(found) for name, found in rates.items()}
    print(f"{options.type}, {options.clients} clients, {mlc.get_num_threads()} threads, tokens a second: " + ", ".join(
        f"{name} {rate:.0f}" for name, rate in best.items()) + f"; mlc {best['mlc'] / best['llama.cpp']:.2f} times")


if __name__ == "__main__":
    main()
