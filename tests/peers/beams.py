"""Beam search by transformers, with small language models of the tests, stop tokens, penalties and ways to end early.

    python -m tests.peers.beams           # compares mlc with it, prints a table
    python -m tests.peers.beams --write   # writes beams.json, which tests/test_beams.py reads

It needs the packages torch and transformers, which the tests themselves do not.
"""
from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import mlc
from tests.language_models import CASES, write_folder

REFERENCE = Path(__file__).parent / "beams.json"
PROMPTS = [[3, 14, 15, 92, 65], [9], [27, 18, 28, 18, 28, 45, 90]]
NAMES = ("llama", "gpt2", "gemma3")
OPTIONS: list[dict[str, Any]] = [
    {"num_beams": beams, "length_penalty": penalty, "early_stopping": early, "max_tokens": limit, "stop_tokens": stops}
    for beams, penalty, early, limit, stops in (
        (2, 1.0, False, 12, []), (4, 1.0, False, 24, [5, 70]), (4, 1.0, True, 24, [5, 70]), (3, 1.0, "never", 24, [5]),
        (4, 2.0, "never", 24, [5, 70, 12, 33]), (4, -1.0, False, 24, [5, 70, 12, 33]), (5, 0.0, True, 24, [8, 5, 33]),
        (8, 0.5, False, 16, [40, 41, 42, 43, 44, 45]))]


def reference(folder: Path) -> list[list[list[int]]]:
    """The tokens of the answers, for each of the options and prompts, by transformers."""
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    out = []
    for o in OPTIONS:
        answers = []
        for prompt in PROMPTS:
            given = torch.tensor([prompt])
            found = model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=o["max_tokens"],
                                   do_sample=False, num_beams=o["num_beams"], length_penalty=o["length_penalty"],
                                   early_stopping=o["early_stopping"], eos_token_id=o["stop_tokens"] or None,
                                   pad_token_id=0)[0, len(prompt):].tolist()
            stop = next((i for i, t in enumerate(found) if t in o["stop_tokens"]), len(found))
            answers.append(found[: stop + 1])
        out.append(answers)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare beam search with transformers.")
    parser.add_argument("--write", action="store_true", help="write what transformers computes")
    parser.add_argument("names", nargs="*", default=NAMES, help="which models")
    options = parser.parse_args()
    found = {}
    for name in options.names:
        with tempfile.TemporaryDirectory() as temporary:
            folder = write_folder(CASES[name], Path(temporary))
            found[name] = reference(folder)
            model = mlc.models.load(folder)
            for o, wanted in zip(OPTIONS, found[name]):
                own = [list(a.tokens) for a in mlc.generate(model, PROMPTS, **o)]
                ended = sum(len(w) < o["max_tokens"] for w in wanted)
                verdict = "equal" if own == wanted else "DIFFER"
                print(f"{name:7}{o['num_beams']} beams, penalty {o['length_penalty']}, early {o['early_stopping']!s:5} "
                      f"({ended} of {len(wanted)} end early): {verdict}", flush=True)
    if options.write:
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(answers)}" for name, answers in found.items())
        REFERENCE.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
