"""Folders of language models: fields that are left out, options that are not taken, templates as transformers runs
them."""
from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.models.config import read_config
from mlc.models.fields import Fields
from mlc.models.sampling import IN_PROMPT, Kinds, Sampling, choose
from mlc.models.slots import Slots
from mlc.models.steps import settings_of
from mlc.models.text import ChatTemplate, read_template
from mlc.models.usual import usual_of
from tests.language_models import CASES, write_folder

SIZES = {"vocab_size": 9, "hidden_size": 512, "intermediate_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 32}


def config(architecture: str, **fields: Any) -> Any:
    return read_config(Fields({"architectures": [architecture], **SIZES, **fields}, "config.json"))


@pytest.mark.parametrize(("architecture", "expected"), [
    ("LlamaForCausalLM", {"kv_heads": 32, "context": 2048, "head_size": 16, "windows": (0, 0)}),
    ("MistralForCausalLM", {"kv_heads": 8, "context": 131072, "windows": (4096, 4096)}),
    ("MixtralForCausalLM", {"kv_heads": 8, "epsilon": 1e-5, "windows": (0, 0)}),
    ("Qwen3MoeForCausalLM", {"kv_heads": 4, "head_size": 16, "context": 32768}),
    ("Qwen3ForCausalLM", {"kv_heads": 32, "head_size": 128}),
    ("GemmaForCausalLM", {"kv_heads": 16, "head_size": 256, "activation": "gelu_tanh", "tied": True}),
    ("Gemma2ForCausalLM", {"kv_heads": 4, "windows": (4096, 0), "score_cap": 50.0, "logit_cap": 30.0}),
    ("Gemma3ForCausalLM", {"kv_heads": 4, "windows": (4096, 4096), "score_cap": None, "context": 131072}),
    ("Phi3ForCausalLM", {"kv_heads": 32, "context": 4096, "epsilon": 1e-5})])
def test_fields_that_are_left_out_are_those_of_the_classes_of_transformers(architecture: str,
                                                                          expected: dict[str, Any]) -> None:
    found = config(architecture)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(("architecture", "fields", "expected"), [
    ("MistralForCausalLM", {"sliding_window": None}, {"windows": (0, 0)}),
    ("Gemma2ForCausalLM", {"attn_logit_softcapping": None}, {"score_cap": None, "logit_cap": 30.0}),
    ("Gemma2ForCausalLM", {"hidden_activation": "gelu"}, {"activation": "gelu"}),
    ("GemmaForCausalLM", {"hidden_act": "gelu"}, {"activation": "gelu_tanh"}),
    ("Qwen2ForCausalLM", {"use_sliding_window": True, "max_window_layers": 1}, {"windows": (0, 4096)}),
    ("Qwen2MoeForCausalLM", {"use_sliding_window": True}, {"windows": (4096, 0)}),
    ("Qwen3MoeForCausalLM", {"use_sliding_window": True, "max_window_layers": 28}, {"windows": (4096, 4096)}),
    ("Gemma3ForCausalLM", {"rope_parameters": {"full_attention": {"rope_theta": 5.0}}}, {"windows": (4096, 4096)})])
def test_fields_mean_what_they_mean_in_transformers(architecture: str, fields: dict[str, Any],
                                                    expected: dict[str, Any]) -> None:
    found = config(architecture, **fields)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(("field", "value", "told"), [
    ("no_repeat_ngram_size", 2, True), ("suppress_tokens", [5], True), ("num_beams", 4, True), ("typical_p", 0.5, True),
    ("no_repeat_ngram_size", 0, False), ("min_new_tokens", 0, False), ("sequence_bias", {}, False),
    ("suppress_tokens", [], False), ("top_k", 7, False)])
def test_options_that_are_not_taken_are_told(field: str, value: Any, told: bool, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "generation_config.json").write_text(json.dumps({field: value, "do_sample": True}))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        usual_of(tmp_path)
    assert [f"recommends {field} = {value!r}" in str(w.message) for w in found] == [True] * told


def test_a_bias_comes_before_penalties() -> None:
    scores, bias = mlc.tensor([[1.0, 1.8, 0.0]]), mlc.tensor([[2.0, 0.0, 0.0]])
    counts = mlc.tensor(np.array([[IN_PROMPT, 0, 0]], np.int32))
    found = choose(scores, Kinds(penalties=True, bias=True), settings_of([Sampling(repetition_penalty=2.0)]),
                   mlc.zeros(1, dtype="int64"), counts, bias)
    assert found.tokens.item() == 1                        # (1 + 2) / 2 < 1.8 < 1 / 2 + 2


# -- templates --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("source", "expected"), [
    ("{{ x | tojson(ensure_ascii=False) }}", '{"b": "\u00e9", "a": 1}'),
    ("{{ x | tojson(separators=(',', ':')) }}", '{"b":"\u00e9","a":1}'),
    ("{{ x | tojson(sort_keys=true) }}", '{"a": 1, "b": "\u00e9"}'),
    ("{% for m in messages %}{% generation %}{{ m.content }}!{% endgeneration %}{% endfor %}", "hello!"),
    ("{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}", "21")])
def test_what_templates_of_transformers_use(source: str, expected: str) -> None:
    pytest.importorskip("jinja2")
    template = ChatTemplate(source, {}, "t")
    assert template.text([{"role": "user", "content": "hello"}], x={"b": "\u00e9", "a": 1}) == expected


@pytest.mark.parametrize("in_files", [False, True])
def test_a_template_for_conversations_with_tools(in_files: bool, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    of_tools = "with {{ tools | length }} tools"
    if in_files:
        (tmp_path / "chat_template.jinja").write_text("plain")
        (tmp_path / "additional_chat_templates").mkdir()
        (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text(of_tools)
    else:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": [
            {"name": "default", "template": "plain"}, {"name": "tool_use", "template": of_tools}]}))
    template = read_template(tmp_path)
    assert template is not None and template.takes_tools
    assert (template.text([]), template.text([], tools=[{}])) == ("plain", "with 1 tools")


def test_the_size_of_a_cache_is_known_while_a_step_has_its_tensors(tmp_path: Path) -> None:
    slots = Slots(mlc.models.load(write_folder(CASES["llama"], tmp_path)).steps, 1, 64)
    size, slots._state.cache = slots.nbytes, []
    assert slots.nbytes == size > 0
