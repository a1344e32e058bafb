#!/usr/bin/env python3
"""Writes cases.jsonl: dumps as PyTorch prints them, inputs, and the outputs that PyTorch computes on a CPU, one case per line.

    build/torch-env/bin/python tests/dumps/make_cases.py

tests/torch/dumped_ops.py has the cases with a single op. This file has those that no trace on a CPU produces: Dynamo's names, attention for devices,
whole pieces of Inductor's dumps. Numbers are bit patterns, as in tests/vectors. The seeds are fixed: running it again changes nothing.
"""
import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "torch"))
import dumped_ops  # noqa: E402
import one_op  # noqa: E402

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
lines = []


def tensor_json(t):
    t = t.detach().contiguous()
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "bytes": t.reshape(-1).view(torch.uint8).numpy().tobytes().hex()}


def add(name, text, inputs, outputs):
    tensors = [t for t in outputs if isinstance(t, torch.Tensor)]
    lines.append({"name": name, "text": text, "inputs": {k: tensor_json(v) for k, v in inputs.items()}, "outputs": [tensor_json(t) for t in tensors]})


def traced(name, function, *inputs):
    text, named, expected = one_op.dumped(function, inputs)
    add(name, text, named, expected.values())


def written(name, lines_of_body, inputs, function, returned="y"):
    """A dump of these statements; `inputs`: tensors by name."""
    typed = ", ".join(f'{k}: "{NAMES[v.dtype]}[{", ".join(map(str, v.shape))}]"' for k, v in inputs.items())
    body = "".join(f"        {line}\n" for line in lines_of_body)
    text = f"class GraphModule(torch.nn.Module):\n    def forward(self, {typed}):\n{body}        return ({returned},)\n"
    given = {k: v.clone() for k, v in inputs.items()}
    results = function(*given.values())
    add(name, text, inputs, results if isinstance(results, tuple) else (results,))


def drawn(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype)


def einsums():
    def keep(name, function, *inputs):
        if not name.startswith("einsum"):
            return
        found = []
        dumped_ops.written = lambda op, equation, x: found.append(equation)
        function(*inputs)
        names = [f"x{i}" for i in range(len(inputs))]
        for form, line in {
            "aten": f"y = torch.ops.aten.einsum.default('{found[0]}', [{', '.join(names)}])",
            "function": f"y = torch.functional.einsum('{found[0]}', {', '.join(names)})",
        }.items():
            if form == "aten" or name in ("einsum_ij_kj__ik", "einsum_bij_bjk__bik"):
                written(f"{name}_{form}", [line], dict(zip(names, inputs)), lambda *x: torch.einsum(found[0], *x))

    dumped_ops.products(keep)


def functional():
    x, y, v = drawn(4, 8), drawn(5, 8), drawn(3)
    two = {"x": x, "y": y}
    written(
        "names_of_torch_functional",
        [
            "l_x_ = x",
            "split = torch.functional.split(l_x_, [2, 6], dim = -1)",
            "a = split[0]",
            "b = split[1];  split = None",
            "c = torch.functional.einsum('ij,kj->ik', l_x_, y)",
            "d = l_x_.movedim(0, 1);  l_x_ = None",
        ],
        two,
        lambda x, y: (*x.split([2, 6], dim=-1), torch.einsum("ij,kj->ik", x, y), x.movedim(0, 1)),
        "a, b, c, d",
    )
    norms = {
        "": {},
        ", p = 1": {"p": 1},
        ", 'fro', dim = 1": {"p": "fro", "dim": 1},
        ", p = 2, dim = [0], keepdim = True": {"p": 2, "dim": [0], "keepdim": True},
    }
    for i, (arguments, keywords) in enumerate(norms.items()):
        written(f"functional_norm_{i}", [f"y = torch.functional.norm(x{arguments})"], {"x": x}, lambda x, k=keywords: torch.norm(x, **k))
    written("method_norm", ["y = x.norm(dim = -1)"], {"x": x}, lambda x: x.norm(dim=-1))
    for indexing in ("ij", "xy"):
        lines_of = [f"meshgrid = torch.functional.meshgrid(u, v, indexing = '{indexing}')", "a = meshgrid[0]", "b = meshgrid[1]"]
        written(
            f"functional_meshgrid_{indexing}", lines_of, {"u": drawn(4), "v": v}, lambda u, v, i=indexing: torch.meshgrid(u, v, indexing=i), "a, b"
        )
    lines_of = ["broadcast_tensors = torch.functional.broadcast_tensors(u, v)", "a = broadcast_tensors[0]", "b = broadcast_tensors[1]"]
    written("functional_broadcast_tensors", lines_of, {"u": drawn(4, 1), "v": v}, torch.broadcast_tensors, "a, b")
    written(
        "functional_tensordot",
        ["y = torch.functional.tensordot(u, v, dims = 2)"],
        {"u": drawn(2, 3, 4), "v": drawn(3, 4, 5)},
        lambda u, v: torch.tensordot(u, v, 2),
    )
    lists = ["y = torch.functional.tensordot(u, v, dims = ([2, 0], [0, 1]))"]
    written("functional_tensordot_lists", lists, {"u": drawn(2, 3, 4), "v": drawn(4, 2, 5)}, lambda u, v: torch.tensordot(u, v, ([2, 0], [0, 1])))
    chain = {"a": drawn(3, 4), "b": drawn(4, 5), "c": drawn(5, 2)}
    written("functional_chain_matmul", ["y = torch.functional.chain_matmul(a, b, c)"], chain, lambda a, b, c: a @ b @ c)
    i = torch.tensor([1, -7, 100, 2**40])
    written("shift_operators", ["a = x << 3", "b = x >> 2", "x <<= 1"], {"x": i}, lambda x: (x << 3, x >> 2, x << 1), "a, b, x")
    in_place = ["c = torch.ops.aten.clone.default(x)", "y = torch.ops.aten.__irshift__.Scalar(c, 2)", "z = torch.ops.aten.add.Tensor(c, 1)"]
    written("shift_in_place", in_place, {"x": i}, lambda x: (x >> 2, (x >> 2) + 1), "y, z")
    for name, call in {
        "sglang": "torch.ops.sglang.inplace_all_reduce.default(x, group_name = 'tp:0')",
        "vllm": "torch.ops.vllm.inplace_all_reduce.default(x, group_name = 'tp:0')",
        "c10d": "torch.ops._c10d_functional.all_reduce_.default(x, 'sum', 'tp:0')",
    }.items():
        lines_of = ["x = torch.ops.aten.relu.default(u)", f"reduced = {call}", "y = torch.ops.aten.add.Tensor(x, 1.0)"]
        written(f"in_place_all_reduce_{name}", lines_of, {"u": drawn(4, 3)}, lambda u: u.relu() + 1)


def attention():
    q, k, v = drawn(2, 4, 5, 8), drawn(2, 4, 7, 8), drawn(2, 4, 7, 8)
    few = {"q": q, "k": k, "v": v}
    same = {"q": drawn(2, 4, 6, 8), "k": drawn(2, 4, 6, 8), "v": drawn(2, 4, 6, 8)}
    bias = few | {"m": drawn(1, 1, 5, 7)}

    def lse(q, k, scale=None, mask=None, causal=False):
        scores = q @ k.transpose(-1, -2) * (scale or q.shape[-1] ** -0.5)
        scores = scores if mask is None else scores + mask
        return (scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1) > 0, float("-inf")) if causal else scores).logsumexp(-1)

    take = ["y = attention[0]", "l = attention[1];  attention = None"]

    def case(name, call, inputs, function):
        written(name, [f"attention = torch.ops.aten.{call}", *take], inputs, function, "y, l")

    flash, efficient = "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention"
    case(
        "flash_attention",
        f"{flash}.default(q, k, v, scale = 0.5)",
        few,
        lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, scale=0.5), lse(q, k, 0.5)),
    )
    case(
        "flash_attention_causal",
        f"{flash}.default(q, k, v, 0.0, True)",
        same,
        lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, is_causal=True), lse(q, k, causal=True)),
    )

    def padded(l, n):
        return torch.cat([l, torch.full((*l.shape[:-1], -n % 32), float("inf"))], -1)

    case(
        "efficient_attention",
        f"{efficient}.default(q, k, v, m, True)",
        bias,
        lambda q, k, v, m: (F.scaled_dot_product_attention(q, k, v, m), padded(lse(q, k, mask=m), 5)),
    )
    case(
        "efficient_attention_alone",
        f"{efficient}.default(q, k, v, None, False, 0.0, True)",
        same,
        lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, is_causal=True), torch.zeros(2, 4, 0)),
    )
    case(
        "cudnn_attention",
        "_scaled_dot_product_cudnn_attention.default(q, k, v, None, True, 0.0, False)",
        few,
        lambda q, k, v: (F.scaled_dot_product_attention(q, k, v), lse(q, k)[..., None]),
    )


def quantised():
    a, b = drawn(4, 16).to(torch.float8_e4m3fn), drawn(8, 16).to(torch.float8_e4m3fn)
    rows, columns = torch.rand(4, 1) + 0.5, torch.rand(1, 8) + 0.5

    def product(a, b, sa, sb, bias=None):
        out = (a.double() * sa.double()) @ (b.double().t() * sb.double())
        return (out if bias is None else out + bias.double()).to(torch.bfloat16)

    one = {"a": a, "b": b, "sa": torch.tensor(0.5), "sb": torch.tensor(2.5)}
    call = "torch.ops.aten._scaled_mm.default(a, t, sa, sb{}, out_dtype = torch.bfloat16, use_fast_accum = True)"
    t = "t = torch.ops.aten.permute.default(b, [1, 0])"
    written("scaled_mm", [t, "y = " + call.format("")], one, product)
    written("scaled_mm_rows", [t, "y = " + call.format("")], one | {"sa": rows, "sb": columns}, product)
    written("scaled_mm_bias", [t, "y = " + call.format(", c")], one | {"c": drawn(8, dtype=torch.bfloat16)}, product)


def pieces():
    """A case from Inductor's dumps, with smaller images and a bit mask."""
    mask = torch.randint(-(2**31), 2**31, (1, 2), dtype=torch.int64).to(torch.int32)
    scores = drawn(1, 50)

    def masked(mask, scores):
        bits = (mask[:, :, None] >> torch.arange(32, dtype=torch.int32)).reshape(1, 64)[:, :50] & 1
        return torch.where(bits == 0, float("-inf"), scores)

    written(
        "bits_of_a_mask",
        [
            "unsqueeze = torch.ops.aten.unsqueeze.default(mask, 2)",
            "expand = torch.ops.aten.expand.default(unsqueeze, [1, 2, 32])",
            "clone = torch.ops.aten.clone.default(expand, memory_format = torch.contiguous_format)",
            "view = torch.ops.aten.reshape.default(clone, [1, 64])",
            "iota = torch.ops.prims.iota.default(32, start = 0, step = 1, dtype = torch.int32, device = device(type='npu', index=0), requires_grad = False)",
            "repeat = torch.ops.aten.repeat.default(iota, [2])",
            "rshift = torch.ops.aten.__rshift__.Tensor(view, repeat)",
            "bitwise_and = torch.ops.aten.bitwise_and.Scalar(rshift, 1)",
            "slice_1 = torch.ops.aten.slice.Tensor(bitwise_and, 1, 0, 50)",
            "eq = torch.ops.aten.eq.Scalar(slice_1, 0)",
            "full = torch.ops.aten.full.default([], -inf, dtype = torch.float32, layout = torch.strided, device = device(type='npu', index=0), pin_memory = False)",
            "y = torch.ops.aten.where.self(eq, full, scores)",
        ],
        {"mask": mask, "scores": scores},
        masked,
    )
    written(
        "every_second_row",
        [
            "iota = torch.ops.prims.iota.default(4, start = 0, step = 1, dtype = torch.int64, device = device(type='cpu'), requires_grad = False)",
            "wide = torch.ops.prims.convert_element_type.default(iota, torch.float64)",
            "mul = torch.ops.aten.mul.Tensor(wide, 1)",
            "near = torch.ops.prims.convert_element_type.default(mul, torch.float32)",
            "at = torch.ops.aten.mul.Tensor(near, 2.25)",
            "floor = torch.ops.prims.convert_element_type.default(at, torch.int64)",
            "y = torch.ops.aten._unsafe_index.Tensor(x, [None, floor])",
        ],
        {"x": drawn(3, 9)},
        lambda x: x[:, (torch.arange(4) * 2.25).long()],
    )


def main():
    torch.manual_seed(7)
    dumped_ops.add_cases(traced)
    for add_all in (einsums, functional, attention, quantised, pieces):
        add_all()
    (HERE / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{len(lines)} cases")


if __name__ == "__main__":
    main()
