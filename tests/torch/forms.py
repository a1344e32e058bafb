"""Three forms of the same small models beside PyTorch: the text that states its types, gm.code with the types of its inputs
given by --type, and a PT2 archive. Each gives PyTorch's numbers, as it is and after o2, on eager and cpu, or is refused with a
reason. Run by run.py.

    forms.py --pwr build/release/bin/pwr [NAME…]
"""
import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch.export import export, save
from torch.fx.experimental.proxy_tensor import make_fx

SHORT = {torch.bfloat16: "bf16", torch.float32: "f32", torch.int64: "i64", torch.bool: "b8", torch.float16: "f16"}
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 4e-2, torch.float16: 4e-3}
FORMS = ("typed", "untyped", "pt2")


def norm(x, w):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def mlp(x, up, down):
    gate, value = (x @ up).chunk(2, -1)
    return (F.silu(gate) * value) @ down


def rope(x, cos, sin):
    h = x.float()
    a, b = h[..., : h.shape[-1] // 2], h[..., h.shape[-1] // 2 :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def attention(q, k, v):
    scores = (q @ k.transpose(-2, -1) * 0.35).float()
    return scores.softmax(-1).to(v.dtype) @ v


def causal(q, k, v):
    seen = torch.ones(4, 4, dtype=torch.bool).tril()
    return (q @ k.transpose(-2, -1)).masked_fill(~seen, float("-inf")).softmax(-1) @ v


def in_place_views(x):
    y = x + 1
    y.t_()
    z = y.relu()
    y.unsqueeze_(0)
    return z, y * 2


def written_views(x):
    y = x.clone()
    part = y[1:3]
    part.transpose_(0, 1)
    part.mul_(2)
    return y, part


def copied_flip(x):
    y = x.clone()
    y.copy_(y.flip(1))
    return y + x


def slices(x):
    return x[1:5, ::2] + x[-4:, :4], x[-1], x[:, -1:]


def whole_numbers(i, k):
    return i + k, i * 0.5, i // 3, i % 3, k.sum(), i / 2


def scattered(x, i, s):
    return x.scatter(0, i, s), x.gather(0, i), x.index_add(0, i[:, 0], s)


def draw(*shape, dtype=torch.float32):
    return (torch.randn(*shape) / 2).to(dtype)


def models():
    b = torch.bfloat16
    i = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])
    yield "norm", norm, [draw(4, 16, dtype=b), 1 + draw(16, dtype=b)]
    yield "two_norms", lambda x, r, w: norm(norm(x + r, w), w), [draw(4, 16, dtype=b), draw(4, 16, dtype=b), 1 + draw(16, dtype=b)]
    yield "mlp", mlp, [draw(4, 16, dtype=b), draw(16, 64, dtype=b), draw(32, 16, dtype=b)]
    yield "mlp_in_f32", lambda x, g: (x.float() * torch.sigmoid(x.float()) * g).to(b), [draw(4, 8, dtype=b), draw(4, 8)]
    yield "casts", lambda x: x.float().exp().to(b), [draw(4, 8, dtype=b)]
    yield "narrower", lambda x: x.to(b).float() + 1, [draw(4, 8)]
    yield "rope", rope, [draw(4, 2, 8, dtype=b), draw(4, 1, 4), draw(4, 1, 4)]
    yield "attention", attention, [draw(2, 4, 8, dtype=b) for _ in range(3)]
    yield "causal", causal, [draw(1, 4, 8) for _ in range(3)]
    yield "softmax", lambda x: torch.exp(x - x.amax(-1, keepdim=True)) / torch.exp(x - x.amax(-1, keepdim=True)).sum(-1, keepdim=True), [draw(4, 8)]
    yield "embedding", lambda t, ids: F.embedding(ids, t) * 2, [draw(10, 4, dtype=b), torch.tensor([1, 9, 0, 3])]
    yield "where", lambda x, z: (torch.where(x > 0, x, z), (x > 0).sum(1)), [draw(4, 4), draw(4, 4, dtype=b)]
    yield "promotion", lambda x, w: (x * w, x * 1.0, x + 1, w + 0.0), [draw(4, dtype=b), draw(4)]
    yield "whole_numbers", whole_numbers, [torch.arange(-3, 4), torch.arange(7)]
    yield "slices", slices, [draw(6, 8)]
    yield "views", lambda x: x.reshape(2, 12).view(2, 3, 4).permute(1, 2, 0).expand(5, 3, 4, 2).sum(0), [draw(2, 3, 4)]
    yield "in_place_views", in_place_views, [draw(2, 3)]
    yield "written_views", written_views, [draw(4, 2)]
    yield "copied_flip", copied_flip, [draw(3, 4)]
    yield "scattered", scattered, [draw(4, 4), i, draw(2, 4)]
    yield "layer_norm", lambda x, w, c: F.layer_norm(x, (8,), w, c), [draw(4, 8), draw(8), draw(8)]
    yield "gelu", lambda x, w: F.gelu(x @ w, approximate="tanh"), [draw(4, 8, dtype=b), draw(8, 8, dtype=b)]


class Wrapped(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def type_text(tensor):
    return f"{SHORT[tensor.dtype]}[{','.join(map(str, tensor.shape))}]"


def written(form, function, inputs, folder):
    """(path, options, names of the inputs)."""
    if form == "pt2":
        program = export(Wrapped(function), tuple(x.clone() for x in inputs), strict=False)
        save(program, folder / "model.pt2")
        return folder / "model.pt2", [], list(program.graph_signature.user_inputs)
    module = make_fx(function, tracing_mode="fake")(*[x.clone() for x in inputs])
    names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
    kinds = [word for n in names for word in ("--input", n)]
    path = folder / f"{form}.fx.txt"
    if form == "typed":
        path.write_text(module.print_readable(print_output=False))
        return path, kinds, names
    path.write_text(module.code)
    return path, kinds + [word for n, x in zip(names, inputs) for word in ("--type", f"{n}={type_text(x)}")], names


def difference(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{tuple(got.shape)}, not {want.dtype}{tuple(want.shape)}"
    limit = TOLERANCE.get(want.dtype, 0)
    if torch.allclose(got.double(), want.double(), atol=limit, rtol=limit, equal_nan=True):
        return ""
    return f"largest difference {(got.double() - want.double()).abs().max().item():.3g}"


def verdict(pwr, form, function, inputs, folder):
    want = torch.utils._pytree.tree_leaves(function(*[x.clone() for x in inputs]))
    path, options, names = written(form, function, inputs, folder)
    save_file({n: x.contiguous() for n, x in zip(names, inputs)}, folder / "in.safetensors")
    for backend in ("eager", "cpu"):
        for rules in ([], ["-r", "llm", "-p", "o2"]):
            out = folder / "out.safetensors"
            command = [pwr, "run", path, *options, *rules, "--backend", backend, "--weights", folder / "in.safetensors", "--save", out]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            if done.returncode:
                reason = next((line for line in done.stderr.splitlines() if line.startswith("error")), "")
                return ("refused", reason) if reason else ("differs", f"ended with {done.returncode} and no reason")
            got = load_file(out)
            order = [v for k, v in got.items() if k not in names]
            if sorted(map(str, (difference(g, w) for g, w in matched(order, want)))) != [""] * len(want):
                return "differs", f"{backend} {' '.join(rules)}: {[difference(g, w) for g, w in matched(order, want)]}"
    return "agrees", ""


def matched(got, want):
    """Each of PyTorch's results with the nearest of ours: a file has them by name, and not in their order."""
    left = list(got)
    for w in want:
        best = next((g for g in left if not difference(g, w)), left[0] if left else torch.empty(0))
        if left:
            left = [g for g in left if g is not best]
        yield best, w


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pwr", type=Path, required=True)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    torch.manual_seed(5)
    torch.set_num_threads(1)
    counts = Counter()
    with torch.no_grad():
        for name, function, inputs in models():
            if arguments.names and name not in arguments.names:
                continue
            for form in FORMS:
                with tempfile.TemporaryDirectory() as folder:
                    found, reason = verdict(arguments.pwr, form, function, inputs, Path(folder))
                counts[form, found] += 1
                if found != "agrees":
                    print(f"  {name} ({form}): {found}: {reason}", flush=True)
    for (form, found), count in sorted(counts.items()):
        print(f"models, {form}: {count} {found}")
    return 1 if any(found == "differs" for _, found in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
