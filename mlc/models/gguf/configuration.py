"""The fields of a GGUF file as a `config.json` of transformers would say the same, and what only a GGUF file can say.

Names of fields and their defaults are those of llama.cpp (src/llama-arch.cpp, src/llama-model.cpp).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mlc.models.config import DecoderConfig, GPT2Config, ModelConfig, read_config
from mlc.models.fields import Fields
from mlc.models.gguf.file import GGUFFile
from mlc.models.rotary import Rotary


class Keys:
    """The fields of the architecture of a file: `keys.integer("block_count")` reads `llama.block_count`."""

    def __init__(self, file: GGUFFile) -> None:
        self.file, self.fields = file, Fields(file.fields, str(file.path))
        self.architecture = self.fields.text("general.architecture")

    def has(self, name: str) -> bool:
        return f"{self.architecture}.{name}" in self.file.fields

    def integer(self, name: str, default: int | None = None) -> int:
        """A number, or an array of the same number for each layer."""
        key = f"{self.architecture}.{name}"
        value = self.file.fields.get(key)
        if isinstance(value, list):
            if not value or any(x != value[0] for x in value):
                raise self.fields.refusal(f"{key} differs from layer to layer: {value[:8]}")
            return Fields({key: value[0]}, str(self.file.path)).integer(key)
        return self.fields.integer(key) if default is None else self.fields.integer(key, default)

    def number(self, name: str, default: float | None = None) -> float:
        key = f"{self.architecture}.{name}"
        return self.fields.number(key) if default is None else self.fields.number(key, default)

    def text(self, name: str, default: str) -> str:
        return self.fields.text(f"{self.architecture}.{name}", default)


def read_configuration(file: GGUFFile) -> ModelConfig:
    """The decoder that the fields of a file describe.

    Raises:
        UserError: mlc does not run the architecture, or one of its features (MLC0911).
    """
    keys = Keys(file)
    if keys.architecture not in _ARCHITECTURES:
        raise keys.fields.refusal(f"the architecture is {keys.architecture!r}", "mlc runs " + ", ".join(
            sorted(_ARCHITECTURES)))
    if "token_embd.weight" not in file.tensors:
        raise keys.fields.refusal("it has no tensor token_embd.weight", "it may be a part of a model")
    if file.fields.get("split.count", 1) not in (0, 1):
        raise keys.fields.refusal("it is a part of a model in several files",
                                  "join them with llama.cpp's llama-gguf-split --merge")
    if keys.architecture == "gpt2":
        return _gpt2(keys)
    described = {**_common(keys), **_ARCHITECTURES[keys.architecture](keys)}
    config = read_config(Fields(described, str(file.path)))
    assert isinstance(config, DecoderConfig)
    return _as_stored(config, keys)


def _gpt2(keys: Keys) -> ModelConfig:
    width = keys.integer("embedding_length")
    config = read_config(Fields({
        "architectures": ["GPT2LMHeadModel"], "vocab_size": _vocabulary(keys), "n_embd": width,
        "n_inner": keys.integer("feed_forward_length", 4 * width), "n_layer": keys.integer("block_count"),
        "n_head": keys.integer("attention.head_count"), "n_positions": keys.integer("context_length"),
        "layer_norm_epsilon": keys.number("attention.layer_norm_epsilon"), "tie_word_embeddings": _is_tied(keys)},
        str(keys.file.path)))
    assert isinstance(config, GPT2Config)
    return replace(config, transposed=False)


def _vocabulary(keys: Keys) -> int:
    return keys.file.tensors["token_embd.weight"].shape[0]


def _is_tied(keys: Keys) -> bool:
    return "output.weight" not in keys.file.tensors


def _common(keys: Keys) -> dict[str, Any]:
    """The fields that all architectures of the family have."""
    width, heads = keys.integer("embedding_length"), keys.integer("attention.head_count")
    size = keys.integer("attention.key_length", width // max(1, heads))
    if (values := keys.integer("attention.value_length", size)) != size:
        raise keys.fields.refusal(f"keys have {size} elements, and values {values}")
    turned = keys.integer("rope.dimension_count", size)
    return {
        "vocab_size": _vocabulary(keys), "hidden_size": width, "num_attention_heads": heads, "head_dim": size,
        "num_key_value_heads": keys.integer("attention.head_count_kv", heads),
        "intermediate_size": keys.integer("feed_forward_length", 0), "num_hidden_layers": keys.integer("block_count"),
        "max_position_embeddings": keys.integer("context_length"),
        "rms_norm_eps": keys.number("attention.layer_norm_rms_epsilon"), "tie_word_embeddings": _is_tied(keys),
        "rope_theta": keys.number("rope.freq_base", 10000.0), "partial_rotary_factor": turned / max(1, size),
        "rope_parameters": _scaling(keys)}


def _scaling(keys: Keys) -> dict[str, Any]:
    """The scaling of the rotary embedding, but for those whose factors are tensors."""
    kind = keys.text("rope.scaling.type", "linear" if keys.has("rope.scale_linear") else "none")
    factor = keys.number("rope.scaling.factor", keys.number("rope.scale_linear", 1.0))
    if kind in ("none", "longrope") or factor == 1.0:
        return {"rope_type": "default"}
    out: dict[str, Any] = {"rope_type": kind, "factor": factor}
    if kind == "yarn":
        out["attention_factor"] = keys.number("rope.scaling.attn_factor", 1.0) * usual_magnitude(factor)
        out["original_max_position_embeddings"] = keys.integer("rope.scaling.original_context_length",
                                                               keys.integer("context_length"))
        for name, own in (("beta_fast", "yarn_beta_fast"), ("beta_slow", "yarn_beta_slow")):
            if keys.has(f"rope.scaling.{own}"):
                out[name] = keys.number(f"rope.scaling.{own}")
        for name in ("yarn_log_multiplier", "yarn_ext_factor", "yarn_attn_factor"):
            if keys.has(f"rope.scaling.{name}"):
                raise keys.fields.refusal(f"rope.scaling.{name} is set, which mlc does not run")
    return out


def usual_magnitude(factor: float) -> float:
    """The factor of cosines and sines that llama.cpp takes for yarn, and multiplies with that of a file."""
    return 1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0


def _window(keys: Keys, default: int = 0) -> dict[str, Any]:
    return {"sliding_window": keys.integer("attention.sliding_window", default) or None}


def _llama(keys: Keys) -> dict[str, Any]:
    """Llama and Mistral; with experts it is Mixtral."""
    if keys.integer("expert_count", 0):
        return {"architectures": ["MixtralForCausalLM"], "num_local_experts": keys.integer("expert_count"),
                "num_experts_per_tok": keys.integer("expert_used_count")}
    return {"architectures": ["LlamaForCausalLM"]}


def _experts(keys: Keys, architecture: str) -> dict[str, Any]:
    """Experts of Qwen: whether weights of the chosen are scaled is fixed in llama.cpp, and no field."""
    inner = keys.integer("feed_forward_length", 0)
    shared = keys.integer("expert_shared_feed_forward_length", inner)
    return {"architectures": [architecture], "num_experts": keys.integer("expert_count"),
            "num_experts_per_tok": keys.integer("expert_used_count"),
            "moe_intermediate_size": keys.integer("expert_feed_forward_length", inner),
            "shared_expert_intermediate_size": shared, "norm_topk_prob": architecture == "Qwen3MoeForCausalLM"}


def _gemma_scale(keys: Keys, largest: int) -> int:
    """Gemma's scores are divided by the root of the head size, but of the largest model, by its layers: see above."""
    width, heads = keys.integer("embedding_length"), keys.integer("attention.head_count")
    if keys.integer("block_count") == largest:
        return width // max(1, heads)
    return keys.integer("attention.key_length", width // max(1, heads))


def _gemma2(keys: Keys) -> dict[str, Any]:
    return {"architectures": ["Gemma2ForCausalLM"], "query_pre_attn_scalar": _gemma_scale(keys, 46),
            **_window(keys, 4096),
            "attn_logit_softcapping": keys.number("attn_logit_softcapping", 50.0),
            "final_logit_softcapping": keys.number("final_logit_softcapping", 30.0)}


def _gemma3(keys: Keys) -> dict[str, Any]:
    caps = {name: keys.number(name) for name in ("attn_logit_softcapping", "final_logit_softcapping")
            if keys.has(name)}
    return {"architectures": ["Gemma3ForCausalLM"], "query_pre_attn_scalar": _gemma_scale(keys, 62), **_window(keys),
            **caps, "rope_local_base_freq": keys.number("rope.freq_base_swa", 10000.0),
            "rope_theta": keys.number("rope.freq_base", 1_000_000.0)}


_ARCHITECTURES: Mapping[str, Callable[[Keys], dict[str, Any]]] = {
    "llama": _llama, "gpt2": lambda keys: {},
    "qwen2": lambda keys: {"architectures": ["Qwen2ForCausalLM"]},
    "qwen3": lambda keys: {"architectures": ["Qwen3ForCausalLM"]},
    "qwen2moe": lambda keys: _experts(keys, "Qwen2MoeForCausalLM"),
    "qwen3moe": lambda keys: _experts(keys, "Qwen3MoeForCausalLM"),
    "gemma": lambda keys: {"architectures": ["GemmaForCausalLM"]}, "gemma2": _gemma2, "gemma3": _gemma3,
    "phi3": lambda keys: {"architectures": ["Phi3ForCausalLM"], **_window(keys)}}


def _as_stored(config: DecoderConfig, keys: Keys) -> DecoderConfig:
    """The configuration with what follows from the tensors: biases, divisors of frequencies, the order of rows."""
    tensors = keys.file.tensors
    config = replace(config, rotary=_rotary(config, keys), unit_norms=False)      # 1 is added when a file is written
    if keys.architecture != "llama":
        return config
    if config.rotary.size != config.head_size:
        raise keys.fields.refusal(f"{config.rotary.size} of {config.head_size} elements of a head are turned, in pairs "
                                  "of neighbours")
    return replace(config, paired=True, qkv_bias="blk.0.attn_q.bias" in tensors,
                   out_bias="blk.0.attn_output.bias" in tensors, mlp_bias="blk.0.ffn_gate.bias" in tensors)


def _rotary(config: DecoderConfig, keys: Keys) -> Rotary:
    """The rotary embedding with the divisors of frequencies that a file has as tensors."""
    rotary, tensors = config.rotary, keys.file.tensors

    def divisors(name: str) -> tuple[float, ...]:
        found = tensors[name]
        if found.encoding is not None or found.shape != (rotary.size // 2,):
            raise keys.fields.refusal(f"{name} is no tensor of {rotary.size // 2} numbers")
        return tuple(float(x) for x in found.bytes.astype(np.float32))

    factored = "rope_factors_short.weight" in tensors and "rope_factors_long.weight" in tensors
    if not factored and rotary.kind != "yarn" and keys.number("rope.scaling.attn_factor", 1.0) != 1.0:
        raise keys.fields.refusal(f"rope.scaling.attn_factor is set for a rotary embedding of the kind {rotary.kind}, "
                                  "which mlc does not run")
    if "rope_freqs.weight" in tensors:
        if rotary.kind != "default":
            raise keys.fields.refusal(f"it has rope_freqs.weight, and rope.scaling.type is {rotary.kind}")
        return replace(rotary, kind="divided", short=divisors("rope_freqs.weight"))
    if not factored:
        return rotary
    trained = keys.integer("rope.scaling.original_context_length", config.context)
    factor = config.context / max(1, trained)
    usual = 1.0 if factor <= 1 else float(np.sqrt(1 + np.log(factor) / np.log(trained)))
    return replace(rotary, kind="longrope", factor=factor, trained=trained,
                   magnitude=keys.number("rope.scaling.attn_factor", usual),
                   short=divisors("rope_factors_short.weight"), long=divisors("rope_factors_long.weight"))
