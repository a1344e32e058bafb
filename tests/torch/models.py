"""Small models, dumped as make_fx leaves them (writes and all) and after functionalisation."""
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.func import functionalize

HIDDEN, HEADS, TOKENS = 32, 4, 6


def norm(x, weight):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight


def gated_mlp(x, up, down, weight):
    """RMSNorm, a gated unit, a residual that is added in place."""
    gate, value = (norm(x, weight) @ up).chunk(2, -1)
    x.add_((torch.nn.functional.silu(gate) * value) @ down)
    return norm(x, weight)


def classifier(x, first, bias, second, last):
    """A perceptron, and probabilities spelled out."""
    h = torch.relu(torch.nn.functional.linear(x, first, bias))
    y = torch.nn.functional.linear(h, second, last)
    e = torch.exp(y - y.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def rotated(x, cos, sin):
    """Rotary embedding of a query inside a joint projection, written back through views of it."""
    query, rest = x.split([HIDDEN, x.shape[1] - HIDDEN], -1)
    heads = query.view(TOKENS, HEADS, HIDDEN // HEADS)
    half = heads.shape[-1] // 2
    one, two = heads[..., :half], heads[..., half:]
    turned = torch.cat([one * cos - two * sin, two * cos + one * sin], -1)
    heads.copy_(turned)
    return x, rest


def cached(keys, cache, position):
    """A cache that is a part of a larger buffer, written by a slice of it."""
    page = cache[1]
    page[2 : 2 + TOKENS].copy_(keys)
    return page.sum(0) + position, keys.neg()


def strided(x):
    """Every other column is doubled through a transposed view; the rest is read through the base."""
    x.t()[::2].mul_(2)
    y = x.clone()
    y[:, 1].fill_(3)
    return x.sum(-1), y, x[:, 1]


def draw(*shape, dtype=torch.float32):
    return (torch.randn(*shape) / 4).to(dtype)


def models():
    d = HIDDEN
    for dtype in (torch.float32, torch.bfloat16):
        short = str(dtype).removeprefix("torch.")
        yield f"gated_mlp_{short}", gated_mlp, [
            draw(TOKENS, d, dtype=dtype),
            draw(d, 2 * d, dtype=dtype),
            draw(d, d, dtype=dtype),
            1 + draw(d, dtype=dtype),
        ]
    yield "classifier", classifier, [draw(TOKENS, d), draw(24, d), draw(24), draw(10, 24), draw(10)]
    angle = torch.randn(TOKENS, 1, d // HEADS // 2)
    yield "rotated", rotated, [draw(TOKENS, d + 8), angle.cos(), angle.sin()]
    yield "cached", cached, [draw(TOKENS, d), draw(2, 12, d), torch.tensor(1.5)]
    yield "strided", strided, [draw(5, 6)]


def dumped():
    torch.manual_seed(11)
    leaves = torch.utils._pytree.tree_leaves
    for name, model, inputs in list(models()):
        for form, function in (("as_it_is", model), ("functional", functionalize(model, remove="mutations"))):
            module = make_fx(function, tracing_mode="fake")(*[x.clone() for x in inputs])
            results = leaves(module(*[x.clone() for x in inputs]))
            names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
            output = next(n for n in module.graph.nodes if n.op == "output")
            outputs = [n.name for n in leaves(output.args[0])]
            yield f"{name}.{form}", module.print_readable(print_output=False), dict(zip(names, inputs)), list(zip(outputs, results))
