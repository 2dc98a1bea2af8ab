"""Small language models of every architecture, for tests: configurations, weights that follow from their names, and
folders of them. `tests/peers/language_models.py` has transformers run the same folders, and writes what it computes."""
from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from mlc import nn
from mlc.frontend.tensor import Tensor
from mlc.models.config import read_config
from mlc.models.fields import Fields
from mlc.models.folder import build
from mlc.models.text import Tokenizer

VOCABULARY = 99
PROMPT = [3, 14, 15, 92, 65, 35, 89, 79, 32, 38]
REFERENCE = Path(__file__).parent / "peers" / "language_models.json"

_BASE: dict[str, Any] = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


def _rope(kind: str, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 10000.0, "rope_type": kind, **more}}


def _case(architecture: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"architectures": [architecture], "model_type": kind, **_BASE, **more}


_LLAMA = ("LlamaForCausalLM", "llama")
_TRAINED = {"original_max_position_embeddings": 16}
_SHORT, _LONG = [1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.3]
CASES: dict[str, dict[str, Any]] = {
    "llama": _case(*_LLAMA, rope_theta=10000.0),
    "llama-biases": _case(*_LLAMA, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    "llama-3": _case(*_LLAMA, **_rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, **_TRAINED)),
    "llama-linear": _case(*_LLAMA, **_rope("linear", factor=2.0)),
    "llama-dynamic": _case(*_LLAMA, **{**_rope("dynamic", factor=4.0), "max_position_embeddings": 32}),
    "llama-yarn": _case(*_LLAMA, **_rope("yarn", factor=4.0, **_TRAINED)),
    "mistral": _case("MistralForCausalLM", "mistral", sliding_window=5, head_dim=16),
    "qwen2": _case("Qwen2ForCausalLM", "qwen2", use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen3": _case("Qwen3ForCausalLM", "qwen3", head_dim=16),
    "gemma": _case("GemmaForCausalLM", "gemma", head_dim=16, hidden_act="gelu_pytorch_tanh", tie_word_embeddings=True),
    "gemma2": _case("Gemma2ForCausalLM", "gemma2", head_dim=16, sliding_window=5, query_pre_attn_scalar=16,
                    attn_logit_softcapping=2.0, final_logit_softcapping=3.0, tie_word_embeddings=True),
    "gemma3": _case("Gemma3ForCausalLM", "gemma3_text", head_dim=16, sliding_window=5, query_pre_attn_scalar=16,
                    layer_types=["sliding_attention", "full_attention"], rope_theta=1e6, rope_local_base_freq=10000.0,
                    tie_word_embeddings=True),
    "phi3": _case("Phi3ForCausalLM", "phi3", sliding_window=5),
    "phi3-long": _case("Phi3ForCausalLM", "phi3", **_rope("longrope", short_factor=_SHORT, long_factor=_LONG),
                       **_TRAINED),
    "mixtral": _case("MixtralForCausalLM", "mixtral", num_local_experts=4, num_experts_per_tok=2),
    "qwen2-moe": _case("Qwen2MoeForCausalLM", "qwen2_moe", num_experts=4, num_experts_per_tok=2,
                       moe_intermediate_size=24, shared_expert_intermediate_size=40),
    "qwen3-moe": _case("Qwen3MoeForCausalLM", "qwen3_moe", head_dim=16, num_experts=4, num_experts_per_tok=2,
                       moe_intermediate_size=24, norm_topk_prob=True),
    "gpt2": {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": VOCABULARY, "n_embd": 32,
             "n_layer": 2, "n_head": 4, "n_positions": 128, "bos_token_id": None, "eos_token_id": None}}


class ByName:
    """Parameters that follow from their names; it keeps them."""

    def __init__(self, unit_norms: bool) -> None:
        self.unit_norms = unit_norms
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        values = np.random.default_rng(zlib.crc32(name.encode())).normal(0, 0.25, shape).astype(np.float32)
        if len(shape) == 1 and not name.endswith("bias") and not self.unit_norms:
            values += 1
        self.arrays[name] = values
        return nn.Parameter(values, requires_grad=False)


def weights(config: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """All weights of a model by their names."""
    source = ByName("Gemma" in config["architectures"][0])
    build(read_config(Fields(config, "config")), source)
    return source.arrays


def write_folder(config: dict[str, Any], folder: Path) -> Path:
    """A folder of a model, without a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    nn.save_safetensors(folder / "model.safetensors", weights(config))
    return folder


def write_tokenizer(folder: Path) -> Tokenizer:
    """Add a tokenizer of single letters: "a" to "z", and a space, are the tokens 1 to 27."""
    from tokenizers import Tokenizer as Rules
    from tokenizers import decoders, models, pre_tokenizers
    letters = {"<end>": 0, **{c: i for i, c in enumerate("abcdefghijklmnopqrstuvwxyz ", 1)}}
    letters |= {f"<{i}>": i for i in range(len(letters), VOCABULARY)}
    rules = Rules(models.WordLevel(letters, unk_token="<end>"))
    rules.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    rules.decoder = decoders.Fuse()
    rules.save(str(folder / "tokenizer.json"))
    return Tokenizer.of_file(folder / "tokenizer.json")
