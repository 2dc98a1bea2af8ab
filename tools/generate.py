"""mlc generate: let a language model go on with a text."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from typing import Any

from mlc.tools import report
from mlc.tools.chat import add_sampling, sampling, show
from mlc.tools.exit_status import OK

EXAMPLES = r"""examples:
  mlc generate examples/assistant 'mlc is a' --max-tokens 40
  mlc generate models/gpt2 'Once upon a time' --temperature 0.8 --seed 3
  mlc generate models/gpt2 'One' 'Two' --json --logprobs 3
  mlc generate examples/assistant 'Its shape is ' --regex '\[[0-9]+(, [0-9]+)*\]'
  mlc generate models/gpt2 'The answer is' --num-beams 4
  mlc generate examples/assistant 'mlc.cumsum mlc.cumsum' --draft lookup --stats --max-tokens 20
  mlc generate models/gpt2 - < text.txt
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("generate", "Let a language model go on with a text, or with several at once.", EXAMPLES)
    p.add_argument("model", metavar="MODEL", help="a folder with config.json, model.safetensors, tokenizer.json and "
                   "the like, or a GGUF file")
    p.add_argument("prompts", metavar="TEXT", nargs="+", help="what it goes on with; - is stdin")
    add_sampling(p)
    p.add_argument("--json", action="store_true", help="print one object of JSON per prompt, with tokens and reasons")
    p.add_argument("--logprobs", type=int, metavar="N", help="with --json: log-probabilities, and N likely tokens each")
    p.add_argument("--num-beams", type=report.integer(1), default=1, metavar="N", help="follow N sequences, and "
                   "print the answer of the greatest log-probability")
    return p


def searched(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `mlc.generate` that were given, those of a beam search included."""
    return {**sampling(options), "num_beams": options.num_beams}


def main(options: argparse.Namespace) -> int:
    if options.logprobs is not None and not options.json:
        raise report.usage_error("--logprobs goes with --json", "add --json", "MLC0391")
    whole = options.json or len(options.prompts) > 1 or options.num_beams != 1
    if options.stats and whole:
        raise report.usage_error("--stats is of one text that is shown as it is written",
                                 "leave out --stats, or --json, --num-beams and all texts but one", "MLC0391")
    started = time.perf_counter()
    from mlc import models
    model = models.load(options.model, integer_products=options.integer_products, cache_dtype=options.cache_dtype)
    loading = time.perf_counter() - started
    from mlc.models.language_model import draft_named
    draft = draft_named(options.draft)
    prompts = [sys.stdin.read() if p == "-" else p for p in options.prompts]
    if whole:
        for found in model.generate(prompts, draft, logprobs=options.logprobs, **searched(options)):
            print(json.dumps(asdict(found)) if options.json else found.text)
        return OK
    show(model.stream(prompts[0], draft, **sampling(options)), loading if options.stats else None)
    return OK
