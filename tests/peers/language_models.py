"""Scores and greedy tokens that transformers computes with the small language models of the tests.

    python -m tests.peers.language_models           # compares mlc with it, prints a table
    python -m tests.peers.language_models --write   # writes language_models.json, which tests/test_models.py reads

It needs the packages torch and transformers, which the tests themselves do not.
"""
from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from tests.language_models import CASES, PROMPT, REFERENCE, write_folder

COUNT = 64


def reference(folder: Path) -> dict[str, Any]:
    """The scores after the prompt, and the tokens that follow it, by transformers."""
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    if any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")):
        raise SystemExit(f"{folder}: transformers does not take these weights: {report}")
    prompt = torch.tensor([PROMPT])
    scores = model(prompt).logits[0, -1].detach().numpy()
    tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=COUNT, do_sample=False,
                            eos_token_id=None, pad_token_id=0)[0, len(PROMPT):].tolist()
    return {"scores": [round(float(x), 6) for x in scores], "tokens": tokens}


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare small language models with transformers.")
    parser.add_argument("--write", action="store_true", help="write what transformers computes")
    parser.add_argument("names", nargs="*", help="which models (default: all)")
    options = parser.parse_args()
    found = {}
    for name in options.names or CASES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = write_folder(CASES[name], Path(temporary))
            found[name] = reference(folder)
            if not options.write:
                model = mlc.models.load(folder)
                scores = model.module(mlc.tensor([PROMPT])).numpy()[0, -1]
                tokens = mlc.generate(model, PROMPT, max_tokens=COUNT, temperature=0).tokens
                error = np.abs(scores - found[name]["scores"]).max()
                verdict = "equal" if list(tokens) == found[name]["tokens"] else "DIFFER"
                print(f"{name:14} scores differ by {error:.1e}, {COUNT} tokens {verdict}", flush=True)
    if options.write:
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
        REFERENCE.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
