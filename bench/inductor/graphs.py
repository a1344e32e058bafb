"""The graphs in two forms: as Piecewise reads them, and as torch functions with the same inputs.

If torch has a dedicated op for the text, or people write it differently, there are several functions; the fastest counts. Tensors fit the caches of one
core.
"""
from dataclasses import dataclass

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # not needed by users of the texts alone
    torch = F = None


@dataclass
class Case:
    name: str
    what: str
    text: str
    functions: list  # from the graph's inputs, in order, to a tuple of its outputs


def norm(x, w, eps=1e-6):
    h = x.float()
    return (h * torch.rsqrt((h * h).mean(-1, keepdim=True) + eps)).to(x.dtype) * w


def fp8(x):
    return x.clamp(-448.0, 448.0).to(torch.float8_e4m3fn)


def add_norm(x, z, w):
    r = x + z
    return norm(r, w), r


def add_norm_fp8(x, z, w, s):
    r = x + z
    return fp8(norm(r, w).float() / s), r


def norm_group_fp8(x, w):
    h = norm(x, w).float().reshape(x.shape[0], -1, 128)
    s = h.abs().amax(-1, keepdim=True).clamp(min=1e-10) / 448.0
    return fp8(h / s).reshape(x.shape), s.squeeze(-1)


def token_fp8(x):
    h = x.float()
    s = (h.abs().amax(-1, keepdim=True) / 448.0).clamp(min=1.0 / (448.0 * 512.0))
    return fp8(h / s), s


def silu_mul(gu):
    g, u = gu.chunk(2, -1)
    return (F.silu(g) * u,)


def gelu_mul(gu):
    g, u = gu.chunk(2, -1)
    return (F.gelu(g, approximate="tanh") * u,)


def softmax(x):
    return (torch.softmax(x, -1),)


def layer_norm_gelu(x, w, b):
    m = x.mean(-1, keepdim=True)
    d = x - m
    return (F.gelu(d * torch.rsqrt((d * d).mean(-1, keepdim=True) + 1e-5) * w + b),)


def layer_norm_gelu_native(x, w, b):
    return (F.gelu(F.layer_norm(x, (x.shape[-1],), w, b, 1e-5)),)


def turned(x, c, s):
    """Rotates the heads of x [n, heads, 2 half] by the angles whose cosines and sines are [n, half]."""
    x1, x2 = x.float().chunk(2, -1)
    c, s = c.unsqueeze(1), s.unsqueeze(1)
    return torch.cat((x1 * c - x2 * s, x2 * c + x1 * s), -1).to(x.dtype)


def rope(positions, q, k, table):
    c, s = table[positions].float().chunk(2, -1)
    n = q.shape[0]
    return turned(q.view(n, -1, 128), c, s).reshape(n, -1), turned(k.view(n, -1, 128), c, s).reshape(n, -1)


def qk_norm_rope(qkv, qw, kw, table, positions):
    n = qkv.shape[0]
    q, k, v = qkv.split([16 * 128, 4 * 128, 4 * 128], -1)
    c, s = table[positions].float().chunk(2, -1)
    q, k = turned(norm(q.view(n, 16, 128), qw), c, s), turned(norm(k.view(n, 4, 128), kw), c, s)
    return (torch.cat((q.reshape(n, -1), k.reshape(n, -1), v), -1),)


def rope_of_angles(positions, x, frequencies):
    angles = positions.float() * frequencies
    return (turned(x, torch.cos(angles), torch.sin(angles)),)


def rotate_half(x):
    x1, x2 = x.chunk(2, -1)
    return torch.cat((-x2, x1), -1)


def rope_of_angles_whole(positions, x, frequencies):
    """Rotates like models do: with the angles of both halves concatenated, and the halves swapped."""
    angles = positions.float() * frequencies
    both = torch.cat((angles, angles), -1)
    c, s = torch.cos(both).unsqueeze(1), torch.sin(both).unsqueeze(1)
    return (x * c + rotate_half(x) * s,)


def gather_norm(table, ids, w):
    h = table[ids]
    return h, norm(h, w)


def layer(x, res, w1, qkv, positions, table, o, w2, gu, d):
    y1, r1 = add_norm(x, res, w1)
    q, k, v = qkv.split([16 * 128, 4 * 128, 4 * 128], -1)
    qr, kr = rope(positions, q, k, table)
    y2, r2 = add_norm(o, r1, w2)
    (m,) = silu_mul(gu)
    return y1, qr, kr, v.contiguous(), y2, m, r2 + d


def case(name, what, text, *functions):
    return Case(name, what, "graph g {\n" + text + "\n}\n", list(functions))


def layer_text(t):
    return f"""  in x: {t}[32, 2048], res: {t}[32, 2048], w1: {t}[2048], qkv: {t}[32, 3072], positions: i64[32]
  in cos_sin: f32[4096, 128], o: {t}[32, 2048], w2: {t}[2048], gu: {t}[32, 11264], d: {t}[32, 2048]
  r1 = x + res
  y1 = rms_norm(r1, w1)
  q, k, v = split(qkv){{dim = -1, sizes = [2048, 512, 512]}}
  qr, kr = rotary_embedding(positions, q, k, cos_sin){{head = 128}}
  r2 = o + r1
  y2 = rms_norm(r2, w2)
  g, u = split(gu){{dim = -1, sizes = [5632, 5632]}}
  m = silu(g) * u
  r3 = r2 + d
  out y1, qr, kr, v, y2, m, r3"""


CASES = [
    case(
        "add_norm_bf16",
        "sum, RMSNorm; 64 × 4096 bf16",
        "  in x: bf16[64, 4096], z: bf16[64, 4096], w: bf16[4096]\n" "  r = x + z  y = rms_norm(r, w)  out y, r",
        add_norm,
    ),
    case(
        "add_norm_f32",
        "sum, RMSNorm; 32 × 4096 f32",
        "  in x: f32[32, 4096], z: f32[32, 4096], w: f32[4096]\n" "  r = x + z  y = rms_norm(r, w)  out y, r",
        add_norm,
    ),
    case(
        "add_norm_fp8",
        "sum, RMSNorm, fp8 of a given scale; 64 × 4096 bf16",
        "  in x: bf16[64, 4096], z: bf16[64, 4096], w: bf16[4096], s: f32[1]\n"
        "  r = x + z  y = rms_norm(r, w)  q = static_scaled_fp8_quant(y, s)  out q, r",
        add_norm_fp8,
    ),
    case(
        "norm_group_fp8",
        "RMSNorm, fp8 with a scale for each 128 columns; 64 × 4096 bf16",
        "  in x: bf16[64, 4096], w: bf16[4096]\n" "  y = rms_norm(x, w)  q, s = per_token_group_fp8_quant(y){group = 128}  out q, s",
        norm_group_fp8,
    ),
    case(
        "token_fp8",
        "fp8 with a scale for each row; 64 × 4096 bf16",
        "  in x: bf16[64, 4096]\n  q, s = dynamic_per_token_fp8_quant(x)  out q, s",
        token_fp8,
    ),
    case(
        "silu_mul_bf16",
        "silu of one half times the other; 32 × 2·11008 bf16",
        "  in gu: bf16[32, 22016]\n  g, u = split(gu){dim = -1, sizes = [11008, 11008]}\n" "  y = silu(g) * u  out y",
        silu_mul,
    ),
    case(
        "gelu_mul_f32",
        "gelu (with tanh) of one half times the other; 16 × 2·11008 f32",
        "  in gu: f32[16, 22016]\n  g, u = split(gu){dim = -1, sizes = [11008, 11008]}\n" "  y = gelu_tanh(g) * u  out y",
        gelu_mul,
    ),
    case(
        "softmax_f32",
        "softmax; 64 × 2048 f32",
        "  in x: f32[64, 2048]\n" "  e = exp(x - amax(x){dim = -1, keepdim = true})  y = e / sum(e){dim = -1, keepdim = true}  out y",
        softmax,
    ),
    case(
        "softmax_bf16",
        "softmax; 64 × 4096 bf16",
        "  in x: bf16[64, 4096]\n  h = f32(x)\n"
        "  e = exp(h - amax(h){dim = -1, keepdim = true})  y = bf16(e / sum(e){dim = -1, keepdim = true})  out y",
        softmax,
    ),
    case(
        "layer_norm_gelu_f32",
        "LayerNorm, gelu; 32 × 4096 f32",
        "  in x: f32[32, 4096], w: f32[4096], b: f32[4096]\n"
        "  d = x - mean(x){dim = -1, keepdim = true}\n"
        "  y = gelu(d * rsqrt(mean(d * d){dim = -1, keepdim = true} + 1e-5) * w + b)  out y",
        layer_norm_gelu,
        layer_norm_gelu_native,
    ),
    case(
        "rope_bf16",
        "rotary embedding from a table; 64 × 32 and 64 × 8 heads of 128, bf16",
        "  in positions: i64[64], q: bf16[64, 4096], k: bf16[64, 1024], cos_sin: f32[4096, 128]\n"
        "  qr, kr = rotary_embedding(positions, q, k, cos_sin){head = 128}  out qr, kr",
        rope,
    ),
    case(
        "qk_norm_rope_bf16",
        "RMSNorm of heads, rotary embedding; 64 × (16 + 4 + 4) heads of 128, bf16",
        "  in qkv: bf16[64, 3072], qw: bf16[128], kw: bf16[128], cos_sin: f32[4096, 128], positions: i64[64]\n"
        "  f = fused_qk_norm_rope(qkv, qw, kw, cos_sin, positions){heads_q = 16, heads_k = 4, head = 128}  out f",
        qk_norm_rope,
    ),
    case(
        "rope_angles_f32",
        "rotary embedding, sines and cosines computed; 64 × 16 heads of 128, f32",
        "  in positions: i64[64, 1], x: f32[64, 16, 128], frequencies: f32[64]\n"
        "  angles = f32(positions) * frequencies\n"
        "  c = reshape(cos(angles)){shape = [64, 1, 64]}  s = reshape(sin(angles)){shape = [64, 1, 64]}\n"
        "  x1, x2 = split(x){dim = -1, sizes = [64, 64]}\n"
        "  y = cat(x1 * c - x2 * s, x2 * c + x1 * s){dim = -1}  out y",
        rope_of_angles,
        rope_of_angles_whole,
    ),
    case(
        "gather_norm_bf16",
        "rows of a table, RMSNorm; 64 × 2048 of 1024 rows, bf16",
        "  in table: bf16[1024, 2048], ids: i64[64], w: bf16[2048]\n" "  h = embedding(table, ids)  y = rms_norm(h, w)  out h, y",
        gather_norm,
    ),
    case("layer_bf16", "a decoder layer without products and attention; 32 tokens, hidden 2048, bf16", layer_text("bf16"), layer),
    case("layer_f32", "the same in f32", layer_text("f32"), layer),
]
