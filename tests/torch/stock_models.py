"""Stock models of transformers, small and randomly initialised: by name what makes (module, inputs, {argument: {dim, …}} of the dims that vary).

A model takes one tensor and returns one, with everything else of its own call fixed.
"""
import torch

TOKENS, BATCH, VOCABULARY, WIDTH, LAYERS, HEADS = 12, 2, 128, 64, 2, 4


class OneTensor(torch.nn.Module):
    """A model of transformers as a function of one tensor, returning one."""

    def __init__(self, model, key, name, more):
        super().__init__()
        self.model, self.key, self.name, self.more = model, key, name, more

    def forward(self, x):
        return self.model(**{self.name: x}, **self.more)[self.key]


def token_ids():
    return torch.randint(3, VOCABULARY, (BATCH, TOKENS), generator=torch.Generator().manual_seed(1))


def made(config, model, key, x, name, varies, more, options):
    import transformers

    config = getattr(transformers, config)(**options)
    cls = getattr(transformers, model)
    model = cls._from_config(config) if hasattr(cls, "_from_config") else cls(config)
    return OneTensor(model.eval(), key, name, more), (x,), {0: varies}


_TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": 96,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 64,
}


def causal(family, model=None, key="logits", more=None, **options):
    """A language model that predicts the next token."""
    sizes = _SIZES | {"num_key_value_heads": 2} | _TOKENS | options
    return lambda: made(
        f"{family}Config", model or f"{family}ForCausalLM", key, token_ids(), "input_ids", {0, 1}, {"use_cache": False} | (more or {}), sizes
    )


def without_nothing(options):
    """Some configurations refuse what they have no use for: None leaves an option out."""
    return {name: value for name, value in options.items() if value is not None}


def encoder(family, model=None, key="last_hidden_state", **options):
    """A model of text that sees the whole of it."""
    sizes = without_nothing(_SIZES | {"pad_token_id": 0} | options)
    return lambda: made(f"{family}Config", model or f"{family}Model", key, token_ids(), "input_ids", {0, 1}, {}, sizes)


def vision(family, model=None, key="last_hidden_state", size=32, **options):
    """A model of images; the batch varies."""
    images = torch.randn(BATCH, 3, size, size, generator=torch.Generator().manual_seed(2))
    sizes = {
        "image_size": size,
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": 96,
        "patch_size": 8,
    }
    return lambda: made(f"{family}Config", model or f"{family}Model", key, images, "pixel_values", {0}, {}, without_nothing(sizes | options))


def features(family, model, shape, name, varies, key="last_hidden_state", more=None, **options):
    """A model of sounds, or of other numbers."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    return lambda: made(f"{family}Config", model, key, x, name, set(varies), more or {}, options)


_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_SPEECH = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 96,
    "conv_dim": (32, 32),
    "conv_kernel": (10, 3),
    "conv_stride": (5, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
_GPT = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64}

MODELS = {
    # Decoders.
    "llama": causal("Llama"),
    "mistral": causal("Mistral", sliding_window=8),
    "mixtral": causal("Mixtral", num_local_experts=4, num_experts_per_tok=2),
    "qwen2": causal("Qwen2"),
    "qwen2_moe": causal("Qwen2Moe", shared_expert_intermediate_size=32, **_EXPERTS),
    "qwen3": causal("Qwen3", head_dim=16),
    "qwen3_moe": causal("Qwen3Moe", head_dim=16, **_EXPERTS),
    "gemma": causal("Gemma", head_dim=16),
    "gemma2": causal("Gemma2", head_dim=16, sliding_window=8),
    "gemma3": causal("Gemma3Text", "Gemma3ForCausalLM", head_dim=16, sliding_window=8),
    "phi": causal("Phi"),
    "phi3": causal("Phi3"),
    "olmo2": causal("Olmo2"),
    "olmoe": causal("Olmoe", num_experts=4, num_experts_per_tok=2),
    "granite": causal("Granite"),
    "stablelm": causal("StableLm"),
    "starcoder2": causal("Starcoder2"),
    "cohere": causal("Cohere"),
    "cohere2": causal("Cohere2", sliding_window=8),
    "nemotron": causal("Nemotron"),
    "glm": causal("Glm", head_dim=16),
    "smollm3": causal("SmolLM3"),
    "helium": causal("Helium", head_dim=16),
    "persimmon": causal("Persimmon"),
    "exaone4": causal("Exaone4", sliding_window=8),
    "llama4": causal("Llama4Text", "Llama4ForCausalLM", head_dim=16, intermediate_size_mlp=96, num_local_experts=4, attention_chunk_size=8),
    "deepseek_v3": causal(
        "DeepseekV3",
        n_routed_experts=4,
        num_local_experts=4,
        num_experts_per_tok=2,
        n_group=1,
        topk_group=1,
        num_key_value_heads=4,
        moe_intermediate_size=32,
        q_lora_rank=32,
        kv_lora_rank=32,
        qk_nope_head_dim=16,
        qk_rope_head_dim=16,
        v_head_dim=16,
        first_k_dense_replace=1,
    ),
    "gpt2": causal("GPT2", "GPT2LMHeadModel", **_GPT),
    "gpt_neo": causal("GPTNeo", attention_types=[[["global", "local"], 1]], num_layers=2, num_heads=HEADS, window_size=8),
    "gpt_neox": causal("GPTNeoX"),
    "gptj": causal("GPTJ", rotary_dim=16, **_GPT),
    "codegen": causal("CodeGen", rotary_dim=16, **_GPT),
    "gpt_bigcode": causal("GPTBigCode", **_GPT),
    "opt": causal("OPT", ffn_dim=96, word_embed_proj_dim=WIDTH),
    "bloom": causal("Bloom", n_layer=LAYERS, n_head=HEADS),
    "falcon": causal("Falcon"),
    "mpt": causal("Mpt", d_model=WIDTH, n_heads=HEADS, n_layers=LAYERS, max_seq_len=64),
    "biogpt": causal("BioGpt"),
    "xglm": causal("XGLM", d_model=WIDTH, ffn_dim=96, num_layers=LAYERS, attention_heads=HEADS),
    "mamba": causal("Mamba", state_size=8),
    "mamba2": causal("Mamba2", state_size=8, num_heads=8, head_dim=16, n_groups=1, chunk_size=8),
    "jamba": causal(
        "Jamba",
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        num_experts=4,
        mamba_d_state=8,
        use_mamba_kernels=False,
    ),
    # Encoders, and what has one.
    "bert": encoder("Bert"),
    "roberta": encoder("Roberta"),
    "distilbert": encoder("DistilBert", dim=WIDTH, hidden_dim=96, n_layers=LAYERS, n_heads=HEADS),
    "electra": encoder("Electra", embedding_size=32),
    "albert": encoder("Albert", embedding_size=32),
    "mpnet": encoder("MPNet"),
    "deberta": encoder("Deberta", relative_attention=True, pos_att_type="c2p|p2c"),
    "deberta_v2": encoder("DebertaV2", relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "modernbert": encoder("ModernBert", local_attention=8, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2),
    "longformer": encoder("Longformer", attention_window=4),
    "fnet": encoder("FNet", tpu_short_seq_length=TOKENS),
    "xlnet": encoder(
        "XLNet",
        max_position_embeddings=None,
        num_hidden_layers=None,
        hidden_size=None,
        num_attention_heads=None,
        d_model=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        d_inner=96,
    ),
    "squeezebert": encoder(
        "SqueezeBert", embedding_size=WIDTH, q_groups=2, k_groups=2, v_groups=2, post_attention_groups=1, intermediate_groups=2, output_groups=2
    ),
    "mobilebert": encoder("MobileBert", embedding_size=32, true_hidden_size=32, intra_bottleneck_size=32),
    "convbert": encoder("ConvBert", embedding_size=WIDTH, head_ratio=2, conv_kernel_size=3),
    "esm": encoder("Esm", position_embedding_type="rotary"),
    "roformer": encoder("RoFormer", embedding_size=WIDTH),
    "funnel": encoder(
        "Funnel",
        num_hidden_layers=None,
        hidden_size=None,
        num_attention_heads=None,
        block_sizes=[1, 1],
        num_decoder_layers=1,
        d_model=WIDTH,
        n_head=HEADS,
        d_head=16,
        d_inner=96,
    ),
    "t5": encoder("T5", "T5EncoderModel", d_model=WIDTH, d_kv=16, d_ff=96, num_layers=LAYERS, num_heads=HEADS),
    "bart": encoder(
        "Bart",
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        use_cache=False,
    ),
    # Images.
    "vit": vision("ViT"),
    "deit": vision("DeiT"),
    "beit": vision("Beit"),
    "dinov2": vision("Dinov2"),
    "siglip": vision("SiglipVision"),
    "clip": vision("CLIPVision"),
    "swin": vision(
        "Swin",
        num_attention_heads=None,
        num_hidden_layers=None,
        hidden_size=None,
        patch_size=2,
        embed_dim=16,
        depths=[1, 1],
        num_heads=[2, 4],
        window_size=4,
    ),
    "swinv2": vision(
        "Swinv2",
        num_attention_heads=None,
        num_hidden_layers=None,
        hidden_size=None,
        patch_size=2,
        embed_dim=16,
        depths=[1, 1],
        num_heads=[2, 4],
        window_size=4,
    ),
    "convnext": vision("ConvNext", patch_size=4, hidden_sizes=[8, 16], depths=[1, 1], num_stages=2),
    "convnextv2": vision("ConvNextV2", patch_size=4, hidden_sizes=[8, 16], depths=[1, 1], num_stages=2),
    "resnet": vision("ResNet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
    "segformer": vision(
        "Segformer",
        hidden_sizes=[16, 32],
        depths=[1, 1],
        num_encoder_blocks=2,
        num_attention_heads=[1, 2],
        sr_ratios=[4, 2],
        patch_sizes=[7, 3],
        strides=[4, 2],
        mlp_ratios=[2, 2],
    ),
    "mobilenet_v2": vision("MobileNetV2", depth_multiplier=0.25),
    "mobilevit": vision("MobileViT", size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 16, 24, 32, 40, 48, 64], patch_size=2),
    "poolformer": vision("PoolFormer", hidden_sizes=[8, 16], depths=[1, 1], num_encoder_blocks=2, patch_sizes=[7, 3], strides=[4, 2], padding=[2, 1]),
    "efficientnet": vision("EfficientNet", width_coefficient=0.25, depth_coefficient=0.25, hidden_dim=320),
    # Models for audio and time series.
    "wav2vec2": features("Wav2Vec2", "Wav2Vec2Model", (BATCH, 400), "input_values", [0], **_SPEECH),
    "hubert": features("Hubert", "HubertModel", (BATCH, 400), "input_values", [0], **_SPEECH),
    "whisper_encoder": lambda: whisper(),
    "ast": features(
        "AST",
        "ASTModel",
        (BATCH, 32, 32),
        "input_values",
        [0],
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=96,
        max_length=32,
        num_mel_bins=32,
    ),
}


def whisper():
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        num_mel_bins=16,
        max_source_positions=20,
        **(_TOKENS | {"decoder_start_token_id": 1}),
    )
    x = torch.randn(BATCH, 16, 40, generator=torch.Generator().manual_seed(4))
    encoder_of = transformers.WhisperModel._from_config(config).eval().encoder
    return OneTensor(encoder_of, "last_hidden_state", "input_features", {}), (x,), {0: {0}}
