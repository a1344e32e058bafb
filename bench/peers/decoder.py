#!/usr/bin/env python3
"""Generates one decoder graph for all rewriters: `decoder.py OPS [--form graph|mlir|expect]`.

A block has four layers (fp8, bf16, fp8, latent attention with a fused expert unit): 89 ops, and 20 rewrites of the six fusions of peers.pwr. `graph` is a
graph.json, `mlir` the same as generic MLIR, `expect` the counts of a run that tries add_rms before rms_quant, which overlap. It contains near misses: norms
and splits without partner, and one fused norm per block whose result has a second user.
"""
import argparse
import json
import sys

BLOCK, TAIL = 89, 3
PER_BLOCK = {"add_rms": 6, "add_rms_quant": 5, "rms_quant": 1, "silu_mul": 3, "reshape_chain": 2, "silu_mul_quant": 3}
TAIL_REWRITES = {"add_rms": 1}

ROWS = {
    "H": "bf16[n, 4096]",
    "H8": "f8e4m3[n, 4096]",
    "KV": "bf16[n, 1024]",
    "QKV": "bf16[n, 6144]",
    "GU": "bf16[n, 28672]",
    "F": "bf16[n, 14336]",
    "F8": "f8e4m3[n, 14336]",
    "L": "bf16[n, 1536]",
    "L8": "f8e4m3[n, 1536]",
    "KV2": "bf16[n, 2048]",
    "H3": "bf16[n, 32, 128]",
    "KV3": "bf16[n, 8, 128]",
    "H1": "bf16[n, 1, 4096]",
    "V": "bf16[n, 32000]",
}
OPS = [
    "op rotary(pos: i64[n], q: T[n, a], k: T[n, b], cs: T[m, h]) {head: int, neox: bool} -> (qr: T[n, a], kr: T[n, b])",
    "op attention(q: T[n, h, d], k: T[n, g, d], v: T[n, g, d]) {layer: str} -> T[n, h, d] splitting",
    "op fp8_mm(a: f8e4m3[n, k], b: f8e4m3[k, m]) -> bf16[n, m]",
]
QUANT = "static_scaled_fp8_quant"

# One line: results with types, op, operands, attributes. `+w:TYPE` is a new weight.
ATTENTION = """
qr:H kr:KV = rotary positions {q} {k} cos_sin | head=128 neox=true
q3:H3 = reshape qr | shape=-1,32,128
k3:KV3 = reshape kr | shape=-1,8,128
v3:KV3 = reshape v | shape=-1,8,128
o:H3 = attention q3 k3 v3 | layer="layers.{layer}.attn"
"""
GATE = """
g:F u:F = split gu | dim=-1 sizes=14336,14336
sg:F = silu g
m:F = mul {gate}
"""
FP8 = (
    """
a:H = add h res
y:H = rms_norm a +w1:bf16[4096] | eps=1e-6
yq:H8 = quant y +s1:f32[1]
qkv:QKV = fp8_mm yq +m1:f8e4m3[4096,6144]
q:H k:KV v:KV = split qkv | dim=-1 sizes=4096,1024,1024
"""
    + ATTENTION
    + """
o1:H1 = reshape o | shape=-1,1,4096
o2:H = reshape o1 | shape=-1,4096
oq:H8 = quant o2 +s2:f32[1]
p:H = fp8_mm oq +m2:f8e4m3[4096,4096]
r:H = add p a
y2:H = rms_norm r +w2:bf16[4096] | eps=1e-6
y2q:H8 = quant y2 +s3:f32[1]
gu:GU = fp8_mm y2q +m3:f8e4m3[4096,28672]
"""
    + GATE
    + """
mq:F8 = quant m +s4:f32[1]
d:H = fp8_mm mq +m4:f8e4m3[14336,4096]
"""
)
BF16 = (
    """
a:H = add h res
y:H = rms_norm a +w1:bf16[4096] | eps=1e-6
qkv:QKV = mm y +m1:bf16[4096,6144]
q:H k:KV v:KV = split qkv | dim=-1 sizes=4096,1024,1024
"""
    + ATTENTION
    + """
o1:H = reshape o | shape=-1,4096
p:H = mm o1 +m2:bf16[4096,4096]
r:H = add p a
y2:H = rms_norm r +w2:bf16[4096] | eps=1e-6
gu:GU = mm y2 +m3:bf16[4096,28672]
"""
    + GATE
    + """
d:H = mm m +m4:bf16[14336,4096]
"""
)
LATENT = (
    """
y:H a:H = fused_add_rms_norm h res +w1:bf16[4096] | eps=1e-6
yq:H8 = quant y +s1:f32[1]
qa:L = fp8_mm yq +m1:f8e4m3[4096,1536]
qn:L = rms_norm qa +w2:bf16[1536] | eps=1e-6
qq:L8 = quant qn +s2:f32[1]
q:H = fp8_mm qq +m2:f8e4m3[1536,4096]
kv:KV2 = fp8_mm yq +m3:f8e4m3[4096,2048]
k:KV v:KV = split kv | dim=-1 sizes=1024,1024
kn:KV = rms_norm k +w3:bf16[1024] | eps=1e-6
"""
    + ATTENTION
    + """
o1:H = reshape o | shape=-1,4096
oq:H8 = quant o1 +s3:f32[1]
p:H = fp8_mm oq +m4:f8e4m3[4096,4096]
y2:H r:H = fused_add_rms_norm p a +w4:bf16[4096] | eps=1e-6
y2q:H8 = quant y2 +s4:f32[1]
gate:H = mm y2 +m5:bf16[4096,4096]
gu:GU = fp8_mm y2q +m6:f8e4m3[4096,28672]
m:F = silu_and_mul gu
mq:F8 = quant m +s5:f32[1]
e:H = fp8_mm mq +m7:f8e4m3[14336,4096]
d:H = mul e gate
"""
)
LAST = """
a:H = add h res
y:H = rms_norm a +w:bf16[4096] | eps=1e-6
logits:V = mm y +m:bf16[4096,32000]
"""


def constant(text):
    if text.startswith('"') or text in ("true", "false"):
        return json.loads(text)
    if "," in text:
        return [int(part) for part in text.split(",")]
    return int(text) if text.lstrip("-").isdigit() else float(text)


def spaced(type):
    return type.replace(",", ", ")


class Decoder:
    """A decoder. inputs: (name, type, kind); nodes: (op, operands, attributes, results); results: (name, type); types: by name."""

    def __init__(self, ops):
        self.blocks = max(1, round((ops - TAIL) / BLOCK))
        self.inputs, self.nodes, self.types = [], [], {}
        for name, type, kind in (
            ("positions", "i64[n]", "input"),
            ("cos_sin", "bf16[8192, 128]", "buffer"),
            ("hidden", ROWS["H"], "input"),
            ("residual", ROWS["H"], "input"),
        ):
            self.add_input(name, type, kind)
        self.names = {"h": "hidden", "res": "residual"}  # values that a layer reads from the previous one
        for layer in range(4 * self.blocks):
            self.add_layer((FP8, BF16, FP8, LATENT)[layer % 4], layer)
            self.names = {"h": f"l{layer}_d", "res": f"l{layer}_r"}
        self.add_lines(LAST, "")
        self.outputs = ["logits"]

    def add_input(self, name, type, kind):
        self.inputs.append((name, type, kind))
        self.types[name] = type

    def add_layer(self, text, layer):
        q, k = ("q", "kn") if text is LATENT else ("q", "k")
        gate = "sg u" if layer % 8 < 4 else "u sg"
        self.add_lines(text.format(q=q, k=k, layer=layer, gate=gate), f"l{layer}_")

    def add_lines(self, text, prefix):
        for line in filter(None, text.splitlines()):
            left, right = line.split(" = ")
            call, _, given = right.partition(" | ")
            op, *operands = call.split()
            attributes = {k: constant(v) for k, v in (pair.split("=") for pair in given.split())}
            results = [(prefix + name, ROWS[type]) for name, type in (r.split(":") for r in left.split())]
            operands = [self.operand(x, prefix) for x in operands]
            self.types.update(results)
            self.nodes.append((QUANT if op == "quant" else op, operands, attributes, results))

    def operand(self, name, prefix):
        if name.startswith("+"):
            weight, type = name[1:].split(":")
            self.add_input(prefix + weight, spaced(type), "weight")
            return prefix + weight
        if name in ("positions", "cos_sin"):
            return name
        return self.names.get(name) or prefix + name

    def expected(self):
        rules = {rule: count * self.blocks + TAIL_REWRITES.get(rule, 0) for rule, count in PER_BLOCK.items()}
        return {"ops": len(self.nodes), "rewrites": sum(rules.values()), "rules": rules}


def write_graph(d, write):
    def rows(name, items):
        write(f'"{name}": [\n' + ",\n".join(json.dumps(item) for item in items) + "\n],\n")

    write(f'{{\n"format": "piecewise.graph/1",\n"name": "decoder",\n"ops": {json.dumps(OPS)},\n')
    write('"symbols": {"n": {"min": 1, "max": 8192, "role": "tokens"}},\n')
    rows("inputs", ({"name": n, "type": t, "kind": k} for n, t, k in d.inputs))
    rows(
        "nodes",
        (
            {"name": rs[0][0], "op": op, "operands": xs, "attributes": at, "results": [{"name": n, "type": t} for n, t in rs]}
            for op, xs, at, rs in d.nodes
        ),
    )
    write(f'"outputs": {json.dumps(d.outputs)}\n}}\n')


def mlir_attribute(value):
    if isinstance(value, bool) or isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        return "array<i64: " + ", ".join(map(str, value)) + ">"
    return f"{value:e} : f64" if isinstance(value, float) else f"{value} : i64"


def write_mlir(d, write):
    known = {}

    def one(type):
        if type not in known:
            dtype, dims = type[:-1].split("[")
            shape = "x".join("?" if dim == "n" else dim for dim in dims.split(", "))
            known[type] = f"tensor<{shape}x{dtype.replace('f8e4m3', 'f8E4M3FN')}>"
        return known[type]

    def many(names):
        return ", ".join(one(d.types[n]) for n in names)

    def refer(names):
        return ", ".join("%" + n for n in names)

    inputs = [n for n, _, _ in d.inputs]
    write('"builtin.module"() ({\n"func.func"() ({\n^bb0(' + ", ".join(f"%{n}: {one(t)}" for n, t, _ in d.inputs) + "):\n")
    for op, operands, attributes, results in d.nodes:
        names = [n for n, _ in results]
        given = ", ".join(f"{k} = {mlir_attribute(v)}" for k, v in attributes.items())
        write(f'{refer(names)} = "d.{op}"({refer(operands)})' + (f" {{{given}}}" if given else "") + f" : ({many(operands)}) -> ({many(names)})\n")
    write(
        f'"func.return"({refer(d.outputs)}) : ({many(d.outputs)}) -> ()\n}}) {{sym_name = "decoder", '
        f"function_type = ({many(inputs)}) -> ({many(d.outputs)})}} : () -> ()\n}}) : () -> ()\n"
    )


def write_expect(d, write):
    write(json.dumps(d.expected()) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", type=int)
    parser.add_argument("--form", choices=["graph", "mlir", "expect"], default="graph")
    given = parser.parse_args()
    {"graph": write_graph, "mlir": write_mlir, "expect": write_expect}[given.form](Decoder(given.ops), sys.stdout.write)
