"""How often the guesses of drafts are right, and what they cost: questions to the model of the examples.

    python -m tests.peers.drafts       # no draft, lookup, and the same model in blocks of q4_0

The last column is how often guesses could be right at best: the sum of the smaller one of the two probabilities of each
token, averaged over the answers.
"""
from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from mlc.models import DraftModel, LanguageModel, PromptLookup, Scheduler
from mlc.tools.cli import main as command

ASSISTANT = Path(__file__).parent.parent.parent / "examples" / "assistant"
NAMES = ("cumsum", "scan", "while_loop", "vmap", "softmax", "matmul", "index_put", "gather")
TOKENS = 64


def answers(model: LanguageModel, prompts: list[list[int]], temperature: float, draft: Any) -> tuple[Any, ...]:
    """The tokens, processor and wall time per token, and the counters of a run."""
    scheduler, found = Scheduler(model, slots=1, draft=draft), list[int | None]()
    for prompt in prompts[:1]:                             # compiles
        list(scheduler.stream(model.requests([prompt], max_tokens=8, temperature=temperature, seed=1)[0][0]))
    best = (9e9, 9e9)
    for _ in range(3):
        before = scheduler.counters.drafted, scheduler.counters.accepted, scheduler.counters.steps
        found.clear()
        started = time.process_time(), time.perf_counter()
        for i, prompt in enumerate(prompts):
            request, _ = model.requests([prompt], max_tokens=TOKENS, temperature=temperature, seed=i, stop_tokens=[])
            found += [p.token for p in scheduler.stream(request[0])]
        took = (time.process_time() - started[0]) / len(found), (time.perf_counter() - started[1]) / len(found)
        best = min(best[0], took[0]), min(best[1], took[1])
        after = scheduler.counters.drafted, scheduler.counters.accepted, scheduler.counters.steps
    return (list(found), best, *(b - a for a, b in zip(before, after)))


def overlap(models: list[LanguageModel], prompt: list[int], tokens: list[int], temperature: float) -> float:
    """The mean of how much of the two distributions of each token is the same."""
    text = mlc.tensor([[*prompt, *tokens]])
    p, q = (mlc.softmax(m.decoder(text)[0, len(prompt) - 1: -1] / temperature, dim=-1).numpy() for m in models)
    return float(np.minimum(p, q).sum(-1).mean())


def main() -> None:
    model = mlc.models.load(ASSISTANT)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "q4_0.gguf")
        command(["quantize", str(ASSISTANT), "-o", file, "--type=q4_0"])
        small = mlc.models.load(file)
        small.tokenizer = model.tokenizer                  # the same, written otherwise
        prompts = [model.chat_tokens([{"role": "user", "content": f"What does mlc.{name} do?"}]) for name in NAMES]
        for temperature in (0.0, 1.0):
            plain = None
            for name, draft in (("none", None), ("lookup", PromptLookup()), ("q4_0", DraftModel(small, tokens=4))):
                tokens, best, drafted, accepted, steps = answers(model, prompts, temperature, draft)
                plain = plain or tokens
                most = ""
                if name == "q4_0" and temperature:
                    with mlc.no_grad():
                        most = f"{overlap([model, small], prompts[0], tokens[:TOKENS], temperature):.0%}"
                verdict = "equal" if tokens == plain else "DIFFER"
                print(f"temperature {temperature} {name:7}{verdict}, {len(tokens)} tokens in {steps} steps, "
                      f"{accepted} of {drafted} guesses right, per token {best[0] * 1e3:.2f} ms of processor time "
                      f"and {best[1] * 1e3:.2f} ms of wall time {most}", flush=True)


if __name__ == "__main__":
    main()
