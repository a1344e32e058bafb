"""Small random-weight models of vLLM's own classes on the fake GPU."""
import contextlib
import dataclasses

import fake_gpu
import torch
import vllm._C_stable_libtorch  # noqa: F401
import vllm._custom_ops as ops
from vllm.config import set_current_vllm_config
from vllm.engine.arg_utils import EngineArgs
from vllm.forward_context import set_forward_context
from vllm.model_executor.model_loader.utils import initialize_model, process_weights_after_loading

with contextlib.suppress(ImportError):
    import vllm._moe_C_stable_libtorch  # noqa: F401

TOKENS = 64  # the most in a step
_SIZES = {
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
}
_EXPERTS = {
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 128,
    "decoder_sparse_step": 1,
    "norm_topk_prob": True,
    "mlp_only_layers": [],
}
_GEMMA = {"head_dim": 64, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 64, "sliding_window": 128, "rms_norm_eps": 1e-6}
_STATIC = {"quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}}
_LATENT = {
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 128,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "routed_scaling_factor": 1.0,
    "scoring_func": "softmax",
    "topk_method": "greedy",
    "norm_topk_prob": True,
    "num_key_value_heads": 4,
}
CONFIGS = {
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "head_dim": 64},
    "llama_deep": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "head_dim": 64, "num_hidden_layers": 4},
    "qwen2": {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]},
    "qwen3": {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "head_dim": 64},
    "gemma2": {
        "model_type": "gemma2",
        "architectures": ["Gemma2ForCausalLM"],
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        **_GEMMA,
    },
    "gemma3": {"model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], **_GEMMA},
    "mixtral": {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "head_dim": 64, **_EXPERTS},
    "deepseek_v2": {"model_type": "deepseek_v2", "architectures": ["DeepseekV2ForCausalLM"], **_LATENT},
    "opt": {
        "model_type": "opt",
        "architectures": ["OPTForCausalLM"],
        "ffn_dim": 512,
        "word_embed_proj_dim": 256,
        "do_layer_norm_before": True,
        "activation_function": "relu",
    },
    "gpt2": {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": 256,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 256,
        "activation_function": "gelu_new",
        "tie_word_embeddings": True,
    },
    "phi3": {"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "original_max_position_embeddings": 256},
    "llama_fp8": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "head_dim": 64, **_STATIC},
}


@dataclasses.dataclass
class Model:
    """A model and its config."""

    module: torch.nn.Module
    config: object

    def __call__(self, tokens):
        """Runs a step without a KV cache, as vLLM does when it measures memory."""
        ids = torch.arange(tokens, dtype=torch.int32) % 512
        with set_forward_context(None, self.config, num_tokens=tokens), set_current_vllm_config(self.config, check_compile=False), torch.no_grad():
            return self.module(ids, torch.arange(tokens, dtype=torch.int64))


def config_of(name, custom_ops=("none",), passes=None, mode=3, additional=None, **compilation):
    """Returns vLLM's config for a model."""
    settings = {
        "mode": mode,
        "custom_ops": list(custom_ops),
        "pass_config": {"eliminate_noops": True, **(passes or {})},
        "cudagraph_mode": "NONE",
        **compilation,
    }
    args = EngineArgs(
        model=fake_gpu.write_config(name, {**_SIZES, **CONFIGS[name]}),
        load_format="dummy",
        skip_tokenizer_init=True,
        max_model_len=TOKENS,
        max_num_seqs=4,
        max_num_batched_tokens=TOKENS,
        dtype="bfloat16",
        compilation_config=settings,
        tensor_parallel_size=fake_gpu.RANKS,
        distributed_executor_backend="mp" if fake_gpu.RANKS > 1 else "uni",
        additional_config=additional or {},
    )
    config = args.create_engine_config()
    config.device_config.device, config.device_config.device_type = torch.device("cpu"), "cpu"
    return config


def _quantised(x, scale=None, *args, **kwargs):
    """Quantises weights on the CPU, where vLLM's kernel does not run."""
    return x.to(torch.float8_e4m3fn), scale if scale is not None else torch.ones(1, dtype=torch.float32)


def made(config, seed=0):
    """Returns a model with random weights."""
    fake_gpu.join(config)
    torch._dynamo.reset()
    kernel = ops.scaled_fp8_quant
    with set_current_vllm_config(config), config.kernel_config.ir_op_priority.set_priority():
        torch.set_default_dtype(torch.bfloat16)
        torch.manual_seed(seed)
        module = initialize_model(config)
        for weight in module.parameters():
            weight.requires_grad_(False)
            if weight.dtype.is_floating_point and weight.dtype.itemsize > 1:
                weight.normal_(0, 0.05)
        ops.scaled_fp8_quant = _quantised
        try:
            process_weights_after_loading(module, config.model_config, torch.device("cpu"))
        finally:
            ops.scaled_fp8_quant = kernel
        torch.set_default_dtype(torch.float32)
    return Model(module, config)
