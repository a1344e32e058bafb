"""Cases of the files, and functions that several of them use."""

import torch
import torch.nn.functional as F

NAMES = {
    torch.bool: "b8",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float8_e4m3fn: "f8e4m3",
}
UNSIGNED = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
BF16, F16, F32, F8 = torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn

torch.manual_seed(20240229)
files = {}


def tensor_json(t):
    t = t.detach().contiguous()
    size = t.element_size()
    bits = t.view(torch.uint8) if t.dtype == torch.bool else t.view(UNSIGNED[size])
    mask = (1 << (8 * size)) - 1
    text = "".join(format(v & mask, f"0{2 * size}x") for v in bits.flatten().tolist())
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "bits": text}


def case(op, name, inputs, outputs, attributes=None):
    """outputs: (tensor, tolerance) each; a tolerance is a dict of the fields that README.md describes."""
    files.setdefault(op, []).append(
        {
            "name": name,
            "attributes": attributes or {},
            "inputs": [tensor_json(t) for t in inputs],
            "outputs": [{**tensor_json(t), **tolerance} for t, tolerance in outputs],
        }
    )


def label(t, *more):
    return " ".join([NAMES[t.dtype], "x".join(map(str, t.shape)), *more])


def rows(dtype, *shape, scale=1.0):
    """Normal numbers; the first row is zero and the last one has an outlier, where there are rows enough."""
    x = torch.randn(*shape, dtype=torch.float64) * scale
    flat = x.view(-1, shape[-1])
    if flat.shape[0] >= 3:
        flat[0] = 0
        flat[-1, -1] = 50 * scale
    return x.to(dtype)


def edges(dtype):
    """The corners of a pointwise op, as one odd-sized row."""
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 8.0, -8.0, 20.0, -20.0, 1e-3, -1e-3, 6e4, 1e-7, 2.5, -5.5, 0.1]
    return torch.tensor(values, dtype=torch.float64).to(dtype)


# Relative errors: a result that passed one rounding to T more or less than ours is one or two steps of T off. An f32 scale computed from values
# rounded to bf16 or f16 has their error: 2**16 or 2**13 steps of f32 for each of their steps.
ONE, TWO, THREE = {"ulps": 1}, {"ulps": 2}, {"ulps": 3}
FP8 = {"ulps": 1, "equal": 0.9}


def scale_tolerance(dtype):
    return {"ulps": {BF16: 2 * 2**16, F16: 2 * 2**13, F32: 16}[dtype]}


def norm_tolerance(dtype):
    return {"ulps": 16} if dtype == F32 else THREE


def rms(x, w, eps):
    """Computed by torch if it supports the dtypes, else by hand."""
    if x.dtype == w.dtype:
        return F.rms_norm(x, (x.shape[-1],), w, eps)
    return rms_stored(x, w, eps)


def rms_stored(x, w, eps):
    """Rounded to the weight's dtype before the product and to x's dtype after it, like kernels that feed a quantisation."""
    y = F.rms_norm(x.double(), (x.shape[-1],), None, eps).to(w.dtype)
    return (y.double() * w.double()).to(x.dtype)


def quant(x, s):
    return (x.double() / s.double()).clamp(-448, 448).float().to(F8)


def dynamic_quant(x):
    top = x.double().abs().amax(-1, keepdim=True)
    s = torch.clamp(top / 448, min=1 / (448 * 512)).float()
    return quant(x, s), s


def silu_mul(gu):
    g, u = gu.chunk(2, -1)
    return F.silu(g.double()).to(gu.dtype) * u


def turned(x, angles, head, neox):
    """Pairs as complex numbers, multiplied by those of the positions."""
    pairs = x.double().view(*x.shape[:-1], -1, head)
    if neox:
        pairs = torch.stack(pairs.chunk(2, -1), -1)
    else:
        pairs = pairs.view(*pairs.shape[:-1], head // 2, 2)
    out = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * angles.unsqueeze(-2))
    out = torch.cat(out.unbind(-1), -1) if neox else out.flatten(-2)
    return out.flatten(-2).to(x.dtype)


def group_quant(x, group):
    parts = x.double().unflatten(-1, (-1, group))
    s = torch.clamp(parts.abs().amax(-1, keepdim=True), min=1e-10) / 448
    return (parts / s).flatten(-2).clamp(-448, 448).float().to(F8), s.squeeze(-1).float()
