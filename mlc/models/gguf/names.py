"""Names of weights in GGUF files, as transformers has them: `blk.0.attn_q.weight` is
`model.layers.0.self_attn.q_proj.weight`.

A tensor of all experts of a layer is one per expert: a part of it along its first dimension.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mlc.models.config import DecoderConfig, GPT2Config, ModelConfig
from mlc.models.gguf.file import Stored

NOT_WEIGHTS = ("rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight")
"""Tensors that belong to the rotary embedding."""

_GPT2 = {"token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.ln_f",
         "output": "lm_head", "attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj",
         "ffn_norm": "ln_2", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}
_DECODER = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
            "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_qkv": "self_attn.qkv_proj",
            "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
            "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
            "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate", "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
            "ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
            "ffn_down_shexp": "mlp.shared_expert.down_proj"}
_AFTER_NORMS = {"ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm",
                "post_ffw_norm": "post_feedforward_layernorm"}
_EXPERTS = {"mixtral": {"ffn_gate_exps": "w1", "ffn_up_exps": "w3", "ffn_down_exps": "w2"},
            "qwen": {"ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj", "ffn_down_exps": "down_proj"}}


def renamed(tensors: Mapping[str, Stored], config: ModelConfig) -> Iterator[tuple[str, Stored]]:
    """The weights of a file under the names of transformers; a name that is not known stays as it is."""
    parts, layers, experts = table_of(config), _layers(config), _experts(config)
    for name, found in tensors.items():
        if name in NOT_WEIGHTS:
            continue
        match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", name)
        part, kind = (match[2], match[3]) if match else ("", "")
        inner = f"{layers}.{match[1]}." if match and match[1] is not None else ""
        if match and part in experts:
            yield from _of_each(found, inner + experts[part] + f".{kind}")
        elif part in parts:
            vector = part == "ffn_gate_inp_shexp" and len(found.shape) == 1
            yield f"{inner}{parts[part]}.{kind}", _row(found) if vector else found
        else:
            yield name, found


def table_of(config: ModelConfig) -> Mapping[str, str]:
    """The parts of names of transformers by those of GGUF files."""
    if isinstance(config, GPT2Config):
        return _GPT2
    table = {**_DECODER, **(_AFTER_NORMS if config.after_norms else {})}
    if config.fused:
        table["ffn_up"] = "mlp.gate_up_proj"
    if config.experts is not None and config.experts.style == "mixtral":
        table["ffn_gate_inp"] = "block_sparse_moe.gate"
    return table


def _layers(config: ModelConfig) -> str:
    return "transformer.h" if isinstance(config, GPT2Config) else "model.layers"


def _experts(config: ModelConfig) -> Mapping[str, str]:
    """The names of the weights of experts, with a place for the number of the expert."""
    if not isinstance(config, DecoderConfig) or config.experts is None:
        return {}
    style = config.experts.style
    around = "block_sparse_moe" if style == "mixtral" else "mlp"
    return {part: f"{around}.experts.{{}}.{name}" for part, name in _EXPERTS[style].items()}


def of_experts(config: DecoderConfig) -> Mapping[str, Sequence[str]]:
    """The names of transformers of the weights that a tensor of all experts of a layer consists of."""
    if config.experts is None:
        return {}
    return {f"blk.{i}.{part}.weight": [f"{_layers(config)}.{i}.{name.format(e)}.weight"
                                       for e in range(config.experts.count)]
            for i in range(config.layers) for part, name in _experts(config).items()}


def _of_each(found: Stored, name: str) -> Iterator[tuple[str, Stored]]:
    for i in range(found.shape[0]):
        yield name.format(i), Stored(found.bytes[i], found.shape[1:], found.encoding)


def _row(found: Stored) -> Stored:
    return Stored(found.bytes[None], (1, *found.shape), found.encoding)
