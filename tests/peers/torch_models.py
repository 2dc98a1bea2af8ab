"""Models of torchvision, timm and transformers in small random configurations, for `tests.peers.torch_backend`."""

from __future__ import annotations

from typing import Any

from tests.peers.torch_detectors import DETECTORS, declare_nms, detector

TORCHVISION = (
    "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "inception_v3",
    "maxvit_t", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18",
    "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_0", "swin_t", "swin_v2_t", "vgg11", "vgg11_bn", "vit_b_16",
    "wide_resnet50_2",
    "segmentation.deeplabv3_mobilenet_v3_large", "segmentation.fcn_resnet50", "segmentation.lraspp_mobilenet_v3_large",
    *(f"detection.{name}" for name in DETECTORS), "video.r3d_18", "video.mvit_v1_b", "video.swin3d_t")
TIMM = (
    "bat_resnext26ts", "beit_base_patch16_224", "botnet26t_256", "cait_xxs24_224", "coat_tiny", "coatnet_0_rw_224",
    "convit_tiny", "convmixer_768_32", "convnextv2_atto", "crossvit_tiny_240", "cs3darknet_s", "darknet53",
    "davit_tiny", "deit_tiny_patch16_224", "dla34", "dpn48b", "edgenext_xx_small", "efficientformer_l1",
    "efficientnet_lite0", "eva02_tiny_patch14_224", "fastvit_t8", "focalnet_tiny_srf", "gcvit_xxtiny", "ghostnet_100",
    "hardcorenas_a", "hrnet_w18_small", "inception_next_atto", "lambda_resnet26t", "lcnet_050", "levit_128s",
    "mixer_s16_224", "mobileone_s0", "mobilevit_xxs", "mvitv2_tiny", "nest_tiny", "nfnet_l0", "pit_ti_224",
    "poolformer_s12", "pvt_v2_b0", "regnetx_002", "repvgg_a0", "res2net50_26w_4s", "resmlp_12_224", "resnet10t",
    "resnetv2_50", "rexnet_100", "selecsls42", "sequencer2d_s", "seresnet18", "skresnet18", "tinynet_e",
    "tiny_vit_5m_224", "tnt_s_patch16_224", "twins_svt_small", "vgg11", "visformer_tiny", "volo_d1_224",
    "vovnet39a", "xcit_nano_12_p16_224")
TEXT = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37,
            "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = TEXT | {"num_key_value_heads": 2}
PATCHES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37,
    "image_size": 32,
               "patch_size": 8}
TRANSFORMERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "bert": ("BertModel", TEXT, "text"), "roberta": ("RobertaModel", TEXT, "text"),
    "distilbert": ("DistilBertModel", {"vocab_size": 64, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37},
        "text"),
    "albert": ("AlbertModel", TEXT | {"embedding_size": 16}, "text"),
    "electra": ("ElectraModel", TEXT | {"embedding_size": 16}, "text"),
    "deberta_v2": ("DebertaV2Model", TEXT | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}, "text"),
    "mpnet": ("MPNetModel", TEXT, "text"), "camembert": ("CamembertModel", TEXT, "text"),
    "xlm_roberta": ("XLMRobertaModel", TEXT, "text"), "mobilebert": ("MobileBertModel", TEXT | {
        "embedding_size": 16, "intra_bottleneck_size": 32}, "text"),
    "squeezebert": ("SqueezeBertModel", TEXT | {"embedding_size": 32, "intermediate_size": 48}, "text"),
    "convbert": ("ConvBertModel", TEXT | {"embedding_size": 16}, "text"), "fnet": ("FNetModel", TEXT, "text"),
    "roformer": ("RoFormerModel", TEXT, "text"), "nystromformer": ("NystromformerModel", TEXT, "text"),
    "modernbert": ("ModernBertModel", TEXT | {"reference_compile": False}, "text"),
    "gpt2": ("GPT2LMHeadModel", {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}, "text"),
    "gpt_neo": ("GPTNeoForCausalLM", {"vocab_size": 64, "hidden_size": 32, "num_layers": 2, "num_heads": 4,
        "attention_types": [
        [["global", "local"], 1]], "max_position_embeddings": 64}, "text"),
    "gpt_neox": ("GPTNeoXForCausalLM", TEXT, "text"),
    "gptj": ("GPTJForCausalLM", {"vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4,
        "n_positions": 64},
             "text"),
    "opt": ("OPTForCausalLM", TEXT | {"ffn_dim": 37, "word_embed_proj_dim": 32}, "text"),
    "bloom": ("BloomForCausalLM", {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4}, "text"),
    "llama": ("LlamaForCausalLM", GROUPED, "text"), "mistral": ("MistralForCausalLM", GROUPED, "text"),
    "mixtral": ("MixtralForCausalLM", GROUPED | {"num_local_experts": 4, "intermediate_size": 48}, "text"),
    "qwen2": ("Qwen2ForCausalLM", GROUPED, "text"), "qwen3": ("Qwen3ForCausalLM", GROUPED | {"head_dim": 8}, "text"),
    "qwen2_moe": ("Qwen2MoeForCausalLM", GROUPED | {"num_experts": 4, "moe_intermediate_size": 16,
                                                        "shared_expert_intermediate_size": 16}, "text"),
    "gemma": ("GemmaForCausalLM", GROUPED | {"head_dim": 8}, "text"),
    "gemma2": ("Gemma2ForCausalLM", GROUPED | {"head_dim": 8}, "text"),
    "phi": ("PhiForCausalLM", TEXT, "text"), "phi3": ("Phi3ForCausalLM", GROUPED, "text"),
    "falcon": ("FalconForCausalLM", TEXT, "text"), "stablelm": ("StableLmForCausalLM", GROUPED, "text"),
    "olmo": ("OlmoForCausalLM", GROUPED, "text"), "cohere": ("CohereForCausalLM", GROUPED, "text"),
    "starcoder2": ("Starcoder2ForCausalLM", GROUPED, "text"),
    "mamba": ("MambaForCausalLM", {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
        "text"),
    "t5": ("T5ForConditionalGeneration", {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2,
        "num_heads": 4,
                                              "decoder_start_token_id": 0}, "pair"),
    "bart": ("BartForConditionalGeneration", {
        "vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 37, "decoder_ffn_dim": 37, "max_position_embeddings": 64},
            "pair"),
    "pegasus": ("PegasusForConditionalGeneration", {
        "vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 37, "decoder_ffn_dim": 37, "max_position_embeddings": 64},
            "pair"),
    "vit": ("ViTModel", PATCHES, "image"), "deit": ("DeiTModel", PATCHES, "image"),
    "beit": ("BeitModel", PATCHES, "image"), "dinov2": ("Dinov2Model", PATCHES, "image"),
    "convnext": ("ConvNextModel", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, "image"),
    "swin": ("SwinModel", {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2],
                               "window_size": 4}, "image"),
    "resnet": ("ResNetModel", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
        "image"),
    "segformer": ("SegformerModel", {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1],
        "hidden_sizes": [16, 32],
                                         "num_attention_heads": [1, 2], "patch_sizes": [3, 3], "strides": [2, 2],
                                         "mlp_ratios": [2, 2]}, "image"),
    "clip_vision": ("CLIPVisionModel", PATCHES, "image"), "siglip_vision": ("SiglipVisionModel", PATCHES, "image"),
    "wav2vec2": ("Wav2Vec2Model", {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37, "conv_dim": [16,
            16],
        "conv_stride": [4, 4], "conv_kernel": [8, 8], "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
        "num_conv_pos_embedding_groups": 2}, "sound"),
    "hubert": ("HubertModel", {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37, "conv_dim": [16,
            16],
        "conv_stride": [4, 4], "conv_kernel": [8, 8], "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
        "num_conv_pos_embedding_groups": 2}, "sound"),
    "whisper": ("WhisperModel", {
        "vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 37, "decoder_ffn_dim": 37, "num_mel_bins": 8,
            "max_source_positions": 30,
        "max_target_positions": 32, "pad_token_id": 0, "decoder_start_token_id": 1}, "spectrum"),
    "mamba2": ("Mamba2ForCausalLM", {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8,
        "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 4}, "text"),
    "clip": ("CLIPModel", {"text_config": TEXT, "vision_config": PATCHES, "projection_dim": 16}, "both"),
    "siglip": ("SiglipModel", {"text_config": TEXT, "vision_config": PATCHES}, "both"),
    "blip": ("BlipModel", {"text_config": TEXT, "vision_config": PATCHES, "projection_dim": 16}, "both"),
    "vilt": ("ViltModel", TEXT | PATCHES, "both"),
    "git": ("GitForCausalLM", TEXT | {"vision_config": PATCHES}, "both"),
    "llava": ("LlavaForConditionalGeneration", {
        "text_config": GROUPED | {"model_type": "llama"},
        "vision_config": PATCHES | {"model_type": "clip_vision_model"},
        "image_token_index": 63, "vision_feature_layer": -1}, "image in text"),
}
Made = tuple[Any, tuple[Any, ...], dict[str, Any]]


def model_names() -> list[str]:
    return [f"transformers.{n}" for n in TRANSFORMERS] + [f"torchvision.{n}" for n in TORCHVISION] + [
        f"timm.{n}" for n in TIMM]


def made(name: str) -> Made:
    """A model, and the arguments of a call."""
    library, _, rest = name.partition(".")
    declare_nms()
    return {"torchvision": of_torchvision, "timm": of_timm, "transformers": of_transformers}[library](rest)


def of_torchvision(name: str) -> Made:
    import torch
    import torchvision
    if name.startswith("detection"):
        found: Made = detector(name.partition(".")[2])
        return found
    keywords: dict[str, Any] = {"weights": None}
    if name.startswith("segmentation"):
        keywords["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        keywords |= {"init_weights": False, "aux_logits": False}
    model = torchvision.models.get_model(name.partition(".")[2] or name, **keywords)
    if name.startswith("video"):
        size = (2, 3, 16, 224, 224) if "mvit" in name else (2, 3, 4, 32, 32)
        return model, (torch.randn(size),), {}
    side = {"inception_v3": 128, "maxvit_t": 224, "vit_b_16": 224, "alexnet": 96}.get(name, 64)
    return model, (torch.randn(2, 3, side, side),), {}


FEWER: tuple[dict[str, Any], ...] = ({"depth": 2}, {"depths": (1, 1, 1, 1)}, {"layers": (1, 1, 1, 1)}, {})
"""Settings that make models of timm shallow, of which each family has one, or none."""
SIDES = (64, 96, 128)


def of_timm(name: str) -> Made:
    """The shallowest model that there is of the name, for the smallest images that it takes."""
    import timm
    import torch
    for keywords in FEWER:
        try:
            model = timm.create_model(name, pretrained=False, num_classes=10, **keywords)
            native = model.pretrained_cfg["input_size"][-1]
            fixed = model.pretrained_cfg.get("fixed_input_size")
        except (AssertionError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
            continue                                       # it has no such setting
        for side in (*SIDES, native):
            try:
                if fixed and side != native:
                    model = timm.create_model(name, pretrained=False, num_classes=10, img_size=side, **keywords)
                elif fixed:
                    model = timm.create_model(name, pretrained=False, num_classes=10, **keywords)
                x = torch.randn(2, 3, side, side)
                with torch.no_grad():
                    model.eval()(x)
                    model.train()(x)
            except (AssertionError, IndexError, RuntimeError, TypeError, ValueError):
                continue                                   # images of this size are too small
            return model, (x,), {}
    raise RuntimeError("timm has no such model")


def of_transformers(name: str) -> Made:
    import torch
    import transformers
    kind, settings, inputs = TRANSFORMERS[name]
    of_model = getattr(transformers, kind)
    config = of_model.config_class(**settings)
    for known in ("text_config", "vision_config"):
        config = getattr(config, known, config) if config.__class__ is not of_model.config_class else config
    model = of_model(config)
    words = torch.randint(3, 64, (2, 12))
    arguments = {
        "text": {"input_ids": words}, "pair": {"input_ids": words, "decoder_input_ids": words[:, :7]},
        "image": {"pixel_values": torch.randn(2, 3, 32, 32)}, "sound": {"input_values": torch.randn(2, 800)},
        "spectrum": {"input_features": torch.randn(2, 8, 60), "decoder_input_ids": words[:, :7]},
        "both": {"input_ids": words, "pixel_values": torch.randn(2, 3, 32, 32)},
        "image in text": {"input_ids": torch.cat((torch.full((2, 16), 63), words % 60), 1),
                          "pixel_values": torch.randn(2, 3, 32, 32)}}[inputs]
    if "use_cache" in config.to_dict():
        arguments["use_cache"] = False
    return model, (), arguments
