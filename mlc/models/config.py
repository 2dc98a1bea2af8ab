"""Descriptions of decoders: what the layers consist of, in the words of this package, read from a `config.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlc.models.fields import Fields
from mlc.models.rotary import Rotary, read_rotary


@dataclass(frozen=True)
class Experts:
    """A mixture of experts in place of the feed-forward network.

    count         number of experts
    chosen        experts per token
    width         inner width of an expert
    shared_width  inner width of an expert that all tokens have; 0 for none
    normalised    whether the weights of the chosen experts are scaled to sum up to 1
    style         names of the parameters: "mixtral" or "qwen"
    """

    count: int
    chosen: int
    width: int
    shared_width: int
    normalised: bool
    style: str


@dataclass(frozen=True)
class DecoderConfig:
    """A decoder of the Llama family: what is the same in all layers, and what differs.

    architecture     its name in transformers
    vocabulary, width, inner_width, layers, heads, kv_heads, head_size
                     sizes; `inner_width` is that of the feed-forward network
    context          greatest number of positions
    epsilon          of the norms
    activation       of the feed-forward network: "silu", "gelu" or "gelu_tanh"
    rotary           how queries and keys are turned
    local_rotary     the same in layers with a window, where it differs
    windows          per layer: how many positions back it sees, itself included; 0 for all
    tied             whether the scores are computed with the embeddings
    qkv_bias, out_bias, mlp_bias
                     which linear maps have a bias
    qk_norm          whether queries and keys are normalised per head
    fused            whether q, k and v are one map, and gate and up another
    scale            factor of the attention scores
    score_cap        softcap of the attention scores; None for none
    logit_cap        softcap of the scores of tokens; None for none
    embedding_scale  factor of the embeddings
    unit_norms       whether the weights of norms are deviations from 1
    after_norms      whether attention and feed-forward network have norms behind them, too
    experts          a mixture of experts; None for one feed-forward network
    paired           whether the rows of queries and keys are in pairs (i, i + head_size / 2), as llama.cpp has them
    """

    architecture: str
    vocabulary: int
    width: int
    inner_width: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    context: int
    epsilon: float
    activation: str
    rotary: Rotary
    windows: tuple[int, ...]
    scale: float
    tied: bool
    local_rotary: Rotary | None = None
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    fused: bool = False
    score_cap: float | None = None
    logit_cap: float | None = None
    embedding_scale: float = 1.0
    unit_norms: bool = False
    after_norms: bool = False
    experts: Experts | None = None
    paired: bool = False


@dataclass(frozen=True)
class GPT2Config:
    """A decoder of the GPT-2 family: learned positions, layer norms, biases everywhere.

    vocabulary, width, inner_width, layers, heads, context
                 sizes
    epsilon      of the norms
    activation   of the feed-forward network
    tied         whether the scores are computed with the embeddings
    scaled       whether attention scores are divided by the square root of the head size
    transposed   whether the weights of linear maps are [columns, rows]
    """

    vocabulary: int
    width: int
    inner_width: int
    layers: int
    heads: int
    context: int
    epsilon: float
    activation: str
    tied: bool
    scaled: bool
    transposed: bool = True

    architecture: str = "GPT2LMHeadModel"

    @property
    def kv_heads(self) -> int:
        return self.heads

    @property
    def head_size(self) -> int:
        return self.width // self.heads


ModelConfig = DecoderConfig | GPT2Config

MOST_LAYERS = 4096
"""More layers are a damaged file, and not a model."""
ACTIVATION_NAMES = {"silu": "silu", "swish": "silu", "gelu": "gelu", "gelu_pytorch_tanh": "gelu_tanh",
                    "gelu_new": "gelu_tanh", "relu": "relu"}
ENCODERS = {"BertModel": "bert", "BertForMaskedLM": "bert", "RobertaModel": "roberta", "RobertaForMaskedLM": "roberta",
            "XLMRobertaModel": "roberta", "XLMRobertaForMaskedLM": "roberta", "DistilBertModel": "distilbert",
            "DistilBertForMaskedLM": "distilbert", "NomicBertModel": "bert"}
"""Architectures of encoders (encoder_config.py), each with the name that its models with a head have for it."""
_WINDOWED, _FULL = "sliding_attention", "full_attention"
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "MistralForCausalLM": {"num_key_value_heads": 8, "max_position_embeddings": 131072, "sliding_window": 4096},
    "MixtralForCausalLM": {"num_key_value_heads": 8, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
                           "rope_theta": 1e6},
    "Qwen2ForCausalLM": {"num_key_value_heads": 32, "max_position_embeddings": 32768, "sliding_window": 4096},
    "Qwen3ForCausalLM": {"num_key_value_heads": 32, "max_position_embeddings": 32768, "sliding_window": 4096,
                         "head_dim": 128},
    "Qwen2MoeForCausalLM": {"num_key_value_heads": 16, "max_position_embeddings": 32768, "sliding_window": 4096},
    "Qwen3MoeForCausalLM": {"num_key_value_heads": 4, "max_position_embeddings": 32768, "sliding_window": 4096},
    "GemmaForCausalLM": {"num_key_value_heads": 16, "max_position_embeddings": 8192, "head_dim": 256,
                         "tie_word_embeddings": True},
    "Gemma2ForCausalLM": {"num_key_value_heads": 4, "max_position_embeddings": 8192, "head_dim": 256,
                          "tie_word_embeddings": True, "sliding_window": 4096, "attn_logit_softcapping": 50.0,
                          "final_logit_softcapping": 30.0},
    "Gemma3ForCausalLM": {"num_key_value_heads": 4, "max_position_embeddings": 131072, "head_dim": 256,
                          "tie_word_embeddings": True, "sliding_window": 4096, "rope_theta": 1e6},
    "Phi3ForCausalLM": {"max_position_embeddings": 4096, "original_max_position_embeddings": 4096,
                        "rms_norm_eps": 1e-5}}
"""The values of fields that are left out, where they are not those of Llama (the classes of configurations of
transformers 5.24). A field that is there and null means that there is none."""


def read_config(fields: Fields) -> ModelConfig:
    """The decoder that a `config.json` describes.

    Raises:
        UserError: mlc does not run the architecture, or one of its features (MLC0911).
    """
    name = architecture_of(fields)
    if name in ENCODERS:
        raise fields.refusal(f"{name} is an encoder, which gives vectors of texts",
                             "decoders are " + ", ".join(sorted(_READERS)))
    reader = _READERS.get(name)
    if reader is None:
        raise fields.refusal(f"the architecture is {name}", "mlc runs " + ", ".join(sorted([*_READERS, *ENCODERS])))
    return reader(Fields({**_DEFAULTS.get(name, {}), **fields.data}, fields.origin))


def architecture_of(fields: Fields) -> str:
    """The name of the architecture that a `config.json` describes."""
    names = fields.data.get("architectures")
    name = names[0] if isinstance(names, list) and len(names) == 1 and isinstance(names[0], str) else None
    if name is None:
        raise fields.refusal(f"architectures is {names!r}, expected a list of one name")
    return name


def _llama(fields: Fields) -> DecoderConfig:
    """All that is common to the family: Llama itself, SmolLM, and the start of all others."""
    width, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    head_size = fields.integer("head_dim", width // max(1, heads))
    context, layers = fields.integer("max_position_embeddings", 2048), fields.integer("num_hidden_layers")
    kv_heads = fields.integer("num_key_value_heads", heads)
    if heads < 1 or kv_heads < 1 or heads % kv_heads or head_size < 2:
        raise fields.refusal(f"{heads} heads of {head_size} elements do not share {kv_heads} heads of keys and values")
    _check_layers(fields, layers)
    biased = fields.flag("attention_bias", False)
    act = fields.choice("hidden_act", fields.text("hidden_activation", "silu"), list(ACTIVATION_NAMES))
    fields.only("pretraining_tp", (1,))
    rotary = read_rotary(fields, head_size, context)
    if rotary.kind == "dynamic":                           # which is there to see more than was trained
        context = int(context * rotary.factor)
    return DecoderConfig(
        fields.data["architectures"][0], fields.integer("vocab_size"), width, fields.integer("intermediate_size"),
        layers, heads, kv_heads, head_size, context, fields.positive("rms_norm_eps", 1e-6), ACTIVATION_NAMES[act],
        rotary, (0,) * layers, head_size ** -0.5,
        fields.flag("tie_word_embeddings", False), qkv_bias=biased, out_bias=biased,
        mlp_bias=fields.flag("mlp_bias", False))


def _check_layers(fields: Fields, layers: int) -> None:
    if not 1 <= layers <= MOST_LAYERS:
        raise fields.refusal(f"there are {layers} layers", f"mlc runs decoders of 1 to {MOST_LAYERS} layers")


def _windows(fields: Fields, config: DecoderConfig, default: Callable[[int], bool]) -> tuple[int, ...]:
    """The window of each layer: by `layer_types`, or by a rule for those that do not say."""
    window = fields.data.get("sliding_window")
    if window is None:
        return (0,) * config.layers
    size = fields.integer("sliding_window")
    if fields.data.get("layer_types") is None:
        return tuple(size * default(i) for i in range(config.layers))
    kinds = fields.sequence("layer_types")
    if len(kinds) != config.layers or not set(kinds) <= {_WINDOWED, _FULL}:
        raise fields.refusal(f"layer_types has {len(kinds)} of {', '.join(sorted(map(str, set(kinds))))}",
                             f"it has to name {config.layers} of {_WINDOWED} and {_FULL}")
    return tuple(size * (kind == _WINDOWED) for kind in kinds)


def _mistral(fields: Fields) -> DecoderConfig:
    config = replace(_llama(fields), qkv_bias=False, out_bias=False, mlp_bias=False)
    return replace(config, windows=_windows(fields, config, lambda layer: True))


def _qwen2(fields: Fields) -> DecoderConfig:
    config = replace(_llama(fields), qkv_bias=True, out_bias=False, mlp_bias=False)
    if not fields.flag("use_sliding_window", False):
        return config
    first = fields.integer("max_window_layers", 28)
    return replace(config, windows=_windows(fields, config, lambda layer: layer >= first))


def _qwen3(fields: Fields) -> DecoderConfig:
    biased = fields.flag("attention_bias", False)
    return replace(_qwen2(fields), qkv_bias=biased, out_bias=biased, qk_norm=True)


def _gemma(fields: Fields) -> DecoderConfig:
    act, old = fields.data.get("hidden_activation"), fields.data.get("hidden_act") or "gelu_pytorch_tanh"
    if act is None:                                        # the first checkpoints say gelu, and mean the approximation
        act = "gelu_pytorch_tanh" if old == "gelu" else old
    config = _llama(Fields({**fields.data, "hidden_act": act}, fields.origin))
    return replace(config, unit_norms=True, embedding_scale=config.width ** 0.5)


def _gemma2(fields: Fields) -> DecoderConfig:
    config = _gemma(fields)
    return replace(config, after_norms=True, scale=fields.number("query_pre_attn_scalar", 256) ** -0.5,
                   score_cap=fields.optional_number("attn_logit_softcapping"),
                   logit_cap=fields.optional_number("final_logit_softcapping"),
                   windows=_windows(fields, config, lambda layer: layer % 2 == 0))


def _gemma3(fields: Fields) -> DecoderConfig:
    """Five layers with a window and a rotary embedding of their own for each that sees all."""
    fields.only("use_bidirectional_attention", (False,))
    pattern = fields.integer("sliding_window_pattern", fields.integer("_sliding_window_pattern", 6))
    ropes = fields.mapping("rope_parameters") or {}
    nested = _FULL in ropes or _WINDOWED in ropes
    plain = Fields({**fields.data, "rope_parameters": ropes.get(_FULL, {}) if nested else ropes}, fields.origin)
    config = _gemma2(plain)
    local = {"rope_theta": fields.number("rope_local_base_freq", 10000.0), **ropes.get(_WINDOWED, {})}
    return replace(config, qk_norm=True, windows=_windows(fields, config, lambda layer: (layer + 1) % pattern != 0),
                   local_rotary=read_rotary(fields, config.head_size, config.context, given=local))


def _phi3(fields: Fields) -> DecoderConfig:
    config = replace(_llama(fields), qkv_bias=False, out_bias=False, mlp_bias=False, fused=True)
    return replace(config, windows=_windows(fields, config, lambda layer: True))


def _mixtral(fields: Fields) -> DecoderConfig:
    config = _mistral(fields)
    experts = Experts(fields.integer("num_local_experts", 8), fields.integer("num_experts_per_tok", 2),
                      config.inner_width, 0, True, "mixtral")
    return replace(config, experts=experts)


def _qwen2_moe(fields: Fields) -> DecoderConfig:
    fields.only("decoder_sparse_step", (1,))
    fields.only("mlp_only_layers", ([],))
    experts = Experts(fields.integer("num_experts", 60), fields.integer("num_experts_per_tok", 4),
                      fields.integer("moe_intermediate_size", 1408),
                      fields.integer("shared_expert_intermediate_size", 5632), fields.flag("norm_topk_prob", False),
                      "qwen")
    config, first = _qwen2(fields), fields.integer("max_window_layers", 28)
    if fields.flag("use_sliding_window", False):           # other layers have them than of Qwen2
        config = replace(config, windows=_windows(fields, config, lambda layer: layer % 2 == 0 and layer < first))
    return replace(config, experts=experts, qkv_bias=fields.flag("qkv_bias", True))


def _qwen3_moe(fields: Fields) -> DecoderConfig:
    fields.only("decoder_sparse_step", (1,))
    fields.only("mlp_only_layers", ([],))
    experts = Experts(fields.integer("num_experts", fields.integer("num_local_experts", 128)),
                      fields.integer("num_experts_per_tok", 8), fields.integer("moe_intermediate_size", 768), 0,
                      fields.flag("norm_topk_prob", False), "qwen")
    windowed = {**fields.data, "max_window_layers": 0, "layer_types": None}           # all layers or none
    return replace(_qwen3(Fields(windowed, fields.origin)), experts=experts)


def _gpt2(fields: Fields) -> GPT2Config:
    width = fields.integer("n_embd", 768)
    for name in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
        fields.only(name, (False,))
    act = fields.choice("activation_function", "gelu_new", list(ACTIVATION_NAMES))
    heads, layers = fields.integer("n_head", 12), fields.integer("n_layer", 12)
    _check_layers(fields, layers)
    if heads < 1 or width % heads:
        raise fields.refusal(f"{heads} heads do not divide a width of {width}")
    return GPT2Config(fields.integer("vocab_size", 50257), width, fields.integer("n_inner", 4 * width),
                      layers, heads, fields.integer("n_positions", 1024),
                      fields.positive("layer_norm_epsilon", 1e-5), ACTIVATION_NAMES[act],
                      fields.flag("tie_word_embeddings", True), fields.flag("scale_attn_weights", True))


_READERS: dict[str, Callable[[Fields], ModelConfig]] = {
    "LlamaForCausalLM": _llama, "MistralForCausalLM": _mistral, "Qwen2ForCausalLM": _qwen2,
    "Qwen3ForCausalLM": _qwen3, "GemmaForCausalLM": _gemma, "Gemma2ForCausalLM": _gemma2,
    "Gemma3ForCausalLM": _gemma3, "Phi3ForCausalLM": _phi3, "MixtralForCausalLM": _mixtral,
    "Qwen2MoeForCausalLM": _qwen2_moe, "Qwen3MoeForCausalLM": _qwen3_moe, "GPT2LMHeadModel": _gpt2}
