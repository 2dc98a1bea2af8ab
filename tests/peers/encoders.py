"""Hidden numbers and vectors that transformers and sentence-transformers compute with the small encoders of the tests.

    python -m tests.peers.encoders           # compares mlc with them, prints a table
    python -m tests.peers.encoders --write   # writes encoders.json, which tests/test_encoders.py reads

It needs the packages torch, transformers and sentence-transformers, which the tests themselves do not.
"""
from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import mlc
from mlc.models.embeddings import POOLINGS
from tests.encoders import CASES, REFERENCE, TEXTS, write_encoder


def padded(padding: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The texts in one array, and where it has tokens."""
    longest = max(map(len, TEXTS))
    tokens = np.array([text + [padding] * (longest - len(text)) for text in TEXTS])
    return tokens, np.array([[i < len(text) for i in range(longest)] for text in TEXTS])


def hidden(folder: Path, padding: int) -> list[list[list[float]]]:
    """The numbers of the tokens of each text, by transformers, padded to the longest one."""
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    model, report = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                           output_loading_info=True)
    if any(not name.startswith("pooler.") for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")
           for name in report[kind]):
        raise SystemExit(f"{folder}: transformers does not take these weights: {report}")
    tokens, mask = padded(padding)
    with torch.no_grad():
        found = model(torch.tensor(tokens), attention_mask=torch.tensor(mask).long()).last_hidden_state.numpy()
    return [[[round(float(x), 6) for x in row] for row in found[i, : len(text)]] for i, text in enumerate(TEXTS)]


def pooled(folder: Path, mode: str, numbers: list[list[list[float]]]) -> np.ndarray[Any, Any]:
    """The vectors that the modules of sentence-transformers make of the numbers."""
    import torch
    from sentence_transformers.sentence_transformer import modules
    longest = max(map(len, TEXTS))
    features = {"token_embeddings": torch.tensor([[*rows, *[[9.0] * 32] * (longest - len(rows))] for rows in numbers]),
                "attention_mask": torch.tensor(padded(0)[1]).long()}
    pooling = modules.Pooling.load(str(folder / "1_Pooling"))
    vectors: np.ndarray[Any, Any] = modules.Normalize()(pooling(features))["sentence_embedding"].numpy()
    return vectors


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare small encoders with transformers.")
    parser.add_argument("--write", action="store_true", help="write what transformers computes")
    options = parser.parse_args()
    found = {}
    for name, config in CASES.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = write_encoder(config, Path(temporary))
            found[name] = hidden(folder, config.get("pad_token_id", 0))
            model = mlc.models.load(folder)
            for text, rows in zip(TEXTS, found[name]):
                own = model.module(mlc.tensor([text]), mlc.tensor([len(text)])).numpy()[0]
                print(f"{name:12} {len(text)} tokens: numbers differ by {np.abs(own - rows).max():.1e}", flush=True)
    for mode in POOLINGS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = write_encoder(CASES["bert"], Path(temporary), {f"pooling_mode_{mode}": True} if mode !=
                                   "mean_tokens" else {"pooling_mode_mean_tokens": True})
            vectors = pooled(folder, mode, found["bert"])
            own = mlc.models.load(folder).embed(TEXTS)
            print(f"{mode:20} vectors differ by {np.abs(own - vectors).max():.1e}", flush=True)
            found[mode] = vectors.round(6).tolist()
    if options.write:
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
        REFERENCE.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
