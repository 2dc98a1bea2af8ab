"""The fields of OpenAI's requests that say how an answer is generated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mlc.ir.diag import UserError
from mlc.models.constraints import Constraint
from mlc.models.language_model import LanguageModel
from mlc.tools.serve.errors import wrong
from mlc.tools.serve.fields import Fields

MOST_ANSWERS = 16
MOST_STOPS = 16
UNSUPPORTED = {
    "audio": "answers are texts", "modalities": "answers are texts", "prediction": "there is no predicted output",
    "web_search_options": "the server does not search", "store": "nothing is stored", "metadata": "nothing is stored",
    "service_tier": "there is one tier", "reasoning_effort": "models do not reason apart from the answer",
    "functions": "use tools", "function_call": "use tool_choice", "verbosity": "use max_tokens"}


@dataclass
class Generation:
    """How the answers to a request are generated.

    options        of `LanguageModel.requests`
    count          of answers
    stream         whether they are sent piece by piece
    usage          whether a stream ends with the numbers of tokens
    logprobs       whether log-probabilities are reported
    top            how many likely tokens are reported for each
    """

    options: dict[str, Any] = field(default_factory=dict)
    count: int = 1
    stream: bool = False
    usage: bool = False
    logprobs: bool = False
    top: int = 0


def read_generation(fields: Fields, default_limit: int | None = None) -> Generation:
    """The fields that chats and completions have in common."""
    fields.refuse(UNSUPPORTED)
    options: dict[str, Any] = {}
    for name, low, high in (("temperature", 0.0, 2.0), ("top_p", 0.0, 1.0), ("min_p", 0.0, 1.0),
                            ("repetition_penalty", 0.01, 100.0), ("frequency_penalty", -2.0, 2.0),
                            ("presence_penalty", -2.0, 2.0)):
        if (value := fields.number(name, low, high)) is not None:
            options[name] = value
    if (top_k := fields.integer("top_k", 0, 1 << 30)) is not None:
        options["top_k"] = top_k
    if (seed := fields.integer("seed", -(2 ** 63), 2 ** 63 - 1)) is not None:
        options["seed"] = seed % 2 ** 64
    limit = fields.integer("max_tokens", 1, 1 << 30)
    limit = fields.integer("max_completion_tokens", 1, 1 << 30) or limit or default_limit
    if limit is not None:
        options["max_tokens"] = limit
    options["stop"] = _stops(fields)
    options["logit_bias"] = _bias(fields)
    fields.text("user", "")                                # says who asks, which changes nothing
    stream = fields.flag("stream")
    usage = False
    if fields.has("stream_options"):
        inner = fields.inner("stream_options")
        usage = inner.flag("include_usage")
        inner.check_all_read()
        if not stream:
            raise wrong("stream_options", "stream_options goes with stream")
    return Generation(options, fields.integer("n", 1, MOST_ANSWERS) or 1, stream, usage)


def _stops(fields: Fields) -> list[str]:
    value = fields.any("stop")
    stops = [value] if isinstance(value, str) else value if value is not None else []
    if not isinstance(stops, list) or len(stops) > MOST_STOPS or any(not isinstance(s, str) or not s for s in stops):
        raise wrong("stop", f"stop is not a text, or a list of at most {MOST_STOPS} texts, none of them empty")
    return stops


def _bias(fields: Fields) -> dict[int, float]:
    value = fields.any("logit_bias")
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > 1024:
        raise wrong("logit_bias", "logit_bias is not an object of at most 1024 tokens and numbers")
    for token, bias in value.items():
        if not re.fullmatch(r"[0-9]{1,9}", str(token)) or isinstance(bias, bool) or not (
                isinstance(bias, int | float) and abs(bias) <= 100):
            raise wrong("logit_bias", f"logit_bias has {str(token)[:20]!r}: tokens are numbers, and a bias is one from "
                        "-100 to 100")
    return {int(token): float(bias) for token, bias in value.items()}


def read_format(fields: Fields) -> Constraint | None:
    """The constraint that `response_format` asks for."""
    if not fields.has("response_format"):
        return None
    inner = fields.inner("response_format")
    kind = inner.one_of("type", "text", "json_object", "json_schema")
    schema = None
    if kind == "json_schema":
        described = inner.inner("json_schema")
        described.text("name")
        described.text("description", "")
        described.flag("strict")                           # a schema is always kept
        schema = described.any("schema")
        described.check_all_read()
        if schema is None:
            raise wrong("response_format.json_schema.schema", "response_format.json_schema.schema is missing")
    inner.check_all_read()
    if kind == "json_object":
        return Constraint.json()
    return Constraint.json_schema(schema) if kind == "json_schema" else None


def token_bytes(model: LanguageModel, token: int) -> bytes:
    """The bytes that a token adds to a text, with its space; those of its name if it is a special one."""
    assert model.tokenizer is not None
    try:
        found = model.vocabulary.of_token(token, False)
    except UserError:                                      # the tokenizer's tokens are not known as bytes
        found = b""
    return found or str(model.tokenizer.rules.decode([token], skip_special_tokens=False)).encode()


def token_text(model: LanguageModel, token: int) -> str:
    """A token as a text, in which a part of a character is U+FFFD."""
    return token_bytes(model, token).decode("utf-8", "replace")
