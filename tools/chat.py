"""mlc chat: a conversation with a language model in the terminal."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlc.tools import report
from mlc.tools.exit_status import OK

if TYPE_CHECKING:
    from mlc.models import Constraint, LanguageModel, Piece
    from mlc.models.drafting import Draft

EXAMPLES = """examples:
  mlc chat examples/assistant
  mlc chat examples/assistant --prompt 'What does mlc.cumsum do?'
  mlc chat models/qwen --system 'Answer in one sentence.' --temperature 0.7 --top-p 0.9 --seed 1

in the conversation:
  /new     forget what was said
  /quit    end it; so does Ctrl-D. Ctrl-C ends an answer
"""


def add_sampling(p: argparse.ArgumentParser) -> None:
    """The options of generation, which are those that the model's folder recommends where they are left out."""
    add = p.add_argument
    add("--max-tokens", type=int, metavar="N", help="greatest number of tokens of an answer (default 256)")
    add("--temperature", type=float, metavar="X", help="the higher, the more random; 0 for the most likely token")
    add("--top-k", type=int, metavar="N", help="how many of the most likely tokens may be drawn; 0 for all")
    add("--top-p", type=float, metavar="X", help="the least probability that tokens that may be drawn have together")
    add("--min-p", type=float, metavar="X", help="the least probability of a token, as a part of the greatest one")
    add("--repetition-penalty", type=float, metavar="X", help="above 1: tokens of the text become less likely")
    add("--stop", action="append", default=[], metavar="TEXT", help="a text that ends the answer; may be repeated")
    add("--seed", type=int, metavar="N", help="of the random numbers")
    add("--integer-products", action="store_true", help="generate with products of integers where weights are "
        "quantised: faster, a little less exact")
    add("--json-schema", metavar="FILE", help="answer with a value of JSON that is valid by the schema in a file")
    add("--regex", metavar="RE", help="answer with a text that a regular expression matches")
    add("--grammar", metavar="FILE", help="answer with a text of the grammar in a file, as lark writes grammars")
    add("--cache-dtype", choices=("float32", "int8"), default="float32", help="int8 keeps keys and values in a "
        "fourth of the memory, a little less exact")
    add("--draft", metavar="MODEL", help="guess tokens that the model then verifies, with the same answer: a "
        "smaller model of the same vocabulary, or lookup for what stood behind the same tokens before")
    add("--stats", action="store_true", help="report times and tokens per second")


def sampling(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `mlc.generate` that were given."""
    names = ("max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
    found = {n: getattr(options, n) for n in names if getattr(options, n) is not None}
    return {"stop": options.stop, "constraint": constraint(options), **found}


def constraint(options: argparse.Namespace) -> Constraint | None:
    """The constraint that was given, if one was."""
    given = [n for n in ("json_schema", "regex", "grammar") if getattr(options, n) is not None]
    if len(given) > 1:
        raise report.usage_error(f"--{given[0].replace('_', '-')} and --{given[1]} exclude each other",
                                 "use one of them", "MLC0391")
    if not given:
        return None
    from mlc.models import Constraint
    if given[0] == "regex":
        return Constraint.regex(options.regex)
    text = text_file(getattr(options, given[0]))
    if given[0] == "grammar":
        return Constraint.grammar(text)
    try:
        return Constraint.json_schema(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise report.usage_error(f"{options.json_schema} is no JSON: {error}", "correct it", "MLC0391") from None


def text_file(path: str) -> str:
    """The text of a file that an option names."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise report.usage_error(f"cannot read {path}: {error}", "give a file of text", "MLC0391") from None


def parser() -> argparse.ArgumentParser:
    p = report.Parser("chat", "Talk with a language model: a folder as transformers has it, or a GGUF file, "
                      "with a template of conversations.", EXAMPLES)
    p.add_argument("model", metavar="MODEL", help="a folder with config.json, model.safetensors, tokenizer.json and "
                   "the like, or a GGUF file")
    p.add_argument("--system", metavar="TEXT", help="the message of the system that the conversation begins with")
    p.add_argument("--prompt", metavar="TEXT", help="say this, print the answer, and end")
    add_sampling(p)
    return p


def main(options: argparse.Namespace) -> int:
    started = time.perf_counter()
    from mlc import models
    model = models.load(options.model, integer_products=options.integer_products, cache_dtype=options.cache_dtype)
    from mlc.models.language_model import draft_named
    conversation = Conversation(model, options.system, sampling(options), draft_named(options.draft))
    loading = time.perf_counter() - started
    if options.prompt is not None:
        answer(conversation, options.prompt, loading if options.stats else None)
        return OK
    if sys.stdin.isatty():
        print(f"{model!r}\n/new forgets what was said, /quit or Ctrl-D ends", file=sys.stderr)
    while (said := _read()) is not None:
        if said == "/quit":
            break
        if said == "/new":
            conversation.forget()
        elif said:
            answer(conversation, said, loading if options.stats else None)
    return OK


class Conversation:
    """A conversation: all that was said, and the model that answers."""

    def __init__(self, model: LanguageModel, system: str | None, options: dict[str, Any], draft: Draft | None) -> None:
        from mlc.models import Scheduler
        self.model, self.options = model, options
        self.scheduler = Scheduler(model, slots=1, draft=draft)      # keeps what is read: a turn reads what is new
        self.start = [{"role": "system", "content": system}] if system is not None else []
        self.messages = list(self.start)
        self.model.chat_tokens([*self.start, {"role": "user", "content": "Hello"}])    # whether it can talk at all

    def forget(self) -> None:
        self.messages = list(self.start)

    def ask(self, text: str) -> Iterator[Piece]:
        """The answer, piece by piece; what was first said is left out once the model cannot see all."""
        self.messages.append({"role": "user", "content": text})
        sees = self.scheduler.slots.capacity
        room = min(self.options.get("max_tokens") or 64, sees // 4)
        tokens, left = self.model.chat_tokens(self.messages), len(self.start)
        while len(tokens) + room > sees and len(self.messages) > left + 2:
            del self.messages[left: left + 2]                # a question and its answer
            tokens = self.model.chat_tokens(self.messages)
        said = ""
        try:
            requests, top = self.model.requests([tokens], **self.options)
            for piece in self.scheduler.stream(requests[0], top=top):
                said += piece.text
                yield piece
        finally:
            self.messages.append({"role": "assistant", "content": said})


@dataclass
class Times:
    """How long an answer takes: from now to its first token, and on."""

    started: float
    first: float = 0.0
    count: int = 0
    guessed: int = 0

    def token(self, guessed: bool) -> None:
        self.first, self.count = self.first or time.perf_counter(), self.count + 1
        self.guessed += guessed

    def line(self, loading: float) -> str:
        took = time.perf_counter() - self.first
        rate = (self.count - 1) / took if self.count > 1 else 0.0
        return (f"[model in {loading:.2f} s, first token after {self.first - self.started:.2f} s, {self.count} tokens, "
                f"{f'{self.guessed} of them guessed, ' if self.guessed else ''}{rate:.0f} per second]")


def show(pieces: Iterator[Piece], loading: float | None) -> None:
    """Print an answer as it comes, and then how long it took, if it is known how long loading did."""
    times = Times(time.perf_counter())
    try:
        for piece in pieces:
            times.token(piece.guessed)
            print(piece.text, end="", flush=True)
    finally:
        print(flush=True)
    if loading is not None and times.count:
        print(times.line(loading), file=sys.stderr)


def answer(conversation: Conversation, text: str, loading: float | None) -> None:
    """Print the answer to a text; Ctrl-C ends it, and in a terminal not the conversation."""
    try:
        show(conversation.ask(text), loading)
    except KeyboardInterrupt:
        if not sys.stdin.isatty():
            raise


def _read() -> str | None:
    """A line of the user; None at the end of the input."""
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return None
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return None
