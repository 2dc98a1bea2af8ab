"""Export of folders to GGUF files: all that is written reads back the same, and all else is refused by name."""
from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.ir.diag import Error
from mlc.models.gguf.configuration import read_configuration
from mlc.models.gguf.export import described
from mlc.models.gguf.file import GGUFFile, Stored
from mlc.models.gguf.vocabulary import GGUFVocabulary, fields_of_tokenizer
from mlc.models.gguf.writing import write_gguf
from mlc.models.text import Tokenizer
from tests.language_models import CASES, PROMPT, write_folder

SLIDING = {"layer_types": ["sliding_attention"] * 2}


def yarn(**more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
                                "original_max_position_embeddings": 16, **more}}


@pytest.mark.parametrize(("name", "change", "message"), [
    ("gemma2", {"attn_logit_softcapping": None}, "score_cap is None, and 50.0"),
    ("gemma2", {"final_logit_softcapping": None}, "logit_cap is None, and 30.0"),
    ("gemma2", {"query_pre_attn_scalar": 64}, "scale is 0.125, and 0.25"),
    ("gemma3", {"query_pre_attn_scalar": 64, **SLIDING}, "scale is 0.125"),
    ("gemma3", {}, "windows is "), ("mistral", {}, "windows is "), ("qwen2", {}, "windows is "),
    ("llama", {"hidden_act": "relu"}, "activation is 'relu', and 'silu'"),
    ("llama-dynamic", {}, "of the kind dynamic"), ("llama", yarn(truncate=False), "of the kind yarn"),
    ("gpt2", {"activation_function": "relu"}, "activation is 'relu'"),
    ("gpt2", {"scale_attn_weights": False}, "scaled is False"),
    ("qwen3-moe", {"norm_topk_prob": False}, "normalised=False"),
    ("qwen2-moe", {"norm_topk_prob": True}, "normalised=True"),
    ("qwen3", {"attention_bias": True}, "qkv_bias is True")])
def test_what_no_field_says_is_refused(name: str, change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(Error, match=message) as error:
        described(write_folder({**CASES[name], **change}, tmp_path))
    assert error.value.code == "MLC0911"


@pytest.mark.parametrize(("name", "change"), [
    ("gemma3", {"rope_local_base_freq": 100.0, **SLIDING}), ("llama", yarn(attention_factor=0.5)),
    pytest.param("llama", yarn(mscale=1.0, mscale_all_dim=1.0), marks=pytest.mark.slow)])
def test_a_file_has_the_scores_of_its_folder(name: str, change: dict[str, Any], tmp_path: Path) -> None:
    folder = write_folder({**CASES[name], **change}, tmp_path / "model")
    write_gguf(tmp_path / "a.gguf", described(folder), "f32")
    with mlc.no_grad():
        one, other = (mlc.models.load(p).module(mlc.tensor([PROMPT])).numpy() for p in (folder, tmp_path / "a.gguf"))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("mode", "limit", "message"), [
    ("lasttoken", None, ""), ("max", None, "pooling by"), ("cls", 64, "at most 64 of 128 tokens")])
def test_vectors_of_a_decoder(mode: str, limit: int | None, message: str, tmp_path: Path) -> None:
    folder = write_folder(CASES["qwen3"], tmp_path / "model")
    kinds = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    (folder / "modules.json").write_text(json.dumps([{"path": path, "type": f"sentence_transformers.models.{kind}"}
                                                     for path, kind in kinds]))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": mode}))
    if limit:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limit}))
    if message:
        with pytest.raises(Error, match=message):
            described(folder)
        return
    write_gguf(tmp_path / "a.gguf", described(folder), "f32")
    one, other = (mlc.models.load(path).embed(PROMPT) for path in (folder, tmp_path / "a.gguf"))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


# -- reading ----------------------------------------------------------------------------------------------------------
def configuration(architecture: str, **fields: Any) -> Any:
    common = {"embedding_length": 32, "attention.head_count": 2, "block_count": 2, "context_length": 64,
              "feed_forward_length": 32, "attention.layer_norm_rms_epsilon": 1e-5, **fields}
    return read_configuration(GGUFFile(
        Path("x.gguf"), {"general.architecture": architecture,
                         **{f"{architecture}.{name}": x for name, x in common.items()}},
        {"token_embd.weight": Stored(np.zeros((9, 32), np.float32), (9, 32), None)}, {}))


def test_fields_of_a_file_that_say_how_keys_are_turned_and_how_far_a_layer_sees() -> None:
    fields = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}
    magnitude = 1 + 0.1 * math.log(4)                      # of llama.cpp, which multiplies it with the field's
    assert configuration("qwen2", **fields).rotary.magnitude == pytest.approx(magnitude)
    assert configuration("qwen2", **fields, **{"rope.scaling.attn_factor": 0.5}).rotary.magnitude == pytest.approx(
        magnitude / 2)
    for name, value in {"rope.scaling.attn_factor": 0.5, "rope.scaling.yarn_log_multiplier": 0.1}.items():
        with pytest.raises(Error, match=name):
            configuration("qwen2", **{**(fields if "yarn" in name else {}), name: value})
    assert configuration("gemma2").windows == (4096, 0)    # llama.cpp's for files of the first conversions
    assert configuration("phi3").windows == configuration("gemma3").windows == (0, 0)


# -- tokenizers -------------------------------------------------------------------------------------------------------
def tokenizer(folder: Path, change: Any) -> Path:
    """A folder of a tokenizer of bytes, which a function changes."""
    tokenizers = pytest.importorskip("tokenizers")
    words = ["<end>", *sorted({*tokenizers.pre_tokenizers.ByteLevel.alphabet()}), "ab"]
    rules = tokenizers.Tokenizer(tokenizers.models.BPE({w: i for i, w in enumerate(words)}, [("a", "b")]))
    rules.add_special_tokens(["<end>"])
    rules.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = tokenizers.decoders.ByteLevel()
    change(rules, tokenizers)
    rules.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    return folder


def form(*parts: str) -> Any:
    def change(rules: Any, tokenizers: Any) -> None:
        rules.post_processor = tokenizers.processors.TemplateProcessing(single=list(parts), special_tokens=[
            ("<end>", 0)])
    return change


def composed(rules: Any, tokenizers: Any) -> None:
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
               r"\s+(?!\S)|\s+")
    rules.normalizer = tokenizers.normalizers.NFC()
    rules.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


@pytest.mark.parametrize("change", [lambda rules, tokenizers: None, form("$A", "<end>"), composed],
                         ids=["plain", "end", "composed"])
def test_tokens_are_those_of_the_folder(change: Any, tmp_path: Path) -> None:
    fields = fields_of_tokenizer(tokenizer(tmp_path, change))
    found = GGUFVocabulary(GGUFFile(Path("x.gguf"), fields, {}, {})).tokenizer()
    for text in ("ab 12 Ab", "e\u0301", "a<end>b"):
        assert found.encode(text) == Tokenizer.of_file(tmp_path / "tokenizer.json").encode(text)


@pytest.mark.parametrize(("change", "message"), [
    (lambda rules, tokenizers: setattr(rules, "normalizer", tokenizers.normalizers.Lowercase()), "by Lowercase"),
    (lambda rules, tokenizers: setattr(rules, "normalizer", tokenizers.normalizers.NFC()), "by NFC"),
    (lambda rules, tokenizers: setattr(rules, "pre_tokenizer", tokenizers.pre_tokenizers.ByteLevel(True)), "tokens of"),
    (lambda rules, tokenizers: rules.add_tokens([tokenizers.AddedToken("<x>", lstrip=True)]), "tokens of 'a <x> b'"),
    (form("<end>", "$A"), "other tokens around"), (form("$A", "<end>", "<end>"), "other tokens around")])
def test_tokenizers_that_no_file_can_describe(change: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(Error, match=message) as error:
        fields_of_tokenizer(tokenizer(tmp_path, change))
    assert error.value.code == "MLC0913"


def whole_words(rules: Any, tokenizers: Any) -> None:
    composed(rules, tokenizers)
    rules.model.ignore_merges = True


def test_words_that_are_tokens_are_taken_whole_or_not(tmp_path: Path) -> None:
    with pytest.raises(Error, match="could describe"):
        fields_of_tokenizer(tokenizer(tmp_path, whole_words))


@pytest.mark.parametrize(("kind", "begins"), [("llama-bpe", True), ("qwen2", False)])
def test_files_of_llama_3_begin_texts_with_a_token(kind: str, begins: bool) -> None:
    pytest.importorskip("tokenizers")
    fields = {"model": "gpt2", "pre": kind, "tokens": ["<s>", "a", "b", "ab"], "token_type": [3, 1, 1, 1],
              "merges": ["a b"], "bos_token_id": 0}
    file = GGUFFile(Path("x.gguf"), {f"tokenizer.ggml.{name}": x for name, x in fields.items()}, {}, {})
    assert GGUFVocabulary(file).tokenizer().encode("ab") == [0] * begins + [3]
