#!/usr/bin/env python3
"""Random functions through torch.compile, compared with PyTorch at two sizes. Run by run.py.

    functions.py [--seed N] [--count N] [--backend NAME] [--show]

Each function has 4 to 16 statements and tensors of many dtypes and memory layouts, and a Python number that changes between calls. A statement is
kept if PyTorch runs it at both sizes. Some functions are also differentiated. Long functions amplify rounding, so each also runs in PyTorch with random
errors of one unit in the last place after each op, and with PyTorch's own decompositions: results may differ from PyTorch's by a few times as much.
A function that differs is printed without the statements that do not matter. Exit code 1 if one differs.
"""
import argparse
import contextlib
import linecache
import random
import sys
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import piecewise.pytorch  # noqa: E402, F401

FLOATS = ("float32", "float64", "float16", "bfloat16")
WHOLE = ("int64", "int32", "int16", "int8", "uint8")
SIZES = (5, 8)  # of n in the two calls
ELEMENTS = 20000
SPECIAL = (float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1.0, -1.0, 0.5, 2.5, 1e-40, 3e38, 65504.0)
NOISY = 6  # runs with random errors
LAYOUTS = (
    "{}",
    "{}.transpose(0, -1).contiguous().transpose(0, -1)",
    "torch.stack([{0}, {0}], -1)[..., 1]",
    "torch.cat([{0}, {0}], 0)[{0}.shape[0]:]",
    "{}.flip(0)",
)


def one(text, *kinds):
    return (text, kinds or ("any",))


F_, I_, B_, A_ = "float", "whole", "bool", "any"
UNARY = "abs neg sin cos tanh sigmoid exp expm1 log1p sqrt rsqrt floor ceil trunc round sign relu reciprocal square erf atan asinh frac exp2 log2 isnan isfinite isinf logical_not"
BINARY = "add sub mul div maximum minimum fmod remainder pow atan2 eq ne lt le gt ge floor_divide hypot logical_and logical_or logical_xor fmax fmin true_divide heaviside nextafter logaddexp xlogy"
OPS = [
    *(one(f"torch.{op}({{0}})") for op in UNARY.split()),
    *(one(f"torch.{op}({{0}}, {{1}})", A_, A_) for op in BINARY.split()),
    *(one(f"torch.{op}({{0}}, {{n}})") for op in "add sub mul div fmod remainder pow eq lt ge floor_divide".split()),
    *(one(f"torch.{op}({{0}}, {{1}})", I_, I_) for op in "bitwise_and bitwise_or bitwise_xor gcd lcm bitwise_left_shift bitwise_right_shift".split()),
    *(one(f"torch.bitwise_{op}({{0}}, {{1}})", B_, B_) for op in ("and", "or", "xor")),
    one("torch.signbit(torch.nan_to_num({0}))"),  # a NaN has either sign
    one("torch.copysign({0}, torch.nan_to_num({1}))", A_, A_),
    one("{0} + 1"),
    one("{0} * {n}"),
    one("{n} - {0}"),
    one("{n} / {0}"),
    one("{0} // {n}"),
    one("{0} % {n}"),
    one("{n} % {0}"),
    one("{n} ** {0}"),
    one("torch.add({0}, {1}, alpha={i})", A_, A_),
    one("torch.rsub({0}, {1}, alpha=2)", A_, A_),
    one("torch.addcmul({0}, {1}, {2}, value=2)", A_, A_, A_),
    one("torch.addcdiv({0}, {1}, {2}, value=0.5)", F_, F_, F_),
    one("torch.lerp({0}, {1}, 0.3)", F_, F_),
    one("torch.lerp({0}, {1}, {2})", F_, F_, F_),
    one("torch.where({0}, {1}, {2})", B_, A_, A_),
    one("torch.where({0}, {1}, {n})", B_, A_),
    one("torch.where({0} > 0, {0}, {1})", A_, A_),
    one("torch.clamp({0}, -2, 3)"),
    one("torch.clamp({0}, min={n})"),
    one("torch.clamp({0}, min={1}, max={2})", A_, A_, A_),
    one("torch.nan_to_num({0})", F_),
    one("torch.nan_to_num({0}, nan=1.0, posinf=2.0)", F_),
    *(
        one(f"F.{op}({{0}})", F_)
        for op in "gelu silu elu selu celu hardswish hardsigmoid hardtanh leaky_relu softplus softsign mish logsigmoid relu6 tanhshrink softshrink hardshrink".split()
    ),
    one("F.threshold({0}, 0.1, 20)"),
    one("F.glu({0}, 0)", F_),
    # dtypes
    *(one(f"{{0}}.to(torch.{d})") for d in (*FLOATS, "bool")),
    *(one(f"{{0}}.to(torch.{d})", kind) for d in WHOLE for kind in (I_, B_)),
    *(one(f"torch.nan_to_num({{0}}).clamp({0 if d == 'uint8' else -100}, 100).to(torch.{d})", F_) for d in WHOLE),  # others may become any number
    one("{0}.to({1}.dtype)", A_, F_),
    # views and layout
    one("{0}.transpose(0, -1)"),
    one("{0}.T if {0}.ndim == 2 else {0}.mT"),
    one("{0}.flatten()"),
    one("{0}.reshape(-1)[: 24]"),
    one("{0}.reshape({0}.shape[0], -1)"),
    one("{0}[1:]"),
    one("{0}[..., ::2]"),
    one("{0}[..., :-1]"),
    one("{0}[-1]"),
    one("{0}[{0}.shape[0] // 2 :]"),
    one("{0}.narrow(0, 1, {0}.shape[0] - 1)"),
    one("{0}.select(-1, 0)"),
    one("{0}.unsqueeze({d})"),
    one("{0}.squeeze()"),
    one("{0}[None]"),
    one("{0}.expand(3, *{0}.shape)"),
    one("{0}.flip({d})"),
    one("torch.flip({0}, tuple(range({0}.ndim)))"),
    one("torch.roll({0}, {i}, {d})"),
    one("torch.roll({0}, {i})"),
    one("torch.rot90({0}, {i}, (0, 1))"),
    one("torch.tile({0}, (2,))"),
    one("{0}.repeat_interleave(2, {d})"),
    one("torch.cat([{0}, {1}], {d})", A_, A_),
    one("torch.stack([{0}, {1}], {d})", A_, A_),
    one("torch.cat([{0}, {0}[..., :1]], -1)"),
    one("torch.chunk({0}, 2, {d})[-1]"),
    one("torch.tensor_split({0}, 3, {d})[1]"),
    one("{0}.unfold({d}, 2, 1)"),
    one("{0}.diagonal()"),
    one("torch.diag_embed({0})"),
    one("torch.tril({0}, {i})"),
    one("torch.triu({0}, {i})"),
    one("torch.as_strided({0}, (2, 2), (1, 2), 1)"),
    one("{0}.contiguous()"),
    one("{0}.clone()"),
    one("torch.nan_to_num({0}).float().view(torch.int32)", F_),
    one("F.pad({0}, (1, 2), value=3)"),
    one("F.pad({0}, (-1, 1))"),
    one("F.pad({0}[None], (1, 1), mode='reflect')", F_),
    one("F.pad({0}[None], (2, 1), mode='replicate')", F_),
    one("F.pad({0}[None], (1, 1), mode='circular')"),
    one("F.pixel_shuffle({0}[None].expand(4, *{0}.shape), 2)", F_),
    one("F.unfold({0}[None, None], 2)", F_),
    # reductions
    *(one(f"{{0}}.{op}({{d}})") for op in "sum mean amax amin prod any all var std argmax argmin logsumexp count_nonzero nansum nanmean".split()),
    *(one(f"{{0}}.{op}()") for op in "sum mean max min prod any all std argmax argmin norm".split()),
    *(one(f"{{0}}.{op}({{d}}, keepdim=True)") for op in "sum mean amax argmin".split()),
    one("{0}.sum({d}, dtype=torch.float64)"),
    one("{0}.max({d}).values"),
    one("{0}.max({d}).indices"),
    one("{0}.min({d}).indices"),
    one("{0}.median({d}).values"),
    one("{0}.nanmedian({d}).values", F_),
    one("{0}.kthvalue(2, {d}).values"),
    one("{0}.mode({d}).values"),
    one("{0}.quantile(0.3, {d})", F_),
    one("{0}.softmax({d})", F_),
    one("{0}.log_softmax({d})", F_),
    one("{0}.norm(1, {d})", F_),
    one("{0}.norm(float('inf'), {d})", F_),
    one("{0}.dist({1})", F_, F_),
    one("F.normalize({0}, dim={d})", F_),
    one("torch.var_mean({0}, {d}, correction=0)[1]", F_),
    one("torch.aminmax({0}).max"),
    one("torch.cov({0})", F_),
    # scans and sorts
    *(one(f"torch.{op}({{0}}, {{d}})") for op in ("cumsum", "cumprod", "logcumsumexp")),
    *(one(f"torch.{op}({{0}}, {{d}}).{part}") for op in ("cummax", "cummin") for part in ("values", "indices")),
    one("torch.diff({0}, dim={d})"),
    one("torch.sort({0}, {d}).values"),
    one("torch.sort({0}, {d}, descending=True).values"),
    one("torch.sort({0}, {d}, stable=True).indices"),
    one("torch.sort({0}, {d}, stable=True, descending=True).indices"),
    one("torch.argsort({0}, {d}, stable=True)"),
    one("torch.topk({0}, 2, {d}).values"),
    one("torch.topk({0}, 2, {d}, largest=False).values"),
    one("torch.searchsorted({0}.sort().values, {1})", A_, A_),
    one("torch.bucketize({0}, {1}.flatten().sort().values, right=True)", A_, A_),
    one("torch.histc({0}, 4, -2, 2)", F_),
    one("torch.bincount({0}.flatten().abs() % 7, minlength=7)", I_),
    one("torch.isin({0}, {1})", A_, A_),
    # indexing
    one("{0}[{1}.long().flatten().remainder({0}.shape[0])]", A_, I_),
    one("{0}[..., {1}.long().flatten().remainder({0}.shape[-1]) - {0}.shape[-1]]", A_, I_),
    one("{0}[:, None, {1}.long().flatten().remainder({0}.shape[1])]", A_, I_),
    one("torch.index_select({0}, {d}, {1}.flatten().remainder({0}.shape[{d}]))", A_, I_),
    one("torch.gather({0}, {d}, torch.argsort({0}, {d}, stable=True))"),
    one("torch.take_along_dim({0}, {0}.argmax({d}, keepdim=True), {d})"),
    one("torch.take({0}, {1}.long().remainder({0}.numel()))", A_, I_),
    one("torch.scatter({0}, {d}, {0}.argmax({d}, keepdim=True), {n})"),
    one("torch.scatter_add({0}, {d}, {0}.argsort({d}, stable=True) // 2, {0})"),
    *(
        one(f"torch.scatter_reduce({{0}}, {{d}}, {{0}}.argsort({{d}}, stable=True) // 2, {{0}}, '{how}', include_self={own})")
        for how in ("sum", "prod", "amax", "amin", "mean")
        for own in (True, False)
    ),
    one("torch.index_add({0}, 0, {1}.flatten().remainder({0}.shape[0]), {0}[:1].expand({1}.numel(), *{0}.shape[1:]), alpha=2)", A_, I_),
    one("torch.index_copy({0}, 0, torch.arange({0}.shape[0] - 1, -1, -1), {0})"),
    one("torch.index_fill({0}, {d}, torch.tensor([0, -1]), {n})"),
    *(
        one(
            f"torch.index_reduce({{0}}, 0, {{1}}.flatten().remainder({{0}}.shape[0]), {{0}}[:1].expand({{1}}.numel(), *{{0}}.shape[1:]), '{how}')",
            A_,
            I_,
        )
        for how in ("prod", "amax", "amin", "mean")
    ),
    one("torch.index_put({0}, ({1}.long().flatten().remainder({0}.shape[0]),), {0}[0], accumulate=True)", A_, I_),
    one("torch.index_put({0}, ({0} > 0,), torch.tensor(7, dtype={0}.dtype))"),
    one("torch.masked_fill({0}, {0} > {1}, {n})", A_, A_),
    one("torch.masked_fill({0}, {1}, {2}.flatten()[0])", A_, B_, A_),
    one("torch.masked_scatter({0}, {0} > 0, {0}.flatten())"),
    one("torch.select_scatter({0}, {0}[0] + 1, 0, -1)"),
    one("torch.slice_scatter({0}, {0}[1:] * 2, 0, 0, -1)"),
    one("torch.diagonal_scatter({0}, {0}.diagonal() + 1)"),
    one("F.one_hot({0}.long().remainder(4), 4)", I_),
    one("F.embedding({1}.long().flatten().remainder({0}.shape[0]), {0})", F_, I_),
    one("F.embedding_bag({1}.long().flatten()[:4].remainder({0}.shape[0]).reshape(2, 2), {0}, mode='{m}')", F_, I_),
    one("torch.nonzero_static({0}, size=3)"),
    # products
    one("{0} @ {1}", F_, F_),
    one("{0} @ {0}.mT"),
    one("torch.outer({0}.flatten()[:6], {1}.flatten()[:5])", A_, A_),
    one("torch.einsum('i...,i...->i', {0}, {0})"),
    one("torch.cdist({0}, {0} + 1)", F_),
    one("torch.kron({0}, {1})", A_, A_),
    one("torch.cross({0}[..., :3], {0}[..., -3:], dim=-1)"),
    one("torch.vander({0}.flatten()[:4], 3)"),
    one("torch.trapezoid({0}, dim={d})", F_),
    one("F.linear({0}, torch.ones(3, {0}.shape[-1], dtype={0}.dtype), torch.arange(3).to({0}.dtype))", F_),
    one("F.cosine_similarity({0}, {1}, {d})", F_, F_),
    one("F.scaled_dot_product_attention({0}, {0}, {0}, is_causal=True)", F_),
    one("F.scaled_dot_product_attention({0}, {0}, {0}, attn_mask=({0} @ {0}.mT) > 0)", F_),
    # norms, pools, windows
    one("F.layer_norm({0}, {0}.shape[-1:])", F_),
    one("F.rms_norm({0}, {0}.shape[-1:])", F_),
    one("F.group_norm({0}[None], 1)", F_),
    one("F.instance_norm({0}[None])", F_),
    one("F.batch_norm({0}, None, None, training=True)", F_),
    one("F.local_response_norm({0}[None], 3)", F_),
    one("F.avg_pool1d({0}[None], 3, 2, 1, ceil_mode=True, count_include_pad=False)", F_),
    one("F.avg_pool2d({0}[None], 2, 1, 1, divisor_override=3)", F_),
    one("F.max_pool1d({0}[None], 3, 2, 1, 1, ceil_mode=True)", F_),
    one("F.max_pool2d({0}[None], 2, 2, 1, 2)", F_),
    one("F.max_pool2d({0}[None], 2, return_indices=True)[1]", F_),
    one("F.adaptive_avg_pool1d({0}[None], 3)", F_),
    one("F.adaptive_max_pool1d({0}[None], 3)", F_),
    one("F.lp_pool1d({0}[None], 2, 2)", F_),
    *(
        one(f"F.interpolate({{0}}[None, None], size=(5, 9), mode='{mode}')", F_)
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
    ),
    *(one(f"F.interpolate({{0}}[None, None], scale_factor=1.7, mode='{mode}')", F_) for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")),
    *(one(f"F.interpolate({{0}}[None, None], size=(7, 3), mode='{mode}', align_corners=True)", F_) for mode in ("bilinear", "bicubic")),
    one("F.interpolate({0}[None, None], size=(3, 3), mode='bilinear', antialias=True)", F_),
    one("F.interpolate({0}[None], scale_factor=0.6, mode='linear', recompute_scale_factor=True)", F_),
    *(
        one(f"F.grid_sample({{0}}[None, None], {{1}}.flatten()[:8].reshape(1, 2, 2, 2).to({{0}}.dtype), '{mode}', '{pad}', {corners})", F_, F_)
        for mode in ("bilinear", "nearest", "bicubic")
        for pad, corners in (("zeros", False), ("border", True), ("reflection", False))
    ),
    one("F.conv1d({0}[None], {0}[None, :, :3], padding=1)", F_),
    one("F.conv_transpose1d({0}[None], {0}[:, None, :3], stride=2)", F_),
    # losses
    *(
        one(f"F.{op}({{0}}, {{1}}, reduction='{how}')", F_, F_)
        for op in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "soft_margin_loss", "poisson_nll_loss")
        for how in ("mean", "sum", "none")
    ),
    one("F.cross_entropy({0}, {0}.argmax(1), label_smoothing=0.1)", F_),
    one("F.cross_entropy({0}, {0}.argmax(1), weight={0}[0].abs(), ignore_index=1)", F_),
    one("F.cross_entropy({0}, {0}.argmax(1) * 0 + 1, ignore_index=1, reduction='{r}')", F_),
    one("F.nll_loss({0}, {0}.argmin(1), reduction='{r}')", F_),
    one("F.binary_cross_entropy_with_logits({0}, {1}, pos_weight={0}[0].abs(), reduction='{r}')", F_, F_),
    one("F.margin_ranking_loss({0}, {1}, {0}.sign(), 0.3)", F_, F_),
    one("F.multi_margin_loss({0}, {0}.argmin(1), reduction='{r}')", F_),
    one("F.multilabel_margin_loss({0}, torch.argsort({0}, 1, stable=True))", F_),
    one("F.triplet_margin_loss({0}, {1}, {0} + 1)", F_, F_),
    # making
    one("torch.arange({0}.shape[0]) + {0}.sum()"),
    one("torch.arange(0, {0}.shape[0], 2) * {0}.shape[-1]"),
    one("torch.linspace(-1, 1, {0}.shape[0], dtype={0}.dtype)", F_),
    one("torch.full_like({0}, {n})"),
    one("torch.eye({0}.shape[0], dtype={0}.dtype)"),
    one("{0}.new_zeros({0}.shape[0], 2)"),
    one("{0} * {0}.shape[0]"),
    one("{0} / {0}.numel()"),
    one("{0} + ({0}.shape[0] - 7) // 2"),
    one("{0} * {s}"),
    one("{s} - {0}"),
    one("{0} ** {s}"),
    one("torch.full(({0}.shape[0],), {s})"),
    one("torch.where({0} > {s}, {0}, {s})"),
    one("torch.clamp({0}, {s}, 4)"),
    one("F.dropout({0}, 0.0)", F_),
    # complex numbers in the middle
    one("torch.view_as_real(torch.complex({0}, {0}.neg()) * (1 + 2j))", F_),
    one("(torch.complex({0}, {0}.cos()).conj() * 2).imag", F_),
    one("torch.fft.rfft({0}.float()).abs()", F_),
]
# Statements that write; the tensor itself lives on.
WRITES = [
    one("{0}.add_({n})"),
    one("{0}.mul_({1})", A_, A_),
    one("{0}[1:].add_(1)"),
    one("{0}[..., ::2].mul_(2)"),
    one("{0}[0] = {n}"),
    one("{0}[..., -1] = {0}[..., 0]"),
    one("{0}[1:] = {0}[:-1].clone()"),
    one("{0}[{0} > 0] = {n}"),
    one("{0}.t().add_(1)"),
    one("{0}.copy_({1})", A_, A_),
    one("{0}.zero_()"),
    one("{0}.fill_({n})"),
    one("{0}.masked_fill_({0} > 1, 1)"),
    one("{0}.index_add_(0, torch.tensor([0, 0]), {0}[:2].clone())"),
    one("{0}.clamp_(-2, 2)"),
    one("{0}.diagonal().fill_({n})"),
    one("{0}.flip(0).add_(1)"),
    one("{0}.floor_divide_({n})"),
    one("{0}.sub_({s})"),
    one("{0}.reshape(-1)[1:3] *= 2"),
    one("{0}.transpose(0, -1)[0] -= 1"),
    one("{0}.index_put_((torch.tensor([0, 0, -1]),), torch.tensor({n}, dtype={0}.dtype), accumulate=True)"),
    one("{0}.cumsum_(0)"),
    one("{0}.scatter_(0, torch.zeros_like({0}, dtype=torch.int64)[:1], {0}[-1:].clone())"),
    one("{0}.swapaxes(0, 1).copy_({0}.clone().swapaxes(0, 1) + 1)"),
]
NUMBERS = ("0", "1", "2", "-1", "3", "-3", "7", "0.5", "-2.5", "2.0", "True", "1e-3", "100", "-129", "300")
SCALARS = ((2, 3), (0.5, -1.5), (1, 2.5), (True, False), (-1, 0), (3, 1))


def is_kind(tensor, kind):
    if kind == A_:
        return True
    if kind == F_:
        return tensor.is_floating_point()
    return tensor.dtype == torch.bool if kind == B_ else not tensor.is_floating_point() and tensor.dtype != torch.bool


class Errors(TorchDispatchMode):
    """Adds errors of one unit in the last place to inexact results."""

    PURE = (
        "view",
        "reshape",
        "slice",
        "clone",
        "cat",
        "where",
        "gather",
        "index",
        "flip",
        "roll",
        "constant_pad",
        "full",
        "sort",
        "topk",
        "abs",
        "neg",
    )

    def __init__(self, seed):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.eps = 0.0  # the largest of the dtypes

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        result = op(*args, **(kwargs or {}))
        name = op._schema.name.split("::")[1].split("_backward")[0]
        if any(r.alias_info for r in op._schema.returns) or name.startswith(self.PURE):
            return result
        for part in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(part, torch.Tensor) and part.is_floating_point() and part.numel() and part.layout == torch.strided:
                self.eps = max(self.eps, torch.finfo(part.dtype).eps)
                whole = (part == part.round()) & (part.abs() < 2048)
                drawn = torch.rand(part.shape, generator=self.generator, dtype=torch.float64) * 2 - 1
                change = 1 + drawn * torch.finfo(part.dtype).eps
                part.copy_(torch.where(whole | ~part.isfinite(), part.double(), part.double() * change))
        return result


class RandomFunction:
    """A function as text, and the arguments that it is called with."""

    def __init__(self, seed, least=4, most=16):
        self.random = random.Random(seed)
        self.seed, self.lines, self.results = seed, [], []
        self.scalars = self.random.choice(SCALARS)
        self.grad = self.random.random() < 0.4
        self.kinds = [self.argument() for _ in range(self.random.randint(1, 3))]
        self.grow(self.random.randint(least, most))

    def argument(self):
        pick = self.random
        dtype = pick.choice(FLOATS[:2] * 3 + FLOATS + WHOLE + ("int64", "bool"))
        shape = pick.choice((("n", 4), ("n", 6), (4, "n"), ("n", "n"), ("n",), (3, "n", 4), ("n", 1), (1, "n"), (2, 3, "n")))
        return dtype, shape, pick.choice(LAYOUTS[:1] * 4 + LAYOUTS), pick.choice(("plain",) * 5 + ("special", "small", "ends"))

    def arguments(self, call):
        """Returns the tensors of call 0 or 1."""
        draw = torch.Generator().manual_seed(self.seed * 2 + call)
        out = []
        for dtype, shape, layout, values in self.kinds:
            dtype, shape = getattr(torch, dtype), [SIZES[call] if extent == "n" else extent for extent in shape]
            x = torch.randn(shape, generator=draw, dtype=torch.float64) * 2
            if values == "small":
                x = x.round()
            elif values == "special" and dtype.is_floating_point:
                places = torch.randint(0, 3 * len(SPECIAL), shape, generator=draw)
                x = torch.where(places < len(SPECIAL), torch.tensor(SPECIAL, dtype=torch.float64)[places % len(SPECIAL)], x)
            if dtype.is_floating_point:
                x = x.to(dtype)
            elif dtype == torch.bool:
                x = x > 0
            else:
                info = torch.iinfo(dtype)
                x = (x * 3).round().clamp(info.min, info.max).to(dtype)
                if values == "ends":
                    x = torch.where(torch.randint(0, 3, shape, generator=draw) == 0, torch.tensor([info.min, info.max])[x.long() % 2].to(dtype), x)
            out.append(eval(layout.format("x"), {"x": x, "torch": torch}))
        return out

    def names(self):
        return [f"x{i}" for i in range(len(self.kinds))]

    def text(self, lines=None, outputs=None):
        lines = self.lines if lines is None else lines
        outputs = self.results if outputs is None else outputs
        return "\n    ".join([f"def f({', '.join(self.names())}, s):", *(line for _, line in lines), f"return {', '.join(outputs)},"])

    def function(self, lines=None, outputs=None):
        text = self.text(lines, outputs)
        space, name = {"torch": torch, "F": F}, f"<function {self.seed} {hash(text)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), space)
        return space["f"]

    def runs(self, pools, line, target):
        """Runs a statement at both sizes; returns True if PyTorch does, with results of moderate size."""
        for call, pool in enumerate(pools):
            space = {"torch": torch, "F": F, "s": self.scalars[call], **pool}
            try:
                exec(line, space)
            except Exception:
                return False
            value = space[target]
            fits = isinstance(value, torch.Tensor) and 0 < value.numel() <= ELEMENTS and value.ndim <= 5
            if not fits or value.is_complex() or (value.layout != torch.strided):
                return False
            pool[target] = value
        return True

    def grow(self, count):
        pick, pools = self.random, []
        for call in range(2):
            pools.append(dict(zip(self.names(), self.arguments(call))))
        for attempt in range(count * 12):
            if len(self.lines) >= count:
                break
            writes = pick.random() < 0.12 and not self.grad
            template, kinds = pick.choice(WRITES if writes else OPS)
            live = list(pools[0])
            chosen = []
            for kind in kinds:
                fitting = [n for n in live if is_kind(pools[0][n], kind)]
                if not fitting:
                    break
                chosen.append(pick.choice(fitting[-4:]) if pick.random() < 0.7 else pick.choice(fitting))
            if len(chosen) < len(kinds):
                continue
            fill = {"n": pick.choice(NUMBERS), "i": pick.choice(("1", "2", "-1", "3")), "d": pick.choice(("0", "-1", "1")), "s": "s"}
            fill |= {"m": pick.choice(("sum", "mean", "max")), "r": pick.choice(("mean", "sum", "none"))}
            target = chosen[0] if writes else f"y{len(self.lines)}"
            expression = template.format(*chosen, **fill)
            line = expression if writes else f"{target} = {expression}"
            trial = [{n: v for n, v in pool.items()} for pool in pools]
            if writes:  # again from the arguments: a failed write may have written something
                trial = self.replay(line)
            if trial is None or not self.runs(trial, line if not writes else "pass", target):
                continue
            pools = trial
            self.lines.append((target, line))
        made = [t for t, line in self.lines if line.startswith(f"{t} = ")]
        used = pick.sample(made, min(len(made), pick.randint(1, 3)))
        self.results = sorted({*used, *made[-1:]}) or self.names()[:1]

    def replay(self, line):
        """Returns the values after the statements so far and one more, from fresh arguments."""
        pools = []
        for call in range(2):
            space = {"torch": torch, "F": F, "s": self.scalars[call], **dict(zip(self.names(), self.arguments(call)))}
            try:
                for _, earlier in (*self.lines, ("", line)):
                    exec(earlier, space)
            except Exception:
                return None
            pools.append({n: v for n, v in space.items() if isinstance(v, torch.Tensor)})
        return pools


def called(function, case, call, errors=None):
    """Returns results, arguments after the call, and gradients; or the error."""
    inputs = case.arguments(call)
    if case.grad:
        inputs = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
    try:
        torch.manual_seed(1)
        with errors or contextlib.nullcontext():
            results = function(*inputs, case.scalars[call])
            gradients = gradients_of(results, [x for x in inputs if x.requires_grad])
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return [x.detach().clone() for x in (*results, *inputs, *gradients)]


def gradients_of(results, leaves):
    weighted = [(x.double() * torch.arange(x.numel()).add(1).cos().reshape(x.shape)).sum() for x in results if x.requires_grad]
    if not weighted or not leaves:
        return []
    return [torch.zeros(()) if g is None else g for g in torch.autograd.grad(sum(weighted), leaves, allow_unused=True)]


def wide(x):
    return x.double() if x.is_floating_point() else x


def bound_of(want, others, eps):
    """Returns how far results may differ from `want`, given other right results."""
    spread = torch.zeros(want.shape, dtype=torch.float64)
    for other in others:
        step = (other.double() - want.double()).abs()
        step[(other.double() == want.double()) | (other.isnan() & want.isnan())] = 0
        spread = torch.maximum(spread, torch.nan_to_num(step, nan=float("inf")))
    finite = want[want.isfinite()].double().abs()
    scale = finite.max() if finite.numel() else 0
    bound = 30 * spread + 8 * eps * want.double().abs() + eps * scale + torch.finfo(want.dtype).tiny
    return torch.nan_to_num(bound, nan=float("inf"))


def mismatch(got, want, noisy, eps=0.0):
    """Returns the first difference, or an empty text."""
    if isinstance(got, str):
        return f"{got}, not numbers"
    for i, (a, b) in enumerate(zip(got, want)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"value {i}: {a.dtype} {tuple(a.shape)}, not {b.dtype} {tuple(b.shape)}"
        near = (wide(a) == wide(b)) | (a.isnan() & b.isnan())
        others = [n[i] for n in noisy if not isinstance(n, str) and n[i].shape == b.shape]
        if b.is_floating_point():
            bound = bound_of(b, others, max(eps, torch.finfo(b.dtype).eps))
            near |= ((a.double() - b.double()).abs() <= bound) | (bound == float("inf"))
        for other in others if not b.is_floating_point() else []:
            near |= other != b
        if not near.all():
            at = (~near).flatten().nonzero()[0].item()
            return f"value {i} ({b.dtype}, {tuple(b.shape)}): {a.flatten()[at].item()}, not {b.flatten()[at].item()}, at {at}"
    return ""


def difference(case, backend, lines=None, outputs=None):
    """Runs three calls of a function with these statements and results. Returns the difference from PyTorch, or an empty text."""
    torch._dynamo.reset()
    function = case.function(lines, outputs)
    compiled = torch.compile(function, backend=backend)
    for call in (0, 1, 0):
        want = called(function, case, call)
        if isinstance(want, str):
            return ""
        got = called(compiled, case, call)
        if not mismatch(got, want, []):
            continue
        errors = [Errors(seed) for seed in range(NOISY)]
        others = [called(function, case, call, error) for error in errors]
        decomposed = called(torch.compile(function, backend="aot_eager_decomp_partition"), case, call)
        if isinstance(got, str) and isinstance(decomposed, str):  # PyTorch compiles no such function
            return ""
        others.append(decomposed)
        if found := mismatch(got, want, others, max(error.eps for error in errors)):
            return f"call {call}: {found}"
    return ""


def reduced(case, backend):
    """Returns the statements and results that still differ without any one of them."""
    lines, outputs = list(case.lines), list(case.results)
    for output in list(outputs):
        fewer = [o for o in outputs if o != output]
        if fewer and difference(case, backend, lines, fewer):
            outputs = fewer
    changed = True
    while changed:
        changed = False
        for i in range(len(lines) - 1, -1, -1):
            fewer = lines[:i] + lines[i + 1 :]
            if difference(case, backend, fewer, outputs):
                lines, changed = fewer, True
    return lines, outputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the first function")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--backend", default="piecewise", help="of torch.compile; aot_eager tests this script")
    parser.add_argument("--show", action="store_true", help="print each function")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = statements = 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        case = RandomFunction(seed)
        statements += len(case.lines)
        if arguments.show:
            print(f"# seed {seed}\n{case.text()}", flush=True)
        if reason := difference(case, arguments.backend):
            found += 1
            lines, outputs = reduced(case, arguments.backend)
            print(f"seed {seed}: {difference(case, arguments.backend, lines, outputs) or reason}")
            print(f"    arguments {case.kinds}, s = {case.scalars}, gradients: {case.grad}")
            print("    " + case.text(lines, outputs).replace("\n", "\n    "), flush=True)
    last = arguments.seed + arguments.count - 1
    print(f"random functions, seeds {arguments.seed} to {last}: {arguments.count} with {statements} statements, {found} differ from PyTorch")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
