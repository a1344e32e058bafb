#!/usr/bin/env python3
"""Stock models of transformers and timm, small and randomly initialised, compiled beside PyTorch: numbers, and the share of ops that is taken.

    stock.py [--models NAME …] [--modes f32 bf16 dynamic training] [--least 0.9]

A number is right where its error, against the model in f64, is about PyTorch's own. Exit codes: 0 all is right and enough is taken, 1 something is not, 77 a
package is missing.
"""
import argparse
import copy
import logging
import sys
import time
import warnings

import torch
from torch.utils._pytree import tree_leaves, tree_map

from piecewise import pytorch as front
from stock_models import MODELS as TRANSFORMERS

SEED, SKIPPED = 7, 77
MODES = ("f32", "bf16", "dynamic", "training")
TRAINED = ("llama", "gpt2", "gemma2", "mixtral", "mamba", "bert", "t5", "vit", "timm_resnet18")
TIMM = {
    "resnet18": {},
    "vit_tiny_patch16_224": {"embed_dim": 64, "depth": 2, "num_heads": 4},
    "convnext_atto": {"depths": (1, 1, 1, 1), "dims": (8, 16, 24, 32)},
    "mobilenetv3_small_050": {},
    "efficientnet_b0": {},
    "swin_tiny_patch4_window7_224": {"embed_dim": 24, "depths": (1, 1, 1, 1), "num_heads": (1, 2, 4, 8)},
    "mixer_s32_224": {},
    "regnetx_002": {},
}


def timm_model(name, options):
    import timm

    images = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(5))
    return timm.create_model(name, pretrained=False, num_classes=0, **options).eval(), (images,), {0: {0}}


MODELS = TRANSFORMERS | {f"timm_{name}": lambda name=name, options=options: timm_model(name, options) for name, options in TIMM.items()}


def with_statistics(model, inputs):
    """The model with those of its inputs in each batch norm: else the numbers of deep ones vanish."""
    norms = [module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    if norms:
        with torch.no_grad():
            model(*inputs)
    return model.eval()


def cast(inputs, dtype):
    return tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)


def larger(inputs, dims):
    """Returns the inputs with each dynamic dim but the first increased by one: PyTorch specialises sizes of 1."""
    return tuple(
        torch.cat([x] * 2, max(dims.get(i, {0}))).narrow(max(dims.get(i, {0})), 0, x.shape[max(dims.get(i, {0}))] * 2) if dims.get(i) else x
        for i, x in enumerate(inputs)
    )


def rms(x):
    return x.square().mean().sqrt().item() if x.numel() else 0.0


def error(exact, got, least):
    """Root mean square over that of the exact numbers, or over `least` where these are smaller."""
    exact, got = exact.double(), got.double()
    keep = exact.isfinite()
    if not keep.equal(got.isfinite()):
        return float("inf")
    difference, size = rms((exact - got)[keep]), max(rms(exact[keep]), least)
    return difference / size if size else difference


def compared(exact, want, got):
    """The error of ours, and that of PyTorch's, over all tensors; AssertionError where they are of other types."""
    worst = (0.0, 0.0)
    sizes = [min(rms(x.double()[x.isfinite()]) for x in both) for both in zip(tree_leaves(exact), tree_leaves(want)) if both[0].is_floating_point()]
    assert max(sizes) > 0, "the model gives zeros alone"
    least = 1e-3 * max(sizes)  # some gradients are zero but for rounding
    for a, b, c in zip(tree_leaves(exact), tree_leaves(want), tree_leaves(got)):
        assert (b.shape, b.dtype) == (c.shape, c.dtype), (b.shape, b.dtype, c.shape, c.dtype)
        if b.is_floating_point():
            ours, pytorchs = error(a, c, least), error(a, b, least)
            worst = max(
                worst, (ours, pytorchs) if pytorchs < 0.1 else (error(b, c, 0.0), 0.0)
            )  # numbers that f32 hardly has: ours are to be PyTorch's
        else:
            assert b.equal(c), "whole numbers differ"
    return worst


class Unsupported(Exception):
    """PyTorch itself cannot run the model so."""


def trained(model, inputs):
    """The result and the gradients, in an order of their own."""
    model.zero_grad()
    y = model(*inputs)
    y.float().square().mean().backward() if y.dtype != torch.float64 else y.square().mean().backward()
    return [y.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


def run(model, inputs, training):
    if training:
        return trained(model, inputs)
    with torch.no_grad():
        return model(*inputs)


def calls_of(mode, inputs, dims):
    return [inputs, larger(inputs, dims), inputs] if mode == "dynamic" else [inputs, inputs]


def truth(exact, given, training):
    """Returns the model's results in f64, or in f32 if its own casts to f32 cannot be mixed with f64."""
    for dtype, model in exact.items():
        try:
            return tree_map(torch.Tensor.double, run(model, cast(given, dtype), training))
        except RuntimeError as why:
            said = why
    raise said


def tried(name, mode):
    """The errors of the worst call, and the reports."""
    torch._dynamo.reset()
    front.forget()
    torch.manual_seed(SEED)
    model, inputs, dims = MODELS[name]()
    dtype, training = (torch.bfloat16 if mode == "bf16" else torch.float32), mode == "training"
    model, inputs = with_statistics(model, inputs).to(dtype), cast(inputs, dtype)
    exact = {precise: copy.deepcopy(model).to(precise) for precise in (torch.float64, torch.float32)}
    compiled = torch.compile(copy.deepcopy(model), backend="piecewise", dynamic=True if mode == "dynamic" else False)
    worst = (0.0, 0.0)
    for given in calls_of(mode, inputs, dims):
        try:
            want = run(model, given, training)
            want = [x.clone() for x in want] if training else want  # gradients are zeroed in place
        except Exception as why:  # noqa: B902 (whatever a model raises)
            raise Unsupported(str(why)) from why
        worst = max(worst, compared(truth(exact, given, training), want, run(compiled, given, training)))
    return worst, front.graphs()


def is_right(ours, pytorchs, mode):
    return ours <= 4 * pytorchs + (1e-2 if mode == "bf16" else 1e-5)


def line_of(name, mode, least):
    """Returns a line with the outcome of a model, and True if it is correct."""
    start = time.perf_counter()
    try:
        (ours, pytorchs), reports = tried(name, mode)
    except Unsupported as why:
        return f"{name:34} {mode:8} left out, PyTorch has it not: {why}", True
    except Exception as why:  # noqa: B902 (whatever a model raises)
        return f"{name:34} {mode:8} FAILED: {type(why).__name__}: {str(why).strip().splitlines()[0][:160] if str(why).strip() else ''}", None
    taken, ops = (sum(getattr(report, what) for report in reports) for what in ("taken", "ops"))
    share = taken / ops if ops else 1.0
    said = [] if is_right(ours, pytorchs, mode) else ["WRONG"]
    said += (
        []
        if share >= least
        else ["TOO FEW: " + ", ".join(sorted({*(r.refused for r in reports if r.refused), *(op for r in reports for op in r.left)}))[:200]]
    )
    seconds = time.perf_counter() - start
    line = f"{name:34} {mode:8} {taken:5} of {ops:5} ops, {100 * share:5.1f} %, error {ours:8.1e} (PyTorch's {pytorchs:8.1e}), {seconds:5.1f} s"
    return " ".join([line, *said]), not said


def missing():
    for package in ("transformers", "timm"):
        try:
            __import__(package)
        except ImportError as why:
            return f"{package}: {why}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS), metavar="NAME")
    parser.add_argument("--modes", nargs="*", default=MODES, choices=MODES)
    parser.add_argument("--least", type=float, default=0.9, help="the share of ops that is to be taken")
    arguments = parser.parse_args()
    if why := missing():
        print(f"SKIPPED: stock models: {why}", file=sys.stderr)
        return SKIPPED
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    print(f"stock models: seed {SEED}")
    right, count = 0, 0
    for name in arguments.models:
        for mode in arguments.modes:
            if mode == "training" and name not in TRAINED:
                continue
            line, good = line_of(name, mode, arguments.least)
            print(line, flush=True)
            right, count = right + bool(good), count + 1
    print(f"{right} of {count} are right, with {100 * arguments.least:.0f} % of their ops taken or more")
    return 0 if right == count else 1


if __name__ == "__main__":
    sys.exit(main())
