"""Answers in the forms of OpenAI's API: chats and completions, at once or as a stream of events."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlc.models import Piece
from mlc.models.language_model import LanguageModel
from mlc.tools.serve.conversations import Conversation
from mlc.tools.serve.errors import ApiError, of_mlc
from mlc.tools.serve.generation_fields import Generation, token_bytes, token_text
from mlc.tools.serve.worker import Stream

REASONS = {"stop": "stop", "length": "length"}


@dataclass
class Choice:
    """One answer, as far as it is there."""

    text: str = ""
    tokens: list[Piece] = field(default_factory=list)
    reason: str = ""
    offset: int = 0                                        # in the texts of its tokens, of what is reported next


class Writer:
    """Writes the answers to a request.

    chat  the conversation; None for completions
    """

    def __init__(self, model: LanguageModel, name: str, generation: Generation, prompts: Sequence[Sequence[int]],
                 stream: Stream, chat: Conversation | None) -> None:
        self.model, self.name, self.generation, self.prompts = model, name, generation, prompts
        self.stream, self.chat = stream, chat
        self.choices = [Choice() for _ in range(stream.count)]
        self.created = int(time.time())
        self.id = ("chatcmpl-" if chat else "cmpl-") + secrets.token_hex(14)

    def add(self, number: int, piece: Piece) -> None:
        """Take a piece; one that ended for a reason that OpenAI does not have is an error."""
        choice = self.choices[number]
        choice.text += piece.text
        if piece.token is not None:
            choice.tokens.append(piece)
        if piece.finish_reason is not None:
            choice.reason = piece.finish_reason
            if piece.finish_reason == "timeout":
                raise ApiError(408, "the answer took too long", None, "timeout")
            if piece.finish_reason not in REASONS:
                if piece.finish_reason == "constraint":
                    raise ApiError(400, "no token of the model goes on with an answer of this format",
                                   "response_format")
                if (error := self.stream.tickets[number].error) is not None:
                    raise of_mlc(error)
                raise ApiError(503, f"the answer ends early: {piece.finish_reason}", None, piece.finish_reason)

    # -- whole answers ------------------------------------------------------------------------------------------------
    def body(self) -> dict[str, Any]:
        """The response with all answers."""
        kind = "chat.completion" if self.chat else "text_completion"
        return {**self._head(kind), "choices": [self._whole(i, c) for i, c in enumerate(self.choices)],
                "usage": self.usage()}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.name}

    def _whole(self, i: int, choice: Choice) -> dict[str, Any]:
        logprobs = self._logprobs(choice.tokens, choice)
        if self.chat is None:
            return {"index": i, "text": choice.text, "logprobs": logprobs, "finish_reason": choice.reason}
        text, calls = self.chat.calls(choice.text)
        message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None,
                                   "refusal": None}
        if calls:
            message["tool_calls"] = calls
        return {"index": i, "message": message, "logprobs": logprobs,
                "finish_reason": "tool_calls" if calls else choice.reason}

    def usage(self) -> dict[str, Any]:
        """The numbers of tokens."""
        prompt, written = sum(map(len, self.prompts)), sum(len(c.tokens) for c in self.choices)
        each = len(self.stream.tickets) // max(1, len(self.prompts))
        reused = sum(t.reused for t in self.stream.tickets[:: max(1, each)])       # of the first choice of each prompt
        return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written,
                "prompt_tokens_details": {"cached_tokens": reused}}

    # -- streams ------------------------------------------------------------------------------------------------------
    def begin(self) -> list[bytes]:
        """The events before the first piece."""
        if self.chat is None:
            return []
        return [self._event([{"index": i, "delta": {"role": "assistant", "content": ""}, "logprobs": None,
                              "finish_reason": None}]) for i in range(len(self.choices))]

    def events(self, number: int, piece: Piece) -> list[bytes]:
        """The events for a piece that was taken."""
        choice = self.choices[number]
        logprobs = self._logprobs([piece], choice) if piece.token is not None else None
        if self.chat is None:
            return [self._event([{"index": number, "text": piece.text, "logprobs": logprobs,
                                  "finish_reason": piece.finish_reason}])]
        if self.chat.tools:                                # whether it is a call is known at the end
            return [] if piece.finish_reason is None else self._called(number, choice)
        out = []
        if piece.text or logprobs:
            out.append(self._delta(number, {"content": piece.text}, None, logprobs))
        if piece.finish_reason is not None:
            out.append(self._delta(number, {}, piece.finish_reason))
        return out

    def _called(self, number: int, choice: Choice) -> list[bytes]:
        assert self.chat is not None
        text, calls = self.chat.calls(choice.text)
        out = [self._delta(number, {"content": text}, None, self._logprobs(choice.tokens, choice))] if text else []
        if calls:
            out.append(self._delta(number, {"tool_calls": [{"index": i, **c} for i, c in enumerate(calls)]}, None))
        return [*out, self._delta(number, {}, "tool_calls" if calls else choice.reason)]

    def _delta(self, number: int, delta: dict[str, Any], reason: str | None, logprobs: Any = None) -> bytes:
        return self._event([{"index": number, "delta": delta, "logprobs": logprobs, "finish_reason": reason}])

    def end(self) -> list[bytes]:
        """The events after the last piece."""
        usage = [self._event([], usage=self.usage())] if self.generation.usage else []
        return [*usage, b"data: [DONE]\n\n"]

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        usage = {"usage": None} if self.generation.usage else {}        # of each piece but the last, which has it
        return event({**self._head(kind), "choices": choices, **usage, **more})

    # -- log-probabilities --------------------------------------------------------------------------------------------
    def _logprobs(self, pieces: Sequence[Piece], choice: Choice) -> dict[str, Any] | None:
        """Those of the next pieces of an answer."""
        if not self.generation.logprobs:
            return None
        rows = [(p.token, p.log_probability) for p in pieces]
        if self.chat is not None:
            return {"refusal": None, "content": [
                {**self._token(token, chance.value), "top_logprobs": [self._token(t, v) for t, v in chance.best]}
                for token, chance in rows if token is not None and chance is not None]}
        texts = [token_text(self.model, t) for t, _ in rows if t is not None]
        offsets = [choice.offset + sum(map(len, texts[:i])) for i in range(len(texts))]
        choice.offset += sum(map(len, texts))
        return {"tokens": texts, "token_logprobs": [c.value for _, c in rows if c is not None],
                "top_logprobs": [{token_text(self.model, t): v for t, v in reversed(c.best)}
                                 for _, c in rows if c is not None],    # of tokens with one text the likeliest
                "text_offset": offsets}

    def _token(self, token: int, value: float) -> dict[str, Any]:
        return {"token": token_text(self.model, token), "logprob": max(value, -9999.0),
                "bytes": list(token_bytes(self.model, token))}


def event(body: dict[str, Any]) -> bytes:
    """An event of a stream."""
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
