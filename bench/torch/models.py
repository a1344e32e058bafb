"""Models of practical sizes with random weights: name -> () -> (module of one tensor, input)."""
import torch
from torch import nn


class Wrap(nn.Module):
    """A transformers model as a function of one tensor, returning one tensor."""

    def __init__(self, model, key, **more):
        super().__init__()
        self.model, self.key, self.more = model, key, more

    def forward(self, x):
        return getattr(self.model(x, **self.more), self.key)


class Bottleneck(nn.Module):
    """A block of ResNet-50 (arXiv:1512.03385, table 1)."""

    def __init__(self, width, into, stride):
        super().__init__()
        out = width * 4
        self.body = nn.Sequential(
            *(nn.Conv2d(into, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)),
        )
        self.skip = nn.Identity() if into == out else nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def resnet50():
    blocks, into = [], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            blocks.append(Bottleneck(width, into, stride if i == 0 else 1))
            into = width * 4
    head = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*head, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)), torch.randn(1, 3, 224, 224)


def gpt2():
    import transformers as T

    return Wrap(T.GPT2LMHeadModel(T.GPT2Config()), "logits", use_cache=False), torch.randint(0, 50257, (1, 128))


def llama():
    """Returns four layers of the shape of a model with 1.1 · 10⁹ weights."""
    import transformers as T

    config = T.LlamaConfig(
        vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=4
    )
    return Wrap(T.LlamaForCausalLM(config), "logits", use_cache=False), torch.randint(0, 32000, (1, 128))


def bert():
    import transformers as T

    return Wrap(T.BertModel(T.BertConfig()), "last_hidden_state"), torch.randint(0, 30000, (1, 128))


def vit():
    import transformers as T

    return Wrap(T.ViTModel(T.ViTConfig()), "last_hidden_state"), torch.randn(1, 3, 224, 224)


def whisper():
    import transformers as T

    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    return Wrap(WhisperEncoder(T.WhisperConfig()), "last_hidden_state"), torch.randn(1, 80, 3000)


class Decode(nn.Module):
    """One token after `past` others, whose keys and values are in a static cache."""

    def __init__(self, model, past=128, most=256):
        super().__init__()
        import transformers as T

        self.model, self.cache = model, T.StaticCache(config=model.config, max_cache_len=most)
        self.register_buffer("place", torch.tensor([past]), persistent=False)

    def forward(self, x):
        return self.model(x, past_key_values=self.cache, cache_position=self.place, position_ids=self.place[None]).logits


def llama_decode():
    return Decode(llama()[0].model), torch.randint(0, 32000, (1, 1))


def qwen3_moe():
    """Returns two layers of 16 experts, of which a token uses four."""
    import transformers as T

    config = T.Qwen3MoeConfig(
        **{"vocab_size": 8000, "hidden_size": 1024, "intermediate_size": 2048, "moe_intermediate_size": 512, "num_hidden_layers": 2},
        **{"num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "num_experts": 16, "num_experts_per_tok": 4},
    )
    return Wrap(T.Qwen3MoeForCausalLM(config), "logits", use_cache=False), torch.randint(0, 8000, (1, 128))


def images(name):
    """Returns a function that makes a model of timm."""

    def make():
        import timm

        return timm.create_model(name), torch.randn(1, 3, 224, 224)

    return make


MODELS = {
    **{"gpt2": gpt2, "llama": llama, "llama_decode": llama_decode, "bert": bert, "qwen3_moe": qwen3_moe, "whisper": whisper},
    **{"resnet50": resnet50, "vit": vit, "vit_tiny": images("vit_tiny_patch16_224"), "resnet18": images("resnet18")},
    "mobilenetv3": images("mobilenetv3_large_100"),
}
