"""Encoders in GGUF files: vectors and words are those of the folder, and what is not run is refused."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.ir.diag import Error
from mlc.models.gguf import read_gguf_file
from mlc.models.gguf.export import described
from mlc.models.gguf.file import Stored
from mlc.models.gguf.writing import Described, write_gguf
from mlc.tools.cli import main
from tests.encoders import CASES, TEXTS, write_encoder

BERT = {**CASES["bert"], "hidden_act": "gelu"}
MEAN = {"pooling_mode": "mean"}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "w", "##or", "##ld", "!", "un", "##a", "##ble", "中"]


def write_words(folder: Path, words: list[str], lowercase: bool) -> None:
    """A tokenizer as BERT has it."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    rules = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    rules.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    rules.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rules.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[
        ("[CLS]", 2), ("[SEP]", 3)])
    rules.add_special_tokens(words[:5])
    rules.save(str(folder / "tokenizer.json"))


def file_of(folder: Path, kind: str = "f32") -> Path:
    path = folder.parent / f"{folder.name}-{kind}.gguf"
    write_gguf(path, described(folder), kind)
    return path


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("name, pooling", [("bert", "mean"), ("roberta", "cls"), ("distilbert", "lasttoken")])
def test_vectors_are_those_of_the_folder(name: str, pooling: str, tmp_path: Path) -> None:
    folder = write_encoder({**CASES[name], "hidden_act": "gelu"}, tmp_path / "model", {"pooling_mode": pooling})
    one, other = mlc.models.load(folder), mlc.models.load(file_of(folder))
    assert other.config.context == one.config.context and not other.generates
    np.testing.assert_array_equal(other.embed(TEXTS), one.embed(TEXTS))


def test_quantised_weights_and_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_encoder(BERT, tmp_path / "model", MEAN)
    assert main(["quantize", str(folder), "-o", str(tmp_path / "x.gguf"), "--type=q8_0"]) == 0
    printed = capsys.readouterr()
    assert "11 q8_0" in printed.out and "is an encoder" in printed.err
    close = (mlc.models.load(tmp_path / "x.gguf").embed(TEXTS) * mlc.models.load(folder).embed(TEXTS)).sum(1)
    assert (close > 0.999).all()


@pytest.mark.parametrize("great", [False, True])
def test_words_are_those_of_the_folder(great: bool, tmp_path: Path) -> None:
    folder = write_encoder(BERT, tmp_path / "model", MEAN)
    write_words(folder, [*WORDS, *["Hello"] * great], lowercase=not great)
    one, other = mlc.models.load(folder), mlc.models.load(file_of(folder))
    for text in ("Hello world!", "hello  unable\tWÖRLD", "", "中hello", "[MASK] hello", "x" * 120):
        assert one.text_tools().encode(text) == other.text_tools().encode(text), text
    assert one.text_tools().encode("Hello wörld!")[1] == (14 if great else 5)
    np.testing.assert_array_equal(one.embed(["Hello world!", "!"]), other.embed(["Hello world!", "!"]))


def test_names_of_llama_cpp(tmp_path: Path) -> None:
    """As its converter writes them; queries, keys and values may be one tensor, and a head is left out."""
    folder = write_encoder(BERT, tmp_path / "model", MEAN)
    write_words(folder, WORDS, lowercase=True)
    held = read_gguf_file(file_of(folder))
    assert {n.replace("blk.1.", "blk.0.") for n in held.tensors} == {
        "token_embd.weight", "position_embd.weight", "token_types.weight", *(f"{part}.{kind}" for kind in (
            "weight", "bias") for part in ("token_embd_norm", *(f"blk.0.{x}" for x in (
                "attn_q", "attn_k", "attn_v", "attn_output", "attn_output_norm", "ffn_up", "ffn_down",
                "layer_output_norm"))))}
    assert held.fields["bert.pooling_type"] == 1 and held.fields["bert.attention.causal"] is False
    assert held.fields["tokenizer.ggml.tokens"][5:8] == ["\u2581hello", "\u2581w", "or"]
    tensors: dict[str, Any] = {name: (lambda x=x: x) for name, x in held.tensors.items()}
    for i in range(2):
        for kind in ("weight", "bias"):
            parts = [tensors.pop(f"blk.{i}.attn_{x}.{kind}")().bytes for x in "qkv"]
            whole = np.concatenate(parts)
            tensors[f"blk.{i}.attn_qkv.{kind}"] = lambda x=whole: Stored(x, x.shape, None)
    tensors["cls.weight"] = lambda: Stored(np.ones((32, 32), np.float32), (32, 32), None)
    write_gguf(tmp_path / "y.gguf", Described(held.fields, tensors), "f32")
    np.testing.assert_array_equal(mlc.models.load(tmp_path / "y.gguf").embed("hello unable"),
                                  mlc.models.load(folder).embed("hello unable"))


@pytest.mark.parametrize("config, pooling, message", [
    (CASES["bert"], MEAN, "the activation gelu_tanh"), (BERT, {"pooling_mode": "max"}, "pooling by"),
    (BERT, {"pooling_mode": ["cls", "mean"]}, "pooling by")])
def test_encoders_that_no_file_can_describe(config: dict[str, Any], pooling: dict[str, Any], message: str,
                                            tmp_path: Path) -> None:
    with pytest.raises(Error, match=message):
        described(write_encoder(config, tmp_path / "model", pooling))


def test_files_that_are_not_run(tmp_path: Path) -> None:
    content = described(write_encoder(BERT, tmp_path / "model", MEAN))
    for field, value, code in (("bert.pooling_type", 4, "MLC0911"), ("bert.attention.causal", True, "MLC0911"),
                               ("bert.attention.layer_norm_epsilon", -1.0, "MLC0911"),
                               ("bert.block_count", 3, "MLC0912"), ("bert.block_count", 1, "MLC0912"),
                               ("bert.attention.head_count", 5, "MLC0911"), ("bert.context_length", [], "MLC0911"),
                               ("general.architecture", "nomic-bert", "MLC0911"),
                               ("bert.feed_forward_length", 32, "MLC0912")):
        fields = {**content.fields, field: value or [1, 2]}
        write_gguf(tmp_path / "z.gguf", replace(content, fields=fields), "f32")
        with pytest.raises(Error, match=code):
            mlc.models.load(tmp_path / "z.gguf")


def test_bytes_that_are_changed(tmp_path: Path) -> None:
    """Each gives a model or one error with a code."""
    folder = write_encoder({**BERT, "num_hidden_layers": 1}, tmp_path / "model", MEAN)
    write_words(folder, WORDS, lowercase=True)
    file = file_of(folder, "q8_0").read_bytes()
    random, head = np.random.default_rng(0), file.index(b"layer_output_norm")
    found = set[str | None]()
    for _ in range(150):
        data = bytearray(file)
        for at in random.integers(0, head + 200, random.integers(1, 4)):
            data[at] = random.integers(0, 256)
        (tmp_path / "x.gguf").write_bytes(data)
        try:
            mlc.models.load(tmp_path / "x.gguf")
            found.add(None)
        except Error as error:
            found.add(error.code)
    assert {"MLC0922", None} <= found <= {"MLC0911", "MLC0912", "MLC0913", "MLC0914", "MLC0922", None}
