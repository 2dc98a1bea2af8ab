"""mlc serve: models over HTTP, by OpenAI's routes and the Open Inference Protocol."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from pathlib import Path

from mlc.ir.diag import UserError
from mlc.tools import report
from mlc.tools.exit_status import OK, USAGE

EXAMPLES = """examples:
  mlc serve examples/assistant
  mlc serve assistant=examples/assistant digits.mlc --port 8080
  mlc serve models/qwen --slots 16 --context 8192 --host 0.0.0.0 --api-key "$TOKEN"

then:
  curl localhost:8000/v1/chat/completions -d '{"model": "assistant", "messages":
    [{"role": "user", "content": "What does mlc.cumsum do?"}]}'
  curl localhost:8000/v2/models/digits; curl localhost:8000/metrics; a browser: http://localhost:8000

SIGTERM and Ctrl-C let the answers in progress end, for --grace seconds.
"""
KEY = "MLC_API_KEY"


def parser() -> argparse.ArgumentParser:
    p = report.Parser("serve", "Serve models over HTTP: language models by OpenAI's routes, compiled functions by the "
                      "Open Inference Protocol.", EXAMPLES)
    add = p.add_argument
    add("models", metavar="[NAME=]MODEL", nargs="+", help="a folder of a language model or its GGUF file, a file of "
        "mlc.save, or a module of mlc compile -o NAME.so; it is named after its file unless a name is given")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen at (default 127.0.0.1)")
    add("--port", type=report.integer(0, most=65535), default=8000, metavar="N",
        help="default 8000; 0 for any that is free")
    add("--api-key", metavar="TOKEN", help=f"token that requests have to bear (default: ${KEY})")
    add("--slots", type=report.integer(1), default=8, metavar="N", help="requests that run at once (default 8)")
    add("--queue", type=report.integer(0), default=64, metavar="N", help="requests that may wait (default 64)")
    add("--context", type=report.integer(2), metavar="N", help="tokens of a request, the answer included (default: "
        "those that the model sees, 4096 at most)")
    add("--cache-tokens", type=report.integer(2), metavar="N", help="tokens that the cache has room for, of all "
        "requests together; one that does not fit beside the others waits, and none has more (default: --slots times "
        "--context)")
    add("--max-tokens", type=report.integer(1), default=4096, metavar="N", help="tokens of an answer (default 4096)")
    add("--timeout", type=report.seconds, default=600.0, metavar="SECONDS",
        help="longest time of an answer (default 600)")
    add("--max-body", type=report.integer(1), default=8 << 20, metavar="BYTES",
        help="size of a request (default 8 MiB)")
    add("--cache-dtype", choices=("float32", "int8"), default="float32", help="int8 keeps keys and values in a "
        "fourth of the memory, a little less exact")
    add("--integer-products", action="store_true", help="generate with products of integers where weights are "
        "quantised: faster, a little less exact")
    add("--draft", metavar="MODEL", help="guess tokens that the models then verify, with the same answers: a smaller "
        "model of the same vocabulary, or lookup for what stood behind the same tokens before")
    add("--no-warm-up", action="store_true", help="compile a step when a request first needs it, not at the start")
    add("--grace", type=report.seconds, default=30.0, metavar="SECONDS",
        help="time for answers in progress at the end (default 30)")
    return p


def main(options: argparse.Namespace) -> int:
    try:
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UserError(f"the package {error.name}, which mlc serve needs, is not installed", code="MLC0920",
                        hint="pip install 'mlc[serve]'") from None
    from mlc.tools.serve.guard import is_local
    from mlc.tools.serve.running import run
    from mlc.tools.serve.worker import Limits
    key = options.api_key or os.environ.get(KEY) or None
    if key is None and not is_local(options.host):
        raise report.usage_error(f"{options.host} can be reached from elsewhere, and there is no token",
                                 f"use --api-key or ${KEY}", "MLC0391")
    paths = named(options.models)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
    logging.getLogger("mlc.serve").setLevel(logging.INFO)
    limits = Limits(options.slots, options.queue, options.context, options.max_tokens, options.timeout,
                    options.max_body, not options.no_warm_up, options.draft, options.cache_dtype,
                    options.integer_products, options.cache_tokens)
    return OK if run(paths, limits, key, options.host, options.port, options.grace) else USAGE


def named(models: list[str]) -> dict[str, str]:
    """The path of each model by its name."""
    paths: dict[str, str] = {}
    for word in models:
        name, equals, path = word.partition("=")
        if not equals:
            name, path = Path(word).resolve().name, word
            for suffix in (".mlc", ".so", ".gguf"):
                name = name.removesuffix(suffix)
        if not re.fullmatch(r"[\w.:@-]+", name):
            raise report.usage_error(f"{name!r} is no name of a model", "give one: NAME=PATH", "MLC0391")
        if not Path(path).exists():
            raise report.usage_error(f"{path} does not exist", "give a folder of a model, or a file", "MLC0392")
        if name in paths:
            raise report.usage_error(f"two models are named {name}", "give names: NAME=PATH", "MLC0391")
        paths[name] = path
    return paths
